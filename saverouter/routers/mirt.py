"""MIRT: multidimensional item response theory, with queries as items and models as persons."""

from __future__ import annotations

import torch
from torch import nn

from ..progress import counted
from .base import DenseRouter
from .shared.descriptions import describe, text_vectors
from .shared.neural import cost_unit, known_tensors, outputs, seeded, tensor


class MIRT(DenseRouter):
    """Item response model of "IRT-Router" (Song et al., ACL 2025), for quality and again for cost.

    A model's abilities are a linear map of its description. A query's discriminations and difficulty are maps of its
    vector. The estimate is sigmoid(discriminations . abilities - difficulty), which lies in 0..1: where costs exceed 1,
    they are divided by the largest one for training.

    Parameters
    ----------
    dimension : abilities (ORBIT: 25)
    epochs, batch, rate : of Adam, which takes one step for every model in every minibatch (ORBIT: 10, 512, 1e-3)
    orbit : "early" takes the cross-entropy of a sigmoid of the sigmoid, for both targets; "late" the cross-entropy
        of quality and the squared error of cost. See ``DenseRouter`` for the rest.
    seed : of the initial weights and the order of the minibatches
    """

    label = "MIRT"
    deviation = "descriptions of models are our own"

    def __init__(self, *, dimension=25, epochs=10, batch=512, rate=1e-3, orbit="early", seed=42):
        self.dimension = dimension
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        inputs = tensor(vectors)
        self.descriptions_ = tensor(text_vectors(describe(self.models_), vectors.shape[1]))
        self.unit_ = cost_unit(cost)
        *targets, known = known_tensors(quality, cost / self.unit_)
        with seeded(self.seed):
            self.net_ = ItemResponse(vectors.shape[1], self.dimension)
            optimiser = torch.optim.Adam(self.net_.parameters(), lr=self.rate, fused=True)
            for _ in counted(self.epochs, self.label, "epochs"):
                for rows in torch.randperm(len(inputs)).split(self.batch):
                    for model, description in enumerate(self.descriptions_):
                        has = rows[known[rows, model]]
                        if len(has):
                            optimiser.zero_grad(set_to_none=True)
                            logits = self.net_(inputs[has], description[None])[..., 0]
                            self._loss(logits, [target[has, model] for target in targets]).backward()
                            optimiser.step()

    def _loss(self, logits, targets):
        (quality_logit, cost_logit), (quality, cost) = logits.unbind(-1), targets
        entropy = nn.functional.binary_cross_entropy_with_logits
        if self.orbit == "early":
            return entropy(quality_logit.sigmoid(), quality) + entropy(cost_logit.sigmoid(), cost)
        return entropy(quality_logit, quality) + nn.functional.mse_loss(cost_logit.sigmoid(), cost)

    def _predict(self, vectors, queries):
        both = outputs(lambda part: self.net_(part, self.descriptions_).sigmoid(), vectors)
        return both[:, 0], both[:, 1] * self.unit_


class ItemResponse(nn.Module):
    """Logits of quality and cost, (n, 2, models).

    The two nets share no weight; they lie side by side in one matrix so that one step serves both. Adam works on
    every weight by itself and the losses add up, so each learns as it would alone.
    """

    def __init__(self, inputs: int, dimension: int):
        super().__init__()
        self.dimension = dimension
        self.abilities = nn.Linear(inputs, 2 * dimension, bias=False)
        self.items = nn.Linear(inputs, 2 * (dimension + 1), bias=False)

    def forward(self, query, description):
        abilities = self.abilities(description).view(-1, 2, self.dimension)
        items = self.items(query).view(-1, 2, self.dimension + 1)
        discriminations, difficulty = nn.functional.softplus(items[..., :-1]), items[..., -1:]
        return torch.einsum("nsd,msd->nsm", discriminations, abilities) - difficulty
