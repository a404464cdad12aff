"""What a long calculation says: to who listens, to standard error otherwise, and never into a notebook."""

import os
import subprocess
import sys
import textwrap

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


def test_a_notebook_stays_clean_and_the_log_behind_it_does_not(tmp_path):
    """What the kernel process itself writes to standard error is where progress goes."""
    code = textwrap.dedent(f"""
        import nbformat, sys
        from nbclient import NotebookClient
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell({LONG!r})])
        NotebookClient(notebook, kernel_name="python3").execute()
        assert notebook.cells[0].outputs == [], notebook.cells[0].outputs
    """)
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}  # kernels look for it
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
