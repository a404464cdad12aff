"""SaveRouter's published settings, by benchmark: those the paper states, and those of the authors' release, which differ."""

from __future__ import annotations

from ..errors import SaveRouterError, did_you_mean
from ..workloads import Workload

SETTINGS = ("paper", "release")
_PAPER = {"llmrouterbench": {"residual_ridge": 200.0}}
# The release stops its solver at scikit-learn's default. For RouterEval, its adapter takes RouterBench's settings.
_RELEASE = {
    "llmrouterbench": {"residual_ridge": 200.0},
    "mmrbench": {"shrinkage": 120.0, "residual_scale": 0.25},
    "routerbench": {"residual_ridge": 200.0},
    "routereval": {"residual_ridge": 200.0},
}


def published_settings(benchmark: str, settings: str = "paper") -> dict:
    """Options of ``SaveRouter`` on a benchmark ("mmrbench", "original/mmrbench"), as in the paper or as in the release."""
    if settings not in SETTINGS:
        hint = did_you_mean(settings, SETTINGS)
        raise SaveRouterError(f"settings are {settings!r}; {hint}expected {' or '.join(SETTINGS)}")
    name = benchmark.rpartition("/")[2]
    common = {"k": 108 if name == "routereval" else 4, "residual_ridge": 100.0}
    if settings == "paper":
        return common | _PAPER.get(name, {})
    return common | {"residual_tolerance": 1e-4} | _RELEASE.get(name, {})


def paper_options(work: Workload, settings: str = "paper", **options) -> dict:
    """SaveRouter's published settings on a benchmark, those of the paper or of the release, with changes."""
    return {"grouping": work.grouping, **published_settings(work.name, settings), **options}
