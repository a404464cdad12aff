"""Notebooks 00 and 11 on tables that differ from the default: cells run, and what they say is true of any data."""

import contextlib
import io
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from conftest import EASY_AND_HARD, by_kind, make_workload

from saverouter.encoders import minilm
from saverouter.studies import experiments
from saverouter.workbook import notebooks

matplotlib.use("Agg")
QUICKSTART, DECISION = notebooks.select(["00", "11"])
FEW = make_workload(n=60, models=3, seed=2)


def same(work, quality=None, cost=None, **changes):
    """The workload with one quality or cost per model."""
    every = {"quality": quality, "cost": cost}
    every = {kind: np.tile(np.array(values, float), (len(work), 1)) for kind, values in every.items() if values}
    return replace(work, **every, **changes)


def misleading(work):
    """The best model fails on every query that the router learns from."""
    learnt = np.isin(work.query_ids, work.split(train=0.2, seed=42)[0].query_ids)
    return replace(
        work, quality=np.column_stack([np.full(len(work), 0.4), np.full(len(work), 0.5), np.where(learnt, 0, 1)])
    )


TABLES = {
    "no task column": replace(FEW, tasks=None),
    "missing pairs": make_workload(n=150, models=4, missing=0.4),
    "two models": make_workload(n=150, models=2),
    "one model": make_workload(n=60, models=1),
    "fifty models": make_workload(n=120, models=50),
    "60 queries": FEW,
    "a free model": same(FEW, cost=[0, 1, 100]),
    "the best model is free": same(FEW, cost=[5, 1, 0], quality=[0.2, 0.5, 0.9]),
    "all models are free": same(FEW, cost=[0, 0, 0]),
    "one model dominates": same(FEW, quality=[0.2, 0.9, 0.5], cost=[3, 1, 9]),
    "all equal": same(FEW, quality=[1, 1, 1]),
    "nothing right": same(FEW, quality=[0, 0, 0]),
    "dear in its unit": same(FEW, cost=[1e5, 1e6, 1e7]),
    "cheap in its unit": same(FEW, cost=[1e-9, 1e-8, 1e-7]),
    "never reached": misleading(FEW),
}


def one_model_a_query(work):
    """As in a log of production."""
    asked = np.arange(len(work))[:, None] % len(work.models) == np.arange(len(work.models))
    return replace(work, **{kind: np.where(asked, getattr(work, kind), np.nan) for kind in ("quality", "cost")})


LARGE = {
    "a router": by_kind(EASY_AND_HARD, (0.001, 0.01), n=4_000),
    "one cheaper model": by_kind([[0.5, 0.97, 0.97]] * 2, (0.0001, 0.001, 0.01), n=3_000, tasks=None),
    "a log": one_model_a_query(make_workload(n=400, models=3)),
    "gaps": make_workload(n=500, models=4, missing=0.2),
    "five queries": make_workload(n=5, models=2),
}


def run(work, monkeypatch, path=QUICKSTART, **settings):
    """What a notebook printed on a workload, and its names afterwards."""
    import matplotlib.pyplot as plt

    monkeypatch.setattr(experiments, "workload", lambda *_, **__: work)
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in notebooks.read_notebook(path).cells:
            if cell.cell_type == "code" and "watermark()" not in cell.source:
                names.update(settings)  # the parameters cell comes before what reads them
                exec(compile(cell.source.replace("plt.show()", "titles = [*globals().get('titles', []), title]")
                             if "title = " in cell.source else cell.source, cell.id, "exec"), names)  # fmt: skip
    plt.close("all")
    return printed.getvalue(), names


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_quickstart_runs_on_any_valid_table(kind, monkeypatch, own_cache):
    printed, names = run(TABLES[kind], monkeypatch)
    assert "all checks hold" in printed and "inf%" not in printed and "nan" not in printed
    assert len(names["titles"]) == 2 and not [title for title in names["titles"] if "inf" in title or "nan" in title]
    saves = np.isfinite(names["result"].sa_bep)
    assert saves or "only a router can save" not in printed
    if kind == "the best model is free":
        assert names["titles"][0] == "The best single model is free" and not saves
    if kind == "never reached":
        assert names["result"].operating_point is None and "does not reach" in printed
    if kind == "no task column":
        assert "no task labels" in printed


@pytest.mark.parametrize("kind", [*TABLES, *LARGE])
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive", "error:Tight layout not applied")
def test_the_decision_runs_on_any_valid_table(kind, monkeypatch, own_cache):
    asked = {"halves": 2, "margin": 2.0, "monthly": 10_000, "reference": "m2" if kind == "one cheaper model" else None}
    printed, names = run((TABLES | LARGE)[kind], monkeypatch, DECISION, **asked)
    assert "all checks hold" in printed and "nan" not in printed and str(names["found"]) in printed
    titles = names["titles"]
    assert len(titles) >= 3 and not [title for title in titles if "inf" in title or "nan" in title]
    expected = {"a router": "route", "one cheaper model": "replace", "a log": "no answer", "five queries": "no answer"}
    assert names["found"].action == expected.get(kind, names["found"].action)
    if names["found"].action == "no answer":
        assert "No answer: " in printed and names["other"]["saved"].eq(0).all()
        assert "The data cannot carry an answer" in titles


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_quickstart_encodes_a_prompt_once(monkeypatch, own_cache):
    """What a service routes is not kept: of six thousand prompts, the test was encoded five times over, for ten minutes."""
    asked = []

    def stand_in(name, prompts):
        asked.extend(prompts)
        vectors = np.array([[len(prompt), sum(map(ord, prompt)), *[1] * 382] for prompt in prompts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    monkeypatch.setattr(minilm, "_encode", stand_in)
    work = make_workload(n=150, models=3, with_vectors=False)
    run(work, monkeypatch)
    assert sorted(asked) == sorted(set(work.prompts))


def test_costs_are_dollars_only_where_the_data_say_so(monkeypatch, own_cache):
    drawn = {}
    for unit, provenance in {"saved, net": (), "dollars": ("recorded rewards and USD costs",)}.items():
        _, names = run(replace(FEW, provenance=provenance), monkeypatch)
        drawn[unit] = names["figures"].payback(names["both"], dollars=names["dollars"]).get_ylabel()
    assert "dollars" in drawn["dollars"] and "dollars" not in drawn["saved, net"]


def test_a_sampled_table_says_so(monkeypatch, own_cache):
    told = "22,222 queries, of which 12,500 drawn at random for profile standard"
    assert told in run(replace(FEW, provenance=("read from my.csv", told)), monkeypatch)[0].splitlines()
