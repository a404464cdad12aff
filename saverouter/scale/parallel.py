"""Where many calculations run: one after another here, in several processes (joblib), or on a Dask cluster.

``SAVEROUTER_CLUSTER=tcp://host:8786`` moves every study to a cluster, ``with on("tcp://host:8786"):`` those inside.
Without either, nothing runs in parallel unless asked, because notebooks run two at a time already.
"""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from ..errors import SaveRouterError
from ..progress import Progress, log
from ..workloads import Workload
from .cluster import VARIABLE, on_cluster

_chosen: ContextVar[dict] = ContextVar("chosen", default={})  # noqa: B039, it is replaced and never changed


@contextmanager
def on(cluster: object = None, *, jobs: int | None = None) -> Iterator[None]:
    """Inside, runs are computed on this cluster (an address or a ``distributed.Client``), or by ``jobs`` processes."""
    before = _chosen.set({"cluster": cluster, "jobs": jobs})
    try:
        yield
    finally:
        _chosen.reset(before)


def compute_all(
    function: Callable, calls: list[tuple[str | None, Workload, tuple]], *, cluster: object = None,
    jobs: int | None = None,
) -> Iterator[tuple[int, object]]:  # fmt: skip
    """``function(workload, *arguments)`` for each call: positions and results, in the order in which they finish.

    A call is a tuple of key, workload and arguments.

    A workload travels once, however many calls need it. A cluster computes calls with the same key only
    once, even for different callers; None is never shared. If a worker dies, another one starts its calls again.
    """
    jobs = jobs or _chosen.get().get("jobs")
    cluster = None if jobs and not cluster else chosen(cluster)  # a caller that asks for processes gets them
    if calls:
        yield from on_cluster(function, calls, cluster) if cluster else _here(function, calls, jobs or 1)


def chosen(cluster: object = None) -> object:
    """The cluster given, that of ``on``, or that of the environment; None for none."""
    return cluster or _chosen.get().get("cluster") or os.environ.get(VARIABLE)


def _here(function: Callable, calls: list, jobs: int):
    if jobs == 1 or len(calls) == 1:
        for place, (_, work, arguments) in enumerate(calls):
            yield place, function(work, *arguments)
        return
    with tempfile.TemporaryDirectory(prefix="saverouter-") as folder:
        files = {}
        for _, work, _ in calls:
            if work.fingerprint not in files:
                files[work.fingerprint] = Path(folder, work.fingerprint)
                joblib.dump(work, files[work.fingerprint])
        # joblib gives each process its share of the cores, unless OMP_NUM_THREADS and the like say otherwise.
        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", batch_size=1, return_as="generator_unordered")
        todo = (
            joblib.delayed(_from_file)(place, function, files[work.fingerprint], arguments)
            for place, (_, work, arguments) in enumerate(calls)
        )
        progress = Progress(f"{jobs} processes", "calculations", len(calls))
        try:
            with warnings.catch_warnings():
                # A process that has grown is replaced by a fresh one; nothing is lost by that.
                warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
                for found in parallel(todo):
                    progress.add(1)
                    yield found
            progress.end()
        except TerminatedWorkerError as error:
            raise SaveRouterError(
                f"one of {jobs} processes was ended from outside, mostly for want of memory; what had finished is kept: "
                "start again with fewer jobs"
            ) from error


def _from_file(place: int, function: Callable, path: Path, arguments: tuple):
    log.setLevel(logging.WARNING)  # the process that asked says how far all of them are
    return place, function(_workload(path), *arguments)


@lru_cache(maxsize=2)
def _workload(path: Path) -> Workload:
    return joblib.load(path)
