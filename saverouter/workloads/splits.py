"""Which rows teach and which test, with what belongs together on one side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def split_rows(
    size: int, train: float, seed: int, groupings: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows to test on, both shuffled.

    Without groupings this is the paper's split: the first ``int(size * train)`` of the shuffled rows teach. With them,
    groups are shuffled and join the learning side one after the other, as long as that brings it nearer to this number.
    """
    random = np.random.RandomState(seed)
    order, wanted = random.permutation(size), int(size * train)
    if not groupings:
        return order[:wanted], order[wanted:]
    group = joined(groupings)
    queue = random.permutation(group.max() + 1)
    filled = np.cumsum(np.bincount(group)[queue])
    count = 1 + int(np.argmin(np.abs(filled[:-1] - wanted))) if len(queue) > 1 and wanted else 0
    learns = np.isin(group, queue[:count])[order]
    return order[learns], order[~learns]


def split_in_time(
    moments: np.ndarray, train: float, groupings: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """The earliest rows to learn from and the later ones to test on, both in order of time.

    A group counts as its earliest row; rows of one moment stay together. As many moments teach as come nearest to
    ``int(size * train)`` rows.
    """
    if groupings:
        moments = pd.Series(moments).groupby(joined(groupings)).transform("min").to_numpy()
    order = np.argsort(moments, kind="stable")
    ends = np.flatnonzero(np.diff(moments[order])) + 1  # how many rows there are before each later moment
    count = ends[np.argmin(np.abs(ends - int(len(moments) * train)))] if len(ends) else len(order)
    return order[:count], order[count:]


def joined(groupings: Sequence[np.ndarray]) -> np.ndarray:
    """A number for every row; rows that share a label in any of the groupings have the same, also through other rows."""
    size = len(groupings[0])
    codes = [pd.factorize(labels)[0] for labels in groupings]
    starts = size + np.cumsum([0, *(code.max() + 1 for code in codes)])
    labels = np.concatenate([code + start for code, start in zip(codes, starts, strict=False)])
    rows = np.tile(np.arange(size), len(codes))
    graph = coo_array((np.ones(len(rows), dtype=np.int8), (rows, labels)), shape=(starts[-1], starts[-1]))
    return connected_components(graph, directed=False)[1][:size]
