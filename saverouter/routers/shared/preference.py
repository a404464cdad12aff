"""Routers that prefer some models but cannot tell what they cost."""

from __future__ import annotations

import numpy as np

from ...judging import ChoicePolicies
from ...workloads import Asked
from ..base import DenseRouter
from .neural import CostNet


class PreferenceRouter(DenseRouter):
    """A dense router that prefers models and has no cost model of its own.

    ``orbit="early"`` gives it one operating point, its favourite model, and each model's mean cost. "late" gives it
    ORBIT's shared cost network and thresholds on the predicted cost.
    """

    synthetic_best_point = False

    def _learn(self, vectors, quality, cost, queries):
        self._learn_preference(vectors, quality)
        if self.orbit == "late":
            self.cost_net_ = CostNet().fit(vectors, cost, self.seed)

    def _predict(self, vectors, queries):
        cost = self.mean_cost_ if self.orbit == "early" else self.cost_net_.predict(vectors)
        return self._preference(vectors), cost

    def _by_generation(self, quality, cost):
        """A favourite needs no threshold, so that early estimates are not rounded."""
        return (quality, cost) if self.orbit == "early" else super()._by_generation(quality, cost)

    def policies(self, queries: Asked) -> list:
        if self.orbit == "late":
            return super().policies(queries)
        quality, _ = self._estimates(self._queries(queries))
        return [ChoicePolicies(np.argmax(quality, axis=1)[None], ["favourite model"])]
