"""A log routed in parts is routed as the whole, within little memory, and appears whole or not at all."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.encoders import minilm
from saverouter.scale import logs
from saverouter.scale.logs import route_log

pytest.importorskip("dask.dataframe")
TESTS = Path(__file__).parent


def fitted(router: sr.Router, **options) -> sr.Router:
    work = make_workload(n=300, with_vectors=False, seed=1, **options)
    return router.fit(work.queries, work.feedback())


def words_only(**options) -> sr.Router:
    """Needs no vectors."""
    return fitted(sr.SaveRouter(k=2, grouping="global", **options))


def write_log(folder: Path, sizes=(70, 0, 130, 1, 99)) -> pa.Table:
    """Parts with columns of several kinds; one is empty, and their names sort by number."""
    folder.mkdir()
    work = make_workload(n=sum(sizes), seed=9)
    table = pa.table({
        "user": pa.array(np.arange(len(work)), pa.int32()),
        "prompt": work.prompts,
        "seen": pa.array(np.arange(len(work)) * 1000, pa.timestamp("ms")),
        "tags": [["a", "b"][: row % 3] for row in range(len(work))],
        "rating": [None if row % 2 else row for row in range(len(work))],
    })  # fmt: skip
    start = 0
    for part, size in enumerate(sizes):
        pq.write_table(table.slice(start, size), folder / f"part-{part + 8}.parquet", row_group_size=50)
        start += size
    return pa.concat_tables(pq.read_table(folder / f"part-{part + 8}.parquet") for part in range(len(sizes)))


def read(folder: Path) -> pa.Table:
    files = sorted(folder.glob("*.parquet"), key=lambda file: int(file.name.split(".")[1]))
    return pa.concat_tables(pq.read_table(file) for file in files)


@pytest.fixture
def hashed_vectors(monkeypatch):
    """Stand-ins for MiniLM, by content; says which prompts were encoded."""
    encoded = []

    def encode(name, prompts):
        encoded.extend(prompts)
        seeds = [int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "little") for prompt in prompts]
        return np.stack([np.random.default_rng(seed).normal(size=8) for seed in seeds]).astype(np.float32)

    monkeypatch.setattr(minilm, "_encode", encode)
    return encoded


@pytest.mark.parametrize("cost_weight", [0.0, 0.3])
def test_parts_are_routed_as_the_whole(own_cache, tmp_path, monkeypatch, cost_weight):
    monkeypatch.setattr(logs, "BATCH", 32)
    table, router = write_log(tmp_path / "log"), words_only()
    counts = route_log(router, tmp_path / "log", tmp_path / "new" / "routed", cost_weight=cost_weight)
    routed = read(tmp_path / "new" / "routed")
    expected = router.route(table["prompt"].to_pylist(), cost_weight)
    assert routed["model"].to_pylist() == expected.tolist()
    assert routed.drop(["model"]).equals(table) and len(set(expected)) > 1
    assert counts.to_dict() == {model: (expected == model).sum() for model in router.models_}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["routed"]


@pytest.mark.parametrize("name", ["knn", "saverouter", "wiserouter", "rmsoftmax", "uniroute"])
def test_a_cost_weight_means_the_same_in_every_part(own_cache, tmp_path, monkeypatch, hashed_vectors, name):
    """Where it is relative to the mean costs of the queries, those are the whole log's."""
    monkeypatch.setattr(logs, "BATCH", 32)
    options = {"epochs": 2} if name == "rmsoftmax" else {}
    table, router = write_log(tmp_path / "log"), fitted(sr.make_router(name, **options))
    route_log(router, tmp_path / "log", tmp_path / "routed", cost_weight=0.4)
    assert read(tmp_path / "routed")["model"].to_pylist() == router.route(table["prompt"].to_pylist(), 0.4).tolist()


def test_nothing_of_a_log_is_kept(own_cache, tmp_path, hashed_vectors):
    table, router = write_log(tmp_path / "log"), fitted(sr.SaveRouter(k=2, grouping="latent"))
    before, learnt = {path for path in own_cache.rglob("*.np?")}, len(hashed_vectors)
    route_log(router, tmp_path / "log", tmp_path / "routed")
    assert {path for path in own_cache.rglob("*.np?")} == before and before
    encoded, known = set(hashed_vectors[learnt:]), set(hashed_vectors[:learnt])
    assert encoded >= set(table["prompt"].to_pylist()) - known and not encoded & known


# Routes a log in a process that may take half the log's size of memory beyond what it has, and then tries to read it whole.
# A part takes about nine times its size while it is routed, however many there are: 60 parts leave room on both sides.
LARGE = """
import json, resource, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from saverouter.scale.logs import route_log
from test_logs import words_only, write_log

folder, size = Path(sys.argv[1]), 0
write_log(folder / "small")
(folder / "large").mkdir()
for part in range(60):
    answers = [f"{part} {row} " * 2_000 for row in range(800)]
    table = pa.table({"prompt": [answer[:40] for answer in answers], "answer": answers})
    size += table.nbytes
    pq.write_table(table, folder / "large" / f"{part}.parquet")
router = words_only(residual_scale=0)
route_log(router, folder / "small", folder / "routed small")
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + size // 2, resource.RLIM_INFINITY))
counts = route_log(router, folder / "large", folder / "routed")
try:
    pq.read_table(folder / "large")
    whole = "fits"
except MemoryError:
    whole = "is too large"
print(json.dumps({"whole": whole, "size": size, "rows": int(counts.sum())}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited otherwise elsewhere")
def test_a_log_may_be_larger_than_memory(own_cache, tmp_path):
    # One plain allocator, so that memory is taken as it is needed and not set aside.
    plain = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "PYTHONPATH": str(TESTS.parent),
    }
    command = [sys.executable, "-c", LARGE, tmp_path]
    run = subprocess.run(command, cwd=TESTS, env=plain, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["rows"] == 48_000 and found["whole"] == "is too large" and found["size"] > 600e6


def test_what_cannot_be_routed_is_named(own_cache, tmp_path):
    table, router, log, target = write_log(tmp_path / "log"), words_only(), tmp_path / "log", tmp_path / "routed"
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "part.csv").touch()
    cases = [
        (sr.SaveRouter(), log, {}, "SaveRouter has not been fitted; call fit"),
        (router, tmp_path / "nowhere", {}, "no log at .*nowhere"),
        (router, tmp_path / "empty", {}, "no \\*.parquet file in .*empty"),
        (router, log, {"prompt_column": "promt"}, "part-8.parquet' has no column 'promt'; did you mean 'prompt'"),
        (router, log, {"model_column": "user"}, "a column 'user' already.*model_column"),
        (router, log, {"cost_weight": -1}, "cost_weight is -1"),
        (router, log, {"target": log / "routed"}, "lies in the log itself"),
        (router, log, {"target": log / "part-8.parquet"}, "is a file"),
        (router, log, {"target": tmp_path / "empty"}, "empty' exists.*overwrite=True"),
    ]
    for chosen, source, options, message in cases:
        with pytest.raises(sr.SaveRouterError, match=message):
            route_log(chosen, source, **{"target": target, **options})
    vectors = make_workload(n=200)
    own = sr.SaveRouter(k=2, grouping="global").fit(vectors.queries, vectors.feedback())
    with pytest.raises(sr.SaveRouterError, match="cannot route a prompt alone.*without vectors"):
        route_log(own, log, target)
    pq.write_table(table.slice(0, 2).set_column(1, "prompt", [["fine", " "]]), log / "part-99.parquet")
    with pytest.raises(sr.SaveRouterError, match="prompt of row 1 in a part of the log is ' '"):
        route_log(router, log, target)
    (log / "part-99.parquet").write_text("no such thing")
    with pytest.raises(sr.SaveRouterError, match="part-99.parquet' cannot be read as Parquet"):
        route_log(router, log, target)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir() and path.name != "tfidf") == [
        "empty",
        "log",
    ]


def test_a_target_is_replaced_only_when_asked_and_done(own_cache, tmp_path, monkeypatch):
    write_log(tmp_path / "log")
    router, target = words_only(), tmp_path / "routed"
    target.mkdir()
    (target / "old").touch()
    with monkeypatch.context() as patch:
        patch.setattr(logs, "_counted", None)  # something goes wrong in the end
        with pytest.raises(TypeError):
            route_log(router, tmp_path / "log", target, overwrite=True)
    assert [path.name for path in target.iterdir()] == ["old"]
    route_log(router, tmp_path / "log", target, overwrite=True)
    assert len(read(target)) == 300
    assert {path.name for path in tmp_path.iterdir()} - {"tfidf"} == {"log", "routed"}
