"""Operating points, frontiers and results."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload
from hypothesis import given, settings
from hypothesis import strategies as st

import saverouter as sr
from saverouter.policies import (
    GatePolicies,
    ThresholdPolicies,
    operating_points,
    pareto,
    saverouter_policies,
    threshold_grid,
    threshold_policies,
)


def fitted(work, name="saverouter", **options):
    train, test = work.split()
    feedback = train.feedback()
    return sr.make_router(name, **options).fit(train.queries, feedback), test, feedback.spent


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_whole_family_is_scored_as_its_choices_are(missing):
    router, test, _ = fitted(make_workload(missing=missing), k=2)
    families = router.policies(test.queries)
    points = operating_points(families, test.quality, test.cost)
    rows = np.arange(len(test))
    number = 0
    for family in families:
        for index in range(len(family)):
            chosen = family.choice(index)
            assert test.available[rows, chosen].all()
            assert points["quality"][number] == pytest.approx(test.quality[rows, chosen].mean(), abs=1e-12)
            assert points["cost"][number] == pytest.approx(test.cost[rows, chosen].mean(), rel=1e-12)
            number += 1
    assert number == len(points)
    assert sum(isinstance(family, GatePolicies) for family in families) == len(families[1]) == 5
    assert len(families[0]) == 201


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), min_size=1, max_size=40))
def test_a_frontier_strictly_rises_and_dominates(points):
    frame = pd.DataFrame(points, columns=["cost", "quality"]).assign(policy="p")
    front = pareto(frame)
    assert (np.diff(front["quality"]) > 0).all() and (np.diff(front["cost"]) > 0).all()
    for _, point in frame.iterrows():
        assert ((front["cost"] <= point["cost"]) & (front["quality"] >= point["quality"] - 1e-12)).any()


def test_thresholds_send_stuck_queries_to_their_cheapest_model():
    quality = np.array([[0.9, 0.5, 0.1], [-np.inf, 0.5, 0.6]])
    policies = ThresholdPolicies(quality, np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0, 3.0]))
    assert [policies.choice(i).tolist() for i in range(4)] == [[0, 1], [0, 1], [0, 1], [0, 2]]


def test_threshold_grids_are_all_values_or_quantiles_of_the_distinct_ones():
    assert threshold_grid(np.array([3.0, 1.0, 3.0]), 100).tolist() == [1.0, 3.0]
    grid = threshold_grid(np.arange(1000.0), 100)
    assert len(grid) == 100 and grid[0] == 0 and grid[-1] == 999
    assert len(threshold_policies(np.zeros((50, 4)), np.random.default_rng(0).random((50, 4)))[0]) == 100


def test_everything_to_the_best_model_saves_nothing():
    """Costs that no router can lower: ties are ties, not savings."""
    work = make_workload(n=500, flat_cost=True)
    quality = np.tile(np.linspace(0.2, 0.9, 5), (500, 1))  # the dearest model is always the best
    router, test, spent = fitted(replace(work, quality=quality))
    result = sr.evaluate(router, test, supervision_cost=spent)
    assert result.cost_ratio == pytest.approx(1.0) and result.sa_bep == math.inf and result.sa_cr == math.inf
    assert "saves nothing" in result.verdict()


def test_targets_and_margins(work):
    router, test, spent = fitted(make_workload(n=800, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent)
    relaxed = [result.at(target=t) for t in (0.8, 0.9, 1.0)]
    assert [r.cost_ratio for r in relaxed] == sorted(r.cost_ratio for r in relaxed)
    margin = result.at(margin=2)
    assert margin.target_quality == pytest.approx(result.reference.quality - 0.02)
    assert margin.cost_ratio <= result.cost_ratio
    assert result.at(target=5).cost_ratio == math.inf and "does not reach" in result.at(target=5).verdict()
    assert result.at(horizon=10**9).sa_cr < result.sa_cr
    direct = sr.evaluate(router, test, supervision_cost=spent, margin=2, horizon=500)
    assert direct.cost_ratio == margin.cost_ratio and direct.sa_cr == margin.at(horizon=500).sa_cr


def test_the_operating_point_is_said_to_be_chosen_on_test_outcomes():
    router, test, spent = fitted(make_workload(n=800, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent)
    assert "chosen on test outcomes" in result.selection and result.selection in result.verdict()
    with pytest.raises(sr.SaveRouterError, match="select is 'train'"):
        sr.evaluate(router, test, supervision_cost=spent, select="train")


def test_the_best_single_model_skips_missing_pairs():
    nan = np.nan
    test = sr.Workload(
        query_ids="ab", prompts="ab", models=["x", "y", "z"],
        quality=[[nan, 0.5, 0.7], [0.6, 0.5, 0.5]], cost=[[nan, 1, 2], [3, 1, 2]],
    )  # fmt: skip
    assert sr.best_single(test) == sr.evaluate.__globals__["Reference"]("x", 0.6, 3.0)


def test_ties_in_the_reference_go_to_the_earlier_model(work):
    same = replace(work, quality=np.full_like(work.quality, 0.5))
    assert sr.best_single(same).model == "model-0"


@pytest.mark.parametrize("options, message", [
    ({"supervision_cost": -1.0}, "supervision_cost is -1"),
    ({"supervision_cost": math.nan}, "supervision_cost is nan"),
    ({"horizon": 0}, "horizon is 0"),
    ({"target": 0}, "target is 0"),
    ({"margin": math.nan}, "margin is nan"),
])  # fmt: skip
def test_nonsense_is_refused(work, options, message):
    router, test, spent = fitted(work)
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.evaluate(router, test, **{"supervision_cost": spent, **options})


def test_a_router_that_was_not_fitted_is_refused(work):
    with pytest.raises(sr.SaveRouterError, match="SaveRouter has not been fitted; call fit"):
        sr.evaluate(sr.SaveRouter(), work, supervision_cost=0.0)


def test_another_pool_is_refused(work):
    router, test, spent = fitted(work)
    with pytest.raises(sr.SaveRouterError, match="fitted on the pool"):
        sr.evaluate(router, replace(test, models=test.models[::-1]), supervision_cost=spent)


def test_free_models_break_nothing():
    work = make_workload(n=200, flat_cost=True)
    router, test, spent = fitted(replace(work, cost=np.zeros_like(work.cost)))
    result = sr.evaluate(router, test, supervision_cost=spent)
    assert spent == 0 and result.sa_bep == math.inf and result.sa_cr == math.inf


def test_gates_are_quantiles_of_gain(work):
    rng = np.random.default_rng(1)
    families = saverouter_policies(rng.random((500, 4)), rng.random((500, 4)), np.array([1.0, 2.0, 3.0, 4.0]))
    assert len(families) == 2 + 4
    assert all(len(family) <= 100 for family in families[2:])
