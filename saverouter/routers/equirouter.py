"""EquiRouter: scores that are trained to rank the models of a query."""

from __future__ import annotations

import torch
from torch import nn

from .base import DenseRouter
from .shared.neural import (
    better_pairs,
    in_parts,
    known_mean,
    known_tensors,
    low_rank_layers,
    optimise,
    outputs,
    ranking_losses,
    seeded,
    tensor,
)

PAIRS = 4096  # pairs of a query and a model in memory at a time; small blocks stay in the processor's cache


class EquiRouter(DenseRouter):
    """Ranking router of "When Routing Collapses" (Lai and Ye, 2026), in ORBIT's shape.

    The quality network sees a query as each model modulates it (FiLM); its loss is the squared error plus a
    pairwise ranking loss over the models known for a query. The cost network is ``low_rank_layers``.

    Parameters
    ----------
    rank_weight : of the ranking loss (ORBIT: 50)
    epochs, batch, rate : of Adam, for both networks (ORBIT: 5, 128, 1e-4)
    orbit : "early" or "late", see ``DenseRouter``
    seed : of the initial weights and the order of the minibatches
    """

    label = "EquiRouter"

    def __init__(self, *, rank_weight=50.0, epochs=5, batch=128, rate=1e-4, orbit="early", seed=42):
        self.rank_weight = rank_weight
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        inputs = tensor(vectors)
        quality, cost, known = known_tensors(quality, cost)
        training = dict(epochs=self.epochs, batch=self.batch, rate=self.rate, name=self.label)

        def quality_loss(rows):
            pairs = better_pairs(quality[rows], known[rows]).sum().clamp(min=1)
            total = known[rows].sum().clamp(min=1)

            def share(part):
                score, target, has = self.quality_net_(inputs[part]), quality[part], known[part]
                ranking = ranking_losses(score, better_pairs(target, has)).sum() / pairs
                return ((score - target) ** 2 * has).sum() / total + self.rank_weight * ranking

            return in_parts(share, rows, self._queries_at_once())

        def cost_loss(rows):
            return known_mean((self.cost_net_(inputs[rows]) - cost[rows]) ** 2, known[rows])

        # Both are drawn before either is trained, as in ORBIT: what a seed draws depends on the order.
        with seeded(self.seed):
            self.quality_net_ = Modulated(vectors.shape[1], quality.shape[1])
            self.cost_net_ = low_rank_layers(vectors.shape[1], cost.shape[1])
            optimise(quality_loss, self.quality_net_.parameters(), len(inputs), **training)
            optimise(cost_loss, self.cost_net_.parameters(), len(inputs), **training)

    def _queries_at_once(self) -> int:
        return max(1, PAIRS // len(self.models_))

    def _predict(self, vectors, queries):
        return outputs(self.quality_net_, vectors, self._queries_at_once()), outputs(self.cost_net_, vectors)


class Modulated(nn.Module):
    """Scores of all models, (n, M)."""

    def __init__(self, inputs: int, models: int):
        super().__init__()
        sizes = (inputs, 1024, 512, 512)
        self.trunk = nn.Sequential(*(_block(*pair) for pair in zip(sizes, sizes[1:], strict=False)))
        self.models = nn.Parameter(0.02 * torch.randn(models, 128))
        self.film, self.own = nn.Linear(128, 2 * 512), nn.Linear(128, 512)
        self.mix, self.out = _block(4 * 512, 512), nn.Linear(512, 1)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)

    def forward(self, vectors):
        scale, shift = self.film(self.models).chunk(2, dim=-1)
        seen, own = scale * self.trunk(vectors)[:, None] + shift, self.own(self.models)
        # One linear layer on [z; e; z * e; |z - e|], z the modulated query and e the model, is the sum of one on each:
        # the same function, with the part of e computed once per model and no (n, M, 2048) block.
        linear, *rest = self.mix
        of_seen, of_own, of_product, of_distance = linear.weight.chunk(4, dim=1)
        mixed = seen @ of_seen.T + (own @ of_own.T + linear.bias)
        mixed = mixed + (seen * own) @ of_product.T + (seen - own).abs() @ of_distance.T
        for part in rest:
            mixed = part(mixed)
        return self.out(mixed)[..., 0]


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.GELU(), nn.LayerNorm(outputs))
