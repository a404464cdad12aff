"""SemiRouter: a backbone taught by three anchor models, the others attached with a few labels each."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..workloads import Asked, model_means
from .base import Router, buy, price_list
from .shared.neural import (
    better_pairs,
    known_mean,
    known_tensors,
    layers,
    optimise,
    outputs,
    ranking_losses,
    seeded,
    tensor,
)


class SemiRouter(Router):
    """Anchors and adapters (EACL 2026, long paper 228; EMB variant), **reconstructed**.

    The paper states three anchors with all their labels, up to two labels per query of other models, 20 backbone and 2
    adapter epochs. Its charged costs fit anchors that are the cheapest, the median and the dearest model by price, and
    one cost per model. Layer sizes, losses and learning rates are our reading. Anchors are picked from the price list,
    which is free. Where the feedback has no price list, a small pilot is bought and charged.

    Parameters
    ----------
    labels : outcomes per query of models that are no anchors
    epochs, adapter_epochs, batch, rate : of Adam
    ranking : weight of the term that puts the better of two labelled models of a query first
    seed : of initialisation, order and labels
    """

    label = "SemiRouter"
    reconstructed = True
    synthetic_best_point = True

    def __init__(self, *, labels=2, epochs=20, adapter_epochs=2, batch=256, rate=1e-3, ranking=0.1, seed=42):
        self.labels = labels
        self.epochs = epochs
        self.adapter_epochs = adapter_epochs
        self.batch = batch
        self.rate = rate
        self.ranking = ranking
        self.seed = seed

    def _fit(self, queries, feedback):
        available = feedback.available(queries)
        n_models = available.shape[1]
        order = np.argsort(price_list(queries, feedback, self.seed), kind="stable")
        self.anchors_ = np.unique(order[[0, n_models // 2, n_models - 1]])
        wanted = np.zeros_like(available)
        wanted[:, self.anchors_] = available[:, self.anchors_]
        wanted |= self._drawn(available)
        quality, cost = buy(feedback, wanted)
        self.mean_cost_ = model_means(cost)
        self._learn(tensor(queries.embed()), *known_tensors(quality, cost))

    def _drawn(self, available) -> np.ndarray:
        """Mask of ``labels`` models per query, drawn uniformly among the available ones that are no anchors."""
        lots = np.where(available, np.random.default_rng(self.seed).random(available.shape), np.inf)
        lots[:, self.anchors_] = np.inf
        rank = np.argsort(np.argsort(lots, axis=1), axis=1)
        return (rank < self.labels) & np.isfinite(lots)

    def _learn(self, vectors, quality, cost, known):
        anchor = torch.zeros(quality.shape[1], dtype=torch.bool)
        anchor[self.anchors_] = True

        def fit(parameters, epochs, which):
            def loss(rows):
                scores, target = self.net_(vectors[rows]), quality[rows]
                missed = F.binary_cross_entropy_with_logits(scores, target, reduction="none")
                total = known_mean(missed, known[rows] & which)
                if which is anchor:
                    return total
                pairs = better_pairs(target, known[rows] & which)
                return total + self.ranking * known_mean(ranking_losses(scores, pairs), pairs)

            optimise(loss, parameters, len(vectors), epochs=epochs, batch=self.batch, rate=self.rate, name=self.label)

        with seeded(self.seed):
            self.net_ = _AnchoredNet(vectors.shape[1], anchor)
            net = self.net_
            fit([*net.trunk.parameters(), net.models, net.offset], self.epochs, anchor)
            if not anchor.all():
                net.attach()
                fit([net.models_attached, net.offset_attached, *net.adapter.parameters()], self.adapter_epochs, ~anchor)

    def predict_quality(self, queries: Asked) -> np.ndarray:
        return outputs(lambda part: torch.sigmoid(self.net_(part)), self._queries(queries).embed())

    def predict_cost(self, queries: Asked) -> np.ndarray:
        size = len(self._queries(queries))
        return np.tile(self.mean_cost_, (size, 1))


class _AnchoredNet(nn.Module):
    def __init__(self, size: int, anchor: torch.Tensor, hidden: int = 256, width: int = 128, narrow: int = 32):
        super().__init__()
        self.register_buffer("anchor", anchor)
        self.trunk = nn.Sequential(*layers(size, hidden, width), nn.ReLU())
        self.models = nn.Parameter(0.02 * torch.randn(len(anchor), width))
        self.offset = nn.Parameter(torch.zeros(len(anchor)))
        self.adapter = layers(width, narrow, width)
        self.models_attached = self.offset_attached = None

    def attach(self) -> None:
        """Freeze what the anchors taught, and start every other model from the mean anchor."""
        for parameter in (*self.trunk.parameters(), self.models, self.offset):
            parameter.requires_grad_(False)
        mean = self.models[self.anchor].mean(dim=0)
        self.models_attached = nn.Parameter(mean.repeat(len(self.anchor), 1))
        self.offset_attached = nn.Parameter(self.offset[self.anchor].mean().repeat(len(self.anchor)))

    def forward(self, vectors):
        seen = self.trunk(vectors)
        scores = seen @ self.models.T + self.offset
        if self.models_attached is None:
            return scores
        others = (seen + self.adapter(seen)) @ self.models_attached.T + self.offset_attached
        return torch.where(self.anchor, scores, others)
