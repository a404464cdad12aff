"""Where many calculations run: one after another here, in several processes (joblib), or on a Dask cluster.

``SAVEROUTER_CLUSTER=tcp://host:8786`` moves every study there, ``with on("tcp://host:8786"):`` those inside; without
either nothing runs in parallel unless asked, because notebooks run two at a time already. Workers need this package in
the same version, and no disk in common with the caller.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from .errors import SaveRouterError
from .workload import Workload

VARIABLE = "SAVEROUTER_CLUSTER"
ANSWER_WITHIN = 10  # seconds that a scheduler has to answer
WORKERS_WITHIN = 60  # seconds for the first worker, which a cluster that grows on demand has to start

_chosen: ContextVar[dict] = ContextVar("chosen", default={})  # noqa: B039, it is replaced and never changed


@contextmanager
def on(cluster=None, *, jobs: int | None = None) -> Iterator[None]:
    """Inside, many runs are computed on this cluster (an address or a ``distributed.Client``), or by so many processes."""
    before = _chosen.set({"cluster": cluster, "jobs": jobs})
    try:
        yield
    finally:
        _chosen.reset(before)


def each(function: Callable, calls: list[tuple[str | None, Workload, tuple]], *, cluster=None, jobs: int | None = None):
    """``function(workload, *arguments)`` for each call, a tuple of key, workload and arguments: positions and results, as
    they come.

    A workload travels once, however many calls need it. Calls with the same key are one calculation for the cluster,
    whoever asks; None is a key of its own. A worker that dies is replaced by another, which starts its calls again.
    """
    jobs = jobs or _chosen.get().get("jobs")
    cluster = None if jobs and not cluster else chosen(cluster)  # who asks for processes here gets them
    if calls:
        yield from _there(function, calls, cluster) if cluster else _here(function, calls, jobs or 1)


def chosen(cluster=None):
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
        try:
            yield from parallel(todo)
        except TerminatedWorkerError as error:
            raise SaveRouterError(
                f"one of {jobs} processes was ended from outside, mostly for want of memory; what had finished is kept: "
                "start again with fewer jobs"
            ) from error


def _from_file(place: int, function: Callable, path: Path, arguments: tuple):
    return place, function(_workload(path), *arguments)


@lru_cache(maxsize=2)
def _workload(path: Path) -> Workload:
    return joblib.load(path)


def _there(function: Callable, calls: list, cluster):
    """Through the client and not through joblib's Dask backend: that one waits forever for a call whose workers died.

    Workloads are calculations of the cluster's too, so that one whose only copy died with a worker is had again.
    """
    distributed, dask = imported("distributed"), imported("dask")
    with connected(cluster) as client:
        threshold = {"distributed.admin.large-graph-warning-threshold": "1GiB"}  # a workload may be large: it goes once
        with dask.config.set(threshold):
            works = {
                work.fingerprint: client.submit(_same, work, key=f"workload-{work.fingerprint}") for _, work, _ in calls
            }
        wait_for_workers(client)
        if not any(work.exception() for work in works.values()):
            client.replicate(list(works.values()))  # else all calls would queue where the one copy is
        places: dict = {}
        for place, (key, work, arguments) in enumerate(calls):
            key = key or f"{function.__name__}-{uuid4().hex}"
            future = client.submit(function, works[work.fingerprint], *arguments, key=key)
            places.setdefault(key, (future, []))[1].append(place)
        for future in distributed.as_completed([future for future, _ in places.values()], loop=client.loop):
            result = _result(distributed, future, client)
            for place in places[future.key][1]:
                yield place, result


def _same(work: Workload) -> Workload:
    return work


def _result(distributed, future, client):
    try:
        return future.result()
    except distributed.KilledWorker as error:
        raise SaveRouterError(
            f"{future.key} ended {error.last_worker.address if error.last_worker else 'its worker'} and others before it, "
            "mostly for want of memory; what had finished is kept: give workers more memory, or fewer threads"
        ) from error
    except distributed.client.FutureCancelledError as error:
        raise SaveRouterError(
            f"the scheduler at {client.scheduler.address} went away or forgot {future.key}; what had finished is kept: "
            "start again when it is back"
        ) from error


@contextmanager
def connected(cluster) -> Iterator:
    """A client of the cluster: the one given, or one to the address given, which is closed in the end."""
    distributed = imported("distributed")
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    try:
        client = distributed.Client(cluster, timeout=ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SaveRouterError(
            f"no Dask scheduler answers at {cluster!r} within {ANSWER_WITHIN} s ({error}); start one with `dask scheduler`, "
            f"give its address, or unset {VARIABLE} to compute here"
        ) from error
    with client:
        yield client


def wait_for_workers(client) -> None:
    """Refuse a cluster that has nobody to do the work."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_WITHIN)
    except TimeoutError as error:
        address = client.scheduler.address
        raise SaveRouterError(
            f"the scheduler at {address} has no worker after {WORKERS_WITHIN} s; start one with `dask worker {address}`"
        ) from error


def imported(name: str):
    """An optional module, or how to get it."""
    try:
        return __import__(name)
    except ImportError as error:
        raise SaveRouterError(
            f"{name} is not installed, which clusters and logs need; pip install 'saverouter-workbook[cluster]'"
        ) from error
