"""Why a model was chosen: what route does, in numbers, and the least error that would change it."""

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.judging.policies import Always, CostLimit, CostWeight, Gate, Switch
from saverouter.routers.shared.explaining import tolerated


@pytest.fixture(scope="module")
def work():
    return make_workload(n=400, missing=0.1)


def fitted(name, work):
    train, test = work.split()
    return sr.make_router(name).fit(train.queries, train.feedback()), test.queries


@pytest.mark.parametrize("name", ["saverouter", "knn", "uniroute", "avengerspro"])
def test_it_explains_what_route_chooses(name, work):
    router, queries = fitted(name, work)
    for row in range(12):
        one = queries.take([row])
        for weight in (0.0, 0.2, 5.0):
            found = router.explain(one, cost_weight=weight)
            assert found.choice == router.route(one, cost_weight=weight)[0]
            assert found.frame.loc[found.frame["chosen"], "model"].tolist() == [found.choice]
            np.testing.assert_array_equal(found.frame["quality"], router.estimates(one)[0][0])
            utility = np.sort(found.frame["utility"])
            assert found.margin == pytest.approx(utility[-1] - utility[-2]) and found.error == found.margin / 2
            assert found.rule == f"cost weight {weight:g}" and found.choice in str(found)


def policies(router, cost):
    models, prices = router.models_, tuple(router.mean_costs)
    for threshold in np.quantile(prices, [0.0, 0.5, 0.9]):
        yield CostLimit(models=models, threshold=threshold, prices=prices)
        yield Gate(models=models, threshold=threshold, prices=prices, gate=0.3, scale=max(prices))
    yield CostLimit(models=models, threshold=float(np.median(cost)))
    yield CostWeight(models=models, weight=0.3, scale=max(prices))
    yield Switch(models=models, reference="model-4", threshold=-0.2, prices=prices)


def test_below_the_error_nothing_changes_and_beyond_it_something_does(work):
    """Proposition 3, for every kind of policy: wrong estimates within the bound never change the choice."""
    router, queries = fitted("saverouter", work)
    rng, finite = np.random.default_rng(0), 0
    for row in range(8):
        one = queries.take([row])
        quality, cost = router.estimates(one)
        for policy in policies(router, cost):
            found = router.explain(one, policy=policy)
            chosen = router.models_.index(found.choice)
            assert found.choice == router.route(one, policy=policy)[0] and found.rule == policy.label
            bound = min(found.error, 1.0)
            wrong = quality + bound * (1 - 1e-9) * rng.choice(
                [-1, 0, 1, *rng.uniform(-1, 1, 4)], (400, quality.shape[1])
            )
            assert (policy.choice(wrong, np.tile(cost, (400, 1))) == chosen).all()
            if np.isfinite(found.error):
                finite += 1
                rival = int(np.nanargmin(found.frame["error"]))
                wrong = quality - found.error * (1 + 1e-9)
                wrong[0, rival] = quality[0, rival] + found.error * (1 + 1e-9)
                assert policy.choice(wrong, cost)[0] != chosen
    assert finite > 20


def test_the_search_finds_half_the_margin_of_a_cost_weight(work):
    router, queries = fitted("saverouter", work)
    policy = CostWeight(models=router.models_, weight=0.3, scale=float(router.model_cost_.max()))
    for row in range(10):
        by_weight = router.explain(queries.take([row]), cost_weight=0.3)
        by_search = router.explain(queries.take([row]), policy=policy)
        np.testing.assert_allclose(by_search.frame["error"], by_weight.frame["error"], atol=1e-12)


def test_where_no_error_changes_anything_it_is_never():
    quality, cost = np.array([0.2, 0.9, -np.inf]), np.array([1.0, 2.0, 3.0])
    models = ("a", "b", "c")
    assert np.isposinf(tolerated(Always(models=models, model="a"), quality, cost, 0)).all()
    assert tolerated(CostLimit(models=models, threshold=1.0), quality, cost, 0)[1] == np.inf
    assert tolerated(CostLimit(models=models, threshold=2.0), quality, cost, 1)[0] == pytest.approx(0.35)


def test_saverouter_tells_group_words_and_evidence(work):
    router, queries = fitted("saverouter", work)
    found = router.explain(queries.take([3]))
    group = int(router.predict_groups(queries.take([3]))[0])
    assert found.group == f"task {group}"
    np.testing.assert_allclose(found.frame["group_quality"] + found.frame["residual"], found.frame["quality"])
    assert found.frame["bought"].tolist() == router.bought_[group].tolist() and router.bought_.sum() == len(
        router.observations_.rows
    )
    plain = fitted("knn", work)[0].explain(queries.take([3]))
    assert plain.group is None and "bought" not in plain.frame


@pytest.mark.parametrize("name", ["rmsoftmax", "barp"])
def test_a_rule_of_its_own_has_no_margin(name, work):
    train, test = work.split()
    router = sr.make_router(name).fit(train.queries, train.feedback())
    found = router.explain(test.queries.take([0]), cost_weight=0.1)
    assert np.isnan(found.margin) and "the router's own rule" in str(found)
    assert found.choice == router.route(test.queries.take([0]), cost_weight=0.1)[0]


def test_what_cannot_be_explained_says_so(work):
    router, queries = fitted("saverouter", work)
    with pytest.raises(sr.SaveRouterError, match="explain was given 80 prompts; give one"):
        router.explain(queries.take(slice(0, 80)))
    with pytest.raises(sr.SaveRouterError, match="BestSingle routes no new query"):
        fitted("best_single", work)[0].explain(queries.take([0]))
    with pytest.raises(sr.SaveRouterError, match="has not been fitted"):
        sr.SaveRouter().explain("Why?")
    with pytest.raises(sr.SaveRouterError, match="policy is 'cheap'"):
        router.explain(queries.take([0]), policy="cheap")
