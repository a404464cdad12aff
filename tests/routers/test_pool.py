"""A pool that changed: other prices and one model more give what a fit on the same purchases would."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.routers import saverouter as package

LEARNT = ("group_quality_", "group_cost_", "model_cost_", "weights_", "intercepts_", "bought_")


def same(router, other, **tolerance):
    for name in LEARNT:
        np.testing.assert_allclose(getattr(router, name), getattr(other, name), **(tolerance or {"rtol": 0}))


def fitted(work, **options):
    feedback = work.feedback()
    return sr.SaveRouter(**options).fit(work.queries, feedback), feedback


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_repriced_is_fitted_on_changed_costs(missing):
    train, test = make_workload(n=600, models=6, missing=missing).split()
    router, _ = fitted(train, k=2)
    before = router.predict_cost(test)
    factors = np.array([1, 0.5, 1, 3, 1, 7.0])
    again, _ = fitted(replace(train, cost=train.cost * factors), k=2)
    cheap = router.reprice({"model-1": 0.5, "model-3": 3, "model-5": 7})
    same(cheap, again, rtol=1e-12)
    np.testing.assert_allclose(cheap.predict_cost(test), again.predict_cost(test), rtol=1e-12)
    np.testing.assert_array_equal(router.predict_cost(test), before)  # the router itself is as it was
    same(cheap.reprice({"model-1": 2, "model-3": 1 / 3, "model-5": 1 / 7}), router, rtol=1e-12)
    mean = float(router.model_cost_[3]) * 3
    same(router.reprice({"model-1": 0.5, "model-5": 7}, costs={"model-3": mean}), again, rtol=1e-12)


def test_a_model_that_was_never_bought_follows_the_dearest(tmp_path):
    train, test = make_workload(n=600, models=6).split()
    available = np.ones(train.quality.shape, bool)
    available[:, 2] = False
    shut = replace(
        train, quality=np.where(available, train.quality, np.nan), cost=np.where(available, train.cost, np.nan)
    )
    router, _ = fitted(shut)
    factors = np.array([1, 1, 1, 1, 1, 0.25])
    again, _ = fitted(replace(shut, cost=shut.cost * factors))
    for one in (router, sr.load_router(router.save(tmp_path / "router"))):  # a saved one can be repriced too
        same(one.reprice({"model-5": 0.25}), again, rtol=1e-12)
        told = one.reprice(costs={"model-2": 0.5})
        assert told.model_cost_[2] == 0.5 and (told.group_cost_[:, 2] == 0.5).all()
        with pytest.raises(sr.SaveRouterError, match=r"no outcome of 'model-2' was bought.*reprice\(costs="):
            one.reprice({"model-2": 2})


def test_a_free_model_can_be_given_a_price():
    work = make_workload(n=400)
    free = replace(work, cost=work.cost * np.array([0, 1, 1, 1, 1]))
    router, _ = fitted(free)
    assert (router.reprice(costs={"model-0": 0.3}).group_cost_[:, 0] == 0.3).all()
    assert (router.reprice({"model-0": 5}).group_cost_[:, 0] == 0).all()
    gone = router.reprice(dict.fromkeys(router.models_, 0))
    assert set(gone.route(work, cost_weight=1)) <= set(work.models)


def test_routes_follow_the_price():
    train, test = make_workload(n=600).split()
    router, _ = fitted(train)
    dear, cheap = router.reprice({"model-0": 50}), router.reprice({"model-4": 0.001})

    def share(one, model):
        return (one.route(test, cost_weight=0.2) == model).mean()

    assert share(dear, "model-0") <= share(router, "model-0") and share(cheap, "model-4") > share(router, "model-4")


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        (({},), "reprice was given nothing"),
        (({"model-9": 2},), "model 'model-9' is not in the pool; did you mean"),
        (({"model-1": -1},), "factor of 'model-1' is -1"),
        (({"model-1": float("nan")},), "factor of 'model-1' is nan"),
        (({"model-1": ("cost", 1)},), "factor of 'model-1' is"),
    ],
)
def test_impossible_prices_are_refused(prices, message):
    router, _ = fitted(make_workload(n=100))
    with pytest.raises(sr.SaveRouterError, match=message):
        router.reprice(*prices)
    with pytest.raises(sr.SaveRouterError, match="has a factor and a mean cost"):
        router.reprice({"model-1": 1}, costs={"model-1": 1})


def without(work, model):
    keep = [column for column, name in enumerate(work.models) if name != model]
    return replace(
        work, models=[work.models[column] for column in keep], quality=work.quality[:, keep], cost=work.cost[:, keep]
    )


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_model_added_is_a_newcomer_bought_with_the_rest(missing, monkeypatch):
    """The same purchases of the old pool, once before the newcomer came and once with it, learn the same to the last bit."""
    train, test = make_workload(n=800, models=5, missing=missing, seed=3).split(0.5)
    whole, paid = fitted(train, k=2, newcomer="model-2", newcomer_share=0.2)
    seen, column = whole.observations_, 2
    old = seen.models != column
    places = seen.models[old] - (seen.models[old] > column)
    purchases = seen.rows[old], places, seen.quality[old], seen.cost[old]
    monkeypatch.setattr(package, "acquire", lambda feedback, *_, **__: purchases)
    before, _ = fitted(without(train, "model-2"), k=2)
    feedback = train.feedback()
    after = before.add_model("model-2", train.queries, feedback, share=0.2)
    assert after.models_ == whole.models_ and before.models_ == without(train, "model-2").models
    same(after, whole)
    np.testing.assert_array_equal(after.predict_quality(test), whole.predict_quality(test))
    assert set(feedback.observations["model"]) == {"model-2"}
    newcomer = paid.observations.query("model == 'model-2'")
    assert feedback.spent == pytest.approx(newcomer["cost"].sum()) and len(feedback.observations) == len(newcomer)


def test_feedback_may_sell_the_newcomer_alone():
    train, test = make_workload(n=600).split()
    old, column = without(train, "model-2"), [2]
    router, _ = fitted(old)
    alone = replace(train, models=["model-2"], quality=train.quality[:, column], cost=train.cost[:, column])
    after = router.add_model("model-2", alone.queries, alone.feedback())
    other = router.add_model("model-2", train.queries, train.feedback())
    assert after.models_ == (*old.models, "model-2") and other.models_ == train.models
    order = [after.models_.index(name) for name in other.models_]
    np.testing.assert_allclose(
        after.predict_quality(test.prompts if test.vectors is None else sr.Queries(test.prompts, vectors=test.vectors))[:, order],
        other.predict_quality(sr.Queries(test.prompts, vectors=test.vectors)), atol=1e-9,
    )  # fmt: skip


def test_an_impossible_addition_is_refused_before_anything_is_bought(tmp_path):
    work = make_workload(n=300)
    train, test = work.split()
    old = without(train, "model-2")
    router, _ = fitted(old)
    feedback = train.feedback()
    for arguments, message in (
        (("model-1", train.queries, feedback), "'model-1' is in the pool already"),
        (("model-22", train.queries, feedback), "does not sell 'model-22'; did you mean"),
        (("model-2", test.queries, test.feedback()), "needs the 60 queries that the router was fitted on"),
        (("model-2", train.queries.take(np.arange(60)[::-1]), feedback), "in their order"),
        (("model-2", train.queries, feedback, 10), "share is 10"),
    ):
        with pytest.raises(sr.SaveRouterError, match=message):
            router.add_model(*arguments)
    smaller, _ = fitted(without(old, "model-3"))
    with pytest.raises(sr.SaveRouterError, match="differ by more than 'model-2': 'model-3'"):
        smaller.add_model("model-2", train.queries, feedback)
    loaded = sr.load_router(router.save(tmp_path / "router"))
    with pytest.raises(sr.SaveRouterError, match="was loaded, and outcomes are not saved"):
        loaded.add_model("model-2", train.queries, feedback)
    assert feedback.spent == 0


def test_routers_that_cannot_say_so():
    work = make_workload(n=100)
    router = sr.make_router("knn").fit(work.queries, work.feedback())
    with pytest.raises(sr.SaveRouterError, match="KNN cannot be repriced: SaveRouter can"):
        router.reprice({"model-1": 2})
    with pytest.raises(sr.SaveRouterError, match="KNN cannot take in another model: SaveRouter can"):
        router.add_model("new", work.queries, work.feedback())


def test_what_was_chosen_for_other_prices_is_dropped_and_what_was_seen_is_known():
    train, test = make_workload(n=600).split()
    router, _ = fitted(train)
    router.policy_ = sr.evaluate(router, test, supervision_cost=0.0).policy
    cheap = router.reprice({"model-1": 2})
    assert cheap.policy_ is None and router.policy_ is not None and cheap.train_queries_ is router.train_queries_
