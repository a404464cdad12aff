"""The runner, on small throw-away notebooks."""

import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from saverouter import notebooks, reproduce, runner
from saverouter.errors import SaveRouterError

FIGURE = """from IPython.display import Image, display
import base64
display(Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")))"""


@pytest.fixture(autouse=True)
def fixed_package(monkeypatch):
    """Edits to the package during a test run must not look like changed inputs."""
    monkeypatch.setattr(runner, "package_fingerprint", lambda: "package")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "notebooks"
    path.mkdir()
    return path


def write(folder, name="00_first", code="1 + 1", parameters='profile = "smoke"\nseed = 42', title="One & <only>"):
    cells = [
        new_markdown_cell(
            f"# {title}\n\n> Does *it* **pay**, at `K`? [See](x)\n\n[Next](01_next.ipynb), *Q*<sub>b</sub>."
        ),
        new_code_cell(parameters, metadata={"tags": ["parameters"]}),
        new_code_cell(code),
        new_code_cell(FIGURE, metadata={"tags": ["key-figure"]}),
        new_code_cell('print(f"It pays <b>: {profile} {seed}")', metadata={"tags": ["verdict"]}),
    ]
    notebook = new_notebook(cells=cells, metadata={"kernelspec": notebooks.KERNEL})
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder / f"{name}.ipynb"


def command(folder, *arguments):
    """Exit status of the command on a folder of notebooks; reports go beside it."""
    places = ["--notebooks", str(folder), "--reports", str(folder.parent / "reports"), "--profile", "smoke"]
    return reproduce.main([*places, *arguments])


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_runs_and_writes_pages(folder, capsys):
    code = (
        "import pandas as pd\nfrom saverouter.outputs import save_table\n"
        'save_table(pd.DataFrame({"sa_bep": [float("inf")]}), "main")'
    )
    write(folder, code=code)
    assert command(folder, "--seed", "7") == 0
    reports = folder.parent / "reports"
    page = (reports / "smoke" / "index.html").read_text()
    assert "One &amp; &lt;only&gt;" in page and "Does it pay, at K? See" in page
    assert "It pays &lt;b&gt;: smoke 7" in page and "data:image/png;base64," in page
    for link in ("notebooks/00_first.html", "notebooks/00_first.ipynb", "tables/main.csv"):
        assert f'href="{link}"' in page and (reports / "smoke" / link).exists()
    assert (reports / "smoke" / "tables" / "main.csv").read_text() == "sa_bep\ninf\n"
    assert 'href="smoke/index.html"' in (reports / "index.html").read_text()
    shown = (reports / "smoke" / "notebooks" / "00_first.html").read_text()
    assert "Hide code" in shown and 'href="01_next.html"' in shown and "<em>Q</em><sub>b</sub>" in shown
    assert "MB of disk" in capsys.readouterr().out.splitlines()[0]


def test_keeps_what_is_done_until_an_input_changes(folder, tmp_path, monkeypatch):
    path = write(folder)

    def status(**parameters):
        tasks = runner.plan([path], "smoke", parameters, {}, tmp_path / "reports")
        (outcome,) = runner.run(tasks, say=lambda text: None)
        return outcome.status

    assert [status(), status()] == ["done", "kept"]
    assert status(seed=1) == "done"
    write(folder, code="2 + 2")
    assert [status(seed=1), status(seed=1)] == ["done", "kept"]
    monkeypatch.setattr(runner, "package_fingerprint", lambda: "changed")
    assert status(seed=1) == "done"
    (tmp_path / "reports" / "smoke" / "notebooks" / "00_first.html").unlink()
    assert status(seed=1) == "done"


def test_outputs_do_not_change_a_fingerprint(folder):
    path = write(folder)
    before = notebooks.source_fingerprint(path)
    notebook = notebooks.read(path)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="2")]
    nbformat.write(notebook, path)
    assert notebooks.source_fingerprint(path) == before
    write(folder, code="3")
    assert notebooks.source_fingerprint(path) != before


def test_a_failure_is_named_and_the_rest_runs(folder, capsys):
    write(folder, "00_bad", code="# why\n1 / 0")
    write(folder, "01_good")
    assert command(folder, "--jobs", "2") == 1
    out = capsys.readouterr().out
    assert "00_bad.ipynb, cell In [3] `# why`: ZeroDivisionError: division by zero" in out
    made = files_in(folder.parent / "reports" / "smoke" / "notebooks")
    assert made == ["00_bad.failed.ipynb", "01_good.html", "01_good.ipynb"]
    assert "This notebook failed" in (folder.parent / "reports" / "smoke" / "index.html").read_text()

    write(folder, "00_bad", code="1 / 1")
    assert command(folder) == 0
    assert "00_bad.failed.ipynb" not in files_in(folder.parent / "reports" / "smoke" / "notebooks")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "k=4"], "00_first.ipynb has no parameter 'k'; its parameters cell declares: profile, seed"),
        (["--benchmark", "all"], "none of the selected notebooks (00_first) declares the parameter 'benchmark'"),
        (["--notebook", "frist"], "unknown notebook 'frist': did you mean '00_first'?"),
        (["--profile", "standrad"], "unknown profile 'standrad': did you mean 'standard'?"),
        (["--set", "seed"], "is not NAME=VALUE"),
    ],
)
def test_refuses_with_a_remedy(folder, capsys, arguments, message):
    write(folder)
    assert command(folder, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (folder.parent / "reports").exists()


def test_optional_parameters_go_where_they_are_declared(folder, tmp_path):
    first = write(folder, "00_first")
    second = write(folder, "01_second", parameters='profile = "smoke"\nbenchmark: str = "all"')
    tasks = runner.plan([first, second], "smoke", {"benchmark": "sprout"}, {}, tmp_path)
    assert [task.parameters for task in tasks] == [{"profile": "smoke"}, {"profile": "smoke", "benchmark": "sprout"}]


def test_a_notebook_without_profile_is_refused(folder, tmp_path):
    path = write(folder, parameters="seed = 1")
    with pytest.raises(SaveRouterError, match="00_first.ipynb has no parameter 'profile'"):
        runner.plan([path], "smoke", {}, {}, tmp_path)


def test_parameters_are_plain_literals(folder):
    path = write(folder, parameters='profile = "smoke"\npath = open("x")')
    with pytest.raises(SaveRouterError, match="is not `name = literal`"):
        notebooks.declared_parameters(path)


def test_an_interrupted_notebook_leaves_nothing(folder, monkeypatch):
    def half(source, target, parameters, **options):
        with open(target, "w") as file:
            file.write('{"cells": [')
        raise KeyboardInterrupt

    write(folder)
    monkeypatch.setattr(papermill, "execute_notebook", half)
    assert command(folder) == 130
    assert files_in(folder.parent / "reports") == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt_keeps_what_had_finished(folder, jobs):
    write(folder, "00_quick")
    write(folder, "01_slow", code="import time\ntime.sleep(300)")
    reports = folder.parent / "reports"
    arguments = ["--notebooks", str(folder), "--reports", str(reports), "--profile", "smoke", "--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-m", "saverouter.reproduce", *arguments],
        stderr=subprocess.DEVNULL,
        # A test run in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 120
        while not list(reports.glob("smoke/.done/00_quick.json")) or not list(reports.glob("smoke/notebooks/.01*")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert files_in(reports / "smoke" / "notebooks") == ["00_quick.html", "00_quick.ipynb"]
    assert json.loads((reports / "smoke" / ".done" / "00_quick.json").read_text())["parameters"] == {"profile": "smoke"}


def test_refresh_executes_in_place_and_twice_gives_the_same(folder):
    path = write(folder)
    assert command(folder, "--refresh") == 0
    once = path.read_bytes()
    notebook = notebooks.read(path)
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == [1, 2, 3, 4]
    assert notebook.metadata == {"kernelspec": notebooks.KERNEL, "language_info": {"name": "python"}}
    assert {key for cell in notebook.cells for key in cell.metadata} == {"tags"}
    assert command(folder, "--refresh") == 0
    assert path.read_bytes() == once


def test_list_shows_parameters(folder, capsys):
    write(folder)
    assert command(folder, "--list") == 0
    assert "profile='smoke', seed=42" in capsys.readouterr().out


def test_a_returned_string_is_shown_without_quotes():
    output = nbformat.v4.new_output("execute_result", {"text/plain": "'It pays.'"})
    assert notebooks.cell_text(SimpleNamespace(get=lambda *_: [output])) == "It pays."
