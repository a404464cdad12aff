"""The numbers behind a statement: predicates note what they read, so that nobody types it twice.

``collected()`` gathers the notes of one test. Values are written as tables and figures write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_NOTES: ContextVar[list[str] | None] = ContextVar("notes", default=None)
_ABOUT: ContextVar[tuple[str, ...]] = ContextVar("about", default=())


@contextmanager
def collected() -> Iterator[list[str]]:
    """The notes taken inside, in order, each once."""
    notes: list[str] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)
        notes[:] = dict.fromkeys(notes)


@contextmanager
def about(thing: object) -> Iterator[None]:
    """Notes taken inside speak of a benchmark, a target or the like, which is named before them."""
    token = _ABOUT.set((*_ABOUT.get(), written("", thing)))
    try:
        yield
    finally:
        _ABOUT.reset(token)


def note(*found: str) -> None:
    """Remember numbers that a test has read."""
    notes = _NOTES.get()
    if notes is not None and found:
        named = f"{' '.join(_ABOUT.get())}: " if _ABOUT.get() else ""
        notes.append(named + ", ".join(found))


def written(metric: str, value: object) -> str:
    """A value as it is read: 4.92K queries, 17%, 0.601; names as they are."""
    if isinstance(value, str):
        return value
    number = float(value)
    if metric.startswith("sa_bep"):
        return short(number)
    if metric.startswith("cost_ratio") and np.isinf(number):
        return "not reached"
    if metric in ("supervision", "cost_share"):
        return f"{number:.0%}"
    if not np.isfinite(number):
        return "never" if np.isinf(number) else "–"
    if number == int(number) or not metric:
        return f"{number:g}"
    return f"{number:.4f}" if metric == "peak_score" else f"{number:.3f}"


def short(number: float) -> str:
    """5263 as 5.26K, 1.23e6 as 1.23M, 2e9 as 2B, and "never" for a number that is not finite."""
    if np.isnan(number):
        return "–"
    if not np.isfinite(number):
        return "never"
    if number >= 999_500_000:
        return f"{number / 1e9:.3g}B"
    if number >= 999_500:
        return f"{number / 1e6:.3g}M"
    return f"{number / 1e3:.3g}K" if number >= 999.5 else f"{number:.0f}"
