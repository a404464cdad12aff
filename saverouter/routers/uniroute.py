"""UniRoute: a model is described by its errors in each of a few regions; the query's region is learnt."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from torch import nn

from .base import DenseRouter
from .shared.neighbours import cluster_mean
from .shared.neural import known_mean, known_tensors, optimise, outputs, seeded, tensor

ROUNDS = 100


class UniRoute(DenseRouter):
    """Cluster errors as model features with a learnt cluster map (Jitkrittum et al., 2025), in ORBIT's variant.

    Parameters
    ----------
    clusters : regions of the query space; some may stay empty
    hidden : units of the map's two hidden layers
    epochs, batch, rate : of Adam
    orbit : "early" (a model's mean cost) or "late" (its mean cost in each region)
    seed : of clusters, initialisation and order
    """

    label = "UniRoute"

    def __init__(self, *, clusters=10, hidden=128, epochs=5, batch=64, rate=5e-3, orbit="early", seed=42):
        self.clusters = clusters
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        n_clusters = min(self.clusters, len(vectors))
        labels = region_labels(vectors, n_clusters, self.seed)
        errors = 1 - np.clip(quality, 0, 1)
        self.errors_ = cluster_mean(labels, n_clusters, errors)  # in an empty region a model's error over all
        self.costs_ = cluster_mean(labels, n_clusters, cost)
        inputs, features = tensor(vectors), tensor(self.errors_)
        target, _, known = known_tensors(errors, errors)
        with seeded(self.seed):
            size = inputs.shape[1]
            self.map_ = nn.Sequential(
                nn.BatchNorm1d(size), nn.Linear(size, self.hidden), nn.BatchNorm1d(self.hidden), nn.ReLU(),
                nn.Linear(self.hidden, self.hidden), nn.BatchNorm1d(self.hidden), nn.ReLU(),
                nn.Linear(self.hidden, n_clusters), nn.Softmax(dim=1),
            )  # fmt: skip

            def loss(rows):
                wrong = (self.map_(inputs[rows]) @ features).clamp(1e-6, 1 - 1e-6)
                missed = nn.functional.binary_cross_entropy(wrong, target[rows], reduction="none")
                return known_mean(missed, known[rows])

            # a batch of one has no variance to normalise by
            optimise(
                loss, self.map_.parameters(), len(inputs),
                epochs=self.epochs, batch=self.batch, rate=self.rate, smallest=2, name=self.label,
            )  # fmt: skip
        self.map_.eval()

    def _predict(self, vectors, queries):
        region = outputs(self.map_, vectors)
        quality = np.clip(1 - region @ self.errors_, 0, 1)
        return quality, self.mean_cost_ if self.orbit == "early" else region @ self.costs_


def region_labels(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """(n,) clusters by Lloyd's iteration as ORBIT has it, which differs from scikit-learn's where vectors repeat.

    It starts from rows at different positions, whose vectors may be equal; the first of equal centres takes all. A cluster
    that becomes empty keeps its centre.
    """
    points = vectors.astype(np.float64)  # where sums of float32 are exact, and the mean of equal vectors is that vector
    centres = points[np.random.default_rng(seed).choice(len(points), n_clusters, replace=False)]
    labels = np.full(len(points), -1)
    for _ in range(ROUNDS):
        before, labels = labels, np.argmin(cdist(points, centres, "sqeuclidean"), axis=1)
        if np.array_equal(labels, before):
            break
        members = np.eye(n_clusters)[labels].T
        size = members.sum(axis=1, keepdims=True)
        np.divide(members @ points, size, out=centres, where=size > 0)
    return labels
