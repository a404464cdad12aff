"""Tables: measured beside published, as the paper prints them."""

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.paper import claims, paper_options, published
from saverouter.studies import runs
from saverouter.workbook import tables


def test_tables_put_the_published_number_beside_the_measured_one(made):
    table = tables.beside_published("routerbench", made)
    assert table.shape == (11, 9) and list(table.index) == list(made)
    assert table.loc["SaveRouter", ("cost ratio", "published")] == 0.6810
    for label, done in made.items():
        assert table.loc[label, ("peak score", "measured")] == done.result.peak_score
    few = tables.beside_published("routerbench", {"kNN": made["kNN"]})
    assert few.drop("kNN").xs("measured", axis=1, level=1).isna().all(axis=None)
    html = tables.pretty(table, "a caption").data
    assert (
        "42.6K" in html and ">never<" in html and ">not reached<" in html and "inf" not in html and "a caption" in html
    )
    assert html == tables.pretty(table, "a caption").data
    assert tables.measured(made).loc["kNN", "bought"] == 1


def test_tables_name_what_differs_from_the_publication(made):
    notes = tables.measured(made)["notes"]
    assert notes["kNN"] == notes["SaveRouter"] == ""
    assert {label for label in made if "reconstructed" in notes[label]} == {"WISERouter", "BaRP", "SemiRouter"}
    assert "epochs 20 instead of 300" in notes["RMSoftmax"] and "minibatch" in notes["RMSoftmax"]
    assert "epochs 20 instead of 300" in tables.pretty(tables.beside_published("routerbench", made)).data
    work = make_workload(n=100)
    assert "epochs" not in runs.deviations("rmsoftmax", sr.make_router("rmsoftmax").get_params(), work)
    changed = sr.make_router("saverouter", **paper_options(work, k=2)).get_params()
    assert runs.deviations("saverouter", changed, work) == "k 2 instead of 4"


def test_the_synthetic_point_stands_beside_what_was_measured(made):
    table = tables.synthetic_point("mmrbench", made)
    assert (table["with the synthetic point"] <= table["cost ratio"]).all()
    assert table.loc["SaveRouter", "cost ratio"] == table.loc["SaveRouter", "with the synthetic point"]
    assert table.loc["EmbedLLM", "published"] == 1
    capped = table["cost ratio"] != table["with the synthetic point"]
    assert (table.loc[capped, "with the synthetic point"] == 1).all()


def test_charges_are_shares_of_dense_supervision(made):
    table = tables.supervision("llmrouterbench", made)
    dense = made["kNN"].result.supervision_cost
    assert table.loc[("WISERouter", "fresh"), "charged in the paper"] == pytest.approx(29.2 / 333.01)
    barp = made["BaRP"]
    assert table.loc[("BaRP", "fresh"), "charged here"] == pytest.approx(barp.result.supervision_cost / dense)
    assert table.loc[("BaRP", "cached"), "charged here"] == pytest.approx(barp.cached.supervision_cost / dense)
    assert barp.interactions == 100 * 160 and barp.cached.supervision_cost < barp.result.supervision_cost
    assert barp.cached.cost_ratio == barp.result.cost_ratio
    assert len(table) == 4


def test_beside_matches_rows_by_their_keys():
    paper = published("k_scaling")
    here = paper[paper["k"] != 1].iloc[::-1].assign(peak_score=0.5).drop(columns="sa_cr")
    table = tables.beside(here, paper, ["benchmark", "k"])
    assert table.loc[("routerbench", 8), ("peak score", "measured")] == 0.5
    assert table.loc[("routerbench", 8), ("peak score", "published")] == 0.809269
    assert ("bill over 1M", "measured") not in table and len(table) == 26
    other = tables.beside(here.query("benchmark == 'mmrbench'").assign(benchmark="mine"), paper, ["benchmark", "k"])
    assert other["peak score", "published"].isna().all()
    html = tables.pretty(
        tables.beside(here.query("benchmark == 'mmrbench'"), paper.query("benchmark == 'mmrbench'"), ["k"])
    ).data
    assert "0.754" in html and "18.2K" in html


def test_targets_are_printed_as_in_the_paper():
    paper = published("quality_targets").query("benchmark == 'mixinstruct'")
    entries = tables.by_target(paper)
    assert entries.loc["SaveRouter", "90%"] == "0.500 / 158K / 0.579"
    assert entries.loc["TRouter", "100%"] == "1.000 / never" and list(entries.index[:2]) == ["EmbedLLM", "kNN"]
    first = tables.leaders(paper, "sa_bep")
    assert first["mixinstruct", 0.9] == "WISERouter" and first["mixinstruct", 1.0] == "SaveRouter"
    assert set(tables.leaders(paper.assign(sa_bep=np.inf), "sa_bep")) == {"nobody"}


def test_a_winner_is_marked_only_where_there_is_one():
    table = pd.DataFrame(
        {"cost ratio": [1.0, 1.0, np.inf], "pays back after": [5_263, 9_000, np.inf]}, index=list("abc")
    )
    html = tables.pretty(table, key="t").data
    assert "#T_t_row0_col1 {" in html and "font-weight: bold" in html
    assert not any(f"#T_t_row{row}_col0" in html.partition("</style>")[0] for row in range(3))
    twice = tables.pretty(table.assign(**{"pays back after": 5_263.0}), key="t").data
    assert "row0_col1" not in twice.partition("</style>")[0]


def test_text_in_a_column_of_numbers_is_written_as_it_is():
    shown = tables.pretty(pd.DataFrame({"points above": ["0.1 (<b>)", 0.25], "bought": ["half", 0.5]}))
    assert all(text in shown.data for text in ("0.1 (&lt;b&gt;)", ">0.2<", ">half<", ">50%<"))


def test_names_stay_text_and_tables_fold():
    hostile = pd.DataFrame({"model": ["<script>alert(1)</script>"]}, index=["<b>x</b>"])
    html = tables.folded("Show <it>", tables.pretty(hostile, "a <caption>")).data
    assert "<script" not in html and "<b>x" not in html and "&lt;script&gt;" in html
    assert html.startswith("<details") and "Show &lt;it&gt;" in html and "a &lt;caption&gt;" in html


def test_frontiers_hold_what_a_bill_is_made_of(made):
    table = tables.frontiers({"mine": {"SaveRouter": made["SaveRouter"], "kNN": made["kNN"]}})
    for label, points in table.groupby("router"):
        result = made[label].result
        assert len(points) == len(result.frontier) and set(points["workload"]) == {"mine"}
        assert (points["reference_part"] <= points["cost"] + 1e-12).all()
        assert set(points["supervision_cost"]) == {result.supervision_cost}


def test_statements_that_fail_stand_out():
    table = claims.judge("hyperparameters", published("hyperparameters").assign(peak_score=0.5))
    html = tables.judged(table).data
    assert "does not hold" in html and html.count("font-weight: bold") >= 1
    holds = claims.judge("hyperparameters", published("hyperparameters"))
    assert "font-weight: bold" not in tables.judged(holds).data


def test_money_is_read_in_any_unit():
    amounts = [9.891, 0.0, 0.1, 1234.5, 296e6, -12_345, 0.00012345, float("inf"), float("nan")]
    written = ["9.89", "0.00", "0.10", "1,234.50", "296M", "-12.3K", "0.00012", "–", "–"]
    assert list(map(tables.amount, amounts)) == written
