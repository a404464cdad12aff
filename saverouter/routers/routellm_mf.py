"""RouteLLM-MF: a matrix factorisation that decides between the strongest and the weakest model."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ..judging import ChoicePolicies, ThresholdPolicies
from ..workloads import Asked
from .base import DenseRouter
from .shared.neural import CostNet, optimise, outputs, seeded, tensor


class RouteLLMMF(DenseRouter):
    """Matrix factorisation of "RouteLLM" (Ong et al., 2024), between two models of the pool as in ORBIT.

    The strong and the weak model have the highest and the lowest mean quality in training. The score of a model
    is w . (Wx + b) * v_model, and the probability that the strong one is better is the sigmoid of the difference.
    Training queries where both are equally good say nothing and are dropped.

    Parameters
    ----------
    dimension : of the factors (ORBIT: 64)
    epochs, batch, rate : of AdamW (ORBIT: 10, 128, 3e-4)
    orbit : "early" knows one mean cost per model and has at most three operating points; "late" predicts costs with
        ``CostNet`` and offers the usual thresholds. See ``DenseRouter`` for the rest.
    seed : of the initial weights and the order of the minibatches
    """

    label = "RouteLLM-MF"

    def __init__(self, *, dimension=64, epochs=10, batch=128, rate=3e-4, orbit="early", seed=42):
        self.dimension = dimension
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        seen = np.isfinite(quality).any(axis=0)
        self.strong_ = int(np.argmax(np.where(seen, self.mean_quality_, -np.inf)))
        self.weak_ = int(np.argmin(np.where(seen, self.mean_quality_, np.inf)))
        lead = quality[:, self.strong_] - quality[:, self.weak_]
        told = np.flatnonzero(np.isfinite(lead) & (lead != 0))
        inputs, strong_wins = tensor(vectors[told]), tensor(lead[told] > 0)
        with seeded(self.seed):
            self.net_ = _Lead(vectors.shape[1], self.dimension)
            optimise(
                lambda rows: nn.functional.binary_cross_entropy_with_logits(self.net_(inputs[rows]), strong_wins[rows]),
                self.net_.parameters(), len(told), epochs=self.epochs, batch=self.batch, rate=self.rate,
                kind=torch.optim.AdamW, name=self.label,
            )  # fmt: skip
        if self.orbit == "late":
            self.cost_net_ = CostNet().fit(vectors, cost, self.seed)

    def _predict(self, vectors, queries):
        strong_better = 1 / (1 + np.exp(-outputs(self.net_, vectors)))
        # The others are below every probability: chosen only where neither of the two can be asked or afforded.
        quality = np.full((len(vectors), len(self.models_)), -1.0)
        quality[:, self.weak_] = 1 - strong_better
        quality[:, self.strong_] = strong_better
        return quality, self.cost_net_.predict(vectors) if self.orbit == "late" else self.mean_cost_

    def policies(self, queries: Asked) -> list:
        if self.orbit == "late":
            return super().policies(queries)
        quality, cost = self._estimates(self._queries(queries))
        prices = np.unique(cost[:, [self.weak_, self.strong_]])
        # The toolkit gives the others no cost. That adds a threshold of NaN, which no model meets.
        nobody = ThresholdPolicies(quality, cost, np.array([np.nan]), "first").choice(0)
        return [ThresholdPolicies(quality, cost, prices, "first"), ChoicePolicies(nobody[None], ["first model always"])]


class _Lead(nn.Module):
    """Score of the strong model less score of the weak one; the other models' factors would never be read."""

    def __init__(self, inputs: int, dimension: int):
        super().__init__()
        self.query = nn.Linear(inputs, dimension)
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.zeros_(self.query.bias)
        self.models = nn.Parameter(0.02 * torch.randn(2, dimension))
        self.weights = nn.Parameter(torch.zeros(dimension))

    def forward(self, vectors):
        return self.query(vectors) @ (self.weights * (self.models[0] - self.models[1]))
