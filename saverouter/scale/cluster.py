"""Calculations on a Dask cluster. Workers need this package in the same version, and no disk in common with the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from uuid import uuid4

from ..errors import SaveRouterError
from ..workloads import Workload

VARIABLE = "SAVEROUTER_CLUSTER"
ANSWER_WITHIN = 10  # seconds that a scheduler has to answer
WORKERS_WITHIN = 60  # seconds for the first worker; a cluster that grows on demand has to start it


def on_cluster(function: Callable, calls: list, cluster: object) -> Iterator[tuple[int, object]]:
    """``compute_all`` through the cluster's client: joblib's Dask backend waits forever for a call whose workers died.

    Workloads are calculations of the cluster too. If the only copy dies with its worker, the cluster makes it again.
    """
    distributed, dask = imported("distributed"), imported("dask")
    with connected(cluster) as client:
        threshold = {"distributed.admin.large-graph-warning-threshold": "1GiB"}  # a workload may be large: sent once
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
def connected(cluster: object) -> Iterator:
    """The given client, or a new one to the given address, which is closed in the end."""
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


def wait_for_workers(client: Any) -> None:
    """Refuse a cluster without workers."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_WITHIN)
    except TimeoutError as error:
        address = client.scheduler.address
        raise SaveRouterError(
            f"the scheduler at {address} has no worker after {WORKERS_WITHIN} s; start one with `dask worker {address}`"
        ) from error


def imported(name: str) -> ModuleType:
    """An optional module, or an error that says how to get it."""
    try:
        return __import__(name)
    except ImportError as error:
        raise SaveRouterError(
            f"{name} is not installed, which clusters and logs need; pip install 'saverouter-workbook[cluster]'"
        ) from error
