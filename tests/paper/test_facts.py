"""Published facts beside loaded ones, the two published settings, and notebooks on original data."""

import numpy as np
import pandas as pd

import saverouter as sr
from saverouter.files import data_folder
from saverouter.paper import facts


def spoken_for(work: sr.Workload, name: str, monkeypatch) -> pd.DataFrame:
    """The checklist of a workload against its own facts, as if these had been published to two decimals."""
    found = facts.aggregates(work, passes=2)
    wanted = [
        "queries",
        "train queries",
        "groups",
        "dense supervision cost",
        "acquisition cost K=1",
        "acquisition cost K=2",
    ]
    rows = [(name, fact, f"{found[fact]:.2f}", "", "", "paper: a table") for fact in wanted]
    rows.append(
        (name, "best single quality", "0.5", str(found["best single quality"] - 1e-3), "1", "derived: interval")
    )
    rows.append((name, "best single cost", f"{found['best single cost'] * 1.004}", "", "", "derived: from accounting"))
    table = pd.DataFrame(rows, columns=["benchmark", "aggregate", "value", "low", "high", "source"])
    monkeypatch.setattr(facts.pd, "read_csv", lambda *given, **named: table)
    return facts.checklist(work)


def test_a_workload_agrees_with_its_own_facts(work, monkeypatch):
    table = spoken_for(work, "small", monkeypatch)
    assert table["agrees"].all() and (table["explanation"] == "").all()
    assert (
        facts.in_words(pd.concat({"small": table}, names=["benchmark"]))
        == "8 of 8 published facts agree with the loaded data"
    )


def test_another_order_of_rows_is_noticed(work, monkeypatch):
    """The split depends on it, and so does every cost."""
    spoken_for(work, "small", monkeypatch)
    table = facts.checklist(work.take(np.arange(len(work))[::-1]))
    assert table.loc["queries", "agrees"] and not table.loc["dense supervision cost", "agrees"]
    assert not table.loc["acquisition cost K=1", "agrees"]
    told = facts.in_words(pd.concat({"small": table}, names=["benchmark"]))
    assert "not explained" in told and "small dense supervision cost" in told


def test_published_facts_are_complete():
    """Section by section: sizes, best single model, dense supervision, and purchases at every published K below all."""
    facts = pd.read_csv(data_folder() / "published" / "aggregates.csv").groupby("benchmark")["aggregate"].apply(set)
    budgets = pd.read_csv(data_folder() / "published" / "k_scaling.csv").groupby("benchmark")["k"].apply(list)
    for name, ks in budgets.items():
        dense = [] if name == "mmrbench" else [max(ks)]
        assert {f"acquisition cost K={k}" for k in ks if k not in dense} <= facts[name]
        assert {"queries", "train queries", "test queries", "models", "groups", "available train pairs"} <= facts[name]
        assert {"best single quality", "best single cost", "dense supervision cost"} <= facts[name]
