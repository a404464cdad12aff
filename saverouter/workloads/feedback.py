"""The one door through which outcomes reach a router, and the meter on it.

A router is given queries and a ``Feedback``. It may ask which models are available, and it may reveal
outcomes; every revelation is charged. What was spent is C_0 of the paper, for every method alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pandas as pd

from .errors import SaveRouterError
from .workload import Queries, Workload


def model_means(values: np.ndarray) -> np.ndarray:
    """(M,) means over the finite entries of (n, M) values; a model without any is given the mean of all."""
    known = np.isfinite(values)
    return backed_off(np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0))


def backed_off(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(M,) means from a model's sum and count; where nothing was counted, the mean of all."""
    everywhere = sums.sum() / max(counts.sum(), 1)
    return np.divide(sums, counts, out=np.full(len(counts), everywhere), where=counts > 0)


class Feedback(ABC):
    """Reveals outcomes of (query, model) pairs and charges for them.

    A subclass says how an outcome comes about (``_outcomes``): a recorded one is looked up, a live one
    would call the model and a judge.
    """

    def __init__(self, queries: Queries, models: tuple[str, ...]):
        self.queries = queries
        self.models = tuple(models)
        self._position = {name: column for column, name in enumerate(self.models)}
        self._bought: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self._spent = 0.0

    def __len__(self) -> int:
        return len(self.queries)

    @abstractmethod
    def _outcomes(self, rows: np.ndarray, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Quality and cost of the pairs."""

    def available(self, queries: Queries | None = None) -> np.ndarray:
        """(n, M) mask of the models that can be asked, never what they would answer."""
        queries = self.queries if queries is None else queries
        if queries.available is None:
            return np.ones((len(queries), len(self.models)), dtype=bool)
        return queries.available

    def reveal(self, query_rows, models) -> tuple[np.ndarray, np.ndarray]:
        """Buy the outcomes of pairs, given as rows of the queries and models (positions or names).

        Either side may be a single value, which is paired with all of the other. Asking again for a
        pair is another call to the model and is charged again; ``spent_distinct`` counts it once.
        """
        rows = np.atleast_1d(np.asarray(query_rows, dtype=np.int64))
        columns = self._columns(models)
        rows, columns = np.broadcast_arrays(rows, columns)
        self._refuse_impossible(rows, columns)
        quality, cost = self._outcomes(rows, columns)
        self._bought.append((rows.copy(), columns.copy(), quality, cost))
        self._spent += float(cost.sum(dtype=np.float64))
        return quality, cost

    def _columns(self, models) -> np.ndarray:
        columns = np.atleast_1d(np.asarray(models))
        if columns.dtype.kind in "iu":
            return columns.astype(np.int64)
        unknown = [name for name in columns.tolist() if name not in self._position]
        if unknown:
            raise SaveRouterError(f"model {unknown[0]!r} is not in the pool; it has {', '.join(self.models)}")
        return np.array([self._position[name] for name in columns.tolist()], dtype=np.int64)

    def _refuse_impossible(self, rows, columns) -> None:
        for what, values, size in (("query row", rows, len(self)), ("model", columns, len(self.models))):
            wrong = (values < 0) | (values >= size)
            if wrong.any():
                raise SaveRouterError(f"{what} {values[wrong][0]} does not exist; expected 0..{size - 1}")
        shut = ~self.available()[rows, columns]
        if shut.any():
            row, model = rows[shut][0], columns[shut][0]
            raise SaveRouterError(
                f"model {self.models[model]!r} is unavailable for query {self._name(row)!r}; ask available() first"
            )

    def _name(self, row: int) -> str:
        return str(row) if self.queries.ids is None else self.queries.ids[row]

    @property
    def spent(self) -> float:
        """C_0: the cost of every outcome revealed so far (a repeated one is charged again)."""
        return self._spent

    @property
    def spent_distinct(self) -> float:
        """C_0 if repeated requests were answered from a cache: every pair is charged once."""
        return float(self.observations.drop_duplicates(["row", "model"])["cost"].sum())

    @property
    def observations(self) -> pd.DataFrame:
        """What was bought, in order: row, query_id, model, quality, cost."""
        parts = self._bought or [(np.empty(0, int), np.empty(0, int), np.empty(0), np.empty(0))]
        rows, columns, quality, cost = (np.concatenate(part) for part in zip(*parts, strict=True))
        ids = rows.astype(str) if self.queries.ids is None else self.queries.ids[rows]
        names = np.asarray(self.models, dtype=object)[columns]
        return pd.DataFrame({"row": rows, "query_id": ids, "model": names, "quality": quality, "cost": cost})


class ReplayFeedback(Feedback):
    """Feedback replayed from a recorded workload."""

    def __init__(self, work: Workload):
        super().__init__(work.queries, work.models)
        self._work = work

    def _outcomes(self, rows, models):
        return self._work.quality[rows, models], self._work.cost[rows, models]

    @property
    def prices(self) -> np.ndarray:
        """(M,) price list: what a call to each model costs on average. Providers publish it, so it is free."""
        return model_means(self._work.cost)

    def play(self, strategy) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Run a one-outcome-at-a-time strategy at the speed of compiled code.

        ``strategy`` gets the recorded qualities, reads one pair a step, the one it buys, and returns
        all pairs it bought. They are revealed, and charged, through the same door. A strategy that reads
        anything else is caught by the test that corrupts every outcome nobody bought.
        """
        rows, models = strategy(self._work.quality)
        return (rows, models, *self.reveal(rows, models))
