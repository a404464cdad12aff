"""The committed notebooks have the same bones, were executed in order, and run headlessly."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from saverouter.workbook import notebooks, runner

ROOT = Path(__file__).resolve().parents[2]
PATHS = notebooks.all_notebooks()
TWINS = notebooks.all_notebooks(notebooks.TWINS)
every_notebook = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
every_twin = pytest.mark.parametrize("path", TWINS, ids=[path.stem for path in TWINS])
both_trees = pytest.mark.parametrize(
    "path", PATHS + TWINS, ids=[f"{path.parent.name}-{path.stem}" for path in PATHS + TWINS]
)

PLACES = re.compile(r"/(home|Users)/|[A-Z]:\\|site-packages|\b0x[0-9a-f]{6,}")
TIMINGS = re.compile(r"Wall time|CPU times|\bit/s|\bs/it|\d+%\|")


def code_cells(path):
    return [cell for cell in notebooks.read_notebook(path).cells if cell.cell_type == "code"]


def output_text(cell) -> str:
    parts = [output.get("text", "") for output in cell.outputs]
    parts += [str(value) for output in cell.outputs for kind, value in output.get("data", {}).items() if "text" in kind]
    return "\n".join(parts)


def test_there_are_notebooks():
    assert PATHS, "notebooks/NN_topic.ipynb: none found, so no other test here means anything"
    assert [path.name for path in TWINS] == [path.name for path in PATHS], "make refresh writes tests/smoke"


@every_notebook
def test_the_twin_has_the_same_code_and_no_prose(path):
    twin = notebooks.read_notebook(notebooks.TWINS / path.name)
    made = notebooks.smoke_twin(notebooks.read_notebook(path))
    assert [cell.source for cell in twin.cells] == [cell.source for cell in made.cells]
    assert [cell.metadata.get("tags") for cell in twin.cells] == [cell.metadata.get("tags") for cell in made.cells]
    assert {cell.cell_type for cell in twin.cells} == {"code"}
    assert notebooks.declared_parameters(notebooks.TWINS / path.name)["profile"] == "smoke"


@both_trees
def test_executed_in_order_with_outputs(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell.outputs for cell in cells)


@both_trees
def test_tables_and_verdict_are_compared(path):
    """nbval passes over cells with the ignore tag; what is left must be worth comparing."""
    cells = [cell for cell in code_cells(path) if "nbval-ignore-output" not in cell.metadata.get("tags", [])]
    assert any("verdict" in cell.metadata.get("tags", []) for cell in cells)
    assert sum(len(output_text(cell)) > 40 for cell in cells) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("shown", "status"), [("0.2329", 0), ("0.2420", 1)])
def test_nbval_notices_a_changed_table(tmp_path, shown, status):
    """Two decimals count; further digits may differ between processors."""
    code = "from IPython.display import HTML\nHTML('<table><tr><td>%.4f</td></tr></table>' % 0.232)"
    notebook = new_notebook(cells=[new_code_cell(code)], metadata={"kernelspec": notebooks.KERNEL})
    path = tmp_path / "00_table.ipynb"
    nbformat.write(notebook, path)
    notebooks.refresh(path)
    path.write_text(path.read_text(encoding="utf-8").replace("0.2320</td>", f"{shown}</td>"), encoding="utf-8")
    rules = f"--nbval-sanitize-with={ROOT / 'notebooks' / 'nbval.cfg'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", rules, str(path)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == status


@both_trees
def test_no_errors_or_warnings_in_outputs(path):
    outputs = [output for cell in code_cells(path) for output in cell.outputs]
    assert [output.ename for output in outputs if output.output_type == "error"] == []
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


@both_trees
def test_outputs_are_the_same_on_every_machine(path):
    here = [str(ROOT), str(Path.home()), tempfile.gettempdir() + "/"]
    for cell in code_cells(path):
        text = output_text(cell)
        assert not [place for place in here if place in text], cell.source
        assert not PLACES.search(text), cell.source
        assert not TIMINGS.search(text), cell.source


@every_notebook
def test_parameters_are_declared(path):
    assert notebooks.declared_parameters(path)["profile"] == "standard"


@every_notebook
def test_bones(path):
    notebook = notebooks.read_notebook(path)
    assert notebook.cells[0].source.startswith("# ")
    assert notebook.metadata.kernelspec.name == "python3"
    assert "papermill" not in notebook.metadata
    last = notebook.cells[-1]
    assert "watermark()" in last.source and "nbval-ignore-output" in last.metadata.get("tags", [])


@every_notebook
def test_prose_needs_no_script_to_be_read(path):
    """Formulas in dollar signs would need a library that a page opened from a folder does not have."""
    prose = [cell.source for cell in notebooks.read_notebook(path).cells if cell.cell_type == "markdown"]
    assert not [text for text in prose if "$" in text]
    assert sum(len(text.split()) for text in prose) > 600


@every_notebook
def test_cells_are_short(path):
    long = [cell.source.splitlines()[0] for cell in code_cells(path) if len(cell.source.splitlines()) > 20]
    assert long == []


@every_notebook
def test_card_is_complete(path):
    shown = notebooks.card(path)
    assert shown.title and shown.question and shown.answer
    assert shown.figure and shown.figure[0] == "image/png"


@every_notebook
def test_the_claims_can_be_linked_to(path):
    cells = [cell for cell in code_cells(path) if "claims" in cell.metadata.get("tags", [])]
    assert len(cells) == (0 if path.stem[:2] in ("00", "11", "12") else 1)  # these ask nothing of the paper


@pytest.mark.slow
@every_twin
def test_runs_headlessly(path, tmp_path):
    (outcome,) = runner.run_jobs(runner.plan_jobs([path], "smoke", {}, {}, tmp_path), say=lambda text: None)
    assert outcome.status == "done", outcome.message
    page = (tmp_path / "smoke" / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert len(page) > 10_000 and "<script" not in page and 'src="http' not in page
    assert notebooks.card(tmp_path / "smoke" / "notebooks" / path.name).answer
