"""The routers for large pools: work that they share changes nothing, and unknown pairs never matter."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import corrupted, make_workload
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from torch import nn

from saverouter import SaveRouterError, evaluate
from saverouter.files import data_folder
from saverouter.routers.avengerspro import AvengersPro
from saverouter.routers.equirouter import EquiRouter, Modulated
from saverouter.routers.graphrouter import GraphRouter, StarGraph
from saverouter.routers.mirt import MIRT, ItemResponse
from saverouter.routers.mlp import MLP
from saverouter.routers.routellm_mf import RouteLLMMF
from saverouter.routers.shared.descriptions import describe, text_vectors
from saverouter.routers.shared.neural import better_pairs, ranking_losses
from saverouter.routers.svm import SVM
from saverouter.workloads.simulate import benchmarks, specification

ROUTERS = [
    MLP(epochs=2),
    SVM(),
    RouteLLMMF(epochs=2),
    GraphRouter(epochs=2, hidden=16),
    MIRT(epochs=2),
    AvengersPro(),
    EquiRouter(epochs=1, batch=256),
]
each_router = pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.label)


@pytest.fixture(autouse=True)
def one_thread():
    """Such small networks gain nothing from a second thread, and lose much on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fitted(router, work, **options):
    return clone(router).set_params(**options).fit(work.queries, work.feedback())


def estimates(router, work):
    return router.predict_quality(work), router.predict_cost(work)


@each_router
@pytest.mark.parametrize("orbit", ["early", "late"])
def test_buys_every_available_pair_once_and_gives_finite_estimates(router, orbit, masked_work):
    feedback = masked_work.feedback()
    fit = clone(router).set_params(orbit=orbit).fit(masked_work.queries, feedback)
    assert feedback.spent == pytest.approx(np.nansum(masked_work.cost))
    assert len(feedback.observations) == masked_work.available.sum()
    for values in estimates(fit, masked_work):
        assert values.shape == masked_work.quality.shape and values.dtype == np.float64
        assert np.isfinite(values).all()
    for family in fit.policies(masked_work.queries):
        for index in range(len(family)):
            assert masked_work.available[np.arange(len(masked_work)), family.choice(index)].all()
            assert "nan" not in family.label(index)


@each_router
def test_same_seed_same_estimates_and_no_global_draws(router, work):
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = estimates(fitted(router, work), work)
    assert torch.equal(torch.get_rng_state(), before[0]) and (np.random.get_state()[1] == before[1]).all()
    torch.manual_seed(2)
    np.random.seed(2)
    for one, other in zip(first, estimates(fitted(router, work), work), strict=True):
        np.testing.assert_array_equal(one, other)


@each_router
@pytest.mark.parametrize(
    "work",
    [
        make_workload(n=20, models=1),
        make_workload(n=20, models=40),
        make_workload(n=30, tasks=1, flat_cost=True),
    ],
    ids=["one model", "more models than queries", "one task, constant costs"],
)
def test_odd_pools_can_be_judged(router, work):
    result = evaluate(fitted(router, work), work, supervision_cost=1.0)
    assert 0 <= result.peak_score <= 1


@each_router
def test_a_model_that_was_never_available_disturbs_nobody(router, work):
    """The others are chosen from as if it were not there, and it gets a finite estimate."""
    quality, cost = work.quality.copy(), work.cost.copy()
    quality[:, 2] = cost[:, 2] = np.nan
    shut = replace(work, quality=quality, cost=cost)
    fit = fitted(router, shut)
    assert all(np.isfinite(values).all() for values in estimates(fit, work))
    assert (fit.route(shut.queries) != work.models[2]).all()


@each_router
def test_test_outcomes_are_not_read(router, work):
    train, test = work.split(0.5)
    fit = fitted(router, train)
    other = corrupted(test, np.zeros(test.quality.shape, dtype=bool))
    for one, two in zip(estimates(fit, test), estimates(fit, other), strict=True):
        np.testing.assert_array_equal(one, two)


@each_router
def test_late_costs_stay_in_the_range_seen(router, work):
    train, test = work.split(0.5)
    cost = fitted(router, train, orbit="late").predict_cost(test)
    assert (cost >= train.cost.min(axis=0) - 1e-12).all() and (cost <= train.cost.max(axis=0) + 1e-12).all()


def test_svm_is_a_plain_svr_for_every_model():
    work = make_workload(n=80, models=3, missing=0.2)
    work = replace(work, cost=work.cost * 100)  # wider than the tube, else every cost is a constant
    train, test = work.split(0.6)
    fit = fitted(SVM(), train)
    scaler = StandardScaler().fit(train.vectors.astype(np.float64))
    inputs, asked = (scaler.transform(part.vectors.astype(np.float64)) for part in (train, test))
    for outcomes, predicted in zip((train.quality, train.cost), estimates(fit, test), strict=True):
        for model, column in enumerate(outcomes.T):
            known = np.isfinite(column)
            # "scale" on all training queries: a plain fit on the known ones alone would take their variance
            plain = SVR(C=1.0, epsilon=0.1, gamma=1 / (inputs.shape[1] * inputs.var())).fit(
                inputs[known], column[known]
            )
            np.testing.assert_allclose(predicted[:, model], plain.predict(asked), atol=1e-6)
        assert predicted.std(axis=0).max() > 0.01


def test_svm_gamma_is_scikit_learns_scale(work):
    fit = fitted(SVM(), work)
    inputs = fit.scaler_.transform(work.vectors.astype(np.float64))
    assert fit.gamma_ == pytest.approx(SVR(gamma="scale").fit(inputs, work.quality[:, 0])._gamma)


def test_svm_sample_limits_what_is_fitted_not_what_is_bought(work):
    feedback = work.feedback()
    fit = SVM(sample=50).fit(work.queries, feedback)
    assert len(fit.support_) <= 50 and feedback.spent == pytest.approx(work.cost.sum())
    with pytest.raises(SaveRouterError, match="sample is 0"):
        fitted(SVM(sample=0), work)


def test_graph_is_a_normalised_convolution_over_each_star():
    torch.manual_seed(0)
    net, queries, models = StarGraph(6, 8), torch.randn(3, 6), torch.randn(4, 6)
    nn.init.normal_(net.first.bias)
    nn.init.normal_(net.second.bias)
    adjacency = torch.eye(5)
    adjacency[1:, 0] = 1  # from the query to every model, with self-loops
    degree = adjacency.sum(dim=1)
    normal = adjacency / torch.sqrt(degree[:, None] * degree[None, :])
    for query, found in zip(queries, net(queries, models), strict=True):
        state = torch.cat([query[None], models])
        for layer in (net.first, net.second):
            state = torch.relu(normal @ state @ layer.weight.T + layer.bias)
        ends = torch.cat([state[:1].expand(4, -1), state[1:]], dim=1)
        torch.testing.assert_close(found, net.out(torch.relu(net.edge(ends))))


@pytest.mark.parametrize("router", [GraphRouter(epochs=2, hidden=16), EquiRouter(epochs=1)], ids=lambda r: r.label)
def test_a_batch_teaches_the_same_in_parts(router, masked_work, monkeypatch):
    whole = estimates(fitted(router, masked_work), masked_work)
    monkeypatch.setattr(f"{type(router).__module__}.PAIRS", 200)
    parts = estimates(fitted(router, masked_work), masked_work)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_mirt_is_the_item_response_formula():
    torch.manual_seed(0)
    net, queries, descriptions = ItemResponse(6, 3), torch.randn(5, 6), torch.randn(4, 6)
    logits = net(queries, descriptions)
    for side in range(2):
        abilities = descriptions @ net.abilities.weight[3 * side : 3 * side + 3].T
        items = queries @ net.items.weight[4 * side : 4 * side + 4].T
        for n in range(5):
            for m in range(4):
                expected = (torch.log1p(items[n, :3].exp()) * abilities[m]).sum() - items[n, 3]
                torch.testing.assert_close(logits[n, side, m], expected)


def test_mirt_nets_learn_apart(work):
    """They share an optimiser and minibatches, yet other costs leave the estimates of quality as they are."""
    dearer = replace(work, cost=work.cost * 50)
    first, second = fitted(MIRT(epochs=2), work), fitted(MIRT(epochs=2), dearer)
    np.testing.assert_array_equal(first.predict_quality(work), second.predict_quality(work))
    assert not np.allclose(first.predict_cost(work), second.predict_cost(work), atol=1e-6)


def test_mirt_losses_of_both_generations():
    logits = torch.tensor([[0.3, -1.0], [2.0, 0.5]])
    quality, cost = torch.tensor([1.0, 0.0]), torch.tensor([0.2, 0.1])

    def entropy(chance, target):
        return -(target * chance.log() + (1 - target) * (1 - chance).log()).mean()

    once, twice = logits.sigmoid(), logits.sigmoid().sigmoid()
    early = entropy(twice[:, 0], quality) + entropy(twice[:, 1], cost)
    late = entropy(once[:, 0], quality) + ((once[:, 1] - cost) ** 2).mean()
    torch.testing.assert_close(MIRT(orbit="early")._loss(logits, (quality, cost)), early)
    torch.testing.assert_close(MIRT(orbit="late")._loss(logits, (quality, cost)), late)


def test_equirouter_scores_are_those_of_the_concatenated_features():
    torch.manual_seed(0)
    net, queries = Modulated(6, 3), torch.randn(4, 6)
    with torch.no_grad():  # model vectors of a size at which every part of the features counts
        net.models.normal_()
        net.mix[0].bias.normal_()
    state, found = net.trunk(queries), net(queries)
    for m, vector in enumerate(net.models):
        scale, shift = net.film(vector).chunk(2)
        seen, own = scale * state + shift, net.own(vector).expand(4, -1)
        features = torch.cat([seen, own, seen * own, (seen - own).abs()], dim=1)
        torch.testing.assert_close(found[:, m], net.out(net.mix(features))[:, 0], atol=1e-4, rtol=1e-4)


def test_ranking_losses_are_those_of_known_pairs_of_a_query():
    rng = np.random.default_rng(0)
    score, quality = torch.tensor(rng.normal(size=(6, 4))), torch.tensor(rng.integers(2, size=(6, 4)) / 1.0)
    known = torch.tensor(rng.random((6, 4)) < 0.7)
    terms = [
        np.log1p(np.exp(-(score[n, i] - score[n, j]).item()))
        for n in range(6) for i in range(4) for j in range(4)
        if known[n, i] and known[n, j] and quality[n, i] > quality[n, j]
    ]  # fmt: skip
    assert len(terms) > 3
    better = better_pairs(quality, known)
    assert better.sum() == len(terms)
    assert ranking_losses(score, better).sum().item() == pytest.approx(np.sum(terms))


def test_avengerspro_gives_the_means_of_the_nearest_cluster(masked_work):
    train, test = masked_work.split(0.5)
    fit = fitted(AvengersPro(clusters=6), train)
    centres = fit.kmeans_.cluster_centers_
    of_train, of_test = (
        np.argmin(((part.vectors[:, None] - centres) ** 2).sum(axis=2), axis=1) for part in (train, test)
    )
    predicted = fit.predict_quality(test)
    for row in range(20):
        expected = np.nanmean(train.quality[of_train == of_test[row]], axis=0)
        np.testing.assert_allclose(predicted[row], expected)


def test_avengerspro_has_no_more_clusters_than_distinct_queries(recwarn):
    work = make_workload(n=30)
    work = replace(work, vectors=work.vectors[np.arange(30) % 3])
    fit = fitted(AvengersPro(), work)
    assert len(fit.kmeans_.cluster_centers_) == 3 and not recwarn.list


def test_routellm_early_has_two_prices_and_the_first_model(work):
    fit = fitted(RouteLLMMF(), work)
    mean = work.quality.mean(axis=0)
    assert (fit.strong_, fit.weak_) == (mean.argmax(), mean.argmin())
    prices, first = fit.policies(work.queries)
    expected = np.sort(work.cost.mean(axis=0)[[fit.weak_, fit.strong_]])
    np.testing.assert_allclose(prices.thresholds, expected)
    assert (prices.choice(0) == (fit.weak_ if fit.mean_cost_[fit.weak_] == expected[0] else fit.strong_)).all()
    assert set(prices.choice(1)) <= {fit.strong_, fit.weak_}
    assert (first.choice(0) == 0).all() and first.label(0) == "first model always"


def test_routellm_late_predicts_costs_and_offers_their_thresholds(work):
    fit = fitted(RouteLLMMF(), work, orbit="late")
    assert fit.predict_cost(work).std(axis=0).min() > 0
    (family,) = fit.policies(work.queries)
    assert len(family) == 100 and family.fallback == "cheapest"


def test_routellm_learns_who_is_better():
    work = make_workload(n=400, models=2)
    task = work.vectors.argmax(axis=1)
    quality = np.column_stack([task == 0, task != 0]).astype(float)
    fit = fitted(RouteLLMMF(epochs=60, rate=1e-2), replace(work, quality=quality))
    assert fit.strong_ == 1
    np.testing.assert_array_equal(fit.predict_quality(work).argmax(axis=1), (task != 0).astype(int))
    np.testing.assert_array_equal(fit.policies(work.queries)[0].choice(1), (task != 0).astype(int))


def test_routellm_without_a_single_difference(work):
    fit = fitted(RouteLLMMF(), replace(work, quality=np.ones_like(work.quality)))
    assert fit.strong_ == fit.weak_ == 0
    assert (fit.predict_quality(work)[:, 0] == 0.5).all() and (fit.predict_quality(work)[:, 1:] == -1).all()


def test_every_model_of_the_pools_is_described():
    with (data_folder() / "descriptions.csv").open(encoding="utf-8", newline="") as file:
        written = {row["model"]: row["description"] for row in csv.DictReader(file)}
    names = [model["name"] for pool in benchmarks() for model in specification(pool)["models"]]
    assert len(names) > 40 and set(names) <= set(written)
    assert describe(names) == [written[name] for name in names]
    assert all(2 <= text.count(". ") + 1 <= 4 for text in written.values())


@pytest.mark.parametrize(
    "name, text",
    [
        ("someone/Llama-3-tuned-1.5b", "is a language model of the llama family, which is by Meta. It has 1.5 billion"),
        ("mixtral-9x7b-odd", "by Mistral AI. It has 9 experts of 7 billion parameters."),
        ("deepseek-distill-llama-7B", "deepseek-distill-llama-7B is a language model. It has 7 billion parameters."),
        ("model-3", "model-3 is a language model."),
    ],
)
def test_an_unknown_model_is_described_by_its_name(name, text):
    (found,) = describe([name])
    assert found.startswith(name) and text in found


def test_placeholders_of_the_large_pool_are_described_by_their_sizes():
    names = [model["name"] for model in specification("routereval")["models"]]
    for name, text in zip(names, describe(names), strict=True):
        assert text.startswith(f"{name} is a language model. It has ") and text.endswith(" parameters.")


def test_text_vectors_fit_any_dimension():
    texts = describe(["gpt-5", "chatglm-6b", "model-3"])
    plain, wide, narrow = (text_vectors(texts, dimension) for dimension in (384, 1024, 64))
    np.testing.assert_array_equal(wide[:, :384], plain)
    assert wide.shape == (3, 1024) and not wide[:, 384:].any()
    for vectors in (plain, narrow):
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(narrow, text_vectors(texts, 64))
    np.testing.assert_allclose(narrow @ narrow.T, plain @ plain.T, atol=0.4)  # a projection keeps who is near whom
