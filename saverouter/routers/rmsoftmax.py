"""RMSoftmax: a network that is told the cost weight and minimises expected regret."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..judging import ChoicePolicies
from ..workloads import Asked
from .base import DenseRouter
from .shared.neural import known_tensors, layers, optimise, outputs, seeded, tensor

CHUNK = 512


class RMSoftmax(DenseRouter):
    """Regret-minimising softmax over models, conditioned on the cost weight (Tsiourvas et al., 2025), on dense outcomes.

    Every training query is seen at every cost weight. The weight enters the first layer as one more input, so a query's
    part of that layer is computed once for all weights, and the augmented inputs never exist as a matrix. A minibatch
    therefore holds all weights of some queries, where the toolkit ORBIT shuffles (query, weight) pairs.

    Parameters
    ----------
    largest_weight, weights : the grid of cost weights, in quality per unit of cost
    epochs, batch, rate : of Adam; ``batch`` counts (query, weight) pairs. The paper: 300 epochs
    seed : of initialisation and order

    ``predict_quality`` is a preference: the probabilities where cost does not count.
    """

    label = "RMSoftmax"
    deviation = "a minibatch holds all cost weights of its queries"
    synthetic_best_point = False  # has its own evaluation in ORBIT

    def __init__(self, *, largest_weight=1000.0, weights=30, epochs=300, batch=2048, rate=1e-3, seed=42):
        self.largest_weight = largest_weight
        self.weights = weights
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        inputs, n_models = tensor(vectors), quality.shape[1]
        quality, cost, known = known_tensors(quality, cost)
        self.grid_ = np.linspace(0, self.largest_weight, self.weights)
        grid = tensor(self.grid_)
        with seeded(self.seed):
            self.first_ = nn.Linear(inputs.shape[1] + 1, 512)
            self.rest_ = layers(512, 256, n_models)

            def loss(rows):
                logits = self._logits(inputs[rows], grid).masked_fill(~known[rows, None], -torch.inf)
                utility = quality[rows, None] - grid[:, None] * cost[rows, None]
                best = utility.masked_fill(~known[rows, None], -torch.inf).amax(dim=-1, keepdim=True)
                return (torch.softmax(logits, dim=-1) * (best - utility)).sum(dim=-1).mean()

            optimise(
                loss, [*self.first_.parameters(), *self.rest_.parameters()], len(inputs),
                epochs=self.epochs, batch=max(1, self.batch // self.weights), rate=self.rate, name=self.label,
            )  # fmt: skip

    def _logits(self, vectors, grid):
        """(n, weights, M) logits: the same function as on [vector; weight], the query's part computed once."""
        own = F.linear(vectors, self.first_.weight[:, :-1], self.first_.bias)
        told = grid[:, None] * self.first_.weight[:, -1]
        return self.rest_(F.relu(own[:, None] + told))

    @torch.inference_mode()
    def _preferences(self, queries, grid) -> np.ndarray:
        """(weights, n) choices among the available models."""
        vectors, grid, chosen = tensor(queries.embed()), tensor(grid), []
        for rows in torch.arange(len(queries)).split(CHUNK):
            logits = self._logits(vectors[rows], grid)
            if queries.available is not None:
                logits.masked_fill_(~torch.tensor(queries.available[rows.numpy()])[:, None], -torch.inf)
            chosen.append(logits.argmax(dim=-1).T.numpy())
        return np.concatenate(chosen, axis=1)

    def _predict(self, vectors, queries):
        free = tensor([0.0])
        chances = outputs(lambda part: torch.softmax(self._logits(part, free)[:, 0], dim=-1), vectors)
        return chances, self.mean_cost_

    def policies(self, queries: Asked) -> list:
        labels = [f"cost weight {weight:.4g}" for weight in self.grid_]
        return [ChoicePolicies(self._preferences(self._queries(queries), self.grid_), labels)]

    def _choose(self, queries, cost_weight):
        """The network is told the weight in its own unit."""
        dearest = self.mean_cost_.max()
        return self._preferences(queries, [cost_weight / dearest if dearest > 0 else cost_weight])[0]
