"""Where a run is computed changes nothing: same results, each computed once, also when workers die.

The workers' cache is not the caller's, as on machines without a common disk.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import joblib
import pandas as pd
import pytest
from conftest import make_workload
from test_logs import read, write_log

import saverouter as sr
from saverouter import scale
from saverouter.scale import cluster
from saverouter.scale.logs import route_log
from saverouter.studies import designs, experiments, runs

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}  # nobody else can reach it
PATIENCE = 120  # seconds after which a test gives up: a machine may be busy


class Marked(sr.ROUTERS["knn"]):
    """Leaves a file for each time it is fitted; with ``hangs``, the first fit all but never ends."""

    label = "Marked"

    def __init__(self, *, marks="", number=0, hangs=False):
        super().__init__()
        self.marks, self.number, self.hangs = marks, number, hangs

    def _fit(self, queries, feedback):
        first = not list(Path(self.marks).glob(f"{self.number}-*"))
        mark = Path(self.marks, f"{self.number}-{time.monotonic_ns()}")
        mark.with_suffix(".new").write_text(f"{os.getpid()} {os.environ.get('OMP_NUM_THREADS')}")
        mark.with_suffix(".new").rename(mark)
        if self.hangs and first:
            time.sleep(PATIENCE)
        super()._fit(queries, feedback)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A cluster of two processes, reachable from this machine only; one that is started anew finds the same disk."""
    env = {"SAVEROUTER_CACHE": str(tmp_path_factory.mktemp("workers"))}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, silence_logs="CRITICAL", env=env, **LOCAL
    ) as local:
        yield local.scheduler_address


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """The folder of marks, with the router that leaves them and an empty cache."""
    monkeypatch.setitem(sr.ROUTERS, "marked", Marked)
    monkeypatch.setenv("SAVEROUTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(cluster.VARIABLE, raising=False)
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def marked(work, marks, numbers, **options):
    return [(work, "marked", {"marks": str(marks), "number": number, **options}) for number in numbers]


def fits(marks) -> list[int]:
    return sorted(int(path.name.split("-")[0]) for path in marks.glob("*[0-9]"))


def wait_for(found, what):
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, f"no {what} after {PATIENCE} s"
        time.sleep(0.05)


def assert_same(one, other):
    assert one.result.metrics() == other.result.metrics()
    pd.testing.assert_frame_equal(one.result.frontier, other.result.frontier)
    assert replace(one, result=None) == replace(other, result=None)


def test_a_cluster_gives_what_one_process_gives(address, marks, monkeypatch):
    works = [make_workload(n=300, seed=seed) for seed in (1, 2)]
    wanted = [(work, name, {"seed": seed, "split_seed": seed}) for work in works for name in ("saverouter", "knn")
              for seed in (1, 2)] + [(works[0], "saverouter", {"k": k}) for k in (1, 2)]  # fmt: skip
    serial = experiments.run_many(wanted)
    monkeypatch.setenv("SAVEROUTER_CACHE", str(marks / "another"))
    for one, other in zip(serial, experiments.run_many(wanted, cluster=address), strict=True):
        assert_same(one, other)
    monkeypatch.setenv(cluster.VARIABLE, "tcp://127.0.0.1:9")  # nobody is there: all of it is remembered here
    again = experiments.run_many(wanted)
    assert [done.result.metrics() for done in again] == [done.result.metrics() for done in serial]


def test_the_environment_moves_a_study(address, marks, monkeypatch):
    work = make_workload(n=300, seed=3)
    here = designs.ablations(work, seeds=(1, 2))
    monkeypatch.setattr(runs, "_compute", None)  # from here on nothing is computed in this process
    monkeypatch.setenv("SAVEROUTER_CACHE", str(marks / "block"))
    with scale.on(address):
        pd.testing.assert_frame_equal(designs.ablations(work, seeds=(1, 2)), here)
    monkeypatch.setenv("SAVEROUTER_CACHE", str(marks / "variable"))
    monkeypatch.setenv(cluster.VARIABLE, address)
    pd.testing.assert_frame_equal(designs.ablations(work, seeds=(1, 2)), here)


def test_who_asks_the_same_shares_one_computation(address, marks):
    """Two callers at once, each of whom wants some things twice."""
    wanted = marked(make_workload(n=200), marks, [1, 2, 3, 2, 1])
    with ThreadPoolExecutor(2) as callers:
        first, second = callers.map(lambda _: experiments.run_many(wanted, cluster=address), range(2))
    assert fits(marks) == [1, 2, 3]
    for one, other in zip(first, second, strict=True):
        assert_same(one, other)
    assert_same(first[0], first[4])


def test_workers_that_die_are_replaced(address, marks, monkeypatch):
    """Both die while computing, and with them every copy of the workload and all results, of which none was fetched yet: their
    runs start again, no other does."""
    work, died, fetch = make_workload(n=200, seed=5), threading.Event(), cluster._result
    monkeypatch.setattr(cluster, "_result", lambda *given: died.wait(PATIENCE) and fetch(*given))
    wanted = marked(work, marks, [1, 2]) + marked(work, marks, [3, 4], hangs=True)
    with ThreadPoolExecutor(1) as caller:
        asked = caller.submit(experiments.run_many, wanted, cluster=address)
        for number in (3, 4):
            wait_for(lambda number=number: list(marks.glob(f"{number}-*[0-9]")), f"start of run {number}")
            mark = min(marks.glob(f"{number}-*[0-9]"))
            os.kill(int(mark.read_text().split()[0]), signal.SIGKILL)
        died.set()
        found = asked.result(PATIENCE)
    assert fits(marks) == [1, 2, 3, 3, 4, 4]
    expected = experiments.run(work, "knn").result.metrics()
    assert all(done.result.metrics() == expected for done in found)


def test_a_run_that_kills_its_workers_is_given_up(marks, monkeypatch):
    names = {"__name__": "a_notebook", "sr": sr}
    exec("class Deadly(sr.ROUTERS['knn']):\n    def _fit(self, *_):\n        __import__('os')._exit(1)", names)
    monkeypatch.setitem(sr.ROUTERS, "deadly", names["Deadly"])
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        with distributed.LocalCluster(n_workers=1, threads_per_worker=1, silence_logs="CRITICAL", **LOCAL) as local:
            with pytest.raises(sr.SaveRouterError, match="want of memory.*more memory"):
                experiments.run_many([(make_workload(n=100), "deadly", {})], cluster=local.scheduler_address)


def test_a_router_of_ones_own_is_sent_along(address, marks, monkeypatch):
    """One that was typed into a notebook exists on no worker, and is computed there all the same."""
    names = {"__name__": "a_notebook", "sr": sr}
    exec("class Typed(sr.ROUTERS['knn']):\n    label = 'typed'", names)
    monkeypatch.setitem(sr.ROUTERS, "typed", names["Typed"])
    work = make_workload(n=200)
    (done,) = experiments.run_many([(work, "typed", {})], cluster=address)
    assert done.result.router == "typed"
    assert done.result.metrics() == experiments.run(work, "knn").result.metrics()


def test_an_error_elsewhere_is_the_error_here(address, marks):
    work = make_workload(n=200)
    with pytest.raises(sr.SaveRouterError) as here:
        experiments.run(work, "saverouter", k=0)
    with pytest.raises(sr.SaveRouterError) as there:
        experiments.run_many([(work, "saverouter", {"k": 0})], cluster=address)
    assert str(there.value) == str(here.value)


class Travelling(sr.SaveRouter):
    """Leaves a file for each time it arrives in a process."""

    def __setstate__(self, state):
        super().__setstate__(state)
        Path(state["marks_"], f"{os.getpid()}-{time.monotonic_ns()}").touch()


def test_a_log_is_routed_there_as_here(address, marks, tmp_path):
    table, router = write_log(tmp_path / "log", [40] * 20), Travelling(k=2, grouping="global")
    work = make_workload(n=300, with_vectors=False, seed=1)
    router.fit(work.queries, work.feedback()).marks_ = str(marks)
    with scale.on(address):
        counts = route_log(router, tmp_path / "log", tmp_path / "routed", cost_weight=0.3)
    expected = router.route(table["prompt"].to_pylist(), 0.3)
    assert read(tmp_path / "routed")["model"].to_pylist() == expected.tolist() and counts.sum() == 800
    here = [mark for mark in marks.iterdir() if mark.name.startswith(f"{os.getpid()}-")]
    assert 0 < len(list(marks.iterdir())) - len(here) <= 4  # not once for each of twenty parts
    with pytest.raises(sr.SaveRouterError, match="no column 'text'"):
        route_log(router, tmp_path / "log", tmp_path / "other", prompt_column="text", cluster=address)


def test_processes_share_the_cores_and_the_work(marks, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    work = make_workload(n=200, seed=6)
    wanted = marked(work, marks, [1, 2, 3, 2])
    with scale.on(jobs=2):
        found = experiments.run_many(wanted)
    assert fits(marks) == [1, 2, 3]
    pids, threads = zip(*(path.read_text().split() for path in marks.iterdir()), strict=True)
    assert str(os.getpid()) not in pids and set(threads) == {str(max(1, joblib.cpu_count() // 2))}
    expected = experiments.run(work, "knn").result.metrics()
    assert all(done.result.metrics() == expected for done in found)


def test_other_code_computes_nothing(marks):
    work = make_workload(n=100)
    task = replace(runs.RunKey.of(work, "knn"), version="another")
    with pytest.raises(sr.SaveRouterError, match="another saverouter.*install the same version"):
        runs.attempt(work, task, True)
    assert not task.is_done


def test_a_cluster_that_does_not_work_is_named(marks, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_WITHIN", 1)
    monkeypatch.setattr(cluster, "WORKERS_WITHIN", 1)
    wanted = [(make_workload(n=100), "knn", {})]
    for address in ("tcp://127.0.0.1:9", "127.0.0.1:nowhere", "smoke://signals"):
        with pytest.raises(sr.SaveRouterError, match=f"{address}.*dask scheduler.*unset SAVEROUTER_CLUSTER"):
            experiments.run_many(wanted, cluster=address)
    with distributed.LocalCluster(n_workers=0, **LOCAL) as empty:
        with pytest.raises(sr.SaveRouterError, match="no worker after 1 s.*dask worker tcp://127.0.0.1"):
            experiments.run_many(wanted, cluster=empty.scheduler_address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(sr.SaveRouterError, match=r"pip install 'saverouter-workbook\[cluster\]'"):
        experiments.run_many(wanted, cluster="tcp://127.0.0.1:9")


def test_dask_is_not_needed_until_asked_for():
    code = "import sys, saverouter.studies; print({'dask', 'distributed'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
