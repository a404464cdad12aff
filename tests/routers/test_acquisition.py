"""What is bought by the paper's rule: the compiled form against a plain one, alone and in batches, and the laws of the budget."""

import numpy as np
import pytest
from conftest import Losing, make_workload

import saverouter as sr
from saverouter.routers.saverouter.acquisition import RULES, acquire
from saverouter.workloads import Feedback, at_once


class AskedLive(Feedback):
    """Feedback as a live system gives it: no replay, a batch of answers at a time."""

    batch = 1

    def __init__(self, work, lost=False):
        super().__init__(work.queries, work.models)
        self.quality, self.cost, self.sizes = np.where(lost, np.nan, work.quality), work.cost, []
        self.lacks = bool(np.any(lost))

    def _outcomes(self, rows, models):
        self.sizes.append(len(rows))
        return self.quality[rows, models], self.cost[rows, models]


def plain(work, groups, k, policy="ucb", exploration=0.35, prior=10.0, seed=42, batch=1, lost=None):
    """The rule of section 4.1 written down with numpy; ``tried`` runs ahead of the answers inside a batch."""
    n, models = work.quality.shape
    taken = np.zeros((n, models), dtype=bool)
    lost = np.zeros((n, models), dtype=bool) if lost is None else lost
    for number in range(k):
        rng = np.random.default_rng(seed + 1009 * number)
        tried, count, total = np.zeros((3, groups.max() + 1, models))
        waiting = []
        for place, i in enumerate(rng.permutation(n)):
            if place % batch == 0:
                for g, m, quality in waiting:
                    count[g, m] += 1
                    total[g, m] += quality
                waiting = []
            g, open_ = groups[i], np.flatnonzero(work.available[i] & ~taken[i])
            if not len(open_):
                continue
            untried = open_[tried[g, open_] == 0]
            if policy == "random":
                m = rng.choice(open_)
            elif len(untried):
                m = rng.choice(untried)
            else:
                overall = (total.sum(0) + 1) / (count.sum(0) + 2)
                answers = count[g] + prior
                capability = np.divide(total[g] + prior * overall, answers, out=overall.copy(), where=answers > 0)
                bonus = exploration * np.sqrt(np.log(tried[g].sum() + 1) / np.maximum(tried[g], 1))
                score = (
                    capability * (policy != "uncertainty")
                    + bonus * (policy != "capability")
                    + rng.random(models) * 1e-12
                )
                m = open_[np.argmax(score[open_])]
            taken[i, m] = True
            tried[g, m] += 1
            if not lost[i, m]:
                waiting.append((g, m, work.quality[i, m]))
    return taken


def mask(work, bought):
    out = np.zeros(work.quality.shape, dtype=bool)
    out[bought[0], bought[1]] = True
    return out


BATCHES = (1, 2, 7, 32, 299, 1000)  # of 300 queries


@pytest.mark.parametrize("policy", RULES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("batch", BATCHES)
def test_the_compiled_rule_is_the_plain_one(policy, missing, batch):
    work = make_workload(missing=missing, models=7)
    groups = np.unique(work.tasks.astype(str), return_inverse=True)[1]
    for prior in (10.0, 0.0):  # without a prior, a model that waits for its first answer has no mean
        bought = acquire(work.feedback(), groups, k=3, rule=policy, acquisition_prior=prior, batch=batch)
        expected = plain(work, groups, 3, policy, prior=prior, batch=batch)
        np.testing.assert_array_equal(mask(work, bought), expected)


@pytest.mark.parametrize("policy", RULES)
@pytest.mark.parametrize("batch", BATCHES)
def test_missing_outcomes_were_tried_and_not_answered(masked_work, policy, batch):
    groups = np.unique(masked_work.tasks.astype(str), return_inverse=True)[1]
    replayed = Losing(masked_work)
    live = AskedLive(masked_work, replayed.lost)
    fast, slow = (acquire(feedback, groups, k=2, rule=policy, batch=batch) for feedback in (replayed, live))
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other)
    taken = plain(masked_work, groups, 2, policy, batch=batch, lost=replayed.lost)
    np.testing.assert_array_equal(mask(masked_work, fast), taken & ~replayed.lost)  # for learning: what was answered
    assert np.isfinite(fast[2]).all() and (taken & replayed.lost).any()
    for feedback in (replayed, live):  # on the bill: all of it
        assert (
            feedback.spent == pytest.approx(masked_work.cost[taken].sum()) and len(feedback.observations) == taken.sum()
        )


def test_a_model_that_never_answers_does_not_take_the_whole_coverage(work):
    dead = np.zeros(work.quality.shape, dtype=bool)
    dead[:, 0] = True
    feedback = Losing(work, lost=dead)
    acquire(feedback, np.zeros(len(work), dtype=int), k=1)
    assert 1 <= (feedback.observations["model"] == "model-0").sum() < len(work) / 4
    with pytest.raises(sr.SaveRouterError, match="none of the 300 outcomes that were bought came back"):
        acquire(Losing(work, lost=np.ones_like(dead)), np.zeros(len(work), dtype=int), k=1)


def test_random_purchases_need_no_answers(work):
    groups = np.zeros(len(work), dtype=int)
    alone, together = (mask(work, acquire(work.feedback(), groups, k=2, rule="random", batch=b)) for b in (1, 50))
    np.testing.assert_array_equal(alone, together)


def test_a_batch_spreads_over_models_that_wait(work):
    """Purchases that wait count as tried: else all of a batch would go to the same model."""
    waiting = acquire(work.feedback(), np.zeros(len(work), dtype=int), k=1, batch=len(work))
    assert np.bincount(waiting[1], minlength=5).min() > len(work) / 10


@pytest.mark.parametrize("policy", RULES)
def test_a_large_pool_and_a_bonus_of_any_size(policy):
    """Scores that are close beside their size, and generators that jump far."""
    work = make_workload(n=500, models=60, tasks=3)
    groups = np.unique(work.tasks.astype(str), return_inverse=True)[1]
    for exploration in (0.0, 0.35, 1e6):
        bought = acquire(work.feedback(), groups, k=4, rule=policy, exploration=exploration)
        expected = plain(work, groups, 4, policy, exploration)
        if exploration < 1:
            np.testing.assert_array_equal(mask(work, bought), expected)
        else:  # rounding of such scores exceeds the noise, so that the order of additions decides
            assert (mask(work, bought).sum(1) == 4).all()


@pytest.mark.parametrize("policy", RULES)
@pytest.mark.parametrize("batch", BATCHES)
def test_live_feedback_buys_the_same(masked_work, policy, batch):
    """A batch of queries is one request, and none spans two passes."""
    groups = np.unique(masked_work.tasks.astype(str), return_inverse=True)[1]
    live = AskedLive(masked_work)
    replayed = masked_work.feedback()
    one_by_one = acquire(live, groups, k=2, rule=policy, batch=batch)
    for slow, fast in zip(one_by_one, acquire(replayed, groups, k=2, rule=policy, batch=batch), strict=True):
        np.testing.assert_array_equal(slow, fast)
    assert live.spent == pytest.approx(replayed.spent, rel=1e-12)
    assert max(live.sizes) == min(batch, len(masked_work)) and len(live.sizes) <= 2 * -(-len(masked_work) // batch)


def test_the_feedback_says_how_many_choose_at_once_unless_the_router_does(work):
    class Patient(AskedLive):
        batch = 25

    assert work.feedback().batch == Feedback.batch.fget(None) == 1
    for asked, size in ((None, 25), (1, 1), (40, 40)):
        feedback = Patient(work)
        router = sr.SaveRouter(k=1, batch=asked).fit(work.queries, feedback)
        assert max(feedback.sizes) == size and router.get_params()["batch"] is asked
    with pytest.raises(sr.SaveRouterError, match="batch is 0"):
        Patient.batch = 0
        sr.SaveRouter().fit(work.queries, Patient(work))


def test_a_live_batch_is_a_tenth_of_the_queries_and_not_large():
    assert [at_once(queries) for queries in (5, 19, 100, 1_279, 1_280, 90_000)] == [1, 1, 10, 127, 128, 128]


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_each_query_gets_k_distinct_models_or_all_it_has(masked_work, k):
    groups = np.zeros(len(masked_work), dtype=int)
    bought = mask(masked_work, acquire(masked_work.feedback(), groups, k=k))
    np.testing.assert_array_equal(bought.sum(1), np.minimum(k, masked_work.available.sum(1)))
    assert not (bought & ~masked_work.available).any()


def test_k_of_all_models_is_dense_supervision(masked_work):
    train, _ = masked_work.split()
    feedback = train.feedback()
    sr.SaveRouter(k=len(train.models)).fit(train.queries, feedback)
    assert len(feedback.observations) == train.available.sum()
    assert feedback.spent == pytest.approx(np.nansum(train.cost), rel=1e-12)


def test_a_larger_budget_keeps_what_a_smaller_one_bought(work):
    groups = np.zeros(len(work), dtype=int)
    small, large = (mask(work, acquire(work.feedback(), groups, k=k)) for k in (2, 3))
    assert (large | ~small).all() and large.sum() > small.sum()


def test_the_seed_decides(work):
    groups = np.zeros(len(work), dtype=int)
    one, same, other = (mask(work, acquire(work.feedback(), groups, k=2, seed=s)) for s in (1, 1, 2))
    assert (one == same).all() and (one != other).any()


@pytest.mark.parametrize("options, message", [
    ({"acquisition": "greedy"}, "acquisition is 'greedy'; expected one of ucb, random"),
    ({"policy": "greedy"}, "acquisition is 'greedy'"),
    ({"k": 0}, "k is 0; expected a whole number"),
    ({"k": 1.5}, "k is 1.5"),
    ({"batch": 0}, "batch is 0; expected a whole number of queries that choose at once, at least 1"),
    ({"batch": 1.5}, "batch is 1.5"),
    ({"grouping": "none"}, "grouping is 'none'"),
    ({"shrinkage": -1}, "shrinkage is -1"),
    ({"residual_ridge": np.nan}, "residual_ridge is nan"),
])  # fmt: skip
def test_bad_options_are_named_before_anything_is_bought(work, options, message):
    feedback = work.feedback()
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.SaveRouter(**options).fit(work.queries, feedback)
    assert feedback.spent == 0
