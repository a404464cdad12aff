"""Experiments: routers on workloads, with the options under which they were published or with changes.

Each is a run that is computed once and remembered, see ``runs``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from .catalog import load, sample
from .cluster import each
from .profiles import profile as profile_named
from .routers import MAIN, make_router
from .runs import Run, Task, attempt, keep, once, recall
from .settings import paper_options
from .simulate import specification
from .workload import Workload


def workload(name: str, profile: str = "standard") -> Workload:
    """A workload by name or path, no larger than the profile allows."""
    cap = profile_named(profile).cap(name)
    if cap is None:
        return load(name)
    if name.startswith("simulated/"):  # generated at that size, rather than sampled
        return load(name, size=min(cap, specification(name.removeprefix("simulated/"))["size"]))
    work = load(name)
    return work if len(work) <= cap else sample(work, cap)


def run(work: Workload, router: str, *, train: float = 0.2, split_seed: int = 42, wait: bool = True, **options) -> Run:
    """Fit a router on the training part of a workload and judge it on the rest, or recall having done so.

    With ``wait=False``, a run that another process is busy with raises ``cache.Busy`` instead of waiting for it.
    """
    return once(work, Task.of(work, router, train=train, split_seed=split_seed, **options), wait)


def run_many(wanted: Iterable[tuple[Workload, str, dict]], *, cluster=None, jobs: int | None = None) -> list[Run]:
    """Runs of ``(work, router, options)`` in the order asked for; options are those of ``run``.

    What is missing is computed one after another, by ``jobs`` processes, or on a Dask cluster: ``cluster`` is its
    address or client, see the module ``cluster``. What another process is busy with is left for last, so that two
    notebooks that need the same runs share the work.

    Each result is kept here as it comes in, and by the worker that computed it before that one hands it over. So a run
    whose worker dies while computing is started again, and nothing else is. Only a result that was finished, not fetched
    yet and kept on no disk but the dead worker's own is computed a second time.
    """
    wanted = [(work, Task.of(work, router, **options)) for work, router, options in wanted]
    found: dict[int, Run] = {}
    for wait in (False, True):
        found |= {place: recall(task) for place, (_, task) in enumerate(wanted) if place not in found and task.is_done}
        left = [place for place in range(len(wanted)) if place not in found]
        calls = [(wanted[place][1].name(wait), wanted[place][0], (wanted[place][1], wait)) for place in left]
        for position, done in each(attempt, calls, cluster=cluster, jobs=jobs):
            if done is not None:
                found[left[position]] = done
                keep(wanted[left[position]][1], done)
    return [found[place] for place in range(len(wanted))]


def saverouter_run(work: Workload, **options) -> Run:
    """SaveRouter as published, with changes; ``train`` and ``split_seed`` as in ``run``."""
    return run(work, "saverouter", **paper_options(work, **options))


def published_options(router: str, work: Workload, profile: str = "paper", settings: str = "paper") -> dict:
    """A router's options in tables: as published, but that smaller profiles train the slowest for fewer epochs."""
    options = profile_named(profile).options.get(router, {})
    return paper_options(work, settings, **options) if router == "saverouter" else dict(options)


def main_runs(
    works: dict[str, Workload], profile: str = "paper", *, routers=MAIN, settings: str = "paper", **split
) -> dict[str, dict[str, Run]]:
    """Routers on every workload, by its name and their label, with their published options.

    ``settings`` are SaveRouter's, "paper" or "release"; ``train`` and ``split_seed`` are as in ``run``.
    """
    done = iter(run_many(
        (work, name, published_options(name, work, profile, settings) | split)
        for work in works.values() for name in routers
    ))  # fmt: skip
    return {key: {make_router(name).label: next(done) for name in routers} for key in works}


def saturation(work: Workload, fractions, seeds=(42,), split_seed: int = 42) -> pd.DataFrame:
    """Peak score against the share of supervision: two conventional routers on random pairs, SaveRouter buying K a query."""
    wanted = []
    for seed in seeds:
        same = {"seed": seed, "split_seed": split_seed}
        for fraction in map(float, fractions):
            wanted += [(work, name, {"fraction": fraction, **same}) for name in ("embedllm", "knn")]
        budgets = sorted({max(1, round(fraction * len(work.models))) for fraction in fractions})
        wanted += [(work, "saverouter", paper_options(work, k=k, **same)) for k in budgets]
    rows = [
        (done.result.router, options["seed"], options.get("fraction", done.supervision_share), done.result.peak_score)
        for (_, _, options), done in zip(wanted, run_many(wanted), strict=True)
    ]
    return pd.DataFrame(rows, columns=["router", "seed", "supervision", "peak_score"])


def recovery(curve: pd.DataFrame, share: float = 0.99) -> pd.Series:
    """The least supervision from which on each router keeps ``share`` of its peak score under full supervision."""

    def first(points: pd.DataFrame) -> float:
        points = points.groupby("supervision")["peak_score"].mean().sort_index()
        short = np.flatnonzero(points.to_numpy() < share * points.iloc[-1])
        return float(points.index[short[-1] + 1] if len(short) else points.index[0])

    return pd.Series({name: first(points) for name, points in curve.groupby("router")}, name="supervision")
