"""Experiments are computed once; tables and figures are functions of results; the README's examples run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.files import Busy
from saverouter.paper import paper_options
from saverouter.studies import designs, experiments, runs

ROOT = Path(__file__).resolve().parents[2]


def test_an_experiment_is_computed_once(own_cache, monkeypatch):
    work = make_workload(n=800, seed=4)
    first = experiments.run(work, "saverouter", k=2)
    monkeypatch.setattr(runs, "evaluate", None)  # nothing may be computed again
    again = experiments.run(make_workload(n=800, seed=4), "saverouter", k=2)
    assert again.result.metrics() == first.result.metrics() and again.supervision_share == first.supervision_share
    assert again.result.verdict() == first.result.verdict()
    pd.testing.assert_frame_equal(again.result.frontier, first.result.frontier)
    for other in ({"k": 3}, {"k": 2, "seed": 7}, {"k": 2, "train": 0.3}, {"k": 2, "split_seed": 1}):
        with pytest.raises(TypeError):
            experiments.run(work, "saverouter", **other)


def test_a_changed_router_is_computed_again(own_cache, monkeypatch):
    """Its own file counts, other routers' files do not; a router without readable source is never remembered."""
    from saverouter.routers import ROUTERS

    files = {name: runs.code_of(kind) for name, kind in ROUTERS.items()}
    changed = ROOT / "saverouter" / "routers" / "knn.py"
    real = runs.code_version.__wrapped__

    def after_a_change(without=frozenset()):
        return real(without) + ("" if changed in without else " changed")

    monkeypatch.setattr(runs, "code_version", after_a_change)
    assert {name for name, kind in ROUTERS.items() if runs.code_of(kind) != files[name]} == {"knn"}
    names = {"sr": sr, "np": np}
    exec("class Made(sr.ROUTERS['knn']):\n    label = 'made'", names)
    monkeypatch.setitem(ROUTERS, "made", names["Made"])
    experiments.run(make_workload(n=100), "made")
    assert not (own_cache / "runs").exists()
    monkeypatch.setitem(ROUTERS, "own", OwnRouter)
    assert runs.code_of(OwnRouter) not in {None, files["knn"]}


def test_what_another_encoder_found_is_not_recalled(monkeypatch):
    """Unless the workload brings its vectors, and nothing has to be encoded."""
    plain, own = make_workload(with_vectors=False), make_workload()
    keys = [runs.RunKey.of(work, "knn") for work in (plain, own)]
    monkeypatch.setenv("SAVEROUTER_ENCODER", "torch")
    others = [runs.RunKey.of(work, "knn") for work in (plain, own)]
    assert [key.digest == other.digest for key, other in zip(keys, others, strict=True)] == [False, True]
    with pytest.raises(sr.SaveRouterError, match="another saverouter than you do, or another encoder"):
        runs.attempt(plain, keys[0], wait=True)


class OwnRouter(sr.ROUTERS["knn"]):
    """A user's router, in a file."""


def test_profiles_cap_workloads():
    assert len(experiments.workload("paretobandit", "smoke")) == 1_500
    assert len(experiments.workload("paretobandit", "standard")) == 3_609
    assert len(experiments.workload("simulated/llmrouterbench", "standard")) == 12_446
    assert len(experiments.workload("simulated/routerbench", "standard")) == 12_500
    assert len(experiments.workload("simulated/routereval", "smoke")) == 600
    with pytest.raises(sr.SaveRouterError, match="profile"):
        experiments.workload("paretobandit", "large")


def test_what_a_profile_leaves_out_is_said(monkeypatch):
    said, whole = [], make_workload(n=1_700, seed=1)
    monkeypatch.setattr(experiments, "load", lambda name: whole)
    monkeypatch.setattr(experiments, "say", said.append)
    part = experiments.workload("my.csv", "smoke")
    told = "1,700 queries, of which 1,500 drawn at random for profile smoke"
    assert len(part) == 1_500 and part.provenance == (*whole.provenance, told) and said == [f"small: {told}"]
    assert experiments.workload("my.csv", "standard") is whole and len(said) == 1


def test_where_no_single_model_is_as_good_none_is_named(own_cache):
    work = make_workload(n=300, models=3)
    done = experiments.run(work, "saverouter", k=2)
    alone = designs.singles({"small": work})
    (row,) = designs.without_router({"small": done}, alone.assign(quality=0.0), margins=[0.0]).to_dict("records")
    assert row["cheapest single model"] == "none" and row["its cost ratio"] == np.inf


def test_published_settings():
    ridge = {name: paper_options(sr.load(f"simulated/{name}", size=200)) for name in
             ("llmrouterbench", "mixinstruct", "routerbench")}  # fmt: skip
    assert [ridge[name]["residual_ridge"] for name in ridge] == [200, 100, 100]
    assert [ridge[name]["grouping"] for name in ridge] == ["auto", "global", "auto"]


def test_recovery_is_the_share_from_which_on_the_score_stays():
    curve = pd.DataFrame(
        {"router": "r", "seed": 0, "supervision": [0.1, 0.2, 0.5, 1.0], "peak_score": [0.995, 0.9, 0.991, 1.0]}
    )
    assert designs.recovery(curve)["r"] == 0.5
    assert designs.recovery(curve.assign(peak_score=1.0))["r"] == 0.1


def test_saturation_covers_the_papers_routers_and_ours(own_cache):
    curve = designs.saturation(make_workload(n=300), [0.2, 1.0], seeds=(1, 2))
    assert len(curve) == 12 and set(curve["router"]) == {"EmbedLLM", "kNN", "SaveRouter"}
    assert curve.groupby("router")["supervision"].max().eq(1).all()


def test_what_another_process_computes_is_left_for_last(own_cache, monkeypatch):
    works, asked = {"one": make_workload(n=100, seed=1), "two": make_workload(n=100, seed=2)}, []

    def busy_once(work, task, wait):
        asked.append((work is works["one"], task.router, wait))
        if not wait and task.router == "knn" and work is works["one"]:
            raise Busy
        return work, task.router

    monkeypatch.setattr(runs, "once", busy_once)
    monkeypatch.setattr(experiments, "keep", lambda task, done: None)
    found = experiments.main_runs(works, routers=("knn", "uniroute"))
    assert found == {key: {"kNN": (work, "knn"), "UniRoute": (work, "uniroute")} for key, work in works.items()}
    assert asked[0] == (True, "knn", False) and asked[-1] == (True, "knn", True) and len(asked) == 5
