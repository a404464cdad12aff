"""BaRP: a network that is told a preference and learns only from the outcomes it chose."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..errors import SaveRouterError
from ..judging import ChoicePolicies
from ..progress import counted
from ..workloads import Asked, backed_off
from .base import Router
from .shared.neural import layers, outputs, seeded, tensor

CHUNK = 4096


class BaRP(Router):
    """Bandit-feedback routing with preferences (arXiv 2510.07429), **reconstructed**.

    In every epoch it asks one model per query. It draws a preference at random, then the model from its own
    probabilities, and learns from that answer alone (REINFORCE with a batch baseline and an entropy bonus).
    ``feedback.spent`` charges every request (*fresh* accounting), ``feedback.spent_distinct`` each pair once (*cached*).

    The paper states 100 epochs, batches of 32 and 101 preferences at inference. Layer sizes, the entropy weight and
    the cost scale are our reading. The last two decide how much it explores and which models it asks. They were set
    by what the paper was charged for this training, never by how the router scores.

    Parameters
    ----------
    epochs : interactions per training query
    batch, rate : of Adam
    entropy : weight of the entropy bonus
    cost_scale : costs enter the reward relative to the "largest" cost received so far, or to the mean cost of the
        "dearest" model so far
    preferences : operating points, quality weights from 0 to 1
    seed : of initialisation, order, preferences and choices

    ``predict_quality`` is a preference: the network's probabilities where only quality counts.
    """

    label = "BaRP"
    reconstructed = True
    synthetic_best_point = True

    def __init__(self, *, epochs=100, batch=32, rate=1e-4, entropy=0.1, cost_scale="largest", preferences=101, seed=42):
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.entropy = entropy
        self.cost_scale = cost_scale
        self.preferences = preferences
        self.seed = seed

    def _fit(self, queries, feedback):
        if self.cost_scale not in ("largest", "dearest"):
            raise SaveRouterError(f"cost_scale is {self.cost_scale!r}; expected 'largest' or 'dearest'")
        vectors = tensor(queries.embed())
        shut = torch.tensor(~feedback.available(queries))
        paid = _RunningCosts(shut.shape[1], self.cost_scale)
        with seeded(self.seed):
            self.net_ = _PreferenceNet(vectors.shape[1], shut.shape[1])
            optimiser = torch.optim.Adam(self.net_.parameters(), lr=self.rate, fused=True)
            for _ in counted(self.epochs, self.label, "epochs"):
                for rows in torch.randperm(len(vectors)).split(self.batch):
                    weight = torch.rand(len(rows), 1)
                    logits = self.net_(vectors[rows], weight).masked_fill(shut[rows], -torch.inf)
                    log_chance = torch.log_softmax(logits, dim=1)
                    chance = log_chance.exp()
                    arms = torch.multinomial(chance.detach(), 1)
                    quality, cost = feedback.reveal(rows.numpy(), arms[:, 0].numpy())
                    came, relative = np.isfinite(quality), np.zeros(len(cost))
                    relative[came] = paid.relative(arms[came, 0].numpy(), cost[came])
                    reward = weight[:, 0] * tensor(quality) - (1 - weight[:, 0]) * tensor(relative)
                    surprise = -(chance * log_chance.masked_fill(shut[rows], 0.0)).sum(dim=1)
                    lead = (reward - reward[came].mean()).nan_to_num()  # a missing answer is neither good nor bad
                    learned = lead * log_chance.gather(1, arms)[:, 0]
                    optimiser.zero_grad(set_to_none=True)
                    (-learned - self.entropy * surprise).mean().backward()
                    optimiser.step()
        self.mean_cost_ = paid.means()
        dearest = self.mean_cost_.max()
        self.scale_ratio_ = paid.scale() / dearest if dearest > 0 else 1.0

    def predict_quality(self, queries: Asked) -> np.ndarray:
        queries = self._queries(queries)
        return outputs(lambda part: torch.softmax(self.net_(part, torch.ones(len(part), 1)), dim=1), queries.embed())

    def predict_cost(self, queries: Asked) -> np.ndarray:
        size = len(self._queries(queries))
        return np.tile(self.mean_cost_, (size, 1))

    def policies(self, queries: Asked) -> list:
        weights = np.linspace(0, 1, self.preferences)
        labels = [f"quality weight {weight:.2f}" for weight in weights]
        return [ChoicePolicies(self._preferred(self._queries(queries), weights), labels)]

    def _choose(self, queries, cost_weight):
        """Uses the quality weight whose reward is, up to a factor, quality - cost_weight x cost / dearest."""
        in_scale = cost_weight * self.scale_ratio_
        return self._preferred(queries, [1 / (1 + in_scale)])[0]

    @torch.inference_mode()
    def _preferred(self, queries, weights) -> np.ndarray:
        """(weights, n) choices among the available models."""
        vectors = tensor(queries.embed())
        choices = np.empty((len(weights), len(queries)), dtype=np.int16)
        for rows in map(torch.Tensor.numpy, torch.arange(len(vectors)).split(CHUNK)):
            own = self.net_.query_part(vectors[rows])
            for index, weight in enumerate(weights):
                logits = self.net_.decide(own, torch.full((1, 1), float(weight)))
                if queries.available is not None:
                    logits.masked_fill_(~torch.tensor(queries.available[rows]), -torch.inf)
                choices[index, rows] = logits.argmax(dim=1).numpy()
        return choices


class _PreferenceNet(nn.Module):
    """Logits from a query vector and a preference; the query's part of the first layer serves all preferences."""

    def __init__(self, size: int, n_models: int, hidden: int = 256, told: int = 64):
        super().__init__()
        self.size = size
        self.preference = layers(2, told, told)
        self.first = nn.Linear(size + told, hidden)
        self.last = nn.Linear(hidden, n_models)

    def query_part(self, vectors):
        return F.linear(vectors, self.first.weight[:, : self.size], self.first.bias)

    def decide(self, own, weight):
        told = self.preference(torch.cat([weight, 1 - weight], dim=1))
        return self.last(F.relu(own + F.linear(told, self.first.weight[:, self.size :])))

    def forward(self, vectors, weight):
        return self.decide(self.query_part(vectors), weight)


class _RunningCosts:
    """What the answers received so far cost, by model."""

    def __init__(self, n_models: int, kind: str):
        self.sums, self.counts = np.zeros(n_models), np.zeros(n_models)
        self.kind, self.largest = kind, 0.0

    def relative(self, arms, cost) -> np.ndarray:
        """Costs of new answers relative to the scale, at most 1. The new answers count in the scale."""
        self.sums += np.bincount(arms, weights=cost, minlength=len(self.sums))
        self.counts += np.bincount(arms, minlength=len(self.counts))
        self.largest = max(self.largest, cost.max(initial=0.0))
        scale = self.scale()
        return np.minimum(cost / scale, 1) if scale > 0 else np.zeros(len(cost))

    def scale(self) -> float:
        return self.largest if self.kind == "largest" else self.means().max()

    def means(self) -> np.ndarray:
        return backed_off(self.sums, self.counts)
