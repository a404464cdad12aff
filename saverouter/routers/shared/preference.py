"""Routers that know which model they like, but not what it costs."""

from __future__ import annotations

import numpy as np

from ..policies import ChoicePolicies
from ..workload import Queries
from .base import DenseRouter
from .neural import CostNet


class PreferenceRouter(DenseRouter):
    """A dense router that prefers models and has no cost model of its own.

    "early" it has one operating point, its favourite model, and a model's mean cost; "late" it has ORBIT's shared
    cost network and thresholds on what that predicts.
    """

    synthetic_best_point = False

    def _learn(self, vectors, quality, cost, queries):
        self._learn_preference(vectors, quality)
        if self.orbit == "late":
            self.cost_net_ = CostNet().fit(vectors, cost, self.seed)

    def _predict(self, vectors, queries):
        cost = self.mean_cost_ if self.orbit == "early" else self.cost_net_.predict(vectors)
        return self._preference(vectors), cost

    def policies(self, queries) -> list:
        if self.orbit == "late":
            return super().policies(queries)
        quality, _ = self._estimates(Queries.of(queries))
        return [ChoicePolicies(np.argmax(quality, axis=1)[None], ["favourite model"])]
