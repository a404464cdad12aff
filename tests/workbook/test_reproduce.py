"""The runner, on small throw-away notebooks."""

import json
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from saverouter.errors import SaveRouterError
from saverouter.workbook import jobs, notebooks, report, reproduce, runner

FIGURE = """from IPython.display import Image, display
import base64
display(Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")))"""


@pytest.fixture(autouse=True)
def fixed_package(monkeypatch):
    """Edits to the package during a test run must not look like changed inputs."""
    monkeypatch.setattr(jobs, "package_fingerprint", lambda: "package")


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
        "import pandas as pd\nfrom saverouter.workbook.outputs import save_table\n"
        'save_table(pd.DataFrame({"sa_bep": [float("inf")]}), "main")'
    )
    write(folder, code=code)
    assert command(folder, "--seed", "7") == 0
    reports = folder.parent / "reports"
    page = (reports / "smoke" / "index.html").read_text()
    assert "One &amp; &lt;only&gt;" in page and "Does it pay, at K? See" in page
    assert "It pays &lt;b&gt;: smoke 7" in page and "data:image/png;base64," in page
    front = (reports / "index.html").read_text()
    assert "It pays &lt;b&gt;: smoke 7" in front and "Other profiles" not in front
    for link in ("notebooks/00_first.html", "notebooks/00_first.ipynb", "tables/main.csv"):
        assert f'href="{link}"' in page and f'href="smoke/{link}"' in front and (reports / "smoke" / link).exists()
    assert (reports / "smoke" / "tables" / "main.csv").read_text() == "sa_bep\ninf\n"
    shown = (reports / "smoke" / "notebooks" / "00_first.html").read_text()
    assert "Show all code" in shown and 'href="01_next.html"' in shown and "<em>Q</em><sub>b</sub>" in shown
    assert "MB of disk" in capsys.readouterr().out.splitlines()[0]


def finish(reports, profile, *names, failed=(), **parameters):
    """Leave behind what a finished or failed run of throw-away notebooks would."""
    folder = reports / profile
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    (folder / ".done").mkdir(exist_ok=True)
    for name in names:
        path = write(folder / "notebooks", name, title=f"{name} of {profile}")
        report.write_page(path, path.with_suffix(".html"))
        marker = {"fingerprint": "", "parameters": {"profile": profile, **parameters}, "files": []}
        (folder / ".done" / f"{name}.json").write_text(json.dumps(marker))
    for name in failed:
        write(folder / "notebooks", f"{name}.failed", title=f"{name} of {profile}")
    report.write_index(folder)
    return (reports / "index.html").read_text()


def test_the_front_page_shows_the_largest_profile_that_is_complete(tmp_path):
    both = ("00_a", "01_b")
    assert "00_a of paper" in finish(tmp_path, "paper", "00_a")
    front = finish(tmp_path, "smoke", *both)
    assert "01_b of smoke" in front and "profile <strong>smoke</strong>" in front
    assert '<a href="paper/index.html">paper</a> (1 notebook)' in front and 'href="smoke/index.html"' not in front
    front = finish(tmp_path, "standard", *both, benchmark="sprout", seed=1)
    assert "01_b of standard" in front and "run with <strong>benchmark = sprout, seed = 1</strong>" in front
    front = finish(tmp_path, "smoke", failed=["02_c"])  # now no profile has all three
    assert "00_a of paper" in front and "smoke</a> (2 notebooks, 1 failed)" in front
    assert "02_c of smoke" in (tmp_path / "smoke" / "index.html").read_text()


def test_every_link_of_an_index_leads_somewhere(tmp_path):
    finish(tmp_path, "smoke", "00_a", "01_b", failed=["02_c"])
    finish(tmp_path, "standard", "00_a")
    for page in (tmp_path / "index.html", tmp_path / "smoke" / "index.html"):
        text = page.read_text()
        files, anchors = re.findall(r'href="([^"#]+)"', text), re.findall(r'href="#([^"]+)"', text)
        assert files and not [file for file in files if not (page.parent / file).exists()]
        assert anchors and not [anchor for anchor in anchors if f'id="{anchor}"' not in text]


def test_pages_lead_to_their_neighbours(tmp_path):
    def bar(name):
        page = (tmp_path / "smoke" / "notebooks" / f"{name}.html").read_text()
        (nav,) = re.findall(r'<nav [^>]*id="bar".*?</nav>', page, flags=re.DOTALL)
        return re.findall(r'href="(.+?)"', nav)

    finish(tmp_path, "smoke", "00_a", "02_c")
    assert bar("00_a") == ["../index.html", "02_c.html"] and bar("02_c") == ["../index.html", "00_a.html"]
    finish(tmp_path, "smoke", "01_b")
    assert bar("01_b") == ["../index.html", "00_a.html", "02_c.html"] and bar("02_c") == ["../index.html", "01_b.html"]
    (tmp_path / "smoke" / "notebooks" / "01_b.html").unlink()
    report.write_index(tmp_path / "smoke")
    assert bar("00_a") == ["../index.html", "02_c.html"]


def test_figures_say_what_they_show(folder):
    image = nbformat.v4.new_output("display_data", {"image/png": "AAAA"})
    figures = {"# alt: a <rising>\n# line\nplot()": ["key-figure"], "# alt: falling\nplot()": [], "plot()": []}
    cells = [new_markdown_cell("# Title\n\nWhy?")]
    cells += [new_code_cell(source, outputs=[image], metadata={"tags": tags}) for source, tags in figures.items()]
    cells.insert(3, new_markdown_cell("## The *third*\n\ntext"))
    path = folder / "00_figures.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    assert notebooks.card(path).alt == "a <rising> line"
    report.write_page(path, path.with_suffix(".html"))
    page = path.with_suffix(".html").read_text()
    assert re.findall(r'alt="(.*?)"', page) == ["a &lt;rising&gt; line", "falling", "Figure: The third"]
    cells[1].source = "plot()"
    nbformat.write(new_notebook(cells=cells), path)
    assert notebooks.card(path).alt == "Key figure: Title. Why?"


def test_of_several_at_a_time_the_longest_start_first(folder, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "_outcomes", lambda tasks, jobs, say: asked.append([task.name for task in tasks]) or [])
    monkeypatch.setattr(reproduce, "MINUTES", {"00": (1, 1, 1), "01": (3, 1, 1), "02": (2, 9, 9)})
    monkeypatch.setattr(reproduce, "SHARED", (0.5, 1, 1))  # runs that 02 has in common with others count for its place
    for name in ("00_a", "01_b", "02_c", "09_new"):
        write(folder, name)
    assert command(folder, "--jobs", "2") == command(folder) == 0
    assert asked == [["09_new", "01_b", "02_c", "00_a"], ["00_a", "01_b", "02_c", "09_new"]]


def test_work_that_notebooks_share_is_estimated_once(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "MINUTES", {"02": (1, 1, 1), "05": (1, 1, 1), "08": (4, 4, 4)})
    monkeypatch.setattr(reproduce, "SHARED", (10, 10, 10))
    tasks = runner.plan_jobs([write(folder, name) for name in ("02_a", "05_b", "08_c")], "smoke", {}, {}, tmp_path)
    assert reproduce.estimate(tasks).startswith("about 16 min")
    assert reproduce.estimate(tasks, 2).startswith("about 8 min")
    assert reproduce.estimate(tasks[2:], 2).startswith("about 4 min")
    assert reproduce.estimate([]) == "nothing has changed since they finished"


@pytest.mark.slow
def test_notebooks_at_a_time_share_the_cores(folder, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")  # what the user says counts
    monkeypatch.setattr(runner, "cpu_count", lambda: 2)
    code = (
        "import os, torch\ntorch.get_num_threads(), os.environ['OMP_NUM_THREADS'], os.environ['OPENBLAS_NUM_THREADS']"
    )
    write(folder, "00_a", code=code)
    write(folder, "01_b", code=code)
    assert command(folder, "--jobs", "2") == 0
    for name in ("00_a", "01_b"):
        notebook = notebooks.read_notebook(folder.parent / "reports" / "smoke" / "notebooks" / f"{name}.ipynb")
        assert [notebooks.cell_text(cell) for cell in notebook.cells if cell.source == code] == ["(1, '1', '7')"]


def test_keeps_what_is_done_until_an_input_changes(folder, tmp_path, monkeypatch):
    path = write(folder)

    def status(**parameters):
        tasks = runner.plan_jobs([path], "smoke", parameters, {}, tmp_path / "reports")
        (outcome,) = runner.run_jobs(tasks, say=lambda text: None)
        return outcome.status

    assert [status(), status()] == ["done", "kept"]
    assert status(seed=1) == "done"
    write(folder, code="2 + 2")
    assert [status(seed=1), status(seed=1)] == ["done", "kept"]
    monkeypatch.setattr(jobs, "package_fingerprint", lambda: "changed")
    assert status(seed=1) == "done"
    (tmp_path / "reports" / "smoke" / "notebooks" / "00_first.html").unlink()
    assert status(seed=1) == "done"


def test_outputs_do_not_change_a_fingerprint(folder):
    path = write(folder)
    before = notebooks.source_fingerprint(path)
    notebook = notebooks.read_notebook(path)
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
        (["--source", "x/../../../elsewhere"], "source is 'x/../../../elsewhere'; expected one of simulated, original"),
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
    tasks = runner.plan_jobs([first, second], "smoke", {"benchmark": "sprout"}, {}, tmp_path)
    assert [task.parameters for task in tasks] == [{"profile": "smoke"}, {"profile": "smoke", "benchmark": "sprout"}]


def test_a_notebook_without_profile_is_refused(folder, tmp_path):
    path = write(folder, parameters="seed = 1")
    with pytest.raises(SaveRouterError, match="00_first.ipynb has no parameter 'profile'"):
        runner.plan_jobs([path], "smoke", {}, {}, tmp_path)


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
        [sys.executable, "-m", "saverouter.workbook.reproduce", *arguments],
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
    notebook = notebooks.read_notebook(path)
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
