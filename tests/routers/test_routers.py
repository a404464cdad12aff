"""What every router must do, on workloads of every shape."""

import resource
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from conftest import Losing, corrupted, make_workload
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import saverouter as sr
from saverouter.encoders import minilm
from saverouter.judging.operating_points import operating_points
from saverouter.routers.base import PILOT, DenseRouter
from saverouter.routers.bounds import Random

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
BY_ANSWERS = {"cascade"}  # no model can be named beforehand
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
@pytest.mark.parametrize("name", sorted(set(sr.ROUTERS) - HINDSIGHT - BY_ANSWERS))
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


@every_router
def test_its_frontier_is_the_best_of_what_its_policies_realise(name):
    router, feedback = fitted(name, "masked")
    _, test = parts("masked")
    frontier = sr.evaluate(router, test, supervision_cost=feedback.spent).frontier
    scored = points(router, test)
    assert frontier.merge(scored, on=["policy", "quality", "cost"]).drop_duplicates().shape == frontier.shape
    for quality, cost in scored[["quality", "cost"]].to_numpy():
        affordable = frontier[frontier["cost"] <= cost]
        assert affordable["quality"].max() >= quality - 1e-12


@pytest.mark.parametrize("name", sorted(set(sr.ROUTERS) - HINDSIGHT - BY_ANSWERS))
def test_a_router_that_is_shown_outcomes_does_not_look(name):
    """A workload may be given in place of its queries, outcomes and all: nothing may depend on them."""
    router, _ = fitted(name, "masked")
    _, test = parts("masked")
    nonsense = corrupted(test, np.zeros_like(test.available))
    for asked in (router.predict_quality, router.predict_cost):
        assert np.isfinite(asked(test)).all()  # NaN would pass for equal
        np.testing.assert_array_equal(asked(test), asked(nonsense))
    np.testing.assert_array_equal(router.route(test), router.route(nonsense))
    for family, other in zip(router.policies(test), router.policies(nonsense), strict=True):
        for index in range(0, len(family), 10):
            np.testing.assert_array_equal(family.choice(index), other.choice(index))


@pytest.mark.parametrize("name", ["saverouter", "knn", "embedllm", "inferencedynamics", "svm"])
def test_a_cost_weight_is_relative_to_the_dearest_model(name):
    router, _ = fitted(name, "masked")
    _, test = parts("masked")
    quality = np.where(test.available, router.predict_quality(test.queries), -np.inf)
    cost = router.predict_cost(test.queries)
    dearest = router.model_cost_.max() if name == "saverouter" else cost.mean(axis=0).max()
    served = {}
    for weight in (0.0, 0.3, 1e6):
        expected = np.argmax(quality - weight * cost / dearest, axis=1)
        served[weight] = router.route(test.queries, cost_weight=weight)
        assert served[weight].tolist() == [test.models[column] for column in expected]
    assert (served[0.0] != served[1e6]).any() and (served[0.3] != served[1e6]).any()


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


@pytest.mark.parametrize("shape", ["complete", "masked"])
@every_router
def test_what_is_missing_is_paid_for_and_not_learnt_from(name, shape):
    """Outcomes that never came back are as good as unavailable ones, but for the bill."""
    train, test = parts(shape)
    feedback = Losing(train, seed=1)
    router = sr.make_router(name, **QUICK.get(name, {})).fit(train.queries, feedback)
    source = test if knows_outcomes(router) else test.queries
    found = router.predict_quality(source), router.predict_cost(source)
    assert all(np.isfinite(estimate).all() for estimate in found)
    assert np.isfinite(sr.evaluate(router, test, supervision_cost=feedback.spent).peak_score)
    bought = feedback.observations
    assert feedback.spent == pytest.approx(bought["cost"].sum())
    assert bought["quality"].isna().any() == (name not in NOTHING_BOUGHT)
    if isinstance(router, DenseRouter):
        hole = np.where(feedback.lost, np.nan, 1.0)
        less = replace(train, quality=train.quality * hole, cost=train.cost * hole)
        other = clone(router).fit(less.queries, less.feedback())
        for estimate, expected in zip(found, (other.predict_quality(source), other.predict_cost(source)), strict=True):
            np.testing.assert_array_equal(estimate, expected)


@pytest.mark.parametrize("name", sorted(set(sr.ROUTERS) - NOTHING_BOUGHT - {"barp"}))
def test_if_nothing_comes_back_a_router_says_so(name):
    train, _ = parts("complete")
    feedback = Losing(train, lost=np.ones_like(train.available))
    with pytest.raises(sr.SaveRouterError, match="outcomes that were bought came back"):
        sr.make_router(name).fit(train.queries, feedback)
    assert feedback.spent > 0


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


def test_a_service_may_route_any_number_of_prompts(own_cache, monkeypatch):
    """Nothing is kept of them: no file, no handle."""
    work = make_workload(n=200, with_vectors=False)
    unit = np.eye(384, dtype=np.float32)
    monkeypatch.setattr(minilm, "_encode", lambda name, prompts: np.stack([unit[len(prompt)] for prompt in prompts]))
    router = sr.SaveRouter(k=2).fit(work.queries, work.feedback())
    files, limits = sorted(own_cache.rglob("*.n*")), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, limits[1]))
    try:
        for number in range(300):
            router.route([f"prompt number {number}"])
        router.route([f"another prompt {number}" for number in range(700)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert sorted(own_cache.rglob("*.n*")) == files
    new = make_workload(n=60, seed=9, with_vectors=False)
    router.route(new)
    assert sorted(own_cache.rglob("*.n*")) == files
    router.route(new, keep=True)
    assert len(list(own_cache.rglob("*.npy"))) == 1 + len(files)
