"""How far a result can be trusted: its test queries drawn anew, many times, served and reference outcomes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from . import economics

DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Sample:
    """Test outcomes by query, as long as a result stays in memory: it is neither kept nor sent anywhere.

    chosen : (points, n) columns that the frontier's points choose, -1 at those of ``several``
    reference : column of the reference; where it has no outcome, a query says nothing of it
    clusters : n labels of queries that belong together, or None
    several : (2, n) quality and cost as served, by point, where a point asks more than one model for a query
    """

    chosen: np.ndarray
    quality: np.ndarray
    cost: np.ndarray
    reference: int
    clusters: np.ndarray | None = None
    several: Mapping[int, np.ndarray] = field(default_factory=dict)

    def sums(self, point: int) -> np.ndarray:
        """(clusters, 6) served quality, cost and count, and the reference's, each query its own cluster unless labelled."""
        rows = np.arange(len(self.quality))
        there = np.isfinite(self.quality[:, self.reference])
        served = self.several.get(point)
        if served is None:
            served = [values[rows, self.chosen[point]] for values in (self.quality, self.cost)]
        columns = [*served, np.ones(len(rows))]
        columns += [np.where(there, values[:, self.reference], 0.0) for values in (self.quality, self.cost)]
        each = np.column_stack([*columns, there])
        if self.clusters is None:
            return each
        _, cluster = np.unique(self.clusters.astype(str), return_inverse=True)
        return np.column_stack([np.bincount(cluster, column) for column in each.T])


def bootstrap(
    sums: np.ndarray, supervision_cost: float, level: float, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Paired bootstrap: estimate, low and high of the quality difference (points), the saving and SA-BEP.

    Clusters are drawn with replacement, with all their queries and both of each query's outcomes.
    """
    rng, size = np.random.default_rng(seed), len(sums)
    drawn = [_figures(sums[rng.integers(size, size=size)].sum(axis=0), supervision_cost) for _ in range(draws)]
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0, method="inverted_cdf")  # which may be infinite
    columns = {"estimate": _figures(sums.sum(axis=0), supervision_cost), "low": low, "high": high}
    return pd.DataFrame(columns, index=["quality difference", "saving", "sa_bep"])


def saved_over(
    sums: np.ndarray, volume: float, level: float, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float, float]:
    """Money saved over the next ``volume`` queries from the same stream: estimate, low and high.

    Two things are unknown: the stream's mean, which the bootstrap shows, and which queries will come, which matters where
    they are few.
    """
    rng, size = np.random.default_rng(seed), len(sums)
    saved, count = sums[:, 4] - sums[:, 1], sums[:, 2]
    mean = saved.sum() / count.sum()
    drawn = (rng.integers(size, size=size) for _ in range(draws))
    means = np.array([saved[rows].sum() / count[rows].sum() for rows in drawn])
    per_query = ((saved - mean * count) ** 2).sum() / count.sum()
    means += rng.normal(size=draws) * np.sqrt(per_query / volume)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return tuple(float(volume * value) for value in (mean, low, high))


def _figures(totals: np.ndarray, supervision_cost: float) -> tuple[float, float, float]:
    quality, cost = totals[:2] / totals[2]
    if not totals[5]:  # a draw without any outcome of the reference
        return 0.0, 0.0, np.inf
    best, price = totals[3:5] / totals[5]
    saving = 1 - cost / price if price > 0 else 0.0
    return 100 * (quality - best), saving, economics.sa_bep(supervision_cost, float(price), float(cost))
