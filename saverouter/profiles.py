"""The one dial: how much of a workload a run takes, from a minute's look to everything the paper used."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SaveRouterError, did_you_mean


@dataclass(frozen=True)
class Profile:
    """A size of run. ``max_queries`` caps each workload; ``None`` takes it whole."""

    name: str
    max_queries: int | None


PROFILES = ("smoke", "standard", "paper")
_SIZES = {"smoke": 1_500, "standard": 12_500, "paper": None}


def profile(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES)
        raise SaveRouterError(f"unknown profile '{name}': {hint}choose one of {', '.join(PROFILES)}")
    return Profile(name, _SIZES[name])
