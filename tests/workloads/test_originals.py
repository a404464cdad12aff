"""The original benchmarks, from small files in their publishers' formats."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from publishers import MAKERS, ZEROS, make_llmrouterbench, old_pickle

import saverouter as sr
from saverouter.workloads import originals, recorded, registry, store
from saverouter.workloads.originals import (
    llmrouterbench,
    mixinstruct,
    mmrbench,
    routerbench,
    routereval,
)

RUNNER = Path(__file__).parents[1] / "release_loaders.py"
every = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture
def files(tmp_path, monkeypatch, own_cache, no_downloads):
    """``files(name)`` makes a benchmark's files in a folder that SAVEROUTER_DATA names."""
    folder = tmp_path / "given"
    folder.mkdir()
    monkeypatch.setenv("SAVEROUTER_DATA", str(folder))

    def make(name, maker=None):
        (folder / name).mkdir()
        (maker or MAKERS[name])(folder / name)
        return folder / name

    return make


def load(name) -> sr.Workload:
    return originals.load_original(name, vectors=False)


@every
def test_nothing_is_there_until_it_was_fetched(name, own_cache, no_downloads):
    with pytest.raises(sr.SaveRouterError, match=f"make data BENCHMARK={name}.* SAVEROUTER_DATA"):
        sr.load(f"original/{name}")


def test_an_unknown_name_is_told(own_cache):
    with pytest.raises(sr.SaveRouterError, match="did you mean 'routerbench'"):
        sr.load("original/routerbnch")


@every
def test_a_workload_says_where_it_comes_from(name, files):
    files(name)
    work = load(name)
    assert work.name == f"original/{name}" and not work.simulated
    assert len({*work.query_ids}) == len(work)
    source = registry.sources(name)[0]
    assert source.repo in work.provenance[0] and source.revision in work.provenance[0]


@every
def test_the_release_reads_the_same(name, files, release, tmp_path):
    """Ids, prompts, tasks, qualities and costs are those of the authors' release on the same files."""
    folder = files(name)
    work = load(name)
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "datasets.py").write_text("def load_dataset(*given, **named): raise RuntimeError('nothing is fetched')\n")
    environment = {**os.environ, "PYTHONPATH": f"{release}{os.pathsep}{stub}"}
    out = tmp_path / "theirs.json"
    subprocess.run(
        [sys.executable, str(RUNNER), name, str(folder), str(out)], env=environment, cwd=tmp_path, check=True
    )
    theirs = json.loads(out.read_text())
    assert theirs["file"].startswith(str(release)), "the black box must be the release, not this package"
    assert [model.rpartition("/")[2].removesuffix("-Instruct") for model in theirs["models"]] == list(work.models)
    assert theirs["ids"] == [query.partition("#")[0] for query in work.query_ids]
    assert theirs["prompts"] == list(work.prompts) and theirs["tasks"] == list(work.tasks)
    quality, cost = (np.array(theirs[kind], dtype=float) for kind in ("quality", "cost"))
    gone = ~(np.isfinite(quality) & np.isfinite(cost))
    np.testing.assert_array_equal(work.available, ~gone)
    np.testing.assert_allclose(work.quality[~gone], quality[~gone], rtol=0, atol=1e-12)
    np.testing.assert_allclose(work.cost[~gone], cost[~gone], rtol=0, atol=1e-7)  # the release rounds to float32


def test_routerbench(files):
    files("routerbench")
    work = load("routerbench")
    assert work.models == routerbench.MODELS and len(work) == 8
    assert list(work.query_ids) == sorted(work.query_ids)
    told = " | ".join(work.provenance)
    assert "1 entries of performance are no numbers" in told and "1 rows repeat a query and model" in told
    assert "2 of 88 query-model pairs are unavailable" in told and (~work.available).sum() == 2
    assert (work.quality == 0.25).sum() == 1 and not (work.quality == 0.125).any()


def test_routerbench_of_another_shape_is_refused(files):
    files("routerbench", lambda folder: (folder / "routerbench_raw.pkl").write_bytes(pickle.dumps({"a": 1})))
    with pytest.raises(sr.SaveRouterError, match="routerbench_raw.pkl lacks column 'sample_id'"):
        load("routerbench")


@pytest.mark.real
def test_recorded_rows_of_routerbench_come_back(files, real_data):
    """The publisher's long table, rebuilt from a recorded part, gives that part again, in the order of the ids."""
    known = sr.load(str(real_data / "routerbench_5shot_3tasks.parquet"))
    rows = {
        "sample_id": np.repeat(known.query_ids, len(known.models)), "prompt": np.repeat(known.prompts, len(known.models)),
        "eval_name": np.repeat(known.tasks, len(known.models)), "model_name": np.tile(known.models, len(known)),
        "performance": known.quality.ravel(), "cost": known.cost.ravel(), "response": "",
    }  # fmt: skip
    table = pd.DataFrame(rows).sample(frac=1, random_state=0)
    files("routerbench", lambda folder: old_pickle(table, folder / "routerbench_raw.pkl"))
    work, order = load("routerbench"), np.argsort(known.query_ids.astype(str), kind="stable")
    columns = [[m.rpartition("/")[2] for m in known.models].index(model) for model in work.models]
    assert work.query_ids.tolist() == known.query_ids[order].tolist()
    assert work.prompts.tolist() == known.prompts[order].tolist() and work.tasks.tolist() == known.tasks[order].tolist()
    np.testing.assert_array_equal(work.quality, known.quality[order][:, columns])
    np.testing.assert_array_equal(work.cost, known.cost[order][:, columns])


def test_mixinstruct(files):
    files("mixinstruct")
    work = load("mixinstruct")
    assert len(work) == 11 and work.grouping == "global"
    assert set(work.tasks) == {"alpaca-gpt4", "dolly-15k", "gpt4all-laion", "sharegpt"}
    assert "alpaca-gpt4/tr0#2" in work.query_ids and any("1 repeated query ids" in note for note in work.provenance)
    assert work.prompts[1] == "Say\u2028 1. " and work.prompts[0].endswith("about train")
    np.testing.assert_array_equal(work.cost[0] * 16, list(mixinstruct.PRICES.values()))


def test_a_broken_line_is_named(files):
    folder = files("mixinstruct")
    with (folder / "val_data_prepared.jsonl").open("a") as file:
        file.write('{"id": "x/1", "instruction": "a", "input": ""}\n')
    with pytest.raises(sr.SaveRouterError, match="val_data_prepared.jsonl, line 4: KeyError 'candidates'"):
        load("mixinstruct")


def test_mmrbench(files):
    files("mmrbench")
    work = load("mmrbench")
    assert work.models == mmrbench.MODELS and work.vectors is None
    assert work.tasks[1] == "SEEDBenchv2Plus" and work.query_ids[4] == "MMStar_2#2"
    assert {(2, 7), (0, 3), (1, 3)} == {tuple(map(int, pair)) for pair in np.argwhere(~work.available)}
    assert set(np.unique(work.quality[work.available])) == {0.0, 1.0}
    assert any("3 of these have only one of quality and cost" in note for note in work.provenance)


def test_mmrbench_with_its_pictures(files, tiny_clip, monkeypatch):
    folder = files("mmrbench")
    monkeypatch.setenv("SAVEROUTER_CLIP", str(tiny_clip))
    work = sr.load("original/mmrbench")
    assert work.vectors.shape == (6, 1024) and any("CLIP" in note for note in work.provenance)
    np.testing.assert_allclose(work.vectors[3, 512:], work.vectors[4, 512:], atol=1e-6)  # one picture, two questions
    unpacked = next((folder.parents[1] / "fetched" / "mmrbench").glob("images-*"))
    picture = next(unpacked.rglob("12.jpeg"))
    picture.write_bytes(b"not a picture")
    with pytest.raises(sr.SaveRouterError, match="12.jpeg' cannot be read"):
        sr.load("original/mmrbench")
    picture.unlink()
    with pytest.raises(sr.SaveRouterError, match="1 of 6 pictures are missing .* OCRBench/12"):
        sr.load("original/mmrbench")


def test_llmrouterbench(files):
    folder = files("llmrouterbench")
    work = load("llmrouterbench")
    assert work.models == llmrouterbench.MODELS and len(work) == 34 + 9 * 12
    assert list(dict.fromkeys(work.tasks)) == [dataset for dataset, _ in llmrouterbench.DATASETS]
    assert work.query_ids[:2].tolist() == ["aime/hybrid/0", "aime/hybrid/1"]
    assert work.cost.max() == 1 and np.array_equal(work.cost, work.cost.astype(np.float32))
    assert "10 records without a score count as 0" in work.provenance
    shutil.rmtree(folder / "made")
    assert load("llmrouterbench").fingerprint == work.fingerprint


@pytest.mark.parametrize("dataset, enough", [("aime", True), ("arenahard", False)])
def test_zero_costs_are_repaired_step_by_step(files, dataset, enough):
    """Prices come from the task where it has enough priced records, else from all tasks of the model: here they agree."""
    files("llmrouterbench")
    work = load("llmrouterbench")
    rows, column = np.flatnonzero(work.tasks == dataset), work.models.index("gpt-5")
    cost = work.cost[rows, column] * float(work.provenance[-1].split("largest, ")[1].split(" ")[0])
    usual = np.median(cost[len(ZEROS) :])
    for value, (zero, how) in zip(cost, ZEROS.values(), strict=False):
        tokens = [float(zero.get(f"{kind}_tokens", np.nan)) for kind in ("prompt", "completion")]
        if how == "tokens" and np.isfinite(tokens).all():
            assert value == pytest.approx(tokens[0] * 1.25e-6 + tokens[1] * 1e-5, rel=1e-4)
        assert (value > 0) == (how != "nothing")
        assert (value == pytest.approx(usual, rel=1e-6)) == (how == "median")
    told = " | ".join(work.provenance)
    assert "16 of 1,704 records cost exactly 0" in told and "6 of them were priced by their tokens" in told
    assert "6 were given a median cost" in told and "4 have neither tokens nor an answer" in told


def test_prices_back_off_to_medians():
    """Without any valid tokens, the task's median; without a priced record of the task, the model's; else that of all."""
    rows = [("t", "m", 2.0), ("t", "m", 0.0), ("u", "m", 0.0), ("t", "n", 0.0), ("v", "o", 10.0)]
    records = pd.DataFrame(rows, columns=["dataset", "model", "cost"]).assign(
        prompt_tokens=np.nan, completion_tokens=np.nan, answered=True
    )
    cost, steps = llmrouterbench.repaired_costs(records)
    assert cost.tolist() == [2.0, 2.0, 2.0, 6.0, 10.0]
    assert steps[2] == "3 were given a median cost"


@pytest.mark.parametrize("change, message", [
    (lambda r: r.pop(), "do not cover the same queries"),
    (lambda r: r[0].update(prompt="Something else"), "were given different prompts"),
    (lambda r: r[0].update(score=1.5), "score is 1.5; expected 0..1"),
    (lambda r: r[0].update(cost=-1), "cost is -1.0; expected a number >= 0"),
    (lambda r: r[0].update(prompt=" "), "the prompt is empty"),
    (lambda r: r.append(dict(r[0])), "twice"),
    (lambda r: r[0].pop("score"), "cannot be read: 'score'"),
])  # fmt: skip
def test_results_that_do_not_fit_are_refused(files, change, message):
    def spoil(dataset, model, records):
        if (dataset, model) == ("hle", "kimi-k2-0905"):
            change(records)

    files("llmrouterbench", lambda folder: make_llmrouterbench(folder, spoil))
    with pytest.raises(sr.SaveRouterError, match=f"hle/test.*{message}"):
        load("llmrouterbench")


def test_the_newest_result_counts(tmp_path):
    for name in ("x-20250101_120000.json", "x-20250102_090000.json", "z.json", "x-20260101_000000.txt"):
        (tmp_path / name).write_text("{}")
    assert llmrouterbench.newest(tmp_path).name == "x-20250102_090000.json"
    with pytest.raises(sr.SaveRouterError, match="no result file"):
        (tmp_path / "none").mkdir()
        llmrouterbench.newest(tmp_path / "none")


def test_routereval(files):
    files("routereval")
    work = load("routereval")
    assert work.models == ("ash-1.5b", "elm-13b", "fir-8x7b-v2", "oak-7b-chat", "yew-70B")
    assert list(dict.fromkeys(work.tasks)) == [f"{task}_router_dataset" for task in routereval.TASKS]
    assert work.prompts[0] == "arc train 0" and len(work) == 60
    assert np.ptp(work.cost, axis=0).max() == 0
    assert work.cost[0].min() == pytest.approx(1 / 6) and work.cost[0].max() == pytest.approx(5 / 6)
    assert "6 models are in all six files, 5 of them tell a parameter size" in work.provenance


@every
def test_the_second_load_opens_no_original_file(name, files, monkeypatch):
    folder = files(name)
    first = load(name)
    monkeypatch.setitem(originals.LOADERS, name, lambda ready: pytest.fail("converted again"))
    assert load(name).fingerprint == first.fingerprint
    shutil.rmtree(folder)  # not even that it is there is needed
    again = load(name)
    assert again.fingerprint == first.fingerprint and again.provenance == first.provenance
    assert again.grouping == first.grouping


def test_a_changed_file_is_converted_again(files):
    folder = files("mixinstruct")
    load("mixinstruct")
    path = folder / "test_data_prepared.jsonl"
    path.write_text(path.read_text().split("\n")[0] + "\n")
    assert len(load("mixinstruct")) == 10


def test_a_changed_table_is_noticed_where_the_pictures_are_gone(files):
    folder = files("mmrbench")
    (folder / "images.tar.gz").unlink()
    assert len(load("mmrbench")) == 6
    path = folder / "MMR-Bench.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:4]) + "\n")
    assert len(load("mmrbench")) == 3


def test_a_spoiled_table_is_not_used(files, own_cache):
    files("routerbench")
    work, path = load("routerbench"), own_cache / "original" / "routerbench.parquet"
    store.write(path, work.take(np.arange(4)), store.made_from(path))
    assert len(load("routerbench")) == 4  # whole and consistent: it is what it says it is
    path.write_bytes(path.read_bytes()[:-100])
    assert len(load("routerbench")) == 8  # cannot be read: made again


def test_texts_survive_the_store(tmp_path):
    texts = ["half a \ud83d character", "line\u2028separator", "naïve \x00 text"]
    work = sr.Workload(query_ids=["a", "b", "c"], prompts=texts, tasks=texts, models=("m", "n"), name="x",
                       quality=[[1, 0], [0.5, np.nan], [np.nan, 1]], cost=[[1, 2], [0, np.nan], [np.nan, 1]])  # fmt: skip
    store.write(tmp_path / "x.parquet", work, {})
    assert store.read(tmp_path / "x.parquet").fingerprint == work.fingerprint


def test_a_recorded_hash_is_enforced(files, tmp_path, monkeypatch):
    folder = files("routerbench")
    copy = tmp_path / "registry.csv"
    shutil.copy(registry.registry_file(), copy)
    monkeypatch.setattr(registry, "registry_file", lambda: copy)
    before, (source,) = registry.sources(), registry.sources("routerbench")
    registry.trust([registry.checked(source, folder / "routerbench_raw.pkl")])
    assert "not recorded" not in load("routerbench").provenance[0]
    changed = [s for s, old in zip(registry.sources(), before, strict=True) if s != old]
    assert [s.benchmark for s in changed] == ["routerbench"] and changed[0].is_trusted
    with (folder / "routerbench_raw.pkl").open("ab") as file:
        file.write(b"more")
    with pytest.raises(sr.SaveRouterError, match="data/registry.csv records .* it is not used"):
        load("routerbench")


def test_the_registry_pins_every_file():
    for source in registry.sources():
        assert source.kind in ("dataset", "model") and source.repo.count("/") == 1
        assert source.benchmark == "clip" or len(source.revision) >= 12
    assert {source.benchmark for source in registry.sources()} == {*originals.LOADERS, "clip"}
    packages = registry.sources(room="recorded")
    assert {source.benchmark for source in packages} == set(recorded.READERS)
    for source in packages:
        assert source.kind == "package" and source.revision in source.file
        assert len(source.sha256) == 64 and int(source.bytes) > 0
