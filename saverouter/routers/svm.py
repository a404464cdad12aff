"""SVM: support vector regression of every model's quality and cost."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from .base import DenseRouter

CHUNK = 2048


class SVM(DenseRouter):
    """Two support vector regressions per model (Drucker et al., 1997) with an RBF kernel on standardised vectors.

    All 2 x M regressions look at the same queries, so the kernel is computed once and shared. Where all costs of a
    model lie within twice ``tube``, its regression is a constant.

    Parameters
    ----------
    penalty : C of the regressions (ORBIT: 1)
    tube : epsilon, the error that costs nothing (ORBIT: 0.1)
    sample : most training queries to fit on, drawn at random; None is all. Time and memory grow with their square:
        22,000 queries did not fit into 23 GB
    orbit : "early" or "late", see ``DenseRouter``
    seed : of that draw

    A model is fitted on the queries where it is known. A model without any outcome is given the mean of all models.
    """

    label = "SVM"
    may_be_none = ("sample",)
    deviation = "learns from at most 8,000 queries"

    def __init__(self, *, penalty=1.0, tube=0.1, sample=8000, orbit="early", seed=42):
        self.penalty = penalty
        self.tube = tube
        self.sample = sample
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        if self.sample is not None and self.sample < len(vectors):
            rows = np.sort(np.random.default_rng(self.seed).choice(len(vectors), self.sample, replace=False))
            vectors, quality, cost = vectors[rows], quality[rows], cost[rows]
        self.scaler_ = StandardScaler().fit(vectors.astype(np.float64))
        scaled = self._scaled(vectors)
        spread = scaled.var()
        self.gamma_ = 1 / (scaled.shape[1] * spread) if spread > 0 else 1.0  # gamma="scale" of scikit-learn
        kernel = rbf_kernel(scaled, gamma=self.gamma_)
        # libsvm works outside Python's lock, so that threads share the one kernel and still run side by side.
        fits = Parallel(n_jobs=-1, require="sharedmem")(
            delayed(self._regression)(kernel, column) for column in np.hstack([quality, cost]).T
        )
        coefficients = np.stack([weights for weights, _ in fits], axis=1)
        levels = np.array([level for _, level in fits])
        self.intercept_ = np.where(np.isnan(levels), np.append(self.mean_quality_, self.mean_cost_), levels)
        used = np.flatnonzero(coefficients.any(axis=1))
        self.support_, self.coefficients_ = scaled[used], coefficients[used]

    def _scaled(self, vectors) -> np.ndarray:
        return self.scaler_.transform(vectors.astype(np.float64))

    def _regression(self, kernel, target) -> tuple[np.ndarray, float]:
        """Dual coefficients of all queries, and the intercept: NaN where the target is known nowhere."""
        weights, rows = np.zeros(len(target)), np.flatnonzero(np.isfinite(target))
        if not len(rows):
            return weights, np.nan
        part = kernel if len(rows) == len(target) else kernel[np.ix_(rows, rows)]
        fit = SVR(kernel="precomputed", C=self.penalty, epsilon=self.tube)
        fit.random_state = self.seed  # no option of SVR, yet without it a fit draws from NumPy's global state
        fit.fit(part, target[rows])
        weights[rows[fit.support_]] = fit.dual_coef_[0]
        return weights, fit.intercept_[0]

    def _predict(self, vectors, queries):
        both = np.tile(self.intercept_, (len(vectors), 1))
        if len(self.support_):
            for start in range(0, len(vectors), CHUNK):
                part = slice(start, start + CHUNK)
                both[part] += rbf_kernel(self._scaled(vectors[part]), self.support_, self.gamma_) @ self.coefficients_
        return both[:, : len(self.models_)], both[:, len(self.models_) :]
