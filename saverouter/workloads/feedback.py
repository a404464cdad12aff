"""The one door through which outcomes reach a router, and the meter on it.

A router is given queries and a ``Feedback``. It may ask which models are available, and it may reveal
outcomes; every revelation is charged. What was spent is C_0 of the paper, for every method alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import SaveRouterError
from ._replay import ANSWERED, EARNED, PAID, TRIED, replay_pass
from .queries import Queries

ROUNDING = 1e-9  # relative, of sums of money

Rule: TypeAlias = Callable[..., int]
Passes: TypeAlias = Iterable[tuple[np.random.Generator, np.ndarray]]
Bought: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # rows, models, quality, cost


def model_means(values: np.ndarray) -> np.ndarray:
    """(M,) means over the finite entries of (n, M) values; a model without any is given the mean of all."""
    known = np.isfinite(values)
    return backed_off(np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0))


def backed_off(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(M,) means from a model's sum and count; where nothing was counted, the mean of all."""
    everywhere = sums.sum() / max(counts.sum(), 1)
    return np.divide(sums, counts, out=np.full(len(counts), everywhere), where=counts > 0)


def came_back(rows: np.ndarray, models: np.ndarray, quality: np.ndarray, cost: np.ndarray) -> Bought:
    """Purchases without those whose outcome is missing: what can be learnt from. Their cost stays on the meter."""
    there = ~np.isnan(quality)
    if len(there) and not there.any():
        raise SaveRouterError(
            f"none of the {len(there):,} outcomes that were bought came back, so that nothing can be learnt; they are paid for "
            "all the same: see feedback.observations"
        )
    return rows[there], models[there], quality[there], cost[there]


def at_once(queries: int) -> int:
    """A batch that loses nothing by its size, as measured on recorded outcomes: a tenth of the queries, 128 at most."""
    return max(1, min(128, queries // 10))


def _whole(places: ArrayLike, what: str) -> np.ndarray:
    """Positions as whole numbers; a mask or a fraction is none."""
    found = np.atleast_1d(np.asarray(places))
    if found.size and found.dtype.kind not in "iu":
        raise SaveRouterError(f"{what} are {places!r:.60}; expected positions from 0, e.g. np.flatnonzero(mask)")
    return found.astype(np.int64)


class Feedback(ABC):
    """Reveals outcomes of (query, model) pairs and charges for them.

    A subclass says how an outcome comes about (``_outcomes``): a recorded one is looked up, a live one
    would call the model and a judge.

    certified : whether a certificate was bought through it; none can be bought again
    lacks : whether an outcome may be paid for and still be missing; its quality is NaN then
    """

    certified = False
    lacks = False

    def __init__(self, queries: Queries, models: tuple[str, ...]):
        self.queries = queries
        self.models = tuple(models)
        self._position = {name: column for column, name in enumerate(self.models)}
        self._bought: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self._spent = 0.0

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        bought = sum(len(rows) for rows, *_ in self._bought)
        return (
            f"<{type(self).__name__}: {len(self):,} queries x {len(self.models)} models, {bought:,} outcomes bought for "
            f"{self.spent:.6g}>"
        )

    @property
    def batch(self) -> int:
        """How many queries SaveRouter lets choose at once where it is not told: one, which is the paper's rule."""
        return 1

    @abstractmethod
    def _outcomes(self, rows: np.ndarray, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Quality and cost of the pairs."""

    def available(self, queries: Queries | None = None) -> np.ndarray:
        """(n, M) mask of the models that can be asked, never what they would answer."""
        queries = self.queries if queries is None else queries
        if queries.available is None:
            return np.ones((len(queries), len(self.models)), dtype=bool)
        return queries.available

    def reveal(self, query_rows: ArrayLike, models: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Buy the outcomes of pairs, given as rows of the queries and models (positions or names).

        Either side may be a single value, which is paired with all of the other. Asking again for a
        pair is another call to the model and is charged again; ``spent_distinct`` counts it once. Where the feedback
        ``lacks`` outcomes, a missing one is charged too, and its quality is NaN.
        """
        rows, columns = _whole(query_rows, "query rows"), self._columns(models)
        rows, columns = np.broadcast_arrays(rows, columns)
        self._refuse_impossible(rows, columns)
        quality, cost = (np.asarray(values, dtype=np.float64) for values in self._outcomes(rows, columns))
        sound = self._are_sound(quality) & (cost >= 0) & np.isfinite(cost)
        if not sound.all():
            self._charge(rows[sound], columns[sound], quality[sound], cost[sound])  # paid for, whatever the others are
            self._refuse_outcome(*(part[~sound][0] for part in (rows, columns, quality, cost)))
        self._charge(rows.copy(), columns.copy(), quality, cost)
        return quality, cost

    def _are_sound(self, quality: np.ndarray) -> np.ndarray:
        return (quality >= 0) & (quality <= 1) | (np.isnan(quality) & self.lacks)

    def _charge(self, rows: np.ndarray, columns: np.ndarray, quality: np.ndarray, cost: np.ndarray) -> None:
        self._bought.append((rows, columns, quality, cost))
        self._spent += float(cost.sum(dtype=np.float64))

    def _refuse_outcome(self, row: int, column: int, quality: float, cost: float) -> None:
        """One value that is none would reach every estimate."""
        what, value, expected = "quality", quality, "0..1: rescale what the judge says"
        if self._are_sound(quality):
            what, value, expected = "cost", cost, "a finite number >= 0"
        raise SaveRouterError(
            f"the {what} of model {self.models[column]!r} for query {self._name(row)!r} came back as {value:g}; "
            f"expected {expected}"
        )

    def in_turn(
        self, choose: Rule, passes: Passes, groups: np.ndarray, open_pairs: np.ndarray, options: np.ndarray,
        batch: int = 1, *, budget: float = math.inf, afresh: bool = True,
    ) -> Bought:  # fmt: skip
        """Buy one outcome after another, each chosen in the light of those before; rows, models, quality and cost.

        ``choose(rng, is_open, here, pool, options)`` names the next model for a query, or -1 for none: from the models open to
        it, and from what is known of each, in the query's group and in the pool: how many outcomes were bought (row
        ``TRIED``), how many of them answered (``ANSWERED``), and the sums of their quality (``EARNED``) and cost (``PAID``).
        It is written in the NumPy that numba compiles. ``passes`` are pairs of a generator and an order of the queries;
        statistics start ``afresh`` in each, or are kept, and a bought pair is closed in ``open_pairs`` for good.

        The queries of a ``batch`` choose before any of them is answered, and are bought together. An outcome that is missing
        (see ``lacks``) was tried and not answered: it never enters the sums, and is not among what is returned.

        Buying ends with the last pass, with one that finds nothing to buy, or with the ``budget``: before the outcome that
        would exceed it where costs are recorded, else after the batch that reaches it.
        """
        return one_by_one(self, choose, passes, groups, open_pairs, options, batch, budget=budget, afresh=afresh)

    def _columns(self, models) -> np.ndarray:
        columns = np.atleast_1d(np.asarray(models))
        if columns.dtype.kind not in "OUST":
            return _whole(columns, "models")
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
        """What was bought, in order: row, query_id, model, quality (NaN where it is missing), cost."""
        parts = self._bought or [(np.empty(0, int), np.empty(0, int), np.empty(0), np.empty(0))]
        rows, columns, quality, cost = (np.concatenate(part) for part in zip(*parts, strict=True))
        ids = rows.astype(str) if self.queries.ids is None else self.queries.ids[rows]
        names = np.asarray(self.models, dtype=object)[columns]
        return pd.DataFrame({"row": rows, "query_id": ids, "model": names, "quality": quality, "cost": cost})


class ReplayFeedback(Feedback):
    """Feedback replayed from a recorded workload, which keeps the table to itself: only what is bought comes out."""

    def __init__(self, queries: Queries, quality: np.ndarray, cost: np.ndarray) -> None:
        super().__init__(queries, queries.models)
        self._quality, self._cost = np.ascontiguousarray(quality), np.ascontiguousarray(cost)

    def _outcomes(self, rows, models):
        return self._quality[rows, models], self._cost[rows, models]

    @property
    def prices(self) -> np.ndarray:
        """(M,) price list: what a call to each model costs on average. Providers publish it, so it is free."""
        return model_means(self._cost)

    def in_turn(
        self, choose: Rule, passes: Passes, groups: np.ndarray, open_pairs: np.ndarray, options: np.ndarray,
        batch: int = 1, *, budget: float = math.inf, afresh: bool = True,
    ) -> Bought:  # fmt: skip
        parts, spent, limit, known = [], 0.0, budget * (1 + ROUNDING), None
        for rng, order in passes:
            known = _unknown(groups, open_pairs) if afresh or known is None else known
            models, spent, over = replay_pass(
                choose, rng, order, groups, open_pairs, (self._quality, self._cost), options, batch, known, spent, limit
            )
            parts.append((order[models >= 0], models[models >= 0]))
            if over or not len(parts[-1][0]):
                break
        _refuse_nothing(sum(len(rows) for rows, _ in parts), budget)
        rows, models = (np.concatenate(part) for part in zip(*parts, strict=True))
        return came_back(rows, models, *self.reveal(rows, models))


def one_by_one(
    feedback: Feedback, choose: Rule, passes: Passes, groups: np.ndarray, open_pairs: np.ndarray, options: np.ndarray,
    batch: int = 1, *, budget: float = math.inf, afresh: bool = True,
) -> Bought:  # fmt: skip
    """``Feedback.in_turn`` for anything that can ``reveal``: buy for a batch of queries, learn from it, go on."""
    bought, paid, before, known = [], 0.0, getattr(feedback, "spent", None), None
    for rng, order in passes:
        in_groups, in_pool = known = _unknown(groups, open_pairs) if afresh or known is None else known
        so_far = len(bought)
        for start in range(0, len(order), batch):
            pairs = []
            for row in order[start : start + batch]:
                here = in_groups[groups[row]]
                with np.errstate(divide="ignore", invalid="ignore"):  # of models that are closed anyway
                    model = choose(rng, open_pairs[row], here, in_pool, options)
                if model >= 0:
                    pairs.append((row, model))
                    open_pairs[row, model] = False
                    here[TRIED, model] += 1
                    in_pool[TRIED, model] += 1
            if not pairs:
                continue
            rows, models = np.array(pairs).T
            bought.append((rows, models, *feedback.reveal(rows, models)))
            for row, model, quality, cost in zip(*bought[-1], strict=True):
                if np.isnan(quality):
                    continue
                for statistics in (in_groups[groups[row]], in_pool):
                    statistics[ANSWERED, model] += 1
                    statistics[EARNED, model] += quality
                    statistics[PAID, model] += cost
            paid += float(bought[-1][3].sum())
            # The meter knows of judges and repeated calls; where there is none, what was bought counts.
            if (paid if before is None else feedback.spent - before) >= budget * (1 - ROUNDING):
                return _together(bought, budget)
        if len(bought) == so_far:
            break
    return _together(bought, budget)


def _unknown(groups: np.ndarray, open_pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of models before anything is bought, by group and in all."""
    size = open_pairs.shape[1]
    return np.zeros((int(groups.max()) + 1, 4, size)), np.zeros((4, size))


def _together(bought: list[Bought], budget: float) -> Bought:
    _refuse_nothing(len(bought), budget)
    return came_back(*(np.concatenate(column) for column in zip(*bought, strict=True)))


def _refuse_nothing(count: int, budget: float) -> None:
    if not count:
        why = (
            "no model is available for any query"
            if budget == math.inf
            else f"a budget of {budget:g} is less than one outcome"
        )
        raise SaveRouterError(f"nothing can be bought, so that nothing can be learnt: {why}; see feedback.available()")
