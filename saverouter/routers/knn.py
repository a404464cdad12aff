"""kNN: the outcomes of the nearest training queries, weighted by closeness."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..encoders import MINILM_WIDTH
from .base import DenseRouter
from .shared.neighbours import distances, nearest, neighbour_mean, weight_matrix

SAME = 1e-12


class KNN(DenseRouter):
    """Weighted mean of the k nearest neighbours' outcomes, dense supervision by default.

    Parameters
    ----------
    k : neighbours (the paper: 300; all training queries where there are fewer)
    fraction : share of the available pairs to buy, drawn at random; 1 is dense supervision
    orbit : "early" or "late", see ``DenseRouter``
    seed : of that draw

    A neighbour counts by the inverse of its distance. Neighbours that equal the query, with a distance below 1e-12
    in float32 as in ORBIT, leave the others without weight. A model without an outcome among the neighbours is given its
    mean over all that was bought. Outcomes are all that it learns: a saved kNN holds the training queries' vectors and every
    outcome bought, though no prompt.
    """

    label = "kNN"

    def __init__(self, *, k=300, fraction=1.0, orbit="early", seed=42):
        self.k = k
        self.fraction = fraction
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        # In the order in which they are saved: another one may round otherwise.
        self.vectors_, self.quality_, self.cost_ = np.ascontiguousarray(vectors), quality, cost

    holds = "vectors of the training queries and, row by row, the outcomes that were bought; no prompt"

    def _state(self):
        names = ("vectors_", "quality_", "cost_", "mean_quality_", "mean_cost_")
        return {name: getattr(self, name) for name in names} | {"cost_range_": np.stack(self.cost_range_)}

    def _restore(self, state):
        size = len(self.models_)
        self.vectors_ = state.array("vectors_", None, self.own_vectors_ or MINILM_WIDTH)
        for name in ("quality_", "cost_"):
            setattr(self, name, state.array(name, len(self.vectors_), size, missing=True))
        self.mean_quality_, self.mean_cost_ = state.array("mean_quality_", size), state.array("mean_cost_", size)
        self.cost_range_ = tuple(state.array("cost_range_", 2, size))

    def _predict(self, vectors, queries):
        parts, start = [], 0
        for near, cosine in nearest(vectors, self.vectors_, self.k):
            parts.append(self._weights(vectors[start : start + len(near)], near, cosine))
            start += len(near)
        weights = sp.vstack(parts, format="csr")
        return neighbour_mean(weights, self.quality_), neighbour_mean(weights, self.cost_)

    def _weights(self, vectors, near, cosine) -> sp.csr_matrix:
        distance = distances(vectors, self.vectors_, near, cosine)
        same = distance < SAME
        weight = np.where(same.any(axis=1, keepdims=True), same, 1 / (distance + 1e-8))
        weight /= weight.sum(axis=1, keepdims=True)
        return weight_matrix(near, weight, len(self.vectors_))
