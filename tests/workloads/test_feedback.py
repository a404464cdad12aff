"""The one door: it charges exactly what it reveals, and nothing that was not bought can matter."""

from functools import partial

import numpy as np
import pytest
from conftest import Losing, corrupted, make_workload
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import saverouter as sr
from saverouter.routers.saverouter.acquisition import choose
from saverouter.workloads import ANSWERED, EARNED, Feedback, ReplayFeedback, Workload, one_by_one

SMALL = make_workload(n=40, missing=0.2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 39), st.integers(0, 4)), min_size=1, max_size=60))
def test_the_meter_charges_exactly_what_was_revealed(pairs):
    pairs = [pair for pair in pairs if SMALL.available[pair]]
    feedback = SMALL.feedback()
    for row, model in pairs:
        quality, cost = feedback.reveal(row, model)
        assert quality[0] == SMALL.quality[row, model] and cost[0] == SMALL.cost[row, model]
    assert feedback.spent == pytest.approx(sum(SMALL.cost[pair] for pair in pairs), abs=1e-15)
    assert feedback.spent_distinct == pytest.approx(sum(SMALL.cost[pair] for pair in set(pairs)), abs=1e-15)
    assert len(feedback.observations) == len(pairs)


def test_models_may_be_named_and_sides_broadcast(work):
    feedback = work.feedback()
    quality, _ = feedback.reveal(np.arange(10), "model-2")
    assert (quality == work.quality[:10, 2]).all()
    assert set(feedback.observations["model"]) == {"model-2"}


def test_impossible_requests_cost_nothing(masked_work):
    feedback = masked_work.feedback()
    row, model = np.argwhere(~masked_work.available)[0]
    for request, message in (
        ((row, model), f"'model-{model}' is unavailable for query 'q{row}'"),
        ((0, "gpt-9"), "model 'gpt-9' is not in the pool"),
        ((300, 0), "query row 300 does not exist"),
        ((0, 5), "model 5 does not exist"),
    ):
        with pytest.raises(sr.SaveRouterError, match=message):
            feedback.reveal(*request)
    assert feedback.spent == 0 and feedback.observations.empty


@pytest.mark.parametrize("name, options", [
    ("saverouter", {"k": 2}),
    ("saverouter", {"k": 1, "acquisition": "random"}),
    ("saverouter", {"k": 3, "policy": "capability", "grouping": "latent"}),
    ("saverouter", {"k": 2, "acquisition": "uncertainty", "grouping": "global"}),
    ("knn", {"k": 20, "fraction": 0.3}),
])  # fmt: skip
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_outcomes_that_were_not_bought_never_matter(name, options, missing):
    work = make_workload(missing=missing)
    train, test = work.split()
    feedback = train.feedback()
    router = sr.make_router(name, **options).fit(train.queries, feedback)
    bought = np.zeros(train.quality.shape, dtype=bool)
    bought[feedback.observations["row"], [train.models.index(m) for m in feedback.observations["model"]]] = True
    assert bought.sum() < train.available.sum()
    nonsense = corrupted(train, bought)
    again = nonsense.feedback()
    other = clone(router).fit(nonsense.queries, again)
    assert again.spent == feedback.spent
    assert again.observations.equals(feedback.observations)
    np.testing.assert_array_equal(other.predict_quality(test.queries), router.predict_quality(test.queries))
    np.testing.assert_array_equal(other.predict_cost(test.queries), router.predict_cost(test.queries))


def test_the_replay_hands_out_nothing_but_what_was_bought(work):
    """A rule sees what was bought before, and the table is neither among its arguments nor on the meter."""
    groups, seen = np.zeros(len(work), dtype=np.int64), []

    def watching(rng, is_open, here, pool, options):
        seen.append((is_open.shape, here[ANSWERED].sum(), here[EARNED].sum()))
        return np.argmax(is_open)

    passes = [(np.random.default_rng(0), np.arange(len(work)))]
    rows, models, quality, _ = one_by_one(work.feedback(), watching, passes, groups, work.available.copy(), np.zeros(1))
    assert all(shape == (len(work.models),) for shape, _, _ in seen)
    assert [count for _, count, _ in seen] == list(range(len(work)))
    assert [total for _, _, total in seen] == pytest.approx([0, *np.cumsum(quality)[:-1]])
    given = [value for value in vars(work.feedback()).values() if isinstance(value, np.ndarray)]
    assert [name for name, value in vars(work.feedback()).items() if isinstance(value, np.ndarray)] == [
        "_quality",
        "_cost",
    ]
    assert not any(value.flags.writeable for value in given)


@pytest.mark.parametrize("sold", [Workload.feedback, Losing])
@pytest.mark.parametrize("batch", [1, 3, 64, 500])
def test_the_compiled_replay_is_the_loop_it_stands_for(masked_work, batch, sold):
    groups = np.unique(masked_work.tasks.astype(str), return_inverse=True)[1]
    options = np.array([0, 0.35, 10.0])
    bought = []
    for buy in (sold(masked_work).in_turn, partial(one_by_one, sold(masked_work))):
        passes = ((rng, rng.permutation(len(groups))) for rng in map(np.random.default_rng, (1, 2)))
        bought.append(buy(choose, passes, groups, masked_work.available.copy(), options, batch))
    for fast, slow in zip(*bought, strict=True):
        np.testing.assert_array_equal(fast, slow)


class Answers(Feedback):
    """A live feedback whose judge and bill say what they like."""

    def __init__(self, work, quality=0.5, cost=0.1):
        super().__init__(work.queries, work.models)
        self.quality, self.cost = quality, cost

    def _outcomes(self, rows, models):
        odd = (rows == 2) & (models == 1)
        return np.where(odd, self.quality, 0.5), np.where(odd, self.cost, 0.1)


@pytest.mark.parametrize("answer, message", [
    ({"quality": np.nan}, "quality of model 'model-1' for query 'q2' came back as nan; expected 0..1"),
    ({"quality": 87}, "quality of model 'model-1' for query 'q2' came back as 87; expected 0..1: rescale"),
    ({"quality": -0.1}, "came back as -0.1"),
    ({"quality": np.inf}, "came back as inf"),
    ({"cost": np.nan}, "cost of model 'model-1' for query 'q2' came back as nan; expected a finite number >= 0"),
    ({"cost": -1}, "came back as -1"),
    ({"cost": np.inf}, "came back as inf"),
])  # fmt: skip
def test_no_feedback_reveals_an_outcome_that_is_none(work, answer, message):
    """A judge's NaN or 87 would reach every estimate; what was paid for beside it stays on the bill."""
    feedback = Answers(work, **answer)
    with pytest.raises(sr.SaveRouterError, match=message):
        feedback.reveal([0, 1, 2, 3], 1)
    assert feedback.observations["row"].tolist() == [0, 1, 3] and feedback.spent == pytest.approx(0.3)
    assert np.isfinite(feedback.observations["quality"]).all()
    train = Answers(work, **answer)
    with pytest.raises(sr.SaveRouterError, match="came back as"):
        sr.SaveRouter(k=5).fit(work.queries, train)


@pytest.mark.parametrize("answer, message", [
    ({"quality": 87}, "quality of model 'model-1' for query 'q2' came back as 87"),
    ({"quality": np.inf}, "came back as inf"),
    ({"quality": np.nan, "cost": np.nan}, "cost of model 'model-1' for query 'q2' came back as nan"),
    ({"quality": np.nan, "cost": -1}, "cost of .* came back as -1"),
])  # fmt: skip
def test_where_outcomes_may_be_missing_all_else_is_refused_as_before(work, answer, message):
    class Careless(Answers):
        lacks = True

    with pytest.raises(sr.SaveRouterError, match=message):
        Careless(work, **answer).reveal([0, 1, 2, 3], 1)


def test_a_missing_outcome_is_paid_for(work):
    feedback = Losing(work, 0.3)
    rows, models = np.nonzero(work.available)
    quality, cost = feedback.reveal(rows, models)
    np.testing.assert_array_equal(np.isnan(quality), feedback.lost[rows, models])
    assert feedback.lost.any() and feedback.spent == pytest.approx(work.cost.sum())
    assert feedback.spent_distinct == pytest.approx(work.cost.sum())
    assert feedback.observations["quality"].isna().sum() == feedback.lost.sum()


def test_a_replay_reveals_no_outcome_that_is_none(work):
    quality = work.quality.copy()
    quality[0, 0] = 87
    with pytest.raises(sr.SaveRouterError, match="came back as 87"):
        ReplayFeedback(work.queries, quality, work.cost).reveal([0], [0])


def test_whole_numbers_and_lists_are_outcomes(work):
    class Whole(Answers):
        def _outcomes(self, rows, models):
            return [1] * len(rows), [2] * len(rows)

    quality, cost = Whole(work).reveal([0, 1], 0)
    assert quality.tolist() == [1.0, 1.0] and cost.dtype == np.float64 and quality.dtype == np.float64


def test_queries_and_feedback_must_belong_together(work):
    train, test = work.split()
    with pytest.raises(sr.SaveRouterError, match="240 queries but feedback for 60"):
        sr.SaveRouter().fit(test.queries, train.feedback())


def test_an_outcome_may_be_paid_for_and_missing_only_where_that_is_said(work):
    class Lacking(Answers):
        lacks = True

    quality, cost = Lacking(work, quality=np.nan).reveal([0, 1, 2, 3], 1)
    assert np.flatnonzero(np.isnan(quality)).tolist() == [2] and cost.sum() == pytest.approx(0.4)
    with pytest.raises(sr.SaveRouterError, match="cost of model 'model-1' for query 'q2' came back as inf"):
        Lacking(work, quality=np.nan, cost=np.inf).reveal([0, 1, 2, 3], 1)
    with pytest.raises(sr.SaveRouterError, match="came back as 87"):
        Lacking(work, quality=87).reveal([2], 1)
    assert Lacking(work).batch == work.feedback().batch == 1
