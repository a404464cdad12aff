"""Avengers-Pro: what each model scored and cost in the query's cluster."""

from __future__ import annotations

from sklearn.cluster import KMeans

from ..errors import SaveRouterError
from .base import DenseRouter
from .shared.neighbours import cluster_mean, distinct_rows


class AvengersPro(DenseRouter):
    """Cluster means of "Beyond GPT-5" (Zhang et al., 2025), read from the one nearest cluster as in ORBIT.

    Parameters
    ----------
    clusters : of k-means (ORBIT: 200; fewer where there are fewer distinct training queries)
    orbit : "early" or "late", see ``DenseRouter``
    seed : of k-means

    A model without an outcome in a cluster is given its mean over all training queries.
    """

    label = "AvengersPro"

    def __init__(self, *, clusters=200, orbit="early", seed=42):
        self.clusters = clusters
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        if self.clusters < 1:
            raise SaveRouterError(f"clusters is {self.clusters}; expected at least one")
        count = min(self.clusters, len(distinct_rows(vectors)))
        kind = "elkan" if count > 1 else "lloyd"  # Elkan's bounds need a second cluster
        self.kmeans_ = KMeans(count, algorithm=kind, n_init="auto", max_iter=1000, random_state=self.seed).fit(vectors)
        self.quality_ = cluster_mean(self.kmeans_.labels_, count, quality)
        self.cost_ = cluster_mean(self.kmeans_.labels_, count, cost)

    def _predict(self, vectors, queries):
        cluster = self.kmeans_.predict(vectors)
        return self.quality_[cluster], self.cost_[cluster]
