"""CARROT: plug-in estimates of quality and cost by nearest neighbours, weighed against each other."""

from __future__ import annotations

import numpy as np

from ..judging import ChoicePolicies, masked
from ..workloads import Asked, model_means
from .base import DenseRouter
from .shared.neighbours import equal_weights, neighbour_mean

WEIGHTS = np.linspace(0, 1, 101)


class CARROT(DenseRouter):
    """Plain mean over the k nearest training queries whose outcome is known, for each model by itself.

    Operating points are argmax of (1 - mu) quality - mu cost for 101 values of mu in 0..1. Cost enters as a z-score
    over all outcomes: it has no unit and keeps the order of the models. ``predict_cost`` is money. A mean of outcomes
    lies within their range, so ORBIT's clipping changes nothing. Only ORBIT's late generation has this router.

    Parameters
    ----------
    k : neighbours by cosine (all that are known, where there are fewer)
    """

    label = "CARROT"
    orbit = "late"
    synthetic_best_point = False

    def __init__(self, *, k=40):
        self.k = k

    def _learn(self, vectors, quality, cost, queries):
        self.vectors_, self.quality_, self.cost_ = vectors, quality, cost
        bought = cost[np.isfinite(cost)]
        # where everything has one price, its spread is only rounding noise
        self.cost_scale_ = bought.mean(), max(bought.std(), 1e-9 * bought.mean()) or 1.0

    def _predict(self, vectors, queries):
        quality, cost = (np.tile(model_means(known), (len(vectors), 1)) for known in (self.quality_, self.cost_))
        # models that are known on the same queries share one search: a complete table needs just one
        patterns, which = np.unique(np.isfinite(self.quality_), axis=1, return_inverse=True)
        for number, known in enumerate(patterns.T):
            if known.any():
                columns = np.flatnonzero(which.ravel() == number)
                weights = equal_weights(vectors, self.vectors_[known], self.k)
                quality[:, columns] = neighbour_mean(weights, self.quality_[known][:, columns])
                cost[:, columns] = neighbour_mean(weights, self.cost_[known][:, columns])
        return quality, cost

    def policies(self, queries: Asked) -> list:
        queries = self._queries(queries)
        quality, cost = self._both(queries)
        mean, spread = self.cost_scale_
        score = (cost - mean) / spread
        choices = [np.argmax(masked((1 - mu) * quality - mu * score, queries.available), axis=1) for mu in WEIGHTS]
        return [ChoicePolicies(np.array(choices), [f"mu {mu:.2f}" for mu in WEIGHTS])]
