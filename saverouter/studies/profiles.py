"""The one dial: how much of a workload a run takes, from a minute's look to everything the paper used."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import SaveRouterError, did_you_mean


@dataclass(frozen=True)
class Profile:
    """A size of run.

    ``max_queries`` caps each workload; ``None`` takes it whole. ``options`` are those of routers whose published
    training is too long for the profile; tables name them. ``cap`` is the cap of one workload: a pool of hundreds
    of models takes fewer queries. ``splits`` is how often a study over splits deals the queries anew.
    """

    name: str
    max_queries: int | None
    options: dict[str, dict] = field(default_factory=dict)
    splits: int = 10

    def cap(self, workload: str) -> int | None:
        """Queries to take of a workload at most, ``None`` for all."""
        return _LARGE_POOL_SIZES[self.name] if _is_large_pool(workload) else self.max_queries


PROFILES = ("smoke", "standard", "paper")
_SIZES = {"smoke": 1_500, "standard": 12_500, "paper": None}
_SHORTER = {"rmsoftmax": {"epochs": 20}}
_SPLITS = {"smoke": 2, "standard": 10, "paper": 20}
_LARGE_POOL_SIZES = {"smoke": 600, "standard": 6_000, "paper": None}


def _is_large_pool(workload: str) -> bool:
    return workload.rpartition("/")[2] == "routereval"


def profile(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES)
        raise SaveRouterError(f"unknown profile '{name}': {hint}choose one of {', '.join(PROFILES)}")
    return Profile(name, _SIZES[name], {} if name == "paper" else _SHORTER, _SPLITS[name])
