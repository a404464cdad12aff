"""Published facts beside loaded ones, the two published settings, and notebooks on original data."""

import numpy as np
import pandas as pd
import pytest
from publishers import MAKER, old_pickle

import saverouter as sr
from saverouter import experiments, parity, runner, studies
from saverouter.notebooks import all_notebooks, cell_text, declared_parameters, read, tagged
from saverouter.paths import data_folder
from saverouter.settings import published_settings


def spoken_for(work: sr.Workload, name: str, monkeypatch) -> pd.DataFrame:
    """The checklist of a workload against its own facts, as if these had been published to two decimals."""
    found = parity.aggregates(work, passes=2)
    wanted = [
        "queries",
        "train queries",
        "groups",
        "dense supervision cost",
        "acquisition cost K=1",
        "acquisition cost K=2",
    ]
    rows = [(name, fact, f"{found[fact]:.2f}", "", "", "paper: a table") for fact in wanted]
    rows.append(
        (name, "best single quality", "0.5", str(found["best single quality"] - 1e-3), "1", "derived: interval")
    )
    rows.append((name, "best single cost", f"{found['best single cost'] * 1.004}", "", "", "derived: from accounting"))
    table = pd.DataFrame(rows, columns=["benchmark", "aggregate", "value", "low", "high", "source"])
    monkeypatch.setattr(parity.pd, "read_csv", lambda *given, **named: table)
    return parity.checklist(work)


def test_a_workload_agrees_with_its_own_facts(work, monkeypatch):
    table = spoken_for(work, "small", monkeypatch)
    assert table["agrees"].all() and (table["explanation"] == "").all()
    assert (
        parity.summary(pd.concat({"small": table}, names=["benchmark"]))
        == "8 of 8 published facts agree with the loaded data"
    )


def test_another_order_of_rows_is_noticed(work, monkeypatch):
    """The split depends on it, and so does every cost."""
    spoken_for(work, "small", monkeypatch)
    table = parity.checklist(work.take(np.arange(len(work))[::-1]))
    assert table.loc["queries", "agrees"] and not table.loc["dense supervision cost", "agrees"]
    assert not table.loc["acquisition cost K=1", "agrees"]
    told = parity.summary(pd.concat({"small": table}, names=["benchmark"]))
    assert "not explained" in told and "small dense supervision cost" in told


def test_published_facts_are_complete():
    """Section by section: sizes, best single model, dense supervision, and purchases at every published K below all."""
    facts = pd.read_csv(data_folder() / "published" / "aggregates.csv").groupby("benchmark")["aggregate"].apply(set)
    budgets = pd.read_csv(data_folder() / "published" / "k_scaling.csv").groupby("benchmark")["k"].apply(list)
    for name, ks in budgets.items():
        dense = [] if name == "mmrbench" else [max(ks)]
        assert {f"acquisition cost K={k}" for k in ks if k not in dense} <= facts[name]
        assert {"queries", "train queries", "test queries", "models", "groups", "available train pairs"} <= facts[name]
        assert {"best single quality", "best single cost", "dense supervision cost"} <= facts[name]


def test_the_two_published_settings():
    router = sr.SaveRouter()
    for name in ("llmrouterbench", "mixinstruct", "mmrbench", "routerbench", "routereval"):
        for settings in ("paper", "release"):
            assert set(published_settings(name, settings)) <= set(router.get_params())
    paper, release = (published_settings("original/mmrbench", settings) for settings in ("paper", "release"))
    assert "shrinkage" not in paper and (release["shrinkage"], release["residual_scale"]) == (120, 0.25)
    assert published_settings("routerbench")["residual_ridge"] == 100
    assert published_settings("routerbench", "release")["residual_ridge"] == 200
    assert published_settings("llmrouterbench")["residual_ridge"] == 200
    with pytest.raises(sr.SaveRouterError, match="did you mean 'release'"):
        published_settings("mmrbench", "realease")


def test_tables_say_which_settings_were_used(own_cache):
    work = sr.load("simulated/mmrbench", size=300)
    notes = {
        settings: experiments.main_runs({"": work}, "smoke", routers=("saverouter",), settings=settings)[""][
            "SaveRouter"
        ].note
        for settings in ("paper", "release")
    }
    assert notes == {"paper": "", "release": "settings of the release"}


def test_every_benchmark_notebook_takes_a_source():
    for path in all_notebooks():
        if not path.stem.startswith("00"):
            assert declared_parameters(path)["source"] == "simulated", path.stem


def test_an_unknown_source_is_told():
    with pytest.raises(sr.SaveRouterError, match="did you mean 'original'"):
        studies.workloads("all", "smoke", "orginal")


def test_original_runs_have_a_folder_of_their_own(tmp_path):
    path = next(path for path in all_notebooks() if path.stem.startswith("02"))
    (simulated,) = runner.plan([path], "smoke", {}, {}, tmp_path)
    (original,) = runner.plan([path], "smoke", {"source": "original"}, {}, tmp_path)
    assert simulated.reports.name == "smoke" and original.reports.name == "smoke-original"


@pytest.mark.slow
def test_notebook_02_runs_on_original_data(tmp_path, monkeypatch):
    """RouterBench's files, made from the simulated benchmark: the checklist tells that they are not the paper's."""
    work = sr.load("simulated/routerbench", size=1500)
    models = [MAKER.get(model, "") + model for model in work.models]
    table = pd.DataFrame({
        "sample_id": np.repeat(work.query_ids, len(models)), "prompt": np.repeat(work.prompts, len(models)),
        "eval_name": np.repeat(work.tasks, len(models)), "model_name": np.tile(models, len(work)),
        "performance": work.quality.ravel(), "cost": work.cost.ravel(), "response": "",
    })  # fmt: skip
    old_pickle(table, tmp_path / "given" / "routerbench_raw.pkl")
    monkeypatch.setenv("SAVEROUTER_DATA", str(tmp_path / "given"))
    path = next(path for path in all_notebooks() if path.stem.startswith("02"))
    told = {"benchmark": "routerbench", "source": "original", "settings": "release"}
    (outcome,) = runner.run(runner.plan([path], "smoke", told, {}, tmp_path), say=lambda text: None)
    assert outcome.status == "done", outcome.message
    notebook = read(tmp_path / "smoke-original" / "notebooks" / path.name)
    printed = [
        cell_text(cell) for cell in notebook.cells if cell.cell_type == "code" and "parity.summary" in cell.source
    ]
    assert (
        "published facts agree with the loaded data; not explained" in printed[0]
        and "routerbench queries" in printed[0]
    )
    assert "original benchmarks (smoke)" in cell_text(tagged(notebook, "verdict"))
    assert any("settings of the release" in str(cell.get("outputs")) for cell in notebook.cells)
