"""Figures: functions of results that draw every row they are given."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

from saverouter.paper import published
from saverouter.studies import designs, intervals
from saverouter.workbook import figures

matplotlib.use("Agg")


def test_figures_show_what_they_are_given(made):
    matplotlib.use("Agg")
    results = {name: made[name].result.at(target=0.9) for name in ("SaveRouter", "kNN")}
    ax = figures.payback(results, volume=10_000)
    assert {text.get_text() for text in ax.texts} == {"SaveRouter", "kNN"}
    line = ax.lines[0]
    expected = (
        results["SaveRouter"].net_saving(line.get_xdata()) / (results["SaveRouter"].reference.cost * 10_000) * 100
    )
    np.testing.assert_allclose(line.get_ydata(), expected)
    unreached = figures.payback({"never": results["kNN"].at(target=9)})
    assert "target not reached" in unreached.get_legend().get_texts()[0].get_text()
    assert len(figures.frontier(results).lines) >= 4
    everyone = figures.frontier({name: done.result for name, done in made.items()}, lines=("SaveRouter",))
    assert len(everyone.get_legend().get_texts()) == 12
    drawn = [line for line in everyone.lines if len(line.get_xdata()) > 2]
    assert len(drawn) == 1 and drawn[0].get_label() == "SaveRouter"
    assert [figures.short(x) for x in (5263, 1.23e6, 12, np.inf)] == ["5.3K", "1.23M", "12", "inf"]


@pytest.fixture(scope="module")
def work():
    return make_workload(n=600, models=6, seed=4)


def test_panels_come_with_one_legend():
    import matplotlib.pyplot as plt

    for names, shown in ((["a"], 1), (["a", "b", "c"], 3), (list("abcd"), 4)):
        figure, axes = figures.panels(names)
        assert list(axes) == names and sum(ax.axison for ax in figure.axes) == shown
        for ax in axes.values():
            ax.plot([1, 2], label="line")
        figures.legend_below(figure)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["line"]
    plt.close("all")


def test_figures_draw_every_row(cache, work):
    import matplotlib.pyplot as plt

    table = intervals.summary(designs.ablations(work, seeds=(1, 2)), ["benchmark", "part", "variant"])
    table.loc[0, "sa_bep"] = np.inf
    ax = figures.variants(table, published("ablations"), "sa_bep", plt.subplots()[1])
    assert [text.get_text() for text in ax.texts] == ["not reached"] and len(ax.get_yticklabels()) == 7
    curve = published("k_scaling").query("benchmark == 'routerbench'").assign(acquisition="ucb", best_single=0.8)
    curve = curve.assign(**{f"{metric}_sd": np.nan for metric in intervals.METRICS})
    budget = figures.budget(curve, "sa_bep", plt.subplots()[1])
    drawn = budget.lines[0].get_ydata()
    assert np.isnan(drawn[0]) and drawn[1] == 25_041
    targets = figures.targets(published("quality_targets").query("benchmark == 'mmrbench'"), plt.subplots()[1])
    assert len(targets.lines) == 11
    arrivals = figures.arrival_scores(published("expansion").query("benchmark == 'mmrbench'"), plt.subplots()[1])
    assert arrivals.lines[2].get_ydata().tolist() == [0.7536] * 3
    seeds = pd.DataFrame({"benchmark": "b", "method": "m", "sa_bep": [10, 20, np.inf]})
    assert [text.get_text() for text in figures.seeds(seeds, "sa_bep", plt.subplots()[1]).texts] == ["1\nnever"]
    plt.close("all")
