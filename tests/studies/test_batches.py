"""Batches of every size over splits, on small workloads: the runs are those of ``fit``, and differences are paired."""

import pandas as pd
import pytest

from saverouter.studies import batches
from saverouter.studies.batches import ANEW, EVERYWHERE, MEASURES, ONE, PASS, SIZES_AT_ONCE, TENTH, TRAINING

SEEDS = range(3)


@pytest.fixture(scope="module")
def table(large_and_small):
    return batches.batches_on_splits(large_and_small, SEEDS, draws=2)


def test_a_row_per_workload_split_draw_and_size(table):
    assert len(table) == 2 * 3 * 2 * 7 and not table.duplicated(["workload", "seed", "draw", "size"]).any()
    sizes = table.groupby(["workload", "size"])["batch"].first()
    assert sizes["small"].to_dict() == {ONE: 1, "8": 8, "32": 32, "128": 128, TENTH: 28, PASS: 280, ANEW: 1}
    assert sizes["recorded/other", "128"] == sizes["recorded/other", PASS] == 40  # no batch spans two passes
    assert table.groupby("workload")["live"].first().to_dict() == {"small": 28, "recorded/other": 4}
    assert (table["training"] > 0).all() and table["cost ratio"].between(0, 1).all()
    assert table["certified saving"].notna().eq(table["workload"] == "small").all()  # the other is too small for any


def test_what_was_computed_is_remembered(large_and_small, table, monkeypatch):
    monkeypatch.setattr(batches, "Retaught", None)  # nothing can be fitted any more
    pd.testing.assert_frame_equal(batches.batches_on_splits(large_and_small, SEEDS, draws=2), table)


def test_differences_are_paired(table):
    compared = batches.against_one_at_a_time(table).set_index(["workload", "size", "measure"])
    one = compared.xs(ONE, level="size")
    assert (one[["difference", "from", "to"]] == 0).all(axis=None)
    runs = table[table["workload"] == "small"].groupby(["size", "seed"])["cost ratio"].mean()
    row = compared.loc["small", "32", "cost ratio"]
    assert row["difference"] == pytest.approx((runs["32"] - runs[ONE]).mean()) and row["splits"] == 3
    assert row["from"] < row["difference"] < row["to"]
    both = compared.loc[[("small", "8", "reached"), ("recorded/other", "8", "reached")], "difference"]
    assert compared.loc[(EVERYWHERE, "8", "reached"), "difference"] == pytest.approx(both.mean())
    assert compared.loc[(EVERYWHERE, ONE, TRAINING), "mean"] == pytest.approx(1)
    assert ("recorded/other", "8", "certified saving") not in compared.index
    words = batches.batches_in_words(compared.reset_index())
    assert list(words.index) == [*SIZES_AT_ONCE, ANEW] and list(words) == [*MEASURES, TRAINING]
    assert " to " in words.loc["8", "reached"] and "(" not in words.loc[ONE, "reached"]


def test_the_finding_counts_losses():
    row = {"workload": EVERYWHERE, "mean": 0.5, "splits": 9}
    fine = [
        row | {"size": size, "measure": measure, "difference": 0.0, "from": -0.1, "to": 0.1}
        for size in (*SIZES_AT_ONCE, ANEW) for measure in (*MEASURES, TRAINING)
    ]  # fmt: skip
    assert batches.batches_finding(pd.DataFrame(fine)) == "None of 20 differences is a loss by their 95% intervals"
    worse = pd.DataFrame(fine)
    worse.loc[(worse["size"] == PASS) & (worse["measure"] == "cost ratio"), "from"] = 0.01  # dearer
    worse.loc[(worse["size"] == PASS) & (worse["measure"] == "reached"), "to"] = -0.01
    worse.loc[(worse["size"] == "8") & (worse["measure"] == "cost ratio"), "to"] = -0.01  # cheaper is no loss
    worse.loc[(worse["size"] == ANEW) & (worse["measure"] == "reached"), "to"] = -0.01  # nor is chance
    assert batches.batches_finding(worse) == "2 of 20 differences are losses by their 95% intervals"
