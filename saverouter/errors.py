"""The one exception users meet, which names the thing, the place and the remedy; and the checks of plain arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real


class SaveRouterError(ValueError):
    """Input that cannot be used, with the place and the remedy in its message."""


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """ "did you mean 'x'? " where a known name is close, else nothing."""
    close = get_close_matches(str(name), list(known), n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}? " if close else ""


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse a word that is not among the known ones."""
    known = list(known)
    if value not in known:
        raise SaveRouterError(f"{name} is {value!r}; {did_you_mean(value, known)}expected one of {', '.join(known)}")


def whole(name: str, value: object, least: int = 0, what: str = "a whole number") -> int:
    """A whole number of at least so much."""
    if isinstance(value, Real) and not isinstance(value, bool) and value == math.floor(value) and value >= least:
        return int(value)
    raise SaveRouterError(f"{name} is {value!r}; expected {what}, at least {least}")


def number(name: str, value: object, what: str = "a finite number >= 0", least: float = 0.0) -> float:
    """A finite number of at least so much."""
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and value >= least:
        return float(value)
    raise SaveRouterError(f"{name} is {value!r}; expected {what}")


def share(name: str, value: object, *, below_one: bool = False) -> float:
    """A fraction: more than 0 and at most 1, or less than 1. A percentage is told apart."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < value <= 1 and not (below_one and value == 1):
        return float(value)
    percent = isinstance(value, Real) and 1 < value <= 100
    remedy = f": write {value / 100:g} for {value:g}%" if percent else ""
    expected = "a fraction between 0 and 1" if below_one else "more than 0 and at most 1"
    raise SaveRouterError(f"{name} is {value!r}; expected {expected}{remedy}")


def seed_of(value: object, name: str = "seed") -> int:
    """A seed: a whole number of at least 0."""
    if isinstance(value, Integral) and not isinstance(value, bool) and value >= 0:
        return int(value)
    raise SaveRouterError(f"{name} is {value!r}; expected a whole number of at least 0, e.g. 42")
