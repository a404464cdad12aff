"""``python -m saverouter decide``: the decision as text and as JSON, what it says first, and how it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import long_frame, make_workload

import saverouter as sr
from saverouter import encoders
from saverouter.studies.decision import decide
from saverouter.workbook import deciding


@pytest.fixture(scope="module")
def table(tmp_path_factory, cache):
    """A user's file of 400 short prompts, two of its models, in cents."""
    work = make_workload(n=400, models=3, with_vectors=False)
    path = tmp_path_factory.mktemp("data") / "our log.csv"
    long_frame(work).to_csv(path, index=False)
    return path


QUESTION = ["--monthly", "2e6", "--margin", "12", "--reference", "model-2"]


def test_text_json_and_the_package_decide_alike(table, capsys):
    found = decide(sr.load(table), monthly=2e6, margin=12, reference="model-2")
    assert deciding.main(["decide", str(table), *QUESTION]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(str(found)) and "400 queries x 3 models" in said.err
    assert deciding.main(["decide", str(table), *QUESTION, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == found.to_dict() and told["says"] == str(found)
    assert told["saved a month"]["estimate"] == pytest.approx(found.saved[0])


def test_the_router_can_be_kept(table, tmp_path, capsys):
    assert deciding.main(["decide", str(table), *QUESTION, "--save", str(tmp_path / "router")]) == 0
    served = sr.load_router(tmp_path / "router")
    assert served.route(["a new prompt"], policy=served.policy_)[0] in {"model-0", "model-1", "model-2"}


def test_it_says_first_how_many_prompts_are_new_and_how_long_they_take(own_cache, monkeypatch, capsys):
    work = make_workload(n=300, with_vectors=False)
    from saverouter.encoders import minilm

    monkeypatch.setattr(minilm, "_encode", lambda name, prompts: np.ones((len(prompts), 384), np.float32))
    new, seconds = encoders.foreseen(work.prompts)
    assert new == 300 and seconds >= 0
    encoders.minilm_vectors(work.prompts)
    assert encoders.foreseen(work.prompts) == (0, 0.0)


def test_an_interruption_keeps_what_was_encoded(table, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(deciding, "decide", stopped)
    assert deciding.main(["decide", str(table)]) == 130
    assert "the same command goes on from there" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more, message",
    [
        (["no/such.csv"], "no workload or file is called"), (["paretobandit", "--reference", "gpt"], "'gpt' is not in the pool"),
        (["paretobandit", "--margin", "-1"], "margin is -1"), (["paretobandit", "--confidence", "90"], "write 0.9 for 90%"),
    ],
)  # fmt: skip
def test_unusable_input_is_an_error_with_its_remedy(more, message, capsys):
    assert deciding.main(["decide", *more]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["decide"], ["decide", "--report"], ["advise", "x.csv"], ["decide", "x.csv", "--scale", "one to five"]]
)
def test_unknown_words_are_refused(words, capsys):
    with pytest.raises(SystemExit) as stop:
        deciding.main(words)
    assert stop.value.code == 2 and "usage" in capsys.readouterr().err


def test_why_there_is_no_answer_is_said_once(tmp_path, capsys):
    work = make_workload(n=300, models=3, with_vectors=False)
    log = long_frame(work).groupby("query_id").sample(1, random_state=1)
    log.to_csv(tmp_path / "log.csv", index=False)
    assert deciding.main(["decide", str(tmp_path / "log.csv")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("No answer: ") and said.count("outcomes of one model only") == 1


def test_a_table_behind_report_is_the_table(monkeypatch):
    asked = []
    monkeypatch.setattr(deciding, "reported", lambda options: asked.append((options.data, options.report)))
    for words in (["--report", "my.csv"], ["my.csv", "--report"], ["--report", "--margin", "2", "my.csv"]):
        assert deciding.main(["decide", *words]) == 0
    assert deciding.main(["decide", "my.csv", "--report", "out"]) == 0
    assert asked == [("my.csv", deciding.REPORTS)] * 3 + [("my.csv", deciding.Path("out"))]


def test_the_command_is_a_module():
    ran = subprocess.run([sys.executable, "-m", "saverouter", "decide", "--help"], capture_output=True, text=True)
    assert ran.returncode == 0 and "--monthly" in ran.stdout and "--report" in ran.stdout
