"""GraphRouter: a graph convolution over a star of the query and the models' descriptions."""

from __future__ import annotations

import torch
from torch import nn

from .base import DenseRouter
from .shared.descriptions import describe, text_vectors
from .shared.neural import in_parts, known_tensors, optimise, outputs, seeded, tensor

PAIRS = 8192  # pairs of a query and a model in memory at a time; small blocks stay in the processor's cache


class GraphRouter(DenseRouter):
    """Edge prediction of "GraphRouter" (Feng et al., ICLR 2025), on ORBIT's star graph without a task node.

    The query points at every model. A model's node starts from the vector of its description. After two graph
    convolutions a small network reads quality and cost from both ends of the edge.

    Parameters
    ----------
    hidden : units of every layer (ORBIT: 256)
    epochs, batch, rate : of Adam; ``batch`` counts queries (ORBIT: 10, 1024, 1e-3)
    orbit : "early" or "late", see ``DenseRouter``
    seed : of the initial weights and the order of the minibatches
    """

    label = "GraphRouter"
    deviation = "descriptions of models are our own"

    def __init__(self, *, hidden=256, epochs=10, batch=1024, rate=1e-3, orbit="early", seed=42):
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        inputs = tensor(vectors)
        self.descriptions_ = tensor(text_vectors(describe(self.models_), vectors.shape[1]))
        *targets, known = known_tensors(quality, cost)
        targets = torch.stack(targets, dim=-1)

        def loss(rows):
            total = 2 * known[rows].sum().clamp(min=1)  # of both outputs
            return in_parts(lambda part: error(part) / total, rows, self._queries_at_once())

        def error(rows):
            return ((self.net_(inputs[rows], self.descriptions_) - targets[rows]) ** 2 * known[rows][..., None]).sum()

        with seeded(self.seed):
            self.net_ = StarGraph(vectors.shape[1], self.hidden)
            optimise(
                loss, self.net_.parameters(), len(inputs),
                epochs=self.epochs, batch=self.batch, rate=self.rate, name=self.label,
            )  # fmt: skip

    def _queries_at_once(self) -> int:
        return max(1, PAIRS // len(self.models_))

    def _predict(self, vectors, queries):
        both = outputs(lambda part: self.net_(part, self.descriptions_), vectors, self._queries_at_once())
        return both[..., 0], both[..., 1]


class StarGraph(nn.Module):
    """Quality and cost of every edge of n stars, (n, M, 2), all with the same leaves.

    With self-loops, the query's node has one incoming edge and a model's node two, so the symmetric normalisation
    weighs a model's own state by 1/2, the query's at a model by 1/sqrt(2), and the query's own by 1.
    """

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.edge, self.out = nn.Linear(2 * hidden, hidden), nn.Linear(hidden, 2)

    def forward(self, query, models):
        query, models = self._convolve(self.first, query, models)
        query, models = self._convolve(self.second, query, models)
        # One linear layer on [query; model] is the sum of one on each: the query's is computed once for all models.
        of_query, of_model = self.edge.weight.chunk(2, dim=1)
        joint = (query @ of_query.T + self.edge.bias)[:, None] + models @ of_model.T
        return self.out(torch.relu(joint))

    @staticmethod
    def _convolve(layer, query, models):
        """The nodes' next states; (M, inputs) models are the same for all queries, (n, M, inputs) are not."""
        of_query, of_models = query @ layer.weight.T, models @ layer.weight.T
        at_models = 0.5 * of_models + (0.5**0.5 * of_query + layer.bias)[:, None]
        return torch.relu(of_query + layer.bias), torch.relu(at_models)
