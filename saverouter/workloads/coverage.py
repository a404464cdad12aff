"""Which models have outcomes on which queries, and which models may be compared on which of them.

A mean over the queries that a model happens to have says as much about those queries as about the model. So models are
compared on common queries, and a model that was recorded only where it did well is told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

CONTENDS = 0.5  # a model with outcomes on a smaller share of the queries is no candidate for the best single model
COMMON = 0.3  # the best single model is found on at least this share of the queries
NEVER_BELOW = 0.02  # a model "recorded only where it did well" is below its floor on at most this share of its queries,
OFTEN_BELOW = 0.1  # and others are below that floor on more than this share of the same queries
EASIER = 5.0  # points between the queries of a model and the rest that count ...
SURE = 4.0  # ... where they are so many standard errors apart
LEAST_SPREAD = 0.05  # of qualities, whatever a few of them look like
LEAST_ROWS = 20  # what fewer queries show of a model may be chance


@dataclass(frozen=True)
class Difference:
    """How the other models score on the queries that a model has, and on those that it lacks; points (hundredths).

    here, rest : mean quality of the others, a query at a time
    error : standard error of ``here - rest``
    share : of the queries that the model has
    """

    here: float
    rest: float
    error: float
    share: float

    @property
    def bias(self) -> float:
        """Points by which the model's mean flatters it, if it would miss its other queries as the others do."""
        return (1 - self.share) * (self.here - self.rest)

    @property
    def sure(self) -> float:
        """Standard errors between the two kinds of queries."""
        return abs(self.here - self.rest) / self.error if self.error > 0 else 0.0

    @property
    def differs(self) -> bool:
        """Whether the two kinds of queries surely differ."""
        return abs(self.here - self.rest) >= EASIER and self.sure >= SURE


def common_rows(quality: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Models that contend for the best single one, and the (n,) mask of the queries on which all of them have outcomes.

    Models with outcomes on at least ``CONTENDS`` of the queries contend; all, where there is none. As long as they share
    fewer than ``COMMON`` of the queries and more than two are left, the weakest leaves, judged by how far it is from the
    other models on the queries that it has.
    """
    there = np.isfinite(quality)
    columns = np.flatnonzero(there.mean(axis=0) >= CONTENDS)
    columns = columns if len(columns) else np.flatnonzero(there.any(axis=0))
    shared = there[:, columns].all(axis=1)
    if shared.mean() < COMMON:
        order = columns[np.argsort(-_lead(quality)[columns], kind="stable")]
        sizes = np.logical_and.accumulate(there[:, order], axis=1).mean(axis=0)
        left = max(min(2, len(order)), int((sizes >= COMMON).sum()))
        columns = np.sort(order[:left])
        shared = there[:, columns].all(axis=1)
    return columns, shared


def best_column(quality: np.ndarray) -> int:
    """The model with the best mean quality on the common queries; ties go to the earlier one.

    Where contending models have no query in common nothing is known of which is best, and ``best_available`` answers.
    """
    columns, shared = common_rows(quality)
    if not shared.any():
        return best_available(quality)
    return int(columns[np.argmax([quality[shared, column].mean() for column in columns])])


def best_available(quality: np.ndarray) -> int:
    """The model with the best mean over whatever queries it has, as the authors' release takes it."""
    columns = (column[np.isfinite(column)] for column in quality.T)
    return int(np.argmax([column.mean() if len(column) else -1.0 for column in columns]))


def mean_error(values: np.ndarray) -> float:
    """Standard error of a mean in points; where a few values are all alike, they are no proof of always so."""
    return float(100 * max(values.std(), LEAST_SPREAD) / np.sqrt(len(values)))


def _lead(quality: np.ndarray) -> np.ndarray:
    """(M,) how far a model is from the mean of its queries, on average."""
    there = np.isfinite(quality)
    filled = np.where(there, quality, 0.0)
    row = filled.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return (filled - np.where(there, row[:, None], 0.0)).sum(axis=0) / np.maximum(there.sum(axis=0), 1)


def difference(quality: np.ndarray, column: int) -> Difference | None:
    """How the queries that a model has differ from those that it lacks; None where too few tell of it.

    Each query counts by how far the others are from their own means, so that it does not matter who answered it.
    """
    there = np.isfinite(quality)
    share = float(there[:, column].mean())
    others = np.delete(np.arange(quality.shape[1]), column)
    others = others[there[:, others].any(axis=0)]
    if share == 1 or not len(others):
        return None
    known = there[:, others]
    filled = np.where(known, quality[:, others], 0.0)
    means = filled.sum(axis=0) / known.sum(axis=0)
    asked = known.any(axis=1)
    level = np.full(len(quality), np.nan)
    level[asked] = (filled - known * means)[asked].sum(axis=1) / known[asked].sum(axis=1) + means.mean()
    here, rest = level[asked & there[:, column]], level[asked & ~there[:, column]]
    if min(len(here), len(rest)) < LEAST_ROWS:
        return None
    error = level[asked].std() * np.sqrt(1 / len(here) + 1 / len(rest))  # as if there were no difference
    return Difference(100 * float(here.mean()), 100 * float(rest.mean()), 100 * float(error), share)


def on_other_queries(quality: np.ndarray) -> dict[int, Difference]:
    """Models whose queries are surely easier or harder than those that they lack."""
    gaps = np.flatnonzero(~np.isfinite(quality).all(axis=0))
    found = {int(column): difference(quality, column) for column in gaps}
    return {column: one for column, one in found.items() if one and one.differs}


def only_where_good(quality: np.ndarray) -> list[int]:
    """Models with outcomes on some queries, hardly any of them bad, where others often do badly.

    Such a model was probably recorded where it did well: a success kept, a failure dropped. Which queries it was asked on
    then tells what it scored. The others are the best one of them; or their mean, where the queries are easier too.
    """
    there = np.isfinite(quality)
    found = []
    for column in np.flatnonzero((there.sum(axis=0) >= LEAST_ROWS) & ~there.all(axis=0)):
        rows = there[:, column]
        floor = np.quantile(quality[rows, column], NEVER_BELOW, method="inverted_cdf")
        if floor > 0 and any(share > OFTEN_BELOW for share in _below(floor, quality, rows, column)):
            found.append(int(column))
    return found


def _below(floor: float, quality: np.ndarray, rows: np.ndarray, column: int) -> Iterator[float]:
    """How often others are below a floor on some rows: the best one, and all, where the rows are easier than the rest."""
    same = np.delete(quality[rows], column, axis=1)
    known = np.isfinite(same)
    same, known = (part[:, known.sum(axis=0) >= LEAST_ROWS] for part in (same, known))
    if not known.any():
        return
    best = np.argmax(np.where(known, same, 0.0).sum(axis=0) / known.sum(axis=0))
    yield float((same[known[:, best], best] < floor).mean())
    apart = difference(quality, column)
    if apart and apart.differs and apart.bias > 0:
        yield float((same[known] < floor).mean())
