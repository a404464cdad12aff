"""The estimates: equal to what the paper's formulas give when they are written out in full."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_workload
from sklearn.linear_model import Ridge

import saverouter as sr
from saverouter.routers.saverouter.capability import (
    Observations,
    additive_prior,
    cost_table,
    residual_weights,
    shrunken,
)
from saverouter.routers.saverouter.grouping import Grouper


@pytest.fixture
def seen():
    rng = np.random.default_rng(3)
    pairs = np.unique(np.column_stack([rng.integers(80, size=200), rng.integers(6, size=200)]), axis=0)
    pairs = pairs[pairs[:, 1] != 5]  # nobody tried the last model
    groups = rng.integers(4, size=80)
    quality, cost = rng.random(len(pairs)), rng.lognormal(size=len(pairs))
    shuffled = rng.permutation(len(pairs))
    return Observations.of(pairs[shuffled, 0], pairs[shuffled, 1], quality[shuffled], cost[shuffled], groups, 4, 6)


@pytest.mark.parametrize("ridge", [0.1, 10.0, 1000.0])
def test_the_additive_prior_is_ridge_on_one_hot_columns(seen, ridge):
    design = np.hstack([np.eye(4)[seen.groups], np.eye(6)[seen.models]])
    fit = Ridge(alpha=ridge).fit(design, seen.quality)
    grid = np.hstack([np.repeat(np.eye(4), 6, axis=0), np.tile(np.eye(6), (4, 1))])
    expected = np.clip(fit.predict(grid).reshape(4, 6), 0, 1)
    np.testing.assert_allclose(additive_prior(seen.table(), seen.table(seen.quality), ridge), expected, atol=1e-12)


def test_shrinkage_lies_between_evidence_and_prior(seen):
    counts, sums = seen.table(), seen.table(seen.quality)
    prior = np.full(counts.shape, 0.5)
    estimate = shrunken(counts, sums, prior, 40.0)
    np.testing.assert_array_equal(estimate[counts == 0], 0.5)
    tried = counts > 0
    mean = sums[tried] / counts[tried]
    assert ((estimate[tried] - 0.5) * (mean - 0.5) >= 0).all()
    np.testing.assert_allclose(shrunken(counts, sums, prior, 0.0)[tried], mean)


def test_residuals_leave_the_own_outcome_out(seen):
    features = sp.csr_matrix(np.random.default_rng(0).random((80, 30)))
    prior = additive_prior(seen.table(), seen.table(seen.quality), 10.0)
    weights, intercepts = residual_weights(
        seen, prior, features, shrinkage=40.0, ridge=5.0, min_observations=8, tolerance=1e-12
    )
    target = np.empty(len(seen.rows))
    for i in range(len(target)):
        others = (seen.groups == seen.groups[i]) & (seen.models == seen.models[i])
        others[i] = False
        pi = prior[seen.groups[i], seen.models[i]]
        target[i] = seen.quality[i] - (seen.quality[others].sum() + 40 * pi) / (others.sum() + 40)
    for model in range(5):
        mine = seen.models == model
        fit = Ridge(alpha=5.0, solver="cholesky").fit(features[seen.rows[mine]].toarray(), target[mine])
        np.testing.assert_allclose(weights[:, model], fit.coef_, atol=1e-8)
        assert intercepts[model] == pytest.approx(fit.intercept_, abs=1e-8)
    assert not weights[:, 5].any() and intercepts[5] == 0


def test_costs_back_off_to_the_model_and_then_to_the_dearest(seen):
    table, means = cost_table(seen)
    for model in range(5):
        mine = seen.models == model
        assert means[model] == pytest.approx(seen.cost[mine].mean())
        for group in range(4):
            here = mine & (seen.groups == group)
            assert table[group, model] == pytest.approx(seen.cost[here].mean() if here.any() else means[model])
    assert means[5] == pytest.approx(1.05 * means[:5].max()) and (table[:, 5] == means[5]).all()


def test_a_cluster_without_training_queries_is_a_group_too():
    """Of few queries the last cluster may be empty, and a new query may still be nearest to it."""
    work = make_workload(n=20, models=3)
    vectors = np.repeat(np.eye(2), [3, 1], axis=0)  # two points in four clusters
    grouper = Grouper("latent").fit(replace(work.take(np.arange(4)).queries, vectors=vectors))
    assert grouper.n_groups_ == 4 > grouper.train_groups_.max() + 1


def test_groups_are_labels_where_they_can_be_recognised():
    work = make_workload()
    grouper = Grouper().fit(work.queries)
    assert grouper.kind_ == "labels" and grouper.n_groups_ == 4 and grouper.accuracy_ > 0.95
    noise = np.random.default_rng(0).normal(size=(300, 2))
    assert Grouper().fit(replace(work.queries, vectors=noise)).kind_ == "latent"
    assert Grouper().fit(replace(work.queries, tasks=np.arange(300).astype(str))).kind_ == "latent"  # over 128 labels
    assert Grouper().fit(replace(work.queries, tasks=None)).n_groups_ == 9  # round(sqrt(300) / 2)
    assert Grouper("global").fit(replace(work.queries, vectors=None)).n_groups_ == 1
    with pytest.raises(sr.SaveRouterError, match="needs task labels"):
        Grouper("labels").fit(replace(work.queries, tasks=None))


def test_without_residual_all_queries_of_a_group_are_alike(work):
    train, test = work.split()
    router = sr.SaveRouter(residual_scale=0).fit(train.queries, train.feedback())
    groups = router.predict_groups(test.queries)
    np.testing.assert_array_equal(router.predict_quality(test.queries), router.group_quality_[groups])


def test_plain_prompts_can_be_routed(work):
    """Prompts alone go through the text encoder, so the workload must not bring vectors."""
    from dataclasses import replace

    bare = replace(work.take(np.arange(60)), vectors=None)
    router = sr.SaveRouter(k=2).fit(bare.queries, bare.feedback())
    assert router.route(["Tell a long thing about the river"])[0] in bare.models
    assert router.route("Tell a long thing about the river", cost_weight=1e6)[0] == bare.models[0]
    with pytest.raises(sr.SaveRouterError, match="prompt 1 is ''"):
        router.route(["fine", ""])
    with pytest.raises(sr.SaveRouterError, match="cost_weight is -1"):
        router.route(["fine"], cost_weight=-1)


def test_make_router_names_what_is_wrong():
    with pytest.raises(sr.SaveRouterError, match="no router is called 'kn'; did you mean 'knn'"):
        sr.make_router("kn")
    with pytest.raises(
        sr.SaveRouterError, match="router 'knn' has no option 'neighbours'; it has fraction, k, orbit, seed"
    ):
        sr.make_router("knn", neighbours=3)


@pytest.mark.parametrize("tasks", [2, 3, 7])
def test_groups_are_recognised_as_the_classifier_would(tasks):
    work = make_workload(n=400, tasks=tasks, seed=3)
    grouper = Grouper("labels").fit(work.queries)
    others = make_workload(n=500, tasks=tasks, seed=4).vectors + np.float32(0.3)
    found = grouper.recognise(others)
    np.testing.assert_array_equal(found, grouper._model.predict(others))
    assert found.dtype == np.int64 and len(set(found)) == tasks


@pytest.mark.parametrize("noise, kind", [(0.45, "labels"), (0.9, "latent")])
def test_labels_count_only_where_most_are_recognised(noise, kind):
    """At least 80% of the training queries: half are recognised of the noisier ones, which chance would not do."""
    rng = np.random.default_rng(0)
    task = rng.integers(4, size=2000)
    vectors = (np.eye(4)[task] + rng.normal(0, noise, (2000, 4))).astype(np.float32)
    grouper = Grouper().fit(sr.Queries(np.full(2000, "text"), tasks=task.astype(str), vectors=vectors))
    assert grouper.kind_ == kind
    assert 0.8 <= grouper.accuracy_ < 0.95 if kind == "labels" else 0.4 < grouper.accuracy_ < 0.7
