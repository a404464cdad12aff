"""What a long calculation says: to who listens, to standard error otherwise, and below a notebook's cell while somebody waits."""

import os
import subprocess
import sys
import textwrap

import pytest

from saverouter import progress

LONG = """
from saverouter import progress
progress.EVERY = 0.0
for _ in progress.counted(2, "Learning", "epochs"):
    pass
"""


def test_a_script_speaks_off_a_terminal_and_can_be_silenced():
    def lines(code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    said = lines(LONG)
    assert said.stdout == "" and [line.split(",")[0] for line in said.stderr.splitlines()] == [
        "Learning: 1 of 2 epochs",
        "Learning: 2 of 2 epochs",
    ]
    quiet = "import logging\nlogging.getLogger('saverouter').setLevel('WARNING')\n"
    assert lines(quiet + LONG).stderr == ""
    own = "import logging, sys\nlogging.basicConfig(level='INFO', stream=sys.stdout, format='%(name)s %(message)s')\n"
    assert lines(own + LONG).stdout.startswith("saverouter Learning: 1 of 2") and lines(own + LONG).stderr == ""


@pytest.mark.parametrize("headless", [True, False])
def test_a_notebook_is_told_while_it_waits_and_nothing_stays(tmp_path, headless):
    """What the kernel process itself writes to standard error is where progress goes; a headless run keeps it there."""
    code = textwrap.dedent(f"""
        import nbformat, sys
        from nbclient import NotebookClient
        said = []
        class Client(NotebookClient):
            def process_message(self, message, *rest):
                said.append(message["content"].get("data", {{}}).get("text/plain", ""))
                return super().process_message(message, *rest)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell({LONG!r})])
        Client(notebook, kernel_name="python3").execute()
        shown = [output["data"]["text/plain"] for output in notebook.cells[0].outputs]
        assert shown == {[] if headless else [""]}, notebook.cells[0].outputs
        assert any("2 of 2 epochs" in text for text in said) == {not headless}, said
    """)
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}  # kernels look for it
    plain["SAVEROUTER_PROGRESS"] = "log" if headless else ""
    ran = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0 and "Learning: 2 of 2 epochs" in ran.stderr, ran.stderr


def test_short_work_says_nothing(caplog):
    with caplog.at_level("INFO", logger="saverouter"):
        assert list(progress.counted(3, "Learning", "epochs")) == [0, 1, 2]
        assert not caplog.messages


def test_a_command_line_listens_for_as_long_as_it_runs(capsys):
    with progress.listening(sys.stdout):
        progress.say("heard")
    progress.say("not heard")
    assert capsys.readouterr().out == "heard\n" and not progress.log.handlers
