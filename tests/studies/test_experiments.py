"""Experiments are computed once; tables and figures are functions of results; the README's examples run."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from conftest import make_workload
from test_workload import long_frame

import saverouter as sr
from saverouter import experiments, plots, runs, show
from saverouter.cache import Busy
from saverouter.published import main_results

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every router of Table 1 on a small workload."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAVEROUTER_CACHE", str(tmp_path_factory.mktemp("cache")))
        return experiments.main_runs({"small": make_workload(n=800, seed=4)}, "smoke")["small"]


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


def test_published_settings():
    ridge = {name: experiments.paper_options(sr.load(f"simulated/{name}", size=200)) for name in
             ("llmrouterbench", "mixinstruct", "routerbench")}  # fmt: skip
    assert [ridge[name]["residual_ridge"] for name in ridge] == [200, 100, 100]
    assert [ridge[name]["grouping"] for name in ridge] == ["auto", "global", "auto"]


def test_recovery_is_the_share_from_which_on_the_score_stays():
    curve = pd.DataFrame(
        {"router": "r", "seed": 0, "supervision": [0.1, 0.2, 0.5, 1.0], "peak_score": [0.995, 0.9, 0.991, 1.0]}
    )
    assert experiments.recovery(curve)["r"] == 0.5
    assert experiments.recovery(curve.assign(peak_score=1.0))["r"] == 0.1


def test_saturation_covers_the_papers_routers_and_ours(own_cache):
    curve = experiments.saturation(make_workload(n=300), [0.2, 1.0], seeds=(1, 2))
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


def test_tables_put_the_published_number_beside_the_measured_one(made):
    table = show.beside_published("routerbench", made)
    assert table.shape == (11, 9) and list(table.index) == list(made)
    assert table.loc["SaveRouter", ("CR", "published")] == 0.6810
    for label, done in made.items():
        assert table.loc[label, ("P_s", "measured")] == done.result.peak_score
    few = show.beside_published("routerbench", {"kNN": made["kNN"]})
    assert few.drop("kNN").xs("measured", axis=1, level=1).isna().all(axis=None)
    html = show.pretty(table, "a caption").data
    assert "42.6K" in html and ">inf<" in html and "a caption" in html
    assert html == show.pretty(table, "a caption").data
    assert show.measured(made).loc["kNN", "bought"] == 1


def test_tables_name_what_differs_from_the_publication(made):
    notes = show.measured(made)["notes"]
    assert notes["kNN"] == notes["SaveRouter"] == ""
    assert {label for label in made if "reconstructed" in notes[label]} == {"WISERouter", "BaRP", "SemiRouter"}
    assert "epochs 20 instead of 300" in notes["RMSoftmax"] and "minibatch" in notes["RMSoftmax"]
    assert "epochs 20 instead of 300" in show.pretty(show.beside_published("routerbench", made)).data
    work = make_workload(n=100)
    assert "epochs" not in runs.deviations("rmsoftmax", sr.make_router("rmsoftmax").get_params(), work)
    changed = sr.make_router("saverouter", **experiments.paper_options(work, k=2)).get_params()
    assert runs.deviations("saverouter", changed, work) == "k 2 instead of 4"


def test_the_synthetic_point_stands_beside_what_was_measured(made):
    table = show.synthetic_point("mmrbench", made)
    assert (table["CR with the synthetic point"] <= table["CR"]).all()
    assert table.loc["SaveRouter", "CR"] == table.loc["SaveRouter", "CR with the synthetic point"]
    assert table.loc["EmbedLLM", "CR published"] == 1
    capped = table["CR"] != table["CR with the synthetic point"]
    assert (table.loc[capped, "CR with the synthetic point"] == 1).all()


def test_charges_are_shares_of_dense_supervision(made):
    table = show.supervision("llmrouterbench", made)
    dense = made["kNN"].result.supervision_cost
    assert table.loc[("WISERouter", "fresh"), "charged in the paper"] == pytest.approx(29.2 / 333.01)
    barp = made["BaRP"]
    assert table.loc[("BaRP", "fresh"), "charged here"] == pytest.approx(barp.result.supervision_cost / dense)
    assert table.loc[("BaRP", "cached"), "charged here"] == pytest.approx(barp.cached.supervision_cost / dense)
    assert barp.interactions == 100 * 160 and barp.cached.supervision_cost < barp.result.supervision_cost
    assert barp.cached.cost_ratio == barp.result.cost_ratio
    assert len(table) == 4


def test_figures_show_what_they_are_given(made):
    matplotlib.use("Agg")
    results = {name: made[name].result.at(target=0.9) for name in ("SaveRouter", "kNN")}
    ax = plots.payback(results, volume=10_000)
    assert {text.get_text() for text in ax.texts} == {"SaveRouter", "kNN"}
    line = ax.lines[0]
    expected = (
        results["SaveRouter"].net_saving(line.get_xdata()) / (results["SaveRouter"].reference.cost * 10_000) * 100
    )
    np.testing.assert_allclose(line.get_ydata(), expected)
    unreached = plots.payback({"never": results["kNN"].at(target=9)})
    assert "target not reached" in unreached.get_legend().get_texts()[0].get_text()
    assert len(plots.frontier(results).lines) >= 4
    everyone = plots.frontier({name: done.result for name, done in made.items()}, lines=("SaveRouter",))
    assert len(everyone.get_legend().get_texts()) == 12
    drawn = [line for line in everyone.lines if len(line.get_xdata()) > 2]
    assert len(drawn) == 1 and drawn[0].get_label() == "SaveRouter"
    assert [plots.short(x) for x in (5263, 1.23e6, 12, np.inf)] == ["5.3K", "1.23M", "12", "inf"]


def test_the_readmes_examples_run(tmp_path, monkeypatch):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    own_data, own_router = re.findall(r"```python\n(.*?)```", readme, re.S)
    monkeypatch.chdir(tmp_path)
    long_frame(make_workload(n=200)).to_csv("my_outcomes.csv", index=False)
    names = {}
    exec(own_data, names)
    assert names["result"].peak_score > 0
    monkeypatch.setattr(sr, "ROUTERS", dict(sr.ROUTERS))
    exec(own_router, names)
    train, test = names["train"], names["test"]
    feedback = train.feedback()
    router = names["GlobalMean"]().fit(train.queries, feedback)
    result = sr.evaluate(router, test, supervision_cost=feedback.spent)
    assert feedback.spent == pytest.approx(train.cost.sum()) and result.router == "Global mean"
    assert sr.ROUTERS["global_mean"] is names["GlobalMean"]


def test_the_readme_names_what_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\(((?!http)[^)]+)\)", readme):
        assert (ROOT / path).exists(), path
    assert main_results("routerbench").loc["SaveRouter", "sa_bep"] == 42_600
