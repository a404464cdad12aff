"""The numbers behind a statement are those that its test has read."""

import numpy as np
import pytest

from saverouter.paper import published, short
from saverouter.paper.claims import CLAIMS, judge
from saverouter.paper.evidence import about, collected, note, written


@pytest.mark.parametrize("study", CLAIMS)
def test_every_statement_says_by_which_numbers_it_was_judged(study):
    judged = judge(study, published(study))
    silent = judged[(judged["published numbers"] == "") & (judged["published table"] != "not in the table")]
    assert silent.empty, list(silent.index)
    assert judged["published numbers"].equals(judged["measured numbers"].rename("published numbers"))


def test_the_numbers_follow_the_table():
    measured = published("main_results")
    ours = (measured["benchmark"] == "routerbench") & (measured["method"] == "SaveRouter")
    measured.loc[ours, "sa_bep"] = 987_000.0
    row = judge("main_results", measured).loc["It pays back before every conventional router, on every benchmark"]
    assert "routerbench: SaveRouter 42.6K, EmbedLLM 326K" in row["published numbers"]
    assert "routerbench: SaveRouter 987K, EmbedLLM 326K" in row["measured numbers"]
    assert (row["published table"], row["here"]) == ("holds", "does not hold")


def test_notes_belong_to_the_test_that_took_them():
    note("nobody listens")
    with collected() as notes:
        with about("routerbench"), about(0.9):
            note("a 1", "b 2")
        note("c")
        note("c")
    assert notes == ["routerbench 0.9: a 1, b 2", "c"]


@pytest.mark.parametrize(("metric", "value", "text"), [
    ("sa_bep", 4878, "4.88K"), ("sa_bep", np.inf, "never"), ("cost_ratio", np.inf, "not reached"),
    ("cost_ratio", 0.4686, "0.469"),
    ("peak_score", 0.75004, "0.7500"), ("supervision", 1 / 3, "33%"), ("", "kNN", "kNN"),
])  # fmt: skip
def test_values_are_written_as_tables_write_them(metric, value, text):
    assert written(metric, value) == text


def test_large_numbers_are_short():
    assert [short(n) for n in (7, 999, 5263, 326_400, 999_600, 1.234e6, np.inf, np.nan)] == [
        "7", "999", "5.26K", "326K", "1M", "1.23M", "never", "–"]  # fmt: skip
