"""OmniRouter: linear heads blended with the mean of similar training queries."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from .base import DenseRouter
from .shared.neighbours import equal_weights, neighbour_mean
from .shared.neural import known_mean, known_tensors, optimise, outputs, seeded, tensor


class OmniRouter(DenseRouter):
    """Trained and retrieved estimates side by side (Mei et al., 2025), in the toolkit ORBIT's variant.

    The original then assigns whole batches under a budget; ORBIT, and so the paper, uses the threshold frontier instead.

    Parameters
    ----------
    neighbours : training queries whose outcomes are averaged
    trained_share : weight of the linear heads against those averages
    epochs, batch, rate, decay : of Adam, as published; a small training set gives few steps, and the heads stay close
        to where they started
    orbit, seed : see ``DenseRouter``

    Where more training queries are equally near than count, the neighbours are those of ORBIT: see ``nearest``.
    """

    label = "OmniRouter"

    def __init__(
        self, *, neighbours=50, trained_share=0.6, epochs=50, batch=2048, rate=1e-4, decay=1e-6, orbit="early", seed=42
    ):
        self.neighbours = neighbours
        self.trained_share = trained_share
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.decay = decay
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        self.vectors_, self.quality_, self.cost_ = vectors, quality, cost
        inputs, n_models = tensor(vectors), quality.shape[1]
        quality, cost, known = known_tensors(quality, cost)
        with seeded(self.seed):
            self.heads_ = nn.ModuleList([nn.Linear(inputs.shape[1], n_models) for _ in range(2)])

            def loss(rows):
                logits, paid = (head(inputs[rows]) for head in self.heads_)
                missed = F.binary_cross_entropy_with_logits(logits, quality[rows], reduction="none")
                return known_mean(missed + (paid - cost[rows]) ** 2, known[rows])

            optimise(
                loss, self.heads_.parameters(), len(inputs),
                epochs=self.epochs, batch=self.batch, rate=self.rate, decay=self.decay, name=self.label,
            )  # fmt: skip

    def _predict(self, vectors, queries):
        trained = (
            outputs(lambda part: torch.sigmoid(self.heads_[0](part)), vectors),
            outputs(self.heads_[1], vectors),
        )
        weights = equal_weights(vectors, self.vectors_, self.neighbours, ordered=True)
        retrieved = neighbour_mean(weights, self.quality_), neighbour_mean(weights, self.cost_)
        share = self.trained_share
        return tuple(share * own + (1 - share) * found for own, found in zip(trained, retrieved, strict=True))
