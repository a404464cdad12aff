"""What is bought: the compiled rule against a plain one, and the laws of the budget."""

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.routers.saverouter.acquisition import RULES, acquire
from saverouter.workloads.feedback import Feedback


class AskedOneByOne(Feedback):
    """Feedback as a live system gives it: no replay, an answer at a time."""

    def __init__(self, work):
        super().__init__(work.queries, work.models)
        self.work = work

    def _outcomes(self, rows, models):
        assert len(rows) == 1
        return self.work.quality[rows, models], self.work.cost[rows, models]


def plain(work, groups, k, policy="ucb", exploration=0.35, prior=10.0, seed=42):
    """The rule of section 4.1 written down with numpy, a query at a time."""
    n, models = work.quality.shape
    taken = np.zeros((n, models), dtype=bool)
    for number in range(k):
        rng = np.random.default_rng(seed + 1009 * number)
        count, total = np.zeros((groups.max() + 1, models)), np.zeros((groups.max() + 1, models))
        for i in rng.permutation(n):
            g, open_ = groups[i], np.flatnonzero(work.available[i] & ~taken[i])
            if not len(open_):
                continue
            untried = open_[count[g, open_] == 0]
            if policy == "random":
                m = rng.choice(open_)
            elif len(untried):
                m = rng.choice(untried)
            else:
                overall = (total.sum(0) + 1) / (count.sum(0) + 2)
                capability = (total[g] + prior * overall) / (count[g] + prior)
                bonus = exploration * np.sqrt(np.log(count[g].sum() + 1) / np.maximum(count[g], 1))
                score = (
                    capability * (policy != "uncertainty")
                    + bonus * (policy != "capability")
                    + rng.random(models) * 1e-12
                )
                m = open_[np.argmax(score[open_])]
            taken[i, m] = True
            count[g, m] += 1
            total[g, m] += work.quality[i, m]
    return taken


def mask(work, bought):
    out = np.zeros(work.quality.shape, dtype=bool)
    out[bought[0], bought[1]] = True
    return out


@pytest.mark.parametrize("policy", RULES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_compiled_rule_is_the_plain_one(policy, missing):
    work = make_workload(missing=missing, models=7)
    groups = np.unique(work.tasks.astype(str), return_inverse=True)[1]
    bought = acquire(work.feedback(), groups, k=3, rule=policy)
    np.testing.assert_array_equal(mask(work, bought), plain(work, groups, 3, policy))


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
def test_live_feedback_buys_the_same(masked_work, policy):
    groups = np.unique(masked_work.tasks.astype(str), return_inverse=True)[1]
    live = AskedOneByOne(masked_work)
    replayed = masked_work.feedback()
    one_by_one = acquire(live, groups, k=2, rule=policy)
    for slow, fast in zip(one_by_one, acquire(replayed, groups, k=2, rule=policy), strict=True):
        np.testing.assert_array_equal(slow, fast)
    assert live.spent == pytest.approx(replayed.spent, rel=1e-12)


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
    ({"grouping": "none"}, "grouping is 'none'"),
    ({"shrinkage": -1}, "shrinkage is -1"),
    ({"residual_ridge": np.nan}, "residual_ridge is nan"),
])  # fmt: skip
def test_bad_options_are_named_before_anything_is_bought(work, options, message):
    feedback = work.feedback()
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.SaveRouter(**options).fit(work.queries, feedback)
    assert feedback.spent == 0
