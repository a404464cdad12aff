"""What is peculiar to the points of reference and to the routers beyond the paper."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import make_workload
from sklearn.neighbors import KNeighborsRegressor
from test_routers import parts, points

import saverouter as sr
from saverouter.routers.bounds import BestSingle, CheapestSingle, Oracle, Random
from saverouter.routers.carrot import CARROT
from saverouter.routers.hybridllm import HybridLLM
from saverouter.routers.routerdc import ClusterDraws, RouterDC, best_and_worst, contrast, query_clusters

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
