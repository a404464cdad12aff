"""The routers of Table 1: shortcuts equal the plain formulas, budgets are optimal, profiles are as published."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import corrupted, make_workload
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor
from torch.nn import functional as F

import saverouter as sr
from saverouter.routers.inferencedynamics import task_profile
from saverouter.routers.shared.neural import outputs, tensor
from saverouter.routers.trouter import task_sentence
from saverouter.routers.wiserouter import budget_shares, upper_hull


def fitted(name, work, **options):
    train, test = work.split()
    feedback = train.feedback()
    return sr.make_router(name, **options).fit(train.queries, feedback), train, test, feedback


def test_rmsoftmax_shares_the_first_layer_without_changing_the_function(work):
    router, _, test, _ = fitted("rmsoftmax", work, epochs=2)
    grid = tensor(router.grid_)
    vectors = tensor(test.vectors[:20])
    with torch.inference_mode():
        shared = router._logits(vectors, grid)
        augmented = torch.cat([vectors[:, None].expand(-1, 30, -1), grid[None, :, None].expand(20, -1, 1)], dim=2)
        plain = router.rest_(F.relu(router.first_(augmented)))
    torch.testing.assert_close(shared, plain, rtol=1e-4, atol=1e-4)
    choices = router.policies(test.queries)[0]
    assert len(choices) == 30 and choices.label(29) == "cost weight 1000"
    np.testing.assert_array_equal(choices.choice(0)[:20], plain[:, 0].argmax(dim=1))


def test_rmsoftmax_listens_to_the_cost_weight():
    """Weights of the size of the inputs and a long training: a large weight means the cheapest model."""
    work = make_workload(n=500, flat_cost=True)
    router, _, test, _ = fitted("rmsoftmax", replace(work, cost=work.cost * 100), largest_weight=50.0, epochs=150)
    families = router.policies(test.queries)[0]
    assert (families.choice(29) == 0).mean() > 0.95
    assert set(router.route(test.queries, cost_weight=50.0)) == {"model-0"}
    free, dear = (
        test.cost[np.arange(len(test)), [test.models.index(m) for m in router.route(test.queries, w)]].mean()
        for w in (0.0, 10.0)
    )
    assert dear < free


def test_rmsoftmax_minimises_regret_in_training(work):
    work = replace(work, cost=work.cost * 100)
    early, train, _, _ = fitted("rmsoftmax", work, largest_weight=5.0, epochs=1)
    late, _, _, _ = fitted("rmsoftmax", work, largest_weight=5.0, epochs=60)

    def regret(router):
        utility = train.quality[:, None] - router.grid_[:, None] * train.cost[:, None]
        with torch.inference_mode():
            chance = torch.softmax(router._logits(tensor(train.vectors), tensor(router.grid_)), dim=-1).numpy()
        return (chance * (utility.max(axis=-1, keepdims=True) - utility)).sum(axis=-1).mean()

    assert regret(late) < 0.5 * regret(early)


def test_trouters_pair_layer_is_a_sum_of_two(work):
    router, _, test, _ = fitted("trouter", work, epochs=2)
    net, vectors = router.net_, tensor(test.vectors[:10])
    with torch.inference_mode():
        query, task = net.query(vectors), net.task(net.sentences)
        pairs = torch.cat([query[:, None].expand(-1, len(task), -1), task.expand(10, -1, -1)], dim=2)
        plain = torch.log_softmax(net.after(net.pair(pairs))[..., 0] / 0.07, dim=1)
        torch.testing.assert_close(net.log_tasks(vectors), plain, rtol=1e-4, atol=1e-4)
        decoder = net.decoders[0]
        values = net.sentences
        for depth in range(3):
            values = (F.relu(values) if depth else values) @ decoder.weights[depth][1] + decoder.biases[depth][1]
        torch.testing.assert_close(decoder(net.sentences)[:, 1], torch.sigmoid(values[:, 0]))


def test_trouter_reads_no_task_of_a_test_query_and_recognises_it(work):
    router, _, test, _ = fitted("trouter", work)
    hidden = replace(test, tasks=None)
    np.testing.assert_array_equal(router.predict_quality(test.queries), router.predict_quality(hidden.queries))
    chance = outputs(lambda part: router.net_.log_tasks(part).exp(), test.vectors)
    assert (router.tasks_[chance.argmax(axis=1)] == test.tasks).mean() > 0.9
    assert task_sentence("arc_challenge-v2") == "Task type: arc challenge v2."


def test_trouters_costs_may_exceed_one(work):
    router, train, test, _ = fitted("trouter", replace(work, cost=work.cost * 1e4))
    estimate = router.predict_cost(test.queries).mean(axis=0)
    assert estimate.max() > 1 and np.corrcoef(estimate, np.nanmean(train.cost, axis=0))[0, 1] > 0.9


def test_inferencedynamics_profiles():
    assert task_profile("mmlu_high_school_mathematics") == (
        ["mathematical", "multi-step reasoning"], ["high school mathematics"]
    )  # fmt: skip
    assert task_profile("arc_router_dataset") == (["instruction following", "domain reasoning"], ["arc"])
    assert task_profile("MBPP")[1] == task_profile("HumanEval")[1] == ["python programming"]
    assert task_profile("mbpp")[0] == ["technical", "algorithmic reasoning"]
    assert task_profile("winogrande")[0] == ["commonsense reasoning"]
    assert task_profile("medical-law") == (
        ["clinical reasoning", "factual recall", "legal reasoning", "case analysis"], ["medical law"]
    )  # fmt: skip
    assert task_profile("") == (["instruction following", "domain reasoning"], ["general knowledge"])


def test_inferencedynamics_index_by_hand():
    """Two tasks that share a capability; the index is the mean over their rows, each counted by its place."""
    nan = np.nan
    work = sr.Workload(
        query_ids="abcd", prompts="abcd", models=["x", "y"], tasks=["biology", "biology", "history", "history"],
        quality=[[1, 0.5], [0, nan], [1, 1], [1, 0]], cost=[[1, 2], [1, nan], [1, 2], [3, 2]],
        vectors=np.eye(4),
    )  # fmt: skip
    router = sr.make_router("inferencedynamics").fit(work.queries, work.feedback())
    first, second = 1 / 1.8, 0.8 / 1.8
    recall = np.array([(1 + 0 + 1 + 1) * second / 4, (0.5 + 1 + 0) * second / 3])
    science = np.array([(1 + 0) * first / 2, 0.5 * first])
    np.testing.assert_allclose(router.indexes_[0]["factual recall"], recall)
    np.testing.assert_allclose(router.indexes_[0]["scientific reasoning"], science)
    quality = router.predict_quality(replace(work, tasks=["biology", "unheard of", "history", "biology"]).queries)
    np.testing.assert_allclose(quality[0], [0.5, 0.5] + (science + 0.8 * recall) / 1.8)
    np.testing.assert_allclose(quality[1], [2, 2])
    np.testing.assert_allclose(router.predict_cost(work.queries)[0], [1.5, 2])


def test_omnirouter_blends_heads_and_neighbours(work):
    router, train, test, _ = fitted("omnirouter", work, neighbours=7)
    near = KNeighborsRegressor(7).fit(train.vectors, train.quality).predict(test.vectors)
    heads = outputs(lambda part: torch.sigmoid(router.heads_[0](part)), test.vectors)
    np.testing.assert_allclose(router.predict_quality(test.queries), 0.6 * heads + 0.4 * near, atol=1e-6)


def test_constant_costs_give_at_most_a_point_a_model(work):
    for name in ("embedllm", "uniroute", "inferencedynamics", "semirouter"):
        router, _, test, _ = fitted(name, work)
        assert len(router.policies(test.queries)[0]) <= len(work.models), name
    for name in ("embedllm", "uniroute"):
        late, _, test, _ = fitted(name, work, orbit="late")
        assert len(late.policies(test.queries)[0]) > len(work.models), name


def test_late_costs_stay_in_the_range_seen(work):
    router, train, test, _ = fitted("omnirouter", work, orbit="late")
    cost = router.predict_cost(test.queries)
    assert (cost >= train.cost.min(axis=0) - 1e-12).all() and (cost <= train.cost.max(axis=0) + 1e-12).all()
    early = clone(router).set_params(orbit="early").fit(train.queries, train.feedback())
    assert (early.policies(test.queries)[0].fallback, router.policies(test.queries)[0].fallback) == (
        "first",
        "cheapest",
    )
    with pytest.raises(sr.SaveRouterError, match="orbit is 'new'; expected one of early, late"):
        sr.make_router("omnirouter", orbit="new").fit(train.queries, train.feedback())


@pytest.mark.parametrize("seed", range(5))
def test_budgets_are_solved_as_a_linear_programme(seed):
    rng = np.random.default_rng(seed)
    quality, cost = rng.random((6, 5)), rng.random((6, 5))
    cost[:, 3], quality[0] = cost[:, 2], 0.5  # ties
    frequency = rng.dirichlet(np.ones(6))
    shares = budget_shares(quality, cost, frequency, 9)
    np.testing.assert_allclose(shares.sum(axis=2), 1)
    weight = frequency[:, None]
    budgets = np.linspace((weight * cost.min(axis=1, keepdims=True)).sum(), (weight * cost * shares[-1]).sum(), 9)
    assert ((shares > 1e-9).sum(axis=2) == 2).sum(axis=1).max() <= 1  # at most one context mixes two models
    for share, budget in zip(shares, budgets, strict=True):
        assert (weight * cost * share).sum() == pytest.approx(budget)
        best = linprog(
            -(weight * quality).ravel(), A_ub=(weight * cost).reshape(1, -1), b_ub=[budget + 1e-12],
            A_eq=np.kron(np.eye(6), np.ones((1, 5))), b_eq=np.ones(6),
        )  # fmt: skip
        assert (weight * quality * share).sum() == pytest.approx(-best.fun, abs=1e-9)


def test_hulls_are_concave_and_rise():
    assert upper_hull(np.array([1.0, 2, 3, 4]), np.array([0.1, 0.2, 0.6, 0.5])) == [0, 2]
    assert upper_hull(np.array([1.0, 1, 2]), np.array([0.3, 0.4, 0.4])) == [1]


def test_wiserouter_explores_evenly_and_serves_both_ways():
    work = make_workload(n=1500, missing=0.2)
    _, train, test, feedback = fitted("wiserouter", work)
    asked = feedback.observations["model"].value_counts(normalize=True)
    assert asked.min() > 0.1 and len(asked) == 5
    fixed, *_ = fitted("wiserouter", work, serve="largest", explore="round_robin")
    families = fixed.policies(test.queries)[0]
    assert len(families) == 64 and families.label(63) == "budget 64 of 64"
    assert test.available[np.arange(len(test)), families.choice(30)].all()
    for option in ({"serve": "both"}, {"explore": "never"}):
        with pytest.raises(sr.SaveRouterError, match=f"{next(iter(option))} is"):
            sr.make_router("wiserouter", **option).fit(train.queries, train.feedback())


@pytest.mark.parametrize("explore", ["uniform", "round_robin"])
def test_wiserouter_round_robin_is_balanced_inside_contexts(explore):
    router, train, _, feedback = fitted("wiserouter", make_workload(n=2000, tasks=2), explore=explore, contexts=2)
    models = feedback.observations["model"].map(train.models.index).to_numpy()
    counts = np.zeros((2, 5))
    np.add.at(counts, (router.clusters_.labels_[feedback.observations["row"]], models), 1)
    assert (np.ptp(counts, axis=1).max() <= 1) == (explore == "round_robin")


def test_barp_accounts_fresh_and_cached_from_one_run(masked_work):
    router, train, _, feedback = fitted("barp", masked_work, epochs=7)
    bought = feedback.observations
    assert len(bought) == 7 * len(train) and (bought.groupby("row").size() == 7).all()
    columns = bought["model"].map(train.models.index)
    assert feedback.spent == pytest.approx(train.cost[bought["row"], columns].sum())
    pairs = set(zip(bought["row"], columns, strict=True))
    assert len(pairs) < len(bought)
    assert feedback.spent_distinct == pytest.approx(sum(train.cost[pair] for pair in pairs))


def test_barp_learns_to_prefer():
    work = make_workload(n=600, seed=4)
    router, _, test, _ = fitted("barp", work, rate=1e-3)
    families = router.policies(test.queries)[0]
    assert len(families) == 101
    rows = np.arange(len(test))
    paid = [test.cost[rows, families.choice(index)].mean() for index in (0, 100)]
    scored = [test.quality[rows, families.choice(index)].mean() for index in (0, 100)]
    assert paid[0] < 0.5 * paid[1] and scored[1] > scored[0] + 0.05
    routed = [test.models.index(model) for model in router.route(test.queries, cost_weight=0.0)]
    np.testing.assert_array_equal(routed, families.choice(100))
    with pytest.raises(sr.SaveRouterError, match="cost_scale is 'dollar'"):
        fitted("barp", work, cost_scale="dollar")


def test_semirouters_anchors_are_the_cheapest_median_and_dearest():
    work = make_workload(n=200, models=8, missing=0.2)
    order = np.random.default_rng(0).permutation(8)
    shuffled = replace(work, quality=work.quality[:, order], cost=work.cost[:, order])
    router, train, _, feedback = fitted("semirouter", shuffled)
    by_price = np.argsort(np.nanmean(train.cost, axis=0))
    assert set(router.anchors_) == set(by_price[[0, 4, 7]])
    others = ~np.isin(np.arange(8), router.anchors_)
    bought = np.zeros_like(train.available)
    bought[feedback.observations["row"], feedback.observations["model"].map(train.models.index)] = True
    assert (bought[:, ~others] == train.available[:, ~others]).all()
    np.testing.assert_array_equal(bought[:, others].sum(axis=1), np.minimum(2, train.available[:, others].sum(axis=1)))


def test_semirouter_freezes_what_the_anchors_taught(work):
    with_adapter, train, test, _ = fitted("semirouter", work)
    without, *_ = fitted("semirouter", work, adapter_epochs=0)
    one, other = (router.predict_quality(test.queries) for router in (with_adapter, without))
    anchors = with_adapter.anchors_
    np.testing.assert_array_equal(one[:, anchors], other[:, anchors])
    rest = np.setdiff1d(np.arange(5), anchors)
    assert np.abs(one[:, rest] - other[:, rest]).max() > 1e-4


@pytest.mark.parametrize("name", ["wiserouter", "barp", "semirouter", "embedllm"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_outcomes_that_sparse_routers_did_not_buy_never_matter(name, missing):
    options = {"barp": {"epochs": 2}, "embedllm": {"fraction": 0.3}}.get(name, {})
    router, train, test, feedback = fitted(name, make_workload(models=8, missing=missing), **options)
    bought = np.zeros_like(train.available)
    bought[feedback.observations["row"], feedback.observations["model"].map(train.models.index)] = True
    assert bought.sum() < train.available.sum()
    nonsense = corrupted(train, bought)
    if name == "semirouter":  # the price list is public knowledge, so it stays
        nonsense = corrupted_qualities(train, bought)
    again = nonsense.feedback()
    other = clone(router).fit(nonsense.queries, again)
    assert again.observations.equals(feedback.observations)
    np.testing.assert_array_equal(other.predict_quality(test.queries), router.predict_quality(test.queries))
    np.testing.assert_array_equal(other.predict_cost(test.queries), router.predict_cost(test.queries))


def corrupted_qualities(work, keep):
    return replace(work, quality=np.where(work.available & ~keep, 1 - work.quality, work.quality))


def test_the_synthetic_point_caps_a_cost_ratio_at_one():
    """A router that reaches the target only by a policy dearer than the best single model."""
    work = make_workload(n=400, models=3, flat_cost=True)
    quality = np.tile([0.2, 0.9, 0.9], (400, 1))
    work = replace(work, quality=quality, cost=np.tile([1.0, 2.0, 3.0], (400, 1)))

    class Dear(sr.Router):
        label, synthetic_best_point = "Dear", True

        def _fit(self, queries, feedback):
            pass

        def predict_quality(self, queries):
            return np.tile([0.5, 0.1, 0.9], (len(queries), 1))

        def predict_cost(self, queries):
            return np.tile([1.0, 2.0, 3.0], (len(queries), 1))

    train, test = work.split()
    router = Dear().fit(train.queries, train.feedback())
    result = sr.evaluate(router, test, supervision_cost=1.0)
    assert result.cost_ratio == 1.5 and result.reference.cost == 2.0
    published = sr.evaluate(router, test, supervision_cost=1.0, synthetic_best_point=True)
    assert published.cost_ratio == 1.0 and published.operating_point["policy"] == "synthetic"
    assert published.sa_bep == math.inf == published.sa_cr and published.peak_score == result.peak_score
    assert result.at(synthetic_best_point=True).cost_ratio == 1.0
    assert published.at(target=1.2).cost_ratio == math.inf
    Dear.synthetic_best_point = False
    assert sr.evaluate(router, test, supervision_cost=1.0, synthetic_best_point=True).cost_ratio == 1.5


def test_routers_evaluated_without_the_synthetic_point_in_the_paper():
    assert not sr.ROUTERS["saverouter"].synthetic_best_point and not sr.ROUTERS["rmsoftmax"].synthetic_best_point
    for name in ("embedllm", "knn", "omnirouter", "trouter", "uniroute", "inferencedynamics", "wiserouter", "barp"):
        assert sr.ROUTERS[name].synthetic_best_point, name


@pytest.mark.parametrize("name", ["embedllm", "rmsoftmax", "trouter", "uniroute", "barp", "semirouter"])
def test_training_does_not_depend_on_the_number_of_threads(name, work):
    options = {"epochs": 3}
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            router, _, test, _ = fitted(name, work, **options)
            assert torch.get_num_threads() == threads
            found.append(router.predict_quality(test.queries))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("name", ["rmsoftmax", "barp", "mirt", "routerdc"])
def test_training_is_quiet_where_nobody_watches(name, work, capfd):
    fitted(name, work, epochs=2)
    told = capfd.readouterr()
    assert told.out == told.err == ""


def test_reconstructions_say_so():
    told = {name for name, kind in sr.ROUTERS.items() if kind.reconstructed}
    assert told == {"wiserouter", "barp", "semirouter"}
    assert all("reconstructed" in sr.ROUTERS[name].__doc__ for name in told)
