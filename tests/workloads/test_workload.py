"""Loading, validation and the split."""

import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import long_frame, make_workload

import saverouter as sr


def wide_frame(work):
    frame = pd.DataFrame({"query_id": work.query_ids, "task": work.tasks, "prompt": work.prompts})
    for column, model in enumerate(work.models):
        frame[f"quality:{model}"] = work.quality[:, column]
        frame[f"cost:{model}"] = work.cost[:, column]
    return frame


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif ".json" in path.name:
        rows = [json.dumps(row) for row in frame.astype(object).where(frame.notna(), None).to_dict("records")]
        content = "\n".join(rows) if ".jsonl" in path.name else f"[{', '.join(rows)}]"
        path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.mark.parametrize("layout", [wide_frame, long_frame])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".jsonl", ".jsonl.gz", ".json", ".parquet"])
def test_a_table_comes_back_as_it_was(tmp_path, layout, suffix):
    work = replace(make_workload(missing=0.2, n=60), vectors=None)
    path = tmp_path / f"mine{suffix}"
    frame = layout(work)
    write(frame, path)
    loaded = sr.load(path)
    assert loaded.name == "mine" and loaded.provenance == (f"read from mine{suffix}",)
    order = [loaded.models.index(model) for model in work.models]
    assert list(loaded.query_ids) == list(work.query_ids)
    assert list(loaded.prompts) == list(work.prompts) and list(loaded.tasks) == list(work.tasks)
    np.testing.assert_array_equal(loaded.quality[:, order], work.quality)
    np.testing.assert_array_equal(loaded.cost[:, order], work.cost)


def test_a_file_is_found_in_the_data_folder(tmp_path, monkeypatch, work):
    wide_frame(work).to_parquet(tmp_path / "there.parquet")
    monkeypatch.setenv("SAVEROUTER_DATA", str(tmp_path))
    assert len(sr.load("there.parquet")) == len(work)


def change(column, row, value):
    def apply(frame):
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
        return frame

    return apply


BAD = {
    "quality above one": (change("quality:model-1", 17, 7.5), r"{17}: quality of model 'model-1' for query 'q17' is 7.5; exp"),
    "quality below zero": (change("quality:model-0", 3, -0.1), r"{3}: quality of model 'model-0' for query 'q3' is -0.1"),
    "negative cost": (change("cost:model-2", 5, -1.0), r"{5}: cost of model 'model-2' for query 'q5' is -1; expected a finite"),
    "infinite cost": (change("cost:model-2", 5, np.inf), r"{5}: cost of model 'model-2' for query 'q5' is inf"),
    "text for a number": (change("cost:model-2", 5, "dear"), r"{5}: cost:model-2 of query 'q5' is 'dear'; expected a number"),
    "empty prompt": (change("prompt", 9, "  "), r"{9}: prompt of query 'q9' is empty; fill it or drop the row"),
    "missing prompt": (change("prompt", 9, None), r"{9}: prompt of query 'q9' is empty"),
    "empty task": (change("task", 9, ""), r"{9}: task of query 'q9' is empty; name it, or leave the whole column out"),
    "missing task": (change("task", 9, None), r"{9}: task of query 'q9' is empty"),
    "repeated query": (change("query_id", 4, "q2"), r"{4}: query_id 'q2' appears twice \(first in {2}\); keep one row per query"),
    "no id": (change("query_id", 4, None), r"{4}: query_id is empty"),
    "cost without quality": (change("quality:model-1", 6, np.nan), r"{6}: model 'model-1' has a cost but no quality for query"),
    "missing cost column": (lambda f: f.drop(columns="cost:model-3"), r"lacks column 'cost:model-3'"),
    "misspelt column": (lambda f: f.rename(columns={"prompt": "promt"}), r"lacks column 'prompt' \(is it the one called 'promt'"),
    "no models": (lambda f: f[["query_id", "prompt", "task"]], r"neither a long table .* nor a wide one"),
    "no rows": (lambda f: f.iloc[:0], r"has no rows"),
    "no available model": (
        lambda f: f.assign(**{c: f[c].where(f["query_id"] != "q8") for c in f if ":" in c}),
        r"{8}: query 'q8' has no available model",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_bad_tables_are_refused_by_name_and_place(tmp_path, work, name, suffix):
    """The place is the line an editor shows, where the file has lines; else the row, counted from 1."""
    spoil, message = BAD[name]
    frame = spoil(wide_frame(work.take(slice(0, 30))))
    if suffix == ".parquet" and name == "text for a number":
        frame["cost:model-2"] = frame["cost:model-2"].astype(str)
    if suffix == ".jsonl" and name in (
        "no rows",
        "infinite cost",
    ):  # an empty file; and JSON as pandas writes it has no inf
        return
    place = {
        ".csv": lambda n: f"bad.csv, line {n + 2}",
        ".jsonl": lambda n: f"bad.jsonl, line {n + 1}",
        ".parquet": lambda n: rf"bad.parquet, row {n + 1} \(the first is 1\)",
    }[suffix]
    message = re.sub(r"{(\d+)}", lambda found: place(int(found[1])), message)
    path = tmp_path / f"bad{suffix}"
    write(frame, path)
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.load(path)


def test_long_tables_refuse_repeats_and_contradictions(work):
    frame = long_frame(work)
    with pytest.raises(sr.SaveRouterError, match=r"row 1501 .*: query 'q0' and model 'model-0' appear twice; keep one"):
        sr.from_frame(pd.concat([frame, frame.iloc[:1]]))
    frame.loc[1, "prompt"] = "something else"
    with pytest.raises(sr.SaveRouterError, match=r"row 2 .*: prompt of query 'q0' differs from its first row"):
        sr.from_frame(frame)


@pytest.mark.parametrize("column", ["prompt", "task"])
@pytest.mark.parametrize("row", [0, 1])
def test_what_is_missing_is_called_missing(tmp_path, work, column, row):
    """Nothing in Parquet differs from itself, which is no contradiction between two rows."""
    frame = long_frame(work)
    frame.loc[row, column] = None
    frame.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(
        sr.SaveRouterError, match=rf"log.parquet, row {row + 1} .*: {column} of query 'q0' is empty; fill"
    ):
        sr.load(tmp_path / "log.parquet")
    frame["task"] = None
    if column == "task":
        loaded = sr.from_frame(frame)
        assert loaded.tasks is None and "the column 'task' is empty and was left out" in loaded.provenance


def test_prompts_that_look_like_missing_values_are_prompts(tmp_path, work):
    frame = wide_frame(work)
    frame.loc[0, "prompt"], frame.loc[1, "prompt"] = "null", "NA"
    frame.to_csv(tmp_path / "odd.csv", index=False)
    assert list(sr.load(tmp_path / "odd.csv").prompts[:2]) == ["null", "NA"]


@pytest.mark.parametrize("name, message", [
    ("paretobandits", "did you mean 'paretobandit'"),
    ("simulated/routerbanch", "routerbench"),
    ("nowhere.parquet", "no workload or file is called 'nowhere.parquet'"),
])  # fmt: skip
def test_unknown_names_get_a_remedy(name, message):
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.load(name)


def test_an_unreadable_file_is_named(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    (tmp_path / "table.xlsx").write_bytes(b"")
    for name in ("broken.parquet cannot be read", "table.xlsx is a spreadsheet; save it as CSV"):
        with pytest.raises(sr.SaveRouterError, match=name):
            sr.load(tmp_path / name.split()[0])


@pytest.mark.parametrize("n, size", [(12_446, 2_489), (110_000, 22_000), (10_370, 2_074), (36_497, 7_299)])
def test_the_split_is_the_papers(n, size):
    """pandas' sample(frac=1, random_state=42) is the shuffle the paper's pipeline uses."""
    outcome = np.zeros((n, 1))
    ids = np.arange(n).astype(str)
    train, test = sr.Workload(query_ids=ids, prompts=ids, models=["m"], quality=outcome, cost=outcome).split()
    shuffled = pd.DataFrame({"id": ids}).sample(frac=1, random_state=42)["id"].tolist()
    assert len(train) == size and len(test) == n - size
    assert list(train.query_ids) + list(test.query_ids) == shuffled


def test_a_split_that_leaves_nothing_is_refused(work):
    for fraction in (0.0, 1.0, 0.0001):
        with pytest.raises(sr.SaveRouterError, match="train"):
            work.split(train=fraction)


def test_paretobandit_is_real_and_complete():
    work = sr.load("paretobandit")
    assert work.quality.shape == (3609, 3) and work.available.all() and not work.simulated
    assert len(set(work.tasks)) == 31
    assert len(sr.load("paretobandit", size=100)) == 100


def test_workloads_are_frozen_and_variants_are_checked(work):
    with pytest.raises(ValueError):
        work.quality[0, 0] = 1
    mine = np.full((1, 1), 0.5)
    sr.Workload(query_ids=["q"], prompts=["p"], models=["m"], quality=mine, cost=mine)
    mine[0, 0] = 0.7  # the caller's own array stays the caller's
    with pytest.raises(sr.SaveRouterError, match="shape"):
        replace(work, quality=work.quality[:, :2])


def test_the_fingerprint_sees_every_change(work):
    quality = work.quality.copy()
    quality[5, 1] = 1 - quality[5, 1]
    other = [replace(work, quality=quality), replace(work, cost=work.cost * 2), work.take(np.arange(299))]
    assert len({work.fingerprint, *(w.fingerprint for w in other)}) == 4
    assert work.fingerprint == make_workload().fingerprint
