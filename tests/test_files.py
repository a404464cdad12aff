"""What two processes need at the same time is computed once; a process that dies holds nobody up."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from saverouter import SaveRouterError, files
from saverouter.files import atomic_path, digest_of, only_one

TESTS = Path(__file__).parent

# Two of these start together and need the same two things; each computation leaves a line in computed.txt.
SHARED = """
import os, sys, time
from pathlib import Path
import numpy as np
from conftest import make_workload
from saverouter.encoders import minilm
from saverouter.studies import experiments, runs

folder = Path(sys.argv[1])

def counted(name, compute):
    def slowly(*arguments, **options):
        with open(folder / "computed.txt", "a") as lines:
            lines.write(name + "\\n")
        time.sleep(1)
        return compute(*arguments, **options)
    return slowly

minilm.SHARD = 500
minilm._encode = counted("vectors", lambda name, prompts: np.ones((len(prompts), 384), np.float32))
runs.evaluate = counted("run", runs.evaluate)
work = make_workload(n=500, with_vectors=False)
(folder / f"ready-{os.getpid()}").touch()
while len(list(folder.glob("ready-*"))) < 2:
    time.sleep(0.01)
vectors = minilm.minilm_vectors(work.prompts)
print(vectors.sum(), experiments.run(work, "best_single").result.metrics())
"""


def start(code: str, *arguments) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=TESTS, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_two_processes_compute_a_thing_once(own_cache):
    processes = [start(SHARED, own_cache) for _ in range(2)]
    first, second = (process.communicate(timeout=120)[0] for process in processes)
    assert first == second and "sa_bep" in first
    assert sorted((own_cache / "computed.txt").read_text().split()) == ["run", "vectors"]
    assert not list(own_cache.rglob("*.lock"))


def test_a_killed_holder_holds_nobody_up(tmp_path):
    code = """
import sys, time
from saverouter.files import only_one
with only_one(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
    path = tmp_path / "result.json"
    holder = start(code, path)
    assert holder.stdout.readline() == "held\n"
    waiting = start(code, path)
    time.sleep(1)
    assert waiting.poll() is None
    holder.kill()
    try:
        assert waiting.stdout.readline() == "held\n"
    finally:
        waiting.kill()
    assert holder.wait() and waiting.wait() and [file.name for file in tmp_path.iterdir()] == [".result.json.lock"]
    with only_one(path), atomic_path(path) as temporary:  # what they left behind does not matter
        temporary.write_text("{}")
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_what_exists_needs_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FileLock", None)
    (tmp_path / "result.json").touch()
    with only_one(tmp_path / "result.json"):
        pass
    with pytest.raises(TypeError), only_one(tmp_path / "other.json"):
        pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_where_nothing_can_be_locked_all_compute(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, "no locks here")

    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(fcntl, "flock", refuse)
    computed = []
    (tmp_path / "file").touch()
    for path in (tmp_path / "result.json", tmp_path / "file" / "result.json"):
        with only_one(path), only_one(path):
            computed.append(path)
    assert len(computed) == 2


def test_an_error_lets_go(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), only_one(tmp_path / "result.json"):
            1 / 0  # noqa: B018
    assert not list(tmp_path.iterdir())


def test_files_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "kept.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(target) as path:
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    with atomic_path(target) as path:
        path.write_text("new")
    assert target.read_text() == "new"


def test_the_cache_keeps_to_its_limit_and_drops_what_was_not_used_for_longest(own_cache, monkeypatch):
    kept = own_cache / "minilm" / "weights" / "openvino-fp32"
    bulky = [*(kept / f"{number}.npy" for number in range(5)), own_cache / "tfidf" / "old.npz"]
    small = [own_cache / "runs" / "run.json", kept.parent / "graph-1.bin", own_cache / "original" / "a.parquet"]
    for path in (*bulky, *small):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100_000))
    for age, path in enumerate(reversed(bulky)):
        os.utime(path, (time.time() - 10 * files.DAY + age, time.time() - 10 * files.DAY + age))
    files.used(bulky[4])
    monkeypatch.setenv("SAVEROUTER_CACHE_GB", "0.0003")
    files.trim_cache()
    assert [path.name for path in bulky if path.exists()] == ["0.npy", "1.npy", "4.npy"]
    assert all(path.exists() for path in small)
    monkeypatch.setenv("SAVEROUTER_CACHE_GB", "lots")
    with pytest.raises(SaveRouterError, match="SAVEROUTER_CACHE_GB is 'lots'; expected a number of gigabytes"):
        files.trim_cache()


def test_digests_depend_on_boundaries_and_order():
    assert len({digest_of("ab", "c"), digest_of("a", "bc"), digest_of("c", "ab"), digest_of("abc")}) == 4
