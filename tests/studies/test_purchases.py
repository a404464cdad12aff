"""Rules of buying at equal money, on small workloads: what a row holds, how runs are paired, and what may be said of them."""

import numpy as np
import pandas as pd
import pytest

from saverouter.paper.claims import FAILS, HOLDS, UNTOLD
from saverouter.studies import purchases
from saverouter.studies.purchases import ANCHORED, BELOW, CERTIFIED, EVERYWHERE, MEASURES, PAPER, RULES

SEEDS = range(3)


@pytest.fixture(scope="module")
def table(large_and_small):
    return purchases.purchases_on_splits(large_and_small, SEEDS)


def test_a_row_per_workload_split_draw_money_and_rule(table):
    assert len(table) == 2 * 3 * 2 * (5 + 2) and not table.duplicated(["workload", "seed", "draw", "k", "rule"]).any()
    assert set(table["rule"]) == set(RULES) and table[[BELOW, "on dear models"]].stack().between(0, 1).all()
    assert table[CERTIFIED].notna().eq(table["workload"] == "small").all()  # the other is too small for any


def test_no_rule_spends_more_than_the_paper_s(table):
    paid = table.pivot(index=["workload", "seed", "draw", "k"], columns="rule", values="training")
    share = paid.div(paid[PAPER], axis=0).stack().dropna()
    assert (share <= 1 + 1e-9).all() and share.xs("small").min() > 0.9  # the next outcome may not fit any more
    assert (table.loc[table["rule"] == ANCHORED, "on dear models"] == 0).all()


def test_fewer_queries_teach_where_so_many_are_asked_for(large_and_small):
    few = purchases.purchases_on_splits(large_and_small[:1], [0], money=(1,), train=40)
    assert set(few["queries"]) == {40} and (few["training"] > 0).all()
    by_size = purchases.enough_queries(large_and_small, SEEDS[:2], [40, 5_000])
    assert set(by_size["queries"]) == {40} and set(by_size["workload"]) == {"small", EVERYWHERE}


def made(gain=0.05, noise=0.0, seeds=20, tables=("a", "b", "c")) -> pd.DataFrame:
    """Runs in which anchored buying is better by so much, on every table."""
    rng, rows = np.random.default_rng(0), []
    for name in tables:
        for seed in range(seeds):
            for draw in range(2):
                for k in (1, 2):
                    for rule in RULES:
                        value = 0.3 + gain * (rule == ANCHORED) - 0.02 * (rule == "random") + rng.normal(0, noise)
                        rows.append({"workload": name, "seed": seed, "draw": draw, "k": k, "rule": rule, "queries": 500,
                                     "training": 100.0, "certificate": 200.0, **dict.fromkeys(MEASURES, value)})  # fmt: skip
    return pd.DataFrame(rows)


def test_differences_are_paired_and_workloads_count_alike():
    table = made(noise=0.01)
    shifted = table.assign(**{CERTIFIED: table[CERTIFIED] + 0.1 * table["seed"]})  # a split's level cancels
    for runs in (table, shifted):
        found = purchases.against_the_paper(runs).set_index(["workload", "k", "rule", "measure"])
        row = found.loc[EVERYWHERE, 1, ANCHORED, CERTIFIED]
        assert row["difference"] == pytest.approx(0.05, abs=0.01) and row["from"] > 0.03 and row["tables from"] > 0.03
        each = [found.loc[name, 1, ANCHORED, CERTIFIED]["difference"] for name in "abc"]
        assert row["difference"] == pytest.approx(np.mean(each))
    by_hand = table[(table["workload"] == "a") & (table["k"] == 1)].groupby(["rule", "seed"])[CERTIFIED].mean()
    assert each[0] == pytest.approx((by_hand[ANCHORED] - by_hand[PAPER]).mean())


def test_tables_that_disagree_widen_the_interval_over_tables():
    good, bad = made(0.1, 0.01, tables=("a",)), made(-0.1, 0.01, tables=("b",))
    row = purchases.against_the_paper(pd.concat([good, bad]), [CERTIFIED]).query("workload == @EVERYWHERE and k == 1")
    row = row.set_index("rule").loc[ANCHORED]
    assert row["to"] - row["from"] < 0.03 and row["tables to"] - row["tables from"] > 0.15


@pytest.mark.parametrize("gain, answer", [(0.05, HOLDS), (-0.05, FAILS), (0.0, UNTOLD)])
def test_statements_can_hold_fail_and_stay_open(gain, answer):
    table = purchases.with_bills(made(gain, 0.02))
    bills = [purchases.bill_over(horizon) for horizon in purchases.HORIZONS]
    said = purchases.about_buying(purchases.against_the_paper(table, [*MEASURES, *bills]))
    about = said.index.str.startswith(("Anchored", "It raises"))
    assert set(said.loc[about, "here"]) == {answer}
    assert said.loc["The paper's rule certifies more saving than random, at equal money", "here"] == HOLDS


def test_a_bill_is_supervision_certificate_and_serving():
    bill = purchases.with_bills(made(0.0), [1_000])[purchases.bill_over(1_000)]
    np.testing.assert_allclose(bill[made(0.0)["rule"] == PAPER], 0.1 + 0.2 + 0.7)


def test_one_draw_is_compared_with_itself():
    apart = purchases.draws_apart(made(0.05, 0.02)).set_index(["compared", "workload"])
    itself = apart.loc["the paper's rule against itself", EVERYWHERE]
    assert itself["from"] < 0 < itself["to"] and abs(itself["mean"]) < 0.01
    alone = apart.loc[[f"anchored, draw {draw} alone" for draw in (1, 2)]].xs(EVERYWHERE, level="workload")["mean"]
    both = purchases.against_the_paper(made(0.05, 0.02), [CERTIFIED]).set_index(["workload", "rule", "k"])
    assert alone.mean() == pytest.approx(both.loc[EVERYWHERE, ANCHORED, 1]["difference"])


def test_why_and_words(large_and_small, table):
    traits = purchases.why(table, large_and_small)
    assert set(traits.index) == {"small", "recorded/other"} and np.isnan(traits.loc["recorded/other", "difference"])
    assert (traits["cheaper than the reference"] < traits["models"]).all() and (
        traits["training queries"] == [280, 40]
    ).all()
    words = purchases.rules_in_words(purchases.against_the_paper(table), 1)
    assert (
        list(words.index) == list(RULES)
        and "(" not in words.loc[PAPER, CERTIFIED]
        and "to" in words.loc[ANCHORED, CERTIFIED]
    )


def test_what_was_computed_is_remembered(large_and_small, table, monkeypatch):
    monkeypatch.setattr(purchases, "Retaught", None)  # nothing can be taught any more
    pd.testing.assert_frame_equal(purchases.purchases_on_splits(large_and_small, SEEDS), table)


def test_words_of_draws_and_reasons(large_and_small, table):
    apart = purchases.draws_apart(made(0.05, 0.02))
    told = purchases.draws_in_words(apart)
    first = apart.iloc[0]
    assert told.loc[first["workload"], first["compared"]].startswith(f"{first['mean']:+.3f} ({first['from']:+.3f} to")
    reasons = purchases.why_in_words(purchases.why(table, large_and_small))
    assert reasons.loc["recorded/other", "gain in certified saving"] == "too few queries"
    assert reasons["paper's money on dearer models"].str.endswith("%").all()
