"""The one dial: how much of a workload a run takes, from a minute's look to everything the paper used."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import SaveRouterError, did_you_mean


@dataclass(frozen=True)
class Profile:
    """A size of run.

    ``max_queries`` caps each workload; ``None`` takes it whole. ``options`` are those of routers whose published
    training is too long for the profile; tables name them.
    """

    name: str
    max_queries: int | None
    options: dict[str, dict] = field(default_factory=dict)


PROFILES = ("smoke", "standard", "paper")
_SIZES = {"smoke": 1_500, "standard": 12_500, "paper": None}
_SHORTER = {"rmsoftmax": {"epochs": 20}}


def profile(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES)
        raise SaveRouterError(f"unknown profile '{name}': {hint}choose one of {', '.join(PROFILES)}")
    return Profile(name, _SIZES[name], {} if name == "paper" else _SHORTER)
