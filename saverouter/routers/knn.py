"""kNN: the outcomes of the nearest training queries, weighted by closeness."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..encoders import embed
from ..errors import SaveRouterError
from ..workload import Queries
from .base import Router, buy

CHUNK = 2048


class KNN(Router):
    """Weighted mean of the k nearest neighbours' outcomes, dense supervision by default.

    Parameters
    ----------
    k : neighbours (the paper: 300; all training queries where there are fewer)
    fraction : share of the available pairs to buy, drawn at random; 1 is dense supervision
    seed : of that draw

    A model without an outcome among the neighbours is given its mean over all that was bought.
    """

    label = "kNN"

    def __init__(self, *, k=300, fraction=1.0, seed=42):
        self.k = k
        self.fraction = fraction
        self.seed = seed

    def _fit(self, queries, feedback):
        if not 0 < self.fraction <= 1:
            raise SaveRouterError(f"fraction is {self.fraction}; expected more than 0 and at most 1")
        if self.k < 1:
            raise SaveRouterError(f"k is {self.k}; expected at least one neighbour")
        wanted = np.array(feedback.available(queries))
        if self.fraction < 1:
            pairs = np.flatnonzero(wanted)
            drawn = np.random.default_rng(self.seed).choice(
                pairs, max(1, round(self.fraction * len(pairs))), replace=False
            )
            wanted[:] = False
            wanted.flat[drawn] = True
        quality, cost = buy(feedback, wanted)
        self.vectors_ = embed(queries)
        self.known_ = np.isfinite(quality)
        self.quality_, self.cost_ = (np.where(self.known_, values, 0.0) for values in (quality, cost))
        self._last = None

    def predict_quality(self, queries) -> np.ndarray:
        return self._neighbour_mean(self.quality_, queries)

    def predict_cost(self, queries) -> np.ndarray:
        return self._neighbour_mean(self.cost_, queries)

    def _neighbour_mean(self, values, queries) -> np.ndarray:
        weights = self._weights(Queries.of(queries))
        total = weights @ self.known_.astype(np.float64)
        known = self.known_.sum(axis=0)
        everywhere = values.sum() / max(self.known_.sum(), 1)
        means = np.divide(values.sum(axis=0), known, out=np.full(values.shape[1], everywhere), where=known > 0)
        return np.divide(weights @ values, total, out=np.tile(means, (len(total), 1)), where=total > 0)

    def _weights(self, queries) -> sp.csr_matrix:
        """(n, N) weights of the neighbours; those of the last queries are kept, as both estimates need them."""
        check_is_fitted(self, "vectors_")
        if self._last is None or self._last[0] is not queries.prompts:
            self._last = queries.prompts, self._find(embed(queries))
        return self._last[1]

    def _find(self, vectors) -> sp.csr_matrix:
        k = min(self.k, len(self.vectors_))
        parts = []
        for start in range(0, len(vectors), CHUNK):
            closeness = vectors[start : start + CHUNK] @ self.vectors_.T
            near = np.argpartition(-closeness, k - 1, axis=1)[:, :k]
            cosine = np.take_along_axis(closeness, near, axis=1).astype(np.float64)
            distance = np.sqrt(np.maximum(2 - 2 * cosine, 0))
            # float32 vectors meet themselves at a cosine of 1 - 1e-7: that is the same prompt
            same = distance <= 1e-3
            weight = np.where(same.any(axis=1, keepdims=True), same, 1 / (distance + 1e-8))
            weight /= weight.sum(axis=1, keepdims=True)
            ends = np.arange(0, near.size + 1, k)
            parts.append(sp.csr_matrix((weight.ravel(), near.ravel(), ends), shape=(len(near), len(self.vectors_))))
        return sp.vstack(parts, format="csr")
