"""What every router must do, on workloads of every shape; then what is peculiar to some."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from conftest import make_workload
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor
from threadpoolctl import threadpool_limits

import saverouter as sr
from saverouter.policies import operating_points
from saverouter.routers.base import PILOT
from saverouter.routers.carrot import CARROT
from saverouter.routers.hybridllm import HybridLLM
from saverouter.routers.references import BestSingle, CheapestSingle, Oracle, Random
from saverouter.routers.routerdc import ClusterDraws, RouterDC, best_and_worst, contrast, query_clusters

SHAPES = {
    "complete": dict(n=120),
    "masked": dict(n=120, missing=0.3),
    "one model": dict(n=120, models=1),
    "constant costs": dict(n=120, flat_cost=True),
    "forty models": dict(n=120, models=40),
    "twenty queries": dict(n=20),
    "one task": dict(n=120, tasks=1),
    "untried model": dict(n=120),
}
QUICK = {"rmsoftmax": {"epochs": 10}}  # as good as 300 on so few queries
HINDSIGHT = {"oracle", "best_single"}
PRICED = {"semirouter", "random", "cheapest_single"}  # they read the price list, which is free where there is one
NOTHING_BOUGHT = HINDSIGHT | {"random", "cheapest_single"}
# Chance scores 0.55 on the workload with signal, the best single model 0.74. By default the margin over chance is 0.05.
MARGIN = dict.fromkeys(
    ["saverouter", "knn", "carrot", "embedllm", "inferencedynamics", "rmsoftmax", "trouter", "uniroute"], 0.21
)
PATIENT = {"graphrouter": {"epochs": 50}}  # its batch takes all 400 queries, and 10 steps are too few
UNIT_BOUND = {
    **dict.fromkeys(["embedllm", "omnirouter", "mlp", "graphrouter", "equirouter"], "squared error of costs"),
    "trouter": "costs are sigmoids",
    "mirt": "costs are sigmoids",
    "rmsoftmax": "its cost weights are per unit of money",
    "svm": "errors of costs below 0.1 are ignored",
}

every_router = pytest.mark.parametrize("name", sorted(sr.ROUTERS))
every_shape = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads only wait for each other on workloads as small as these."""
    with threadpool_limits(limits=1):
        yield


@cache
def parts(shape):
    train, test = make_workload(**SHAPES[shape]).split()
    if shape == "untried model":
        hole = np.where(np.arange(len(train.models)) == 2, np.nan, 1.0)
        train = replace(train, quality=train.quality * hole, cost=train.cost * hole)
    return train, test


@cache
def fitted(name, shape):
    """The router, fitted once for all tests, and its feedback."""
    train, _ = parts(shape)
    feedback = train.feedback()
    return sr.make_router(name, **QUICK.get(name, {})).fit(train.queries, feedback), feedback


def points(router, test):
    return operating_points(router.policies(test.queries), test.quality, test.cost)


def knows_outcomes(router):
    return getattr(router, "hindsight", False)


@every_shape
@every_router
def test_estimates_are_finite_and_of_the_right_shape(name, shape):
    router, _ = fitted(name, shape)
    _, test = parts(shape)
    source = test if knows_outcomes(router) else test.queries
    for estimate in (router.predict_quality(source), router.predict_cost(source)):
        assert estimate.shape == test.quality.shape and estimate.dtype == np.float64
        assert np.isfinite(estimate).all()


@every_shape
@pytest.mark.parametrize("name", sorted(set(sr.ROUTERS) - HINDSIGHT))
def test_only_available_models_are_chosen(name, shape):
    router, _ = fitted(name, shape)
    _, test = parts(shape)
    rows, scored = np.arange(len(test)), points(router, test)
    number = 0
    for family in router.policies(test.queries):
        for index in range(len(family)):
            chosen = family.choice(index)
            assert test.available[rows, chosen].all(), family.label(index)
            assert scored["quality"][number] == pytest.approx(test.quality[rows, chosen].mean(), abs=1e-12)
            assert scored["cost"][number] == pytest.approx(test.cost[rows, chosen].mean(), rel=1e-9)
            number += 1
    assert number == len(scored)
    for cost_weight in (0, 0.1, 10):
        chosen = [test.models.index(model) for model in router.route(test.queries, cost_weight)]
        assert test.available[rows, chosen].all()


@every_shape
@every_router
def test_its_frontier_strictly_rises(name, shape):
    router, feedback = fitted(name, shape)
    frontier = sr.evaluate(router, parts(shape)[1], supervision_cost=feedback.spent).frontier
    assert len(frontier) and np.isfinite(frontier[["quality", "cost"]]).all(axis=None)
    assert (np.diff(frontier["quality"]) > 0).all() and (np.diff(frontier["cost"]) > 0).all()


@pytest.mark.parametrize("shape", ["masked", "twenty queries"])
@every_router
def test_the_same_seed_gives_the_same_router(name, shape):
    router, feedback = fitted(name, shape)
    train, test = parts(shape)
    torch.manual_seed(7)  # whatever the caller's state is
    np.random.seed(7)
    again_feedback = train.feedback()
    again = clone(router).fit(train.queries, again_feedback)
    assert again_feedback.observations.equals(feedback.observations)
    assert points(again, test).equals(points(router, test))
    source = test if knows_outcomes(router) else test.queries
    np.testing.assert_array_equal(again.predict_quality(source), router.predict_quality(source))
    np.testing.assert_array_equal(again.predict_cost(source), router.predict_cost(source))


@pytest.mark.parametrize("shape", ["complete", "masked", "one model"])
@every_router
def test_the_meter_shows_what_the_method_buys(name, shape):
    router, feedback = fitted(name, shape)
    train, _ = parts(shape)
    asked = np.zeros(train.quality.shape, dtype=int)
    bought = feedback.observations
    np.add.at(asked, (bought["row"], [train.models.index(model) for model in bought["model"]]), 1)
    has = train.available
    if name in NOTHING_BOUGHT:
        assert not asked.any()
    elif name == "saverouter":
        assert asked.max() == 1
        np.testing.assert_array_equal(asked.sum(axis=1), np.minimum(router.k, has.sum(axis=1)))
    elif name == "wiserouter":
        np.testing.assert_array_equal(asked.sum(axis=1), 1)
    elif name == "barp":
        np.testing.assert_array_equal(asked.sum(axis=1), 100)
    elif name == "semirouter":
        size = len(train.models)
        anchor = np.zeros(size, dtype=bool)
        anchor[np.argsort(np.nanmean(train.cost, axis=0))[[0, size // 2, size - 1]]] = True
        np.testing.assert_array_equal(asked[:, anchor], has[:, anchor])
        np.testing.assert_array_equal(asked[:, ~anchor].sum(axis=1), np.minimum(2, has[:, ~anchor].sum(axis=1)))
        assert asked.max() == 1
    else:
        np.testing.assert_array_equal(asked, has)
    assert feedback.spent == pytest.approx(np.nansum(asked * train.cost))
    assert feedback.spent_distinct == pytest.approx(np.nansum((asked > 0) * train.cost))


@pytest.mark.parametrize("shape", ["complete", "masked"])
@pytest.mark.parametrize("name", ["knn", "embedllm"])
def test_a_fraction_buys_that_share_of_the_pairs(name, shape):
    train, _ = parts(shape)
    feedback = train.feedback()
    sr.make_router(name, fraction=0.3).fit(train.queries, feedback)
    bought = feedback.observations
    assert len(bought) == round(0.3 * train.available.sum()) and not bought.duplicated(["row", "model"]).any()


class Bare:
    """Feedback reduced to what a router may rely on, as somebody else would write it."""

    def __init__(self, work):
        self.work, self.asked = work, []

    def available(self, queries):
        return self.work.available

    def reveal(self, query_rows, models):
        self.asked += list(zip(query_rows.tolist(), models.tolist(), strict=True))
        return self.work.quality[query_rows, models], self.work.cost[query_rows, models]


@every_router
def test_any_feedback_with_the_two_methods_will_do(name):
    """Without a price list a small pilot is bought first; nothing else differs."""
    router, feedback = fitted(name, "masked")
    train, test = parts("masked")
    bare = Bare(train)
    other = clone(router).fit(train.queries, bare)
    usual = [(row, train.models.index(model)) for row, model in feedback.observations[["row", "model"]].to_numpy()]
    pilot, rest = bare.asked[: len(bare.asked) - len(usual)], bare.asked[len(bare.asked) - len(usual) :]
    assert sorted(rest) == sorted(usual)
    rows = {row for row, _ in pilot}
    assert len(rows) == (min(PILOT, len(train)) if name in PRICED else 0)
    assert len(pilot) == len(set(pilot)) == train.available[sorted(rows)].sum()
    assert other.models_ == train.models
    assert points(other, test).equals(points(router, test))


@cache
def result_with_costs_times(factor, name):
    work = make_workload(n=300, seed=2)
    train, test = replace(work, cost=work.cost * factor).split()
    feedback = train.feedback()
    router = sr.make_router(name).fit(train.queries, feedback)
    return sr.evaluate(router, test, supervision_cost=feedback.spent, target=0.8)


@pytest.mark.parametrize("scale", [2.0**-20, 1 / 3, 1e6])
@pytest.mark.parametrize("name", sorted(set(sr.ROUTERS) - set(UNIT_BOUND)))
def test_scaling_all_costs_changes_no_ratio(name, scale):
    plain, scaled = result_with_costs_times(1.0, name), result_with_costs_times(scale, name)
    assert scaled.peak_score == pytest.approx(plain.peak_score, abs=1e-12)
    assert len(scaled.frontier) == len(plain.frontier)
    np.testing.assert_allclose(scaled.frontier["cost"] / scale, plain.frontier["cost"], rtol=1e-9)
    assert scaled.cost_ratio == pytest.approx(plain.cost_ratio, rel=1e-9)
    assert scaled.sa_cr == pytest.approx(plain.sa_cr, rel=1e-9)
    assert scaled.sa_bep == plain.sa_bep or abs(scaled.sa_bep - plain.sa_bep) <= 1


@cache
def signal():
    """A larger workload with something to find, and what chance gives there."""
    train, test = make_workload(n=2000, seed=5).split()
    chance = points(Random().fit(train.queries, train.feedback()), test).iloc[-1]
    assert chance["policy"] == "100% at random"
    return train, test, chance["quality"]


@pytest.mark.parametrize("name", sorted(set(sr.ROUTERS) - {"random", "cheapest_single"}))
def test_routers_find_signal_where_there_is_some(name):
    train, test, chance = signal()
    feedback = train.feedback()
    router = sr.make_router(name, **(QUICK | PATIENT).get(name, {})).fit(train.queries, feedback)
    result = sr.evaluate(router, test, supervision_cost=feedback.spent)
    assert result.peak_score > chance + MARGIN.get(name, 0.05)


# References


@pytest.fixture(params=["complete", "masked"])
def judged(request):
    return parts(request.param)


def test_the_oracle_peaks_at_the_best_outcome_of_every_query(judged):
    train, test = judged
    by_ties = {
        ties: points(Oracle(ties=ties).fit(train.queries, train.feedback()), test) for ties in ("random", "cheapest")
    }
    for frame in by_ties.values():
        assert len(frame) == 100
        assert frame["quality"].iloc[-1] == pytest.approx(np.nanmax(test.quality, axis=1).mean())
        assert frame["cost"].iloc[0] == pytest.approx(np.nanmin(test.cost, axis=1).mean())
    np.testing.assert_allclose(by_ties["cheapest"]["quality"], by_ties["random"]["quality"])
    assert (by_ties["cheapest"]["cost"] <= by_ties["random"]["cost"] + 1e-15).all()
    assert by_ties["cheapest"]["cost"].iloc[-1] < by_ties["random"]["cost"].iloc[-1]


def test_the_oracle_breaks_ties_by_chance_among_the_best():
    quality, cost = np.tile([1.0, 0.0, 1.0, np.nan], (4000, 1)), np.tile([1.0, 2.0, 3.0, np.nan], (4000, 1))
    (family,) = Oracle().policies(None)
    assert family.realised(quality, cost)[1][-1] == pytest.approx(2.0, abs=0.1)  # halfway between 1 and 3
    assert Oracle(seed=1).policies(None)[0].realised(quality, cost)[1][-1] != family.realised(quality, cost)[1][-1]


def test_the_best_single_model_is_the_reference_itself(judged):
    train, test = judged
    result = sr.evaluate(BestSingle().fit(train.queries, train.feedback()), test, supervision_cost=0.0)
    assert result.frontier["quality"].tolist() == [sr.best_single(test).quality]
    assert result.frontier["cost"].tolist() == [sr.best_single(test).cost]
    assert result.cost_ratio == 1.0


@pytest.mark.parametrize("kind", [Oracle, BestSingle])
def test_hindsight_needs_outcomes(judged, kind):
    train, test = judged
    router = kind().fit(train.queries, train.feedback())
    assert router.hindsight
    for predict in (router.predict_quality, router.predict_cost):
        for source in (test.queries, ["a prompt"]):
            with pytest.raises(sr.SaveRouterError, match="give it the test workload itself: an oracle knows outcomes"):
                predict(source)
    with pytest.raises(sr.SaveRouterError, match="need outcomes"):
        router.policies(test.queries)[0].choice(0)
    with pytest.raises(sr.SaveRouterError, match="it needs outcomes"):
        router.route(test.queries)
    best = router.predict_quality(test).argmax(axis=1)
    if kind is BestSingle:
        assert {test.models[column] for column in best} == {sr.best_single(test).model}
    else:
        np.testing.assert_array_equal(router.predict_quality(test)[test.available], test.quality[test.available])
        np.testing.assert_array_equal(router.predict_cost(test)[test.available], test.cost[test.available])


def test_references_are_named():
    labels = [kind.label for kind in (Oracle(), Oracle(ties="cheapest"), Random(), BestSingle(), CheapestSingle())]
    assert labels == ["Oracle", "Oracle, cheapest", "Random", "Best single", "Cheapest single"]
    train, _ = parts("complete")
    with pytest.raises(sr.SaveRouterError, match="ties is 'first'; expected one of random, cheapest"):
        Oracle(ties="first").fit(train.queries, train.feedback())


def test_chance_is_mixed_with_the_cheapest_model(judged):
    train, test = judged
    (family,) = Random().fit(train.queries, train.feedback()).policies(test.queries)
    (cheap,) = CheapestSingle().fit(train.queries, train.feedback()).policies(test.queries)
    assert len(family) == 11 and len(cheap) == 1
    np.testing.assert_array_equal(family.choice(0), cheap.choice(0))
    np.testing.assert_array_equal(cheap.choice(0), test.available.argmax(axis=1))  # models come by rising price
    moved = [family.choice(index) != family.choice(0) for index in range(11)]
    assert all((before <= after).all() for before, after in zip(moved, moved[1:], strict=False))
    (other,) = Random(seed=1).fit(train.queries, train.feedback()).policies(test.queries)
    assert (other.choice(10) != family.choice(10)).any()


def test_chance_is_uniform_among_the_available_models():
    work = make_workload(n=6000, models=4, missing=0.4)
    (family,) = Random().fit(work.queries, work.feedback()).policies(work.queries)
    three = (work.available == [True, True, False, True]).all(axis=1)
    shares = np.bincount(family.choice(10)[three], minlength=4) / three.sum()
    np.testing.assert_allclose(shares, [1 / 3, 1 / 3, 0, 1 / 3], atol=0.06)


# CARROT, HybridLLM, RouterDC


def test_carrot_is_a_regression_on_neighbours_for_each_model(judged):
    train, test = judged
    router = CARROT(k=7).fit(train.queries, train.feedback())
    for outcome, estimate in ((train.quality, router.predict_quality(test)), (train.cost, router.predict_cost(test))):
        for model in range(len(train.models)):
            known = train.available[:, model]
            fit = KNeighborsRegressor(7, metric="cosine").fit(train.vectors[known], outcome[known, model])
            np.testing.assert_allclose(estimate[:, model], fit.predict(test.vectors), rtol=1e-9)


def test_carrot_weighs_quality_against_cost(judged):
    train, test = judged
    router = CARROT().fit(train.queries, train.feedback())
    (family,) = router.policies(test.queries)
    quality = np.where(test.available, router.predict_quality(test), -np.inf)
    cost = np.where(test.available, router.predict_cost(test), np.inf)
    assert len(family) == 101
    np.testing.assert_array_equal(family.choice(0), quality.argmax(axis=1))
    np.testing.assert_array_equal(family.choice(100), cost.argmin(axis=1))
    spread = np.nanstd(train.cost)  # the z-score's mean shifts all models alike
    np.testing.assert_array_equal(family.choice(30), (0.7 * quality - 0.3 * cost / spread).argmax(axis=1))


@pytest.mark.parametrize("orbit", ["early", "late"])
def test_hybridllm_uses_the_cheapest_and_the_dearest_model(judged, orbit):
    train, test = judged
    router = HybridLLM(orbit=orbit).fit(train.queries, train.feedback())
    assert (router.small_, router.large_) == (0, 4)
    either = test.available[:, [0, 4]].any(axis=1)
    for family in router.policies(test.queries):
        for index in range(len(family)):
            assert np.isin(family.choice(index)[either], [0, 4]).all()
    assert (router.predict_quality(test)[:, 1:4] == -1).all()


def test_hybridllm_learns_where_the_small_model_suffices():
    work = make_workload(n=600, tasks=2)
    first = work.tasks == "task 0"
    quality = np.tile(np.where(first, 0.9, 0.1)[:, None], (1, 5))
    quality[:, 4] = 0.5
    train, test = replace(work, quality=quality).split(0.5)
    for orbit in ("early", "late"):
        router = HybridLLM(orbit=orbit, batch=32).fit(train.queries, train.feedback())
        chosen = router.route(test.queries)
        assert ((chosen == "model-0") == (test.tasks == "task 0")).mean() > 0.95


@pytest.mark.parametrize("kind", [HybridLLM, RouterDC])
def test_one_operating_point_early_and_thresholds_late(judged, kind):
    train, test = judged
    early, late = (kind(orbit=orbit).fit(train.queries, train.feedback()) for orbit in ("early", "late"))
    assert [len(family) for family in early.policies(test.queries)] == [1]
    assert (early.predict_cost(test) == early.mean_cost_).all()
    assert [len(family) for family in late.policies(test.queries)] == [100]
    cost = late.predict_cost(test)
    assert (cost >= np.nanmin(train.cost, axis=0)).all() and (cost <= np.nanmax(train.cost, axis=0)).all()
    assert np.ptp(cost, axis=0).all()
    with pytest.raises(sr.SaveRouterError, match="orbit is 'middle'; expected one of early, late"):
        kind(orbit="middle").fit(train.queries, train.feedback())


def test_best_and_worst_models_are_known_and_apart():
    nan = np.nan
    quality = np.array([[0.2, nan, 0.9, 0.0, 0.5], [nan, nan, nan, 0.7, nan], [0.0, 0.0, 0.3, 0.4, 0.5]])
    best, worst = best_and_worst(quality, 5, strict=False)
    assert [np.flatnonzero(row).tolist() for row in best] == [[2, 4], [], [3, 4]]
    assert [np.flatnonzero(row).tolist() for row in worst] == [[0, 3], [], [0, 1]]
    strict_best, strict_worst = best_and_worst(quality, 5, strict=True)
    assert [np.flatnonzero(row).tolist() for row in strict_best] == [[2, 4], [], [3, 4]]
    assert [np.flatnonzero(row).tolist() for row in strict_worst] == [[3], [], [0, 1]]
    assert best_and_worst(quality, 1, strict=False)[0].sum(axis=1).tolist() == [1, 0, 1]


def test_the_contrast_is_the_log_probability_of_the_best():
    scores = torch.tensor([[1.0, 2.0, 3.0, 9.0], [5.0, 5.0, 5.0, 5.0]])
    best = torch.tensor([[True, False, True, False], [False, False, False, False]])
    worst = torch.tensor([[False, True, False, False], [False, False, False, True]])
    total = math.log(math.exp(1) + math.exp(2) + math.exp(3))
    assert contrast(scores, best, worst).item() == pytest.approx(((total - 1) + (total - 3)) / 2, rel=1e-5)


def test_draws_stay_inside_or_outside_the_cluster():
    labels = np.random.default_rng(0).integers(6, size=200)
    labels[labels == 5] = 4
    labels[17] = 5  # alone
    draws, rows = ClusterDraws(labels), torch.arange(200)
    near = np.stack([draws.near(rows).numpy() for _ in range(50)])
    company = np.arange(200) != 17
    assert (labels[near] == labels).all() and (near[:, company] != np.arange(200)[company]).all()
    assert draws.usable.numpy().tolist() == company.tolist()
    far = draws.far(rows, 500).numpy()
    assert (labels[far] != labels[:, None]).all()
    assert len(set(far[17])) > 150  # of 199
    assert not ClusterDraws(np.zeros(5, dtype=int)).usable.any()


def test_routerdc_leaves_an_untried_model_last():
    train, test = parts("untried model")
    for orbit in ("early", "late"):
        quality = RouterDC(orbit=orbit).fit(train.queries, train.feedback()).predict_quality(test)
        assert (quality[:, 2] == -1).all() and (np.abs(quality) <= 1 + 1e-6).all()


def test_routerdc_maps_a_sample_and_the_others_join_their_nearest():
    train, _ = parts("complete")
    vectors = np.repeat(train.vectors, 3, axis=0)
    sampled = query_clusters(vectors, 4, 30, seed=0)
    assert len(sampled) == len(vectors) and 2 <= len(set(sampled)) <= 4
    copies = sampled.reshape(-1, 3)
    assert (copies == copies[:, :1]).all()  # equal vectors have the same nearest one
