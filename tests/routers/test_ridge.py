"""Regressions on shared rows: scikit-learn's LSQR, and the exact solution where it may walk long enough."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from numba import config
from sklearn.linear_model import Ridge

from saverouter.routers.saverouter._ridge import predictions, ridges
from saverouter.threads import in_threads


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features = sp.random(300, 120, density=0.1, random_state=1, format="csr")
    rows, models = np.divmod(rng.choice(300 * 5, 700, replace=False), 5)
    return features, rows, models, rng.normal(size=700) + np.asarray(features[rows].sum(axis=1)).ravel()


@pytest.mark.parametrize("ridge, tolerance", [(0.0, 1e-8), (1.0, 1e-4), (1.0, 1e-8), (100.0, 1e-4), (100.0, 1e-8)])
def test_every_step_is_scikit_learns(problem, ridge, tolerance):
    features, rows, models, target = problem
    weights, intercepts = ridges(*problem, chosen=np.array([0, 3]), n_models=5, ridge=ridge, tolerance=tolerance)
    assert not weights[:, [1, 2, 4]].any() and not intercepts[[1, 2, 4]].any()
    for model in (0, 3):
        mine = models == model
        fit = Ridge(alpha=ridge, solver="lsqr", tol=tolerance).fit(features[rows[mine]], target[mine])
        np.testing.assert_allclose(weights[:, model], fit.coef_, rtol=1e-6, atol=1e-9)
        assert intercepts[model] == pytest.approx(fit.intercept_, abs=1e-8)


def test_a_small_tolerance_gives_the_exact_solution(problem):
    features, rows, models, target = problem
    weights, intercepts = ridges(*problem, chosen=np.arange(5), n_models=5, ridge=2.0, tolerance=1e-14)
    for model in range(5):
        mine = models == model
        fit = Ridge(alpha=2.0, solver="cholesky").fit(features[rows[mine]].toarray(), target[mine])
        np.testing.assert_allclose(weights[:, model], fit.coef_, atol=1e-10)
        assert intercepts[model] == pytest.approx(fit.intercept_, abs=1e-10)


def test_a_target_without_variance_has_no_weights(problem):
    features, rows, models, _ = problem
    weights, intercepts = ridges(
        features, rows, models, np.full(700, 0.3), chosen=[1], n_models=5, ridge=1.0, tolerance=1e-8
    )
    assert not weights.any() and intercepts[1] == pytest.approx(0.3)


def test_a_wide_matrix_is_not_cut_short(problem):
    """Columns beyond the 65,536th have longer indices."""
    features, *given = problem
    wide = sp.hstack([features, sp.csr_matrix((300, 70_000)), features], format="csr")
    twice = sp.hstack([features, features], format="csr")
    solved = [
        ridges(matrix, *given, chosen=np.arange(5), n_models=5, ridge=20.0, tolerance=1e-13)[0]
        for matrix in (wide, twice)
    ]
    np.testing.assert_allclose(np.vstack([solved[0][:120], solved[0][-120:]]), solved[1], atol=1e-12)


def test_the_number_of_threads_changes_no_digit(problem, monkeypatch):
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", threads)
        found.append(ridges(*problem, chosen=np.arange(5), n_models=5, ridge=2.0, tolerance=1e-8))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_parts_come_back_in_order_whatever_thread_had_them(monkeypatch):
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 4)
    met = threading.Barrier(2, timeout=60)  # only passed where two are at work at a time

    def meet(part):
        met.wait()
        return part * 10

    assert in_threads(meet, range(6)) == [0, 10, 20, 30, 40, 50]
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 1)
    assert in_threads(lambda part: threading.get_ident(), range(3)) == [threading.get_ident()] * 3


@pytest.mark.parametrize("rows, models", [(1, 1), (7, 3), (6000, 12)])
def test_predictions_are_the_product(rows, models):
    features = sp.random(rows, 90, density=0.2, random_state=2, format="csr")
    weights = np.random.default_rng(1).normal(size=(90, models))
    np.testing.assert_array_equal(predictions(features, weights), features @ weights)


def test_features_of_another_width_are_refused():
    for width in (89, 91):
        with pytest.raises(ValueError, match=f"queries with {width} features, but weights for 90"):
            predictions(sp.random(3, width, density=0.2, format="csr"), np.zeros((90, 2)))
