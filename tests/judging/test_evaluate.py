"""Operating points, frontiers and results."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload
from hypothesis import given, settings
from hypothesis import strategies as st

import saverouter as sr
from saverouter.judging import SELECTIONS, Reference, Result
from saverouter.judging.interval import Sample, bootstrap
from saverouter.judging.operating_points import (
    GatePolicies,
    ThresholdPolicies,
    operating_points,
    pareto,
    saverouter_policies,
    threshold_grid,
    threshold_policies,
)
from saverouter.judging.policies import Switch


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
    assert result.selection == "test" and SELECTIONS["test"] in result.verdict()
    with pytest.raises(sr.SaveRouterError, match="select is 'train'"):
        sr.evaluate(router, test, supervision_cost=spent, select="train")


def test_the_best_single_model_skips_missing_pairs():
    nan = np.nan
    test = sr.Workload(
        query_ids="ab", prompts="ab", models=["x", "y", "z"],
        quality=[[nan, 0.5, 0.7], [0.6, 0.5, 0.5]], cost=[[nan, 1, 2], [3, 1, 2]],
    )  # fmt: skip
    assert sr.best_single(test) == Reference("x", 0.6, 3.0)


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


def test_the_papers_family_has_its_published_sizes():
    """201 cost weights from 0 over 1e-4 to 1e3, a threshold per mean cost, 100 gates each, quantiles of the gain."""
    rng = np.random.default_rng(1)
    families = saverouter_policies(rng.random((500, 4)), rng.random((500, 4)), np.array([1.0, 2.0, 3.0, 4.0]))
    weights, thresholds, *gated = families
    assert len(weights) == 201 and weights.weights[[0, 1, -1]] == pytest.approx([0.0, 1e-4, 1e3])
    assert np.allclose(np.diff(np.log(weights.weights[1:])), np.log(1e7) / 199)
    assert thresholds.thresholds.tolist() == [1.0, 2.0, 3.0, 4.0] and len(gated) == 4
    for family in gated:  # quantiles that are equal count once: a query within its budget has nothing to gain
        np.testing.assert_array_equal(family.gates, np.unique(np.quantile(family.gain, np.linspace(0, 1, 100))))
    assert [len(family) > 20 for family in gated] == [True, True, True, False]


def test_a_gain_that_costs_next_to_nothing_counts_as_large_as_it_is():
    """Extra costs are taken to be at least 1e-8 of the dearest model's, which is what a gain is divided by."""
    quality, mean = np.array([[0.2, 0.7]]), np.array([1.0, 1.0 + 1e-5])
    for extra, gain in ((1e-5, 0.5 / (1e-5 / mean[1])), (0.0, 0.5 / 1e-8), (-0.5, 0.5 / 1e-8)):
        _, _, lowest, *_ = saverouter_policies(quality, np.array([[1.0, 1.0 + extra]]), mean)
        assert lowest.gain[0] == pytest.approx(gain, rel=1e-9)


REACHED = pd.DataFrame({"policy": ["a", "b"], "quality": [0.7, 0.8123], "cost": [0.1, 0.4267]})


def made_up(**changes):
    reference = Reference("gpt", 0.8, 1.0)
    return Result("Router", "work", REACHED, reference, supervision_cost=1234.5, **changes)


def test_the_verdict_says_what_the_numbers_say_and_no_more_digits_than_can_be_trusted():
    yes = made_up()
    assert yes.sa_bep == 2154 and yes.sa_cr == pytest.approx(0.4279345)
    assert yes.verdict() == (
        "Yes: Router reaches the best single model's quality (gpt, 0.80) at 43% of its cost (policy: b). The supervision is "
        "paid back after about 2,200 queries; over 1,000,000 queries the whole bill, supervision included, is 43% of the best "
        "single model's (operating point chosen on test outcomes)."
    )
    late = made_up(horizon=2000).verdict()
    assert late.startswith("Not within the horizon: Router reaches") and "over 2,000 queries" in late
    assert made_up(target=0.875).verdict().startswith("Yes: Router reaches 0.875 of the best single model's quality")
    assert made_up(margin=10).verdict().startswith("Yes: Router reaches within 10 points of the best single model's")
    assert made_up(target=1.2).verdict() == (
        "No: Router peaks at 0.81 and does not reach 1.2 of the best single model's quality (gpt, 0.80)."
    )
    even = replace(yes, frontier=REACHED.assign(cost=[0.1, 0.997]), supervision_cost=0.0)
    assert even.verdict().startswith(
        "Hardly: Router reaches the best single model's quality (gpt, 0.80) at 100% of its cost"
    )
    assert replace(even, frontier=REACHED.assign(cost=[0.1, 0.99])).verdict().startswith("Yes: ")
    dear = replace(yes, frontier=REACHED.assign(cost=[0.1, 1.0]))
    assert dear.verdict() == "No: Router reaches the best single model's quality (gpt, 0.80) but saves nothing over it."


@pytest.mark.parametrize("options, message", [
    ({"target": -1}, "target is -1; expected a positive multiple"),
    ({"target": "0.9"}, "target is '0.9'; expected a positive multiple"),
    ({"target": 95}, "target is 95; expected a multiple .*: write 0.95 for 95%"),
    ({"target": 0.9, "margin": 1}, "target is 0.9 and margin is 1; give one of the two"),
    ({"margin": math.inf}, "margin is inf"),
    ({"horizon": -5}, "horizon is -5"),
    ({"horizon": None, "target": math.nan}, "target is nan"),
])  # fmt: skip
def test_other_questions_must_make_sense(options, message):
    with pytest.raises(sr.SaveRouterError, match=message):
        made_up().at(**options)


def test_results_are_shown_in_a_line():
    assert repr(made_up()) == "<Result of Router on work: cost ratio 0.4267 at 0.8, SA-BEP 2,154, SA-CR 0.4279>"
    assert "cost ratio inf" in repr(made_up(target=2)) and len(repr(made_up())) < 120


def test_swapped_arguments_are_told_apart(work):
    router, test, spent = fitted(work)
    with pytest.raises(sr.SaveRouterError, match="test is a SaveRouter; expected a Workload"):
        sr.evaluate(test, router, supervision_cost=spent)


def _choices_by_label(router, test) -> dict:
    families = router.policies(test.queries)
    return {family.label(place): family.choice(place) for family in families for place in range(len(family))}


def test_the_reference_takes_its_part_of_the_cost():
    """Counted anew from the choices themselves."""
    router, test, spent = fitted(make_workload(n=400, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent)
    column = test.models.index(result.reference.model)
    labels = _choices_by_label(router, test)
    for point in result.frontier.itertuples():
        chosen = labels[point.policy] == column
        assert point.reference_cost == pytest.approx(np.where(chosen, test.cost[:, column], 0).mean())


@pytest.mark.parametrize("name", ["best_single", "oracle"])
def test_choices_made_in_hindsight_have_no_other_price(name):
    train, test = make_workload(n=400, seed=4).split()
    bound = sr.make_router(name).fit(train.queries, train.feedback())
    result = sr.evaluate(bound, test, supervision_cost=0.0)
    assert result.frontier["reference_cost"].isna().all() and result.cost_ratio <= 1
    with pytest.raises(sr.SaveRouterError, match="chooses in hindsight"):
        result.repriced(0.5, 0.0)


def test_another_price_of_the_reference_changes_only_its_part():
    router, test, spent = fitted(make_workload(n=400, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent, target=0.9)
    part = 0.25 * spent
    assert result.repriced(1.0, part).metrics() == pytest.approx(result.metrics())
    half, column = result.repriced(0.5, part), test.models.index(result.reference.model)
    assert half.reference.cost == pytest.approx(0.5 * result.reference.cost)
    assert half.supervision_cost == pytest.approx(spent - 0.5 * part)
    cheaper = test.cost.copy()
    cheaper[:, column] *= 0.5
    choices = _choices_by_label(router, test)
    for point in half.frontier.itertuples():
        assert point.cost == pytest.approx(cheaper[np.arange(len(test)), choices[point.policy]].mean())
    assert half.frontier["quality"].is_monotonic_increasing and half.frontier["cost"].is_monotonic_increasing
    with pytest.raises(sr.SaveRouterError, match="factor is -1"):
        result.repriced(-1, part)


def test_no_router_is_needed_where_a_single_model_does_as_well():
    models = (Reference("gpt", 0.8, 1.0), Reference("small", 0.79, 0.2), Reference("mini", 0.6, 0.1))
    same = made_up(singles=models)
    assert same.single == models[0] and same.verdict() == made_up().verdict()
    lower = same.at(margin=1)
    assert lower.single == models[1] and lower.serving_cost > 0.2
    assert lower.verdict() == (
        "No router needed: small alone reaches within 1 point of the best single model's quality (gpt, 0.80) at 20% of its "
        "cost; Router takes 43%, supervision included (model and operating point chosen on test outcomes)."
    )
    close = replace(
        lower, singles=(models[0], Reference("small", 0.79, 0.427))
    )  # dearer to serve, but without supervision
    assert close.single.cost > close.serving_cost and close.verdict().startswith("No router needed")
    assert close.at(horizon=10**8).verdict().startswith("Yes: Router")
    assert made_up(singles=models, margin=11).verdict().startswith("Yes: Router")  # at 0.1, which small is not
    assert made_up(singles=models).at(target=2).single is None
    missed = replace(lower, frontier=REACHED.assign(quality=[0.1, 0.2]))
    assert "; Router does not (model and" in missed.verdict()
    cheap = replace(lower, frontier=REACHED.assign(reference_cost=0.0)).repriced(0.1, 0.0)
    assert cheap.single == Reference("gpt", 0.8, 0.1)


def test_a_given_policy_that_misses_its_target_is_judged_and_said_to_miss():
    given = replace(made_up(selection="given", target=2), frontier=REACHED.iloc[:1])
    assert not given.reaches and given.cost_ratio == pytest.approx(0.1) and math.isfinite(given.sa_bep)
    assert given.verdict() == (
        "No: Router scores 0.70 (policy: a) and does not reach 2 of the best single model's quality (gpt, 0.80), at 10% of "
        "its cost (operating point given beforehand)."
    )
    named = made_up(named_reference=True, margin=1).verdict()
    assert named.startswith(
        "Yes: Router reaches within 1 point of gpt's quality (0.80) at 43% of its cost (policy: b)."
    )
    assert "is 43% of gpt's (operating point" in named


def test_single_models_and_what_the_test_outcomes_cost():
    router, test, spent = fitted(make_workload(n=400, missing=0.3, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent)
    assert [one.model for one in result.singles] == list(test.models) and result.reference in result.singles
    assert result.test_cost == pytest.approx(np.nansum(test.cost)) and result.supervision_cost == spent
    good = [one for one in result.singles if one.quality >= 0.7 * result.reference.quality]
    assert result.at(target=0.7).single.cost == min(one.cost for one in good)
    other = sr.evaluate(router, test, supervision_cost=spent, reference="model-1")
    assert other.reference == result.singles[1] and "model-1's quality" in other.verdict()
    with pytest.raises(
        sr.SaveRouterError, match="reference is 'model1', which is not in the pool; did you mean 'model-1'"
    ):
        sr.evaluate(router, test, supervision_cost=spent, reference="model1")


def test_intervals_cover_the_truth_as_often_as_they_say():
    """A policy whose outcomes are as good as the reference's and cost half: 200 test sets, paired."""
    rng, within = np.random.default_rng(3), np.zeros(3)
    for _ in range(200):
        both = rng.random(150) < 0.8
        changed = rng.random(150) < 0.2
        quality = np.column_stack([np.where(changed, rng.random(150) < 0.8, both), both]).astype(float)
        cost = np.column_stack([rng.gamma(4, 1 / 8, 150), rng.gamma(4, 1 / 4, 150)])
        sums = Sample(np.zeros((1, 150), int), quality, cost, 1).sums(0)
        low, high = bootstrap(sums, 100.0, 0.9, draws=200)[["low", "high"]].T.to_numpy()
        within += (low <= [0, 0.5, 200]) & ([0, 0.5, 200] <= high)
    assert (within >= 0.83 * 200).all() and (within <= 0.97 * 200).all()


def test_a_point_that_asks_several_models_brings_its_own_outcomes():
    """By query, as served; what the reference does stays in the table. Other points are read from it as ever."""
    quality, cost = np.array([[0.0, 1], [1, 0], [1, 1]]), np.array([[1.0, 10]] * 3)
    served = np.array([[0.5, 0.25, 1.0], [2.0, 3.0, 4.0]])
    sample = Sample(np.array([[0, 0, 1], [-1, -1, -1]]), quality, cost, 1, several={1: served})
    assert sample.sums(0)[:, :3].tolist() == [[0, 1, 1], [1, 1, 1], [1, 10, 1]]
    assert sample.sums(1).tolist() == [[0.5, 2, 1, 1, 10, 1], [0.25, 3, 1, 0, 10, 1], [1, 4, 1, 1, 10, 1]]
    together = replace(sample, clusters=np.array(["a", "b", "a"]))
    assert together.sums(1).tolist() == [[1.5, 6, 2, 2, 20, 2], [0.25, 3, 1, 0, 10, 1]]


def test_queries_of_a_cluster_are_drawn_together():
    router, test, spent = fitted(make_workload(n=400, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent, target=0.9)
    point = result.operating_point
    found = result.interval()
    assert found.loc["quality difference", "estimate"] == pytest.approx(
        100 * (point["quality"] - result.reference.quality)
    )
    assert found.loc["saving", "estimate"] == pytest.approx(1 - result.cost_ratio)
    assert found.loc["sa_bep", "estimate"] == pytest.approx(result.sa_bep, abs=1)
    assert (found["low"] <= found["estimate"]).all() and (found["estimate"] <= found["high"]).all()
    pd.testing.assert_frame_equal(found, result.interval())  # the same draws each time
    assert (result.interval(0.5)["high"] <= found["high"]).all()
    doubled = {name: np.concatenate([getattr(result.sample, name)] * 2, axis=axis)
               for name, axis in (("chosen", 1), ("quality", 0), ("cost", 0))}  # fmt: skip
    apart = replace(result.sample, **doubled)
    together = replace(apart, clusters=np.array([f"c{i:03d}" for i in range(len(test))] * 2))
    width = [
        np.ptp(replace(result, sample=sample).interval().loc["saving", ["low", "high"]]) for sample in (apart, together)
    ]
    assert width[0] < 0.85 * width[1]
    assert width[1] == pytest.approx(np.ptp(found.loc["saving", ["low", "high"]]), rel=1e-6)
    assert "90% intervals over the test queries: quality" in result.verdict()
    assert f"calls of {result.reference.model}." in result.verdict()


def test_a_result_without_outcomes_in_memory_has_no_interval():
    router, test, spent = fitted(make_workload(n=400, seed=4))
    result = sr.evaluate(router, test, supervision_cost=spent)
    sent = pickle.loads(pickle.dumps(result))
    assert sent.sample is None and sent.metrics() == result.metrics() and "intervals" not in sent.verdict()
    for without in (sent, result.repriced(0.5, 0.0), made_up()):
        with pytest.raises(sr.SaveRouterError, match="has no outcomes by query in memory; intervals come from a fresh"):
            without.interval()
    with pytest.raises(sr.SaveRouterError, match="has no operating point"):
        result.at(target=9).interval()
    work = make_workload(n=500, flat_cost=True)
    router, test, spent = fitted(replace(work, quality=np.tile(np.linspace(0.2, 0.9, 5), (500, 1))), "knn")
    unreal = sr.evaluate(router, test, supervision_cost=spent, synthetic_best_point=True)
    unreal = replace(unreal, frontier=unreal.frontier.assign(quality=0.1), policies=unreal.policies)
    assert unreal.operating_point["policy"] == "synthetic" and "saves nothing" in unreal.verdict()
    for ask in (unreal.interval, lambda: unreal.policy):
        with pytest.raises(sr.SaveRouterError, match="no operating point that a policy realises|cannot be deployed"):
            ask()
    with pytest.raises(sr.SaveRouterError, match="level is 90; .*write 0.9"):
        result.interval(90)


@pytest.mark.parametrize("name", ["saverouter", "knn"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_anchored_policies_join_the_frontier(name, missing):
    """All 100 of the path, judged as any other; without them nothing changes."""
    work = make_workload(n=800, seed=4, missing=missing)
    router, test, spent = fitted(work, name)
    plain = sr.evaluate(router, test, supervision_cost=spent)
    more = sr.evaluate(router, test, supervision_cost=spent, anchored="model-3")
    assert more.n_policies == plain.n_policies + 100 and more.last_quality == plain.last_quality
    for quality, cost in plain.frontier[["quality", "cost"]].to_numpy():
        assert more.frontier.loc[more.frontier["cost"] <= cost + 1e-15, "quality"].max() >= quality - 1e-12
    rows, added = np.arange(len(test)), 0
    for policy, point in zip(more.policies, more.frontier.itertuples(), strict=True):
        assert policy.label == point.policy
        if isinstance(policy, Switch):
            added += 1
            chosen = [test.models.index(model) for model in router.route(test.queries, policy=policy)]
            assert test.quality[rows, chosen].mean() == pytest.approx(point.quality, abs=1e-12)
            assert test.cost[rows, chosen].mean() == pytest.approx(point.cost, rel=1e-12)
    assert added or missing
    with pytest.raises(sr.SaveRouterError, match="anchored policies join a frontier"):
        sr.evaluate(router, test, supervision_cost=spent, anchored="model-3", policy=plain.policies[0])
    with pytest.raises(sr.SaveRouterError, match="anchored is 'gpt', which is not in the pool"):
        sr.evaluate(router, test, supervision_cost=spent, anchored="gpt")
    loaded = pickle.loads(pickle.dumps(router))
    with pytest.raises(sr.SaveRouterError, match=r"give them: evaluate\(..., train=train.queries\)"):
        sr.evaluate(loaded, test, supervision_cost=spent, anchored="model-3")
    given = sr.evaluate(loaded, test, supervision_cost=spent, anchored="model-3", train=work.split()[0])
    pd.testing.assert_frame_equal(given.frontier, more.frontier)
