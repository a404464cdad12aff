"""A notebook on the user's file: the runner finds it, notices what is in it, and shows its name alone."""

import nbformat
import pytest
from made_up import runs, singles
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from saverouter.workbook import jobs, notebooks, reproduce, runner, tables

TABLE = "sub/my table.csv"


@pytest.fixture(autouse=True)
def fixed_package(monkeypatch):
    monkeypatch.setattr(jobs, "package_fingerprint", lambda: "package")


@pytest.fixture
def folder(tmp_path, monkeypatch, own_cache):
    """A folder to type in, with a table in it; notebooks lie elsewhere."""
    monkeypatch.delenv("SAVEROUTER_DATA", raising=False)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "here" / "sub").mkdir(parents=True)
    (tmp_path / "here" / TABLE).write_text("first")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def write(folder, name="00_first", parameter="workload", code="", default="paretobandit"):
    cells = [
        new_markdown_cell("# First\n\nWhat is in it?"),
        new_code_cell(f'profile = "smoke"\n{parameter} = {default!r}', metadata={"tags": ["parameters"]}),
        new_code_cell(f"print(open({parameter}).read(), {parameter})", metadata={"tags": ["verdict"]}),
        new_code_cell(code),
    ]
    path = folder / "notebooks" / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": notebooks.KERNEL}), path)
    return path


def command(folder, *arguments):
    places = ["--notebooks", str(folder / "notebooks"), "--reports", str(folder / "reports"), "--profile", "smoke"]
    return reproduce.main([*places, *arguments])


def answer(folder, name="00_first"):
    return notebooks.card(folder / "reports" / "smoke" / "notebooks" / f"{name}.ipynb").answer


def test_a_path_is_relative_to_where_it_was_typed_and_shown_by_its_name(folder, capsys):
    write(folder)
    assert command(folder, "--workload", TABLE) == 0
    assert answer(folder) == "first my table.csv"
    assert f"workload: {TABLE}, read by 00_first" in capsys.readouterr().out
    made = [path for path in (folder / "reports").rglob("*") if path.is_file()]
    assert len(made) >= 5 and not [path for path in made if str(folder / "here") in path.read_text(encoding="utf-8")]
    assert "workload = my table.csv" in (folder / "reports" / "smoke" / "index.html").read_text()


def test_changed_contents_are_noticed(folder, capsys):
    write(folder)
    assert command(folder, "--workload", TABLE) == command(folder, "--workload", TABLE) == 0
    assert "unchanged since it last finished" in capsys.readouterr().out
    (folder / "here" / TABLE).write_text("second")
    assert command(folder, "--workload", TABLE) == 0
    assert answer(folder) == "second my table.csv" and "unchanged" not in capsys.readouterr().out


def test_a_file_that_a_notebook_names_by_default_counts_too(folder):
    (folder / "notebooks" / "own.csv").write_text("first")
    path = write(folder, default="own.csv")
    (job,) = jobs.plan_jobs([path], "smoke", {}, {}, folder / "reports")
    before = job.fingerprint()
    (folder / "notebooks" / "own.csv").write_text("changed")
    assert job.files and job.fingerprint() != before and job.passed == {"profile": "smoke"}


def test_a_path_that_does_not_exist_is_refused_before_any_kernel_starts(folder, capsys, monkeypatch):
    write(folder)
    monkeypatch.setattr(runner, "run_jobs", None)  # nothing may be run
    assert command(folder, "--workload", "sub/my tabel.csv") == 2
    assert f"did you mean '{TABLE}'" in capsys.readouterr().err and not (folder / "reports").exists()
    assert command(folder, "--set", "workload=paretobandi") == 2
    assert "did you mean 'paretobandit'" in capsys.readouterr().err


def test_the_data_have_two_names_and_notebooks_without_them_say_who_has(folder, capsys):
    paths = [write(folder), write(folder, "02_second", "benchmark"), write(folder, "11_third", "data")]
    assert command(folder, "--notebook", "02", "--workload", TABLE) == 2
    told = capsys.readouterr().err
    assert "(02_second) can take a table of yours" in told and "00_first, 11_third have it" in told
    planned = jobs.plan_jobs(paths, "smoke", {"workload": TABLE}, {}, folder / "reports")
    assert [sorted(set(job.parameters) - {"profile"}) for job in planned] == [["workload"], [], ["data"]]


def test_one_notebook_runs_into_a_folder_of_its_own(folder, monkeypatch):
    for kind, frame in {"frontiers": tables.frontiers(runs()), "singles": singles()}.items():
        frame.to_csv(folder / f"{kind}.csv", index=False)
    code = "import pandas as pd\nfrom saverouter.workbook.outputs import save_table\n"
    code += "\n".join(
        f"save_table(pd.read_csv({str(folder / kind)!r} + '.csv'), '11_{kind}')" for kind in ("frontiers", "singles")
    )
    code += "\nfrom pathlib import Path\nimport os\nPath(os.environ['SAVEROUTER_REPORTS'], 'decision.json')"
    code += """.write_text('{"asked": {"monthly": 2e6, "margin": 1, "currency": "EUR"}}')"""
    write(folder, "11_third", "data", code)
    place = folder / "reports" / "decide" / "standard"  # whatever it is called, it is no profile
    asked = {"data": TABLE, "profile": "smoke"}
    outcome, page = runner.run_one("11", asked, place, folder=folder / "notebooks", say=lambda _: None)
    assert (outcome.status, page) == ("done", place / "notebooks" / "11_third.html"), outcome.message
    index = (place / "index.html").read_text()
    assert 'id="what-if"' in index and 'id="frontiers"' in index and 'href="notebooks/11_third.html"' in index
    assert "is left out" not in index and "../index.html" not in index and "<h1>First</h1>" in index
    assert 'value="24000000"' in index and '"currency": "EUR"' in index  # a year of what was asked
    assert 'min="90" max="100" step="0.5" value="99"' in index  # a point of 0.80, rounded up: no more may go
    assert (
        not (folder / "reports" / "decide" / "index.html").exists() and not (folder / "reports" / "index.html").exists()
    )
    again, _ = runner.run_one("11", asked, place, folder=folder / "notebooks", say=lambda _: None)
    assert again.status == "kept"
