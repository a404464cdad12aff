"""A router that is taught again on a split: what ``fit`` would have learnt, and what a certificate of it saves."""

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.judging.policies import Always
from saverouter.studies.promises import reference_of
from saverouter.studies.retaught import Retaught

BUDGET = {"rule": "anchored", "reference": "model-4", "budget": 0.2}


@pytest.mark.parametrize("own", [True, False])
def test_it_learns_what_fit_would_learn(own):
    """Groups and words are shared by the runs of a split, and nothing changes by that."""
    work = make_workload(n=300, seed=2, with_vectors=own)
    learn, rest = work.split(seed=1)
    split = Retaught(work, 1)
    for how in ({"k": 2, "batch": 32}, {"k": 1}, BUDGET):
        feedback = learn.feedback()
        options = {"acquisition" if name == "rule" else name: value for name, value in how.items()}
        fitted = sr.SaveRouter(seed=1, **options).fit(learn.queries, feedback)
        taught, paid = split.taught(seed=1, **how)
        assert paid.spent == feedback.spent and paid.observations.equals(feedback.observations)
        np.testing.assert_allclose(
            taught.predict_quality(rest.queries), fitted.predict_quality(rest.queries), atol=1e-12
        )
        np.testing.assert_array_equal(taught.predict_cost(rest.queries), fitted.predict_cost(rest.queries))


def test_a_certificate_is_judged_on_other_queries_than_it_was_bought_on():
    work = make_workload(n=1_400, seed=2)
    split = Retaught(work, 3)
    router, _ = split.taught(seed=3, k=2)
    found = split.certified(router)
    fresh, served = split.rest.take(slice(500)), split.rest.take(slice(500, None))
    again, _ = split.taught(seed=3, k=2)  # a router certifies on the same queries only once
    certificate = sr.certify(
        again, fresh.queries, fresh.feedback(), reference=reference_of(work), train=split.learn.queries
    )
    known, rows = router.estimates(served.queries), np.arange(len(served))
    cost, base = (
        served.cost[rows, policy.choice(*known)].mean()
        for policy in (certificate.policy, Always(model=split.reference, models=work.models))
    )
    assert found["fresh"] == 500 and found["certified saving"] == pytest.approx(1 - cost / base)
    assert found["certificate"] == pytest.approx(certificate.spent / base)


def test_few_queries_certify_nothing_and_few_may_teach():
    work = make_workload(n=300)
    split = Retaught(work, 0, train=20)
    assert len(split.learn) == 20 and len(split.rest) == 240 and split.fresh == 0
    assert split.certified(split.taught(seed=0, k=1)[0]) == {"fresh": 0, "certified saving": None, "certificate": None}
