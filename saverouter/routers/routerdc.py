"""RouterDC: queries and models in one space, drawn together and apart by two contrastive losses."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits
from torch.nn.functional import normalize

from .shared.neighbours import distinct_rows, nearest
from .shared.neural import known_mean, optimise, outputs, seeded, tensor
from .shared.preference import PreferenceRouter


class RouterDC(PreferenceRouter):
    """Dual contrastive learning on frozen query vectors.

    A linear map takes a query near the models that did best on it and away from those that did worst. It also takes
    it near queries of its own cluster (of a t-SNE map) and away from those of others.

    Parameters
    ----------
    dimension : of the common space; None is that of the vectors
    listed : models per query that count as best, and as worst; at most half of those with an outcome
    clusters : of training queries; at most half as many as queries
    mapped : most training queries that t-SNE lays out, as its time grows faster than their number; of more, a sample
        is laid out, and each of the others joins the cluster of the nearest sampled one
    negatives : queries of other clusters contrasted with each query
    temperature : what cosines are divided by
    sample_weight : of the loss between queries
    epochs, batch, rate : of Adam
    orbit : "late" counts as best only models that scored above 0, as worst those at 0;
        for costs and operating points see ``PreferenceRouter``
    seed : of the map, the clusters, initial weights, minibatches and draws

    Among equally good models the earlier of the pool are listed as best, the later as worst: where many outcomes are
    equal, as with 0 and 1, the order of the pool is learnt along with them.

    ``predict_quality`` is a preference, not an estimate: the cosine between query and model. A model without any
    outcome has the lowest, -1.
    """

    label = "RouterDC"

    def __init__(
        self,
        *,
        dimension=None,
        listed=5,
        clusters=300,
        mapped=5000,
        negatives=30,
        temperature=0.07,
        sample_weight=1.0,
        epochs=5,
        batch=1024,
        rate=1e-3,
        orbit="early",
        seed=42,
    ):
        self.dimension = dimension
        self.listed = listed
        self.clusters = clusters
        self.mapped = mapped
        self.negatives = negatives
        self.temperature = temperature
        self.sample_weight = sample_weight
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn_preference(self, vectors, quality):
        inputs = tensor(vectors)
        best, worst = (torch.as_tensor(part) for part in best_and_worst(quality, self.listed, self.orbit == "late"))
        others = ClusterDraws(query_clusters(vectors, self.clusters, self.mapped, self.seed))
        self.tried_ = np.isfinite(quality).any(axis=0)
        width, size = vectors.shape[1], self.dimension or vectors.shape[1]

        def loss(rows):
            near, far = others.near(rows), others.far(rows, self.negatives)
            # many draws are of the same query: each is mapped once
            used, place = torch.unique(torch.cat([rows[:, None], near[:, None], far], dim=1), return_inverse=True)
            place = place.view(len(rows), -1)
            points = normalize(inputs[used] @ self.map_, dim=1)
            here = points[place[:, 0]]
            to_models = here @ normalize(self.places_, dim=1).T / self.temperature
            to_queries = torch.einsum("rd,rkd->rk", here, points[place[:, 1:]]) / self.temperature
            between = known_mean(-to_queries.log_softmax(dim=1)[:, 0], others.usable[rows])
            return contrast(to_models, best[rows], worst[rows]) + self.sample_weight * between

        with seeded(self.seed):
            self.map_ = (torch.randn(width, size) / width**0.5).requires_grad_()
            self.places_ = (torch.randn(quality.shape[1], size) / size**0.5).requires_grad_()
            optimise(
                loss, [self.map_, self.places_], len(inputs),
                epochs=self.epochs, batch=self.batch, rate=self.rate, name="RouterDC",
            )  # fmt: skip

    def _preference(self, vectors):
        models = normalize(self.places_.detach(), dim=1).T
        cosine = outputs(lambda part: normalize(part @ self.map_, dim=1) @ models, vectors)
        return np.where(self.tried_, cosine, -1.0)


def best_and_worst(quality: np.ndarray, listed: int, strict: bool) -> tuple[np.ndarray, np.ndarray]:
    """(n, M) masks of each query's best and worst models among the known ones, never one in both."""
    known = np.isfinite(quality)
    order = np.argsort(np.where(known, -quality, np.inf), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    count = known.sum(axis=1, keepdims=True)
    size = np.minimum(listed, count // 2)
    best, worst = rank < size, (rank >= count - size) & (rank < count)
    return (best & (quality > 0), worst & (quality <= 0)) if strict else (best, worst)


def contrast(scores: torch.Tensor, best: torch.Tensor, worst: torch.Tensor) -> torch.Tensor:
    """Minus the mean log-probability of the best models among best and worst; queries without a best one are left out."""
    logs = scores.masked_fill(~(best | worst), -1e9).log_softmax(dim=1)
    return known_mean(-(logs * best).sum(dim=1) / best.sum(dim=1).clamp(min=1), best.any(dim=1))


def query_clusters(vectors: np.ndarray, clusters: int, mapped: int, seed: int) -> np.ndarray:
    """Clusters of a two-dimensional t-SNE map; one cluster where there are too few different queries for a map."""
    if len(vectors) > mapped:
        rows = np.sort(np.random.default_rng(seed).choice(len(vectors), mapped, replace=False))
        known = query_clusters(vectors[rows], clusters, mapped, seed)
        return known[np.concatenate([near[:, 0] for near, _ in nearest(vectors, vectors[rows], 1)])]
    n = len(vectors)
    clusters = min(clusters, n // 2)
    if clusters < 2 or not np.ptp(vectors, axis=0).any():
        return np.zeros(n, dtype=np.int64)
    init = "pca" if vectors.shape[1] > 1 else "random"
    # several threads add up in any order, and the map would differ from run to run
    with threadpool_limits(limits=1, user_api="openmp"):
        flat = TSNE(perplexity=min(30, (n - 1) / 3), init=init, random_state=seed).fit_transform(vectors)
        clusters = min(clusters, len(distinct_rows(flat)))
        return KMeans(clusters, random_state=seed).fit_predict(flat).astype(np.int64)


class ClusterDraws:
    """Draws queries from the same cluster and from other clusters, a batch at a time."""

    def __init__(self, labels: np.ndarray):
        counts = torch.as_tensor(np.bincount(labels))
        labels = torch.as_tensor(labels)
        # sorted by cluster, a cluster is one stretch: its first place and its size say all
        self.order = torch.argsort(labels, stable=True)
        self.place = torch.argsort(self.order)
        self.first = (counts.cumsum(0) - counts)[labels]
        self.size = counts[labels]
        self.usable = (self.size > 1) & (self.size < len(labels))

    def near(self, rows: torch.Tensor) -> torch.Tensor:
        """For each query another one of its cluster; the query itself where it is alone."""
        first, size = self.first[rows], self.size[rows]
        step = 1 + _below((size - 1).clamp(min=1))
        return self.order[first + (self.place[rows] - first + step) % size]

    def far(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """(rows, count) queries of other clusters; any queries where there is no other cluster."""
        first, size = self.first[rows, None], self.size[rows, None]
        drawn = _below((len(self.order) - size).clamp(min=1).expand(-1, count))
        return self.order[torch.where(drawn < first, drawn, drawn + size) % len(self.order)]


def _below(limits: torch.Tensor) -> torch.Tensor:
    """A whole number from 0 up to each limit, the limit excluded."""
    return (torch.rand(limits.shape, dtype=torch.float64) * limits).long()
