"""What a workload must be: nothing that would give wrong numbers later gets in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import SaveRouterError

if TYPE_CHECKING:
    from .workload import Workload


class Unusable(SaveRouterError):
    """A value that cannot be used: what it is, in which row (and of which model), and what is wrong with it.

    Who knows where the rows come from catches it and names file and line.
    """

    def __init__(self, thing: str, row: int, wrong: str, model: int | None = None):
        super().__init__(thing, row, wrong, model)  # for pickle
        self.thing, self.row, self.wrong, self.model = thing, int(row), wrong, model

    def __str__(self) -> str:
        return f"{self.thing} (row {self.row}){self.wrong}"


def validate(work: Workload) -> None:
    """Refuse a workload that would give wrong numbers later, naming row, column and remedy."""
    n, m = len(work.query_ids), len(work.models)
    if n == 0 or m == 0:
        raise SaveRouterError(f"{work.name} has {n} queries and {m} models; at least one of each is needed")
    _refuse_repeats(work.models, "model", "give every model one column or one name")
    _refuse_repeats(work.query_ids, "query_id", "keep one row per query (a long table: one row per query and model)")
    for label, array, shape in (
        ("prompts", work.prompts, (n,)),
        ("tasks", work.tasks, (n,)),
        ("clusters", work.clusters, (n,)),
        *((f"family {name!r}", labels, (n,)) for name, labels in work.families.items()),
        *((f"moments of {name!r}", moments, (n,)) for name, moments in work.moments.items()),
        ("quality", work.quality, (n, m)),
        ("cost", work.cost, (n, m)),
    ):
        if array is not None and array.shape != shape:
            raise SaveRouterError(f"{label} of {work.name} has shape {array.shape}; expected {shape}")
    if work.vectors is not None:
        if work.vectors.ndim != 2 or len(work.vectors) != n:
            raise SaveRouterError(f"vectors of {work.name} have shape {work.vectors.shape}; expected ({n}, D)")
        bad = np.flatnonzero(~np.isfinite(work.vectors).all(axis=1))
        if len(bad):
            raise SaveRouterError(f"vector of query {work.query_ids[bad[0]]!r} has a value that is not finite")
    for row, prompt in enumerate(work.prompts):
        if not prompt or not prompt.strip():
            raise Unusable(f"prompt of query {work.query_ids[row]!r}", row, " is empty; fill it or drop the row")
    _refuse_empty(work)
    _refuse_values(work, "quality", (work.quality < 0) | (work.quality > 1) | np.isinf(work.quality), "0..1 or missing")
    _refuse_values(work, "cost", (work.cost < 0) | np.isinf(work.cost), "a finite number >= 0 or missing")
    lone = np.isfinite(work.quality) != np.isfinite(work.cost)
    if lone.any():
        row, model = np.argwhere(lone)[0]
        has, lacks = ("quality", "cost") if np.isfinite(work.quality[row, model]) else ("cost", "quality")
        thing = f"model {work.models[model]!r} has a {has} but no {lacks} for query {work.query_ids[row]!r}"
        remedy = f"; give both, or neither if the pair is unavailable ({lone.sum()} such pairs)"
        raise Unusable(thing, row, remedy, model)
    nobody = np.flatnonzero(~np.isfinite(work.quality).any(axis=1))
    if len(nobody):
        remedy = f" has no available model; drop it or add an outcome ({len(nobody)} such queries)"
        raise Unusable(f"query {work.query_ids[nobody[0]]!r}", nobody[0], remedy)


def _refuse_empty(work: Workload) -> None:
    groups = {"task": work.tasks, "cluster": work.clusters, **work.families}
    for what, labels in groups.items():
        for row, label in enumerate(labels if labels is not None else ()):
            if not label or not label.strip():
                remedy = " is empty; name it, or leave the whole column out"
                raise Unusable(f"{what} of query {work.query_ids[row]!r}", row, remedy)


def _refuse_repeats(values, what: str, remedy: str) -> None:
    if len(set(values)) == len(values):
        return
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        if value in first:
            raise SaveRouterError(f"{what} {value!r} appears twice (places {first[value]} and {row}); {remedy}")
        first[value] = row


def _refuse_values(work: Workload, column: str, bad: np.ndarray, expected: str) -> None:
    if bad.any():
        row, model = np.argwhere(bad)[0]
        value = getattr(work, column)[row, model]
        more = f" ({bad.sum()} such values)" if bad.sum() > 1 else ""
        thing = f"{column} of model {work.models[model]!r} for query {work.query_ids[row]!r}"
        raise Unusable(thing, row, f" is {value:g}; expected {expected}{more}", model)
