"""EmbedLLM: a vector for every model, matched with a projection of the query."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .base import DenseRouter
from .shared.neural import known_mean, known_tensors, optimise, outputs, seeded, tensor


class EmbedLLM(DenseRouter):
    """Factorises outcomes into query and model vectors (Zhuang et al., 2024), as the toolkit ORBIT trains it.

    Parameters
    ----------
    dimension : of the model vectors
    noise : standard deviation of what is added to query and model vectors in training
    epochs, batch, rate : of Adam
    fraction : share of the available pairs to buy, drawn at random; 1 is dense supervision
    orbit : "early" (one cost per model, read off its vector) or "late" (a second factorisation for costs)
    seed : of initialisation, noise, order and draw
    """

    label = "EmbedLLM"

    def __init__(
        self, *, dimension=256, noise=0.001, epochs=30, batch=2048, rate=1e-3, fraction=1.0, orbit="early", seed=42
    ):
        self.dimension = dimension
        self.noise = noise
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.fraction = fraction
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        inputs, n_models = tensor(vectors), quality.shape[1]
        quality, cost, known = known_tensors(quality, cost)
        with seeded(self.seed):
            self.quality_net_ = _Factors(inputs.shape[1], n_models, self.dimension)
            if self.orbit == "early":
                self.cost_net_ = nn.Linear(self.dimension, 1)
            else:
                self.cost_net_ = _Factors(inputs.shape[1], n_models, self.dimension)

            def loss(rows):
                logits, models = self.quality_net_(inputs[rows], self.noise)
                paid = self.cost_net_(models).T if self.orbit == "early" else self.cost_net_(inputs[rows])[0]
                missed = F.binary_cross_entropy_with_logits(logits, quality[rows], reduction="none")
                return known_mean(missed + (paid - cost[rows]) ** 2, known[rows])

            parameters = [*self.quality_net_.parameters(), *self.cost_net_.parameters()]
            optimise(
                loss, parameters, len(inputs), epochs=self.epochs, batch=self.batch, rate=self.rate, name=self.label
            )

    def _predict(self, vectors, queries):
        quality = outputs(lambda part: torch.sigmoid(self.quality_net_(part)[0]), vectors)
        if self.orbit == "late":
            return quality, outputs(lambda part: self.cost_net_(part)[0], vectors)
        with torch.inference_mode():
            return quality, np.asarray(self.cost_net_(self.quality_net_.models)[:, 0], dtype=np.float64)


class _Factors(nn.Module):
    """A projection of the query, a vector and an offset for each model, and their dot products."""

    def __init__(self, inputs: int, n_models: int, dimension: int):
        super().__init__()
        self.project = nn.Linear(inputs, dimension)
        self.models = nn.Parameter(0.02 * torch.randn(n_models, dimension))
        self.offset = nn.Parameter(torch.zeros(n_models))

    def forward(self, vectors, noise: float = 0.0):
        query, models = self.project(vectors), self.models
        if noise:
            query = query + noise * torch.randn_like(query)
            models = models + noise * torch.randn_like(models)
        return query @ models.T + self.offset, models
