"""Experiments: routers on workloads, with the options under which they were published or with changes.

Each is a run that is computed once and remembered, see ``runs``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..paper import paper_options
from ..progress import say
from ..routers import MAIN, make_router
from ..scale import compute_all
from ..workloads import Workload, load, sample, specification
from .profiles import profile as profile_named
from .runs import Run, RunKey, attempt, keep, once, recall


def workload(name: str, profile: str = "standard", **reading) -> Workload:
    """A workload by name or path, no larger than the profile allows; what was left out is said, and in its provenance.

    ``reading`` are options of ``load`` that help to read a table: ``columns``, ``scale`` and ``prices``.
    """
    cap = profile_named(profile).cap(name)
    if cap is None:
        return load(name, **reading)
    if name.startswith("simulated/"):  # generated at that size, rather than sampled
        return load(name, size=min(cap, specification(name.removeprefix("simulated/"))["size"]))
    work = load(name, **reading)
    if len(work) <= cap:
        return work
    told = f"{len(work):,} queries, of which {cap:,} drawn at random for profile {profile}"
    say(f"{work.name}: {told}")
    return replace(sample(work, cap), provenance=(*work.provenance, told))


def run(work: Workload, router: str, *, train: float = 0.2, split_seed: int = 42, wait: bool = True, **options) -> Run:
    """Fit a router on the training part of a workload and judge it on the rest, or recall that run.

    With ``wait=False``, a run that another process is busy with raises ``files.Busy`` instead of waiting for it.
    """
    return once(work, RunKey.of(work, router, train=train, split_seed=split_seed, **options), wait)


def run_many(
    wanted: Iterable[tuple[Workload, str, dict]], *, cluster: object = None, jobs: int | None = None
) -> list[Run]:
    """Runs of ``(work, router, options)`` in the order asked for; options are those of ``run``.

    What is missing is computed one after another, by ``jobs`` processes, or on a Dask cluster: ``cluster`` is its
    address or client, see ``scale``. What another process is busy with is left for last, so that two
    notebooks that need the same runs share the work.

    A worker keeps each result before it hands it over, and the result is kept here as it comes in. If a worker dies, the
    run that it was computing starts again. A finished run is computed a second time only if it was not fetched yet and was
    kept on no disk but the dead worker's own.
    """
    wanted = [(work, RunKey.of(work, router, **options)) for work, router, options in wanted]
    found: dict[int, Run] = {}
    for wait in (False, True):
        found |= {place: recall(key) for place, (_, key) in enumerate(wanted) if place not in found and key.is_done}
        left = [place for place in range(len(wanted)) if place not in found]
        calls = [(wanted[place][1].name(wait), wanted[place][0], (wanted[place][1], wait)) for place in left]
        for position, done in compute_all(attempt, calls, cluster=cluster, jobs=jobs):
            if done is not None:
                found[left[position]] = done
                keep(wanted[left[position]][1], done)
    return [found[place] for place in range(len(wanted))]


def saverouter_run(work: Workload, **options) -> Run:
    """SaveRouter as published, with changes; ``train`` and ``split_seed`` as in ``run``."""
    return run(work, "saverouter", **paper_options(work, **options))


def published_options(router: str, work: Workload, profile: str = "paper", settings: str = "paper") -> dict:
    """A router's published options; smaller profiles train the slowest routers for fewer epochs."""
    options = profile_named(profile).options.get(router, {})
    return paper_options(work, settings, **options) if router == "saverouter" else dict(options)


def main_runs(
    works: dict[str, Workload], profile: str = "paper", *, routers: Iterable[str] = MAIN, settings: str = "paper",
    **split,
) -> dict[str, dict[str, Run]]:  # fmt: skip
    """Runs of routers with their published options, by name of the workload and label of the router.

    ``settings`` are SaveRouter's, "paper" or "release"; ``train`` and ``split_seed`` are as in ``run``.
    """
    done = iter(run_many(
        (work, name, published_options(name, work, profile, settings) | split)
        for work in works.values() for name in routers
    ))  # fmt: skip
    return {key: {make_router(name).label: next(done) for name in routers} for key in works}
