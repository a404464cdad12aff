"""Regressions on shared rows: scikit-learn's LSQR, and the exact solution where it may walk long enough."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from saverouter.ridge import ridges


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features = sp.random(300, 120, density=0.1, random_state=1, format="csr")
    rows, models = np.divmod(rng.choice(300 * 5, 700, replace=False), 5)
    return features, rows, models, rng.normal(size=700) + np.asarray(features[rows].sum(axis=1)).ravel()


@pytest.mark.parametrize("ridge, tolerance", [(0.0, 1e-8), (1.0, 1e-4), (1.0, 1e-8), (100.0, 1e-4), (100.0, 1e-8)])
def test_every_step_is_scikit_learns(problem, ridge, tolerance):
    features, rows, models, target = problem
    weights, intercepts = ridges(*problem, chosen=np.array([0, 3]), ridge=ridge, tolerance=tolerance)
    for column, model in enumerate((0, 3)):
        mine = models == model
        fit = Ridge(alpha=ridge, solver="lsqr", tol=tolerance).fit(features[rows[mine]], target[mine])
        np.testing.assert_allclose(weights[:, column], fit.coef_, rtol=1e-6, atol=1e-9)
        assert intercepts[column] == pytest.approx(fit.intercept_, abs=1e-8)


def test_a_small_tolerance_gives_the_exact_solution(problem):
    features, rows, models, target = problem
    weights, intercepts = ridges(*problem, chosen=np.arange(5), ridge=2.0, tolerance=1e-14)
    for model in range(5):
        mine = models == model
        fit = Ridge(alpha=2.0, solver="cholesky").fit(features[rows[mine]].toarray(), target[mine])
        np.testing.assert_allclose(weights[:, model], fit.coef_, atol=1e-10)
        assert intercepts[model] == pytest.approx(fit.intercept_, abs=1e-10)


def test_a_target_without_variance_has_no_weights(problem):
    features, rows, models, _ = problem
    weights, intercepts = ridges(features, rows, models, np.full(700, 0.3), chosen=[1], ridge=1.0, tolerance=1e-8)
    assert not weights.any() and intercepts[0] == pytest.approx(0.3)
