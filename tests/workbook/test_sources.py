"""Notebooks on original data: a source that is known, a folder of its own, the checklist first."""

import numpy as np
import pandas as pd
import pytest
from publishers import MAKER, old_pickle

import saverouter as sr
from saverouter.studies import designs
from saverouter.workbook import runner
from saverouter.workbook.notebooks import all_notebooks, cell_text, declared_parameters, read_notebook, tagged


def test_every_benchmark_notebook_takes_a_source():
    for path in all_notebooks():
        if "01" <= path.stem[:2] <= "08":  # those about the paper's benchmarks
            assert declared_parameters(path)["source"] == "simulated", path.stem


def test_an_unknown_source_is_told():
    with pytest.raises(sr.SaveRouterError, match="did you mean 'original'"):
        designs.workloads("all", "smoke", "orginal")


def test_original_runs_have_a_folder_of_their_own(tmp_path):
    path = next(path for path in all_notebooks() if path.stem.startswith("02"))
    (simulated,) = runner.plan_jobs([path], "smoke", {}, {}, tmp_path)
    (original,) = runner.plan_jobs([path], "smoke", {"source": "original"}, {}, tmp_path)
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
    (outcome,) = runner.run_jobs(runner.plan_jobs([path], "smoke", told, {}, tmp_path), say=lambda text: None)
    assert outcome.status == "done", outcome.message
    notebook = read_notebook(tmp_path / "smoke-original" / "notebooks" / path.name)
    printed = [cell_text(cell) for cell in notebook.cells if cell.cell_type == "code" and "in_words(" in cell.source]
    assert (
        "published facts agree with the loaded data; not explained" in printed[0]
        and "routerbench queries" in printed[0]
    )
    assert "original benchmarks (smoke)" in cell_text(tagged(notebook, "verdict"))
    assert any("settings of the release" in str(cell.get("outputs")) for cell in notebook.cells)
