"""Studies over splits and the traits of workloads, on small ones."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

from saverouter.studies import splits, traits

SEEDS = range(3)


@pytest.fixture(scope="module")
def works(cache):
    return [make_workload(n=300, seed=2), replace(make_workload(n=260, models=3, seed=3), name="recorded/other")]


@pytest.fixture(scope="module")
def table(works):
    return splits.routers_on_splits(splits.runs_on_splits(works, SEEDS, "smoke", ("knn", "saverouter")))


def test_a_row_per_workload_split_router_and_margin(table):
    assert len(table) == 2 * 3 * 2 * 2
    assert not table.duplicated(["workload", "seed", "method", "margin"]).any()
    ours = table[table["method"] == "SaveRouter"]
    assert (ours["supervision_cost"] < ours["dense_cost"]).all()  # a third of the pool
    dense = table[table["method"] == "kNN"]
    assert np.allclose(dense["supervision_cost"], dense["dense_cost"])


def test_a_point_less_never_costs_more(table):
    wide = table.pivot(index=["workload", "seed", "method"], columns="margin", values="cost_ratio")
    assert (wide[1.0] <= wide[0.0]).all()


def test_over_splits_counts_what_is_not_reached():
    frame = pd.DataFrame({"w": "x", "value": [1.0, 2.0, 2.0, 3.0, np.inf]})
    row = splits.over_splits(frame, "value", ["w"]).iloc[0]
    assert (row["splits"], row["reached"], row["mean"]) == (5, 4, 2.0)
    assert row["from"] < 2 < row["to"] and row["median"] == 2 and row["late"] == 3
    few = splits.over_splits(frame[1:], "value", ["w"]).iloc[0]
    assert few["reached"] == 3 and np.isnan(few["from"])  # three values have no interval worth drawing
    nothing = splits.over_splits(frame.assign(value=np.inf), "value", ["w"]).iloc[0]
    assert nothing["reached"] == 0 and np.isinf(nothing["median"]) and np.isnan(nothing["mean"])


def test_no_router_beats_the_oracle_and_each_has_a_single_model_beside_it(works):
    found = splits.ceilings_on_splits(works, SEEDS)
    assert len(found) == 2 * 3 * 2
    assert (found["oracle"] <= found[["router", "dense", "single"]].min(axis=1) + 1e-12).all()
    assert (found.loc[found["margin"] == 0, "single"] <= 1 + 1e-12).all()


def test_budgets_end_with_everything(works):
    found = splits.budgets_on_splits(works, SEEDS)
    for work in works:
        ours = found[(found["workload"] == work.name) & (found["variant"] == "SaveRouter")]
        assert ours["k"].max() == len(work.models) and ours.loc[ours["is_third"], "k"].unique().size == 1
        last = found[(found["workload"] == work.name) & (found["k"] == len(work.models))]
        assert (
            last.groupby("seed")["supervision_cost"].agg(np.ptp) < 1e-9
        ).all()  # then it does not matter how one buys


def test_tables_in_words(table):
    ratio, paid = (
        splits.over_splits(table, value, ["workload", "margin", "method"]) for value in ("cost_ratio", "sa_bep")
    )
    wide = splits.routers_in_words(ratio[ratio["margin"] == 0], paid[paid["margin"] == 0])
    assert list(wide.columns) == ["small", "recorded/other"] and set(wide.index) == {"kNN", "SaveRouter"}
    assert wide.stack().str.contains("of 3").all()
    firsts = splits.first_on_each_split(table)
    assert firsts.sum().eq(3).all()


def test_traits_are_those_of_the_table():
    work = make_workload(n=600, seed=5)
    found = traits.traits(work)
    assert found["price spread"] > 5 and found["disagreement"] > 0 and 0 < found["predictability"] < 1
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(work))
    luck = traits.traits(replace(work, quality=work.quality[shuffled], cost=work.cost[shuffled]))
    assert abs(luck["predictability"]) < found["predictability"] / 2  # who is right no longer hangs on the prompt
    same = replace(work, quality=np.repeat(work.quality[:, :1], len(work.models), axis=1))
    flat = traits.traits(same)
    assert flat["disagreement"] == flat["quality spread"] == flat["predictability"] == 0
