"""A model that joins the pool later: bought on its share of each group, the old pool as before."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import Losing, make_workload

import saverouter as sr
from saverouter.routers.saverouter.acquisition import within_groups


@pytest.fixture(scope="module")
def work():
    return make_workload(n=600, models=6, seed=4)


def test_within_groups_takes_a_share_of_each_group_rounded_up():
    groups = np.repeat([0, 1, 2], [25, 7, 100])
    available = np.ones(132, bool)
    available[25:32] = [True, False, False, False, False, False, False]
    rows = within_groups(groups, available, 0.1, seed=0)
    assert np.bincount(groups[rows]).tolist() == [3, 1, 10] and available[rows].all()
    assert (np.diff(rows) > 0).all()
    assert within_groups(groups, available, 1.0, seed=0).tolist() == np.flatnonzero(available).tolist()
    assert (within_groups(groups, available, 0.1, seed=1) != rows).any()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_newcomer_is_bought_on_its_share_and_the_old_pool_as_before(missing):
    train, _ = make_workload(n=1000, missing=missing, seed=2).split(0.5)
    bought = {}
    for share in (0.1, 1.0):
        feedback = train.feedback()
        router = sr.SaveRouter(k=2, newcomer="model-1", newcomer_share=share).fit(train.queries, feedback)
        bought[share] = feedback.observations
        expected = within_groups(router.groups_, train.available[:, 1], share, 42)
        assert sorted(bought[share].query("model == 'model-1'")["row"]) == expected.tolist()
        assert feedback.spent == pytest.approx(bought[share]["cost"].sum())
    old, older = (bought[share].query("model != 'model-1'") for share in (0.1, 1.0))
    pd.testing.assert_frame_equal(old, older)
    others = np.delete(train.available, 1, axis=1).sum(axis=1)
    assert len(old) == np.minimum(others, 2).sum()


def test_without_a_newcomer_nothing_changes(work):
    train, test = work.split()
    plain, named = (sr.SaveRouter(newcomer_share=share).fit(train.queries, train.feedback()) for share in (0.1, 0.7))
    np.testing.assert_array_equal(plain.predict_quality(test.queries), named.predict_quality(test.queries))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"newcomer": "model-9"}, "newcomer 'model-9' is not in the pool; it has model-0"),
        ({"newcomer": "model-1", "newcomer_share": 0}, "newcomer_share is 0; expected more than 0"),
        ({"newcomer": "model-1", "newcomer_share": 1.5}, "newcomer_share is 1.5"),
    ],
)
def test_an_impossible_newcomer_is_refused_before_anything_is_bought(work, options, message):
    feedback = work.feedback()
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.SaveRouter(**options).fit(work.queries, feedback)
    assert feedback.spent == 0


def test_missing_outcomes_of_a_newcomer_are_paid_for_and_not_learnt_from(work):
    train, test = work.split()
    feedback = Losing(train, 0.4)
    router = sr.SaveRouter(k=1, newcomer="model-1", newcomer_share=0.5).fit(train.queries, feedback)
    bought, seen = feedback.observations, router.observations_
    came = bought[bought["quality"].notna()]
    assert 0 < len(came) < len(bought) and feedback.spent == pytest.approx(bought["cost"].sum())
    assert len(seen.rows) == len(came) and np.isfinite(seen.quality).all()
    assert (seen.models == 1).sum() == (came["model"] == "model-1").sum() < (bought["model"] == "model-1").sum()
    assert np.isfinite(router.predict_quality(test.queries)).all()


def test_missing_outcomes_of_an_added_model(work):
    train, test = work.split()
    whole = Losing(train, 0.4)
    names = [name for name in train.models if name != "model-1"]
    columns = [train.models.index(name) for name in names]
    old = replace(train, models=names, quality=train.quality[:, columns], cost=train.cost[:, columns])
    router = sr.SaveRouter(k=1).fit(old.queries, old.feedback())
    more = router.add_model("model-1", train.queries, whole, share=0.5)
    added = whole.observations
    assert (more.observations_.models == 1).sum() == added["quality"].notna().sum() < len(added)
    assert np.isfinite(more.predict_quality(test.queries)).all()
    with pytest.raises(sr.SaveRouterError, match="none of the .* came back"):
        router.add_model("model-1", train.queries, Losing(train, lost=np.ones_like(whole.lost)), share=0.5)
