"""Nearest training queries and clusters of them, for the routers that use them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from ...workloads import model_means

CHUNK = 2048
CLOSE = 0.01  # a float32 cosine is too coarse for shorter distances between unit vectors
PAIRS = 16384  # differences of vectors in memory at a time


def nearest(
    vectors: np.ndarray, known: np.ndarray, k: int, *, ordered: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The k nearest of the known unit vectors, a block of queries at a time: (rows, k) positions and cosines.

    Where more than k are equally near, NumPy's partition at k decides, and that depends on the processor. With
    ``ordered`` every position up to k is put in order, which keeps the earlier ones almost always.
    """
    k = min(k, len(known))
    for start in range(0, len(vectors), CHUNK):
        closeness = vectors[start : start + CHUNK] @ known.T
        near = np.argpartition(-closeness, k - 1, axis=1)[:, :k]
        cosine = np.take_along_axis(closeness, near, axis=1)
        if ordered:  # the slower way, for the rows where it can make a difference
            tied = np.flatnonzero((closeness >= cosine.min(axis=1, keepdims=True)).sum(axis=1) > k)
            near[tied] = np.argpartition(-closeness[tied], range(k), axis=1)[:, :k]
            cosine = np.take_along_axis(closeness, near, axis=1)
        yield near, cosine.astype(np.float64)


def distances(vectors: np.ndarray, known: np.ndarray, near: np.ndarray, cosine: np.ndarray) -> np.ndarray:
    """(n, k) Euclidean distances to neighbours, from their cosines; short ones from the vectors, so that equal ones have 0."""
    distance = np.sqrt(np.maximum(2 - 2 * cosine, 0))
    rows, places = np.nonzero(distance < CLOSE)
    for start in range(0, len(rows), PAIRS):
        row, place = rows[start : start + PAIRS], places[start : start + PAIRS]
        distance[row, place] = np.linalg.norm(vectors[row] - known[near[row, place]], axis=1)
    return distance


def weight_matrix(near: np.ndarray, weights: np.ndarray, n_known: int) -> sp.csr_matrix:
    """(n, n_known) matrix with a row's weights at its neighbours."""
    ends = np.arange(0, near.size + 1, near.shape[1])
    return sp.csr_matrix((weights.ravel(), near.ravel(), ends), shape=(len(near), n_known))


def equal_weights(vectors: np.ndarray, known: np.ndarray, k: int, *, ordered: bool = False) -> sp.csr_matrix:
    """(n, n_known) weights of the k nearest, all equal; for ``ordered`` see ``nearest``."""
    near = np.concatenate([part for part, _ in nearest(vectors, known, k, ordered=ordered)])
    return weight_matrix(near, np.full(near.shape, 1 / near.shape[1]), len(known))


def neighbour_mean(weights: np.ndarray | sp.csr_matrix, values: np.ndarray) -> np.ndarray:
    """(n, M) weighted means of the known values; where no neighbour has one, the model's mean over all queries."""
    known = np.isfinite(values)
    total = weights @ known.astype(np.float64)
    means = np.tile(model_means(values), (len(total), 1))
    return np.divide(weights @ np.where(known, values, 0.0), total, out=means, where=total > 0)


def cluster_mean(labels: np.ndarray, n_clusters: int, values: np.ndarray) -> np.ndarray:
    """(clusters, M) means of the known values; a model without one in a cluster is given its mean over all."""
    members = np.eye(n_clusters)[labels].T
    return neighbour_mean(members, values)


def distinct_rows(vectors: np.ndarray) -> np.ndarray:
    """Positions of the first of every set of equal vectors; there can be no more clusters than these."""
    return np.sort(np.unique(vectors, axis=0, return_index=True)[1])
