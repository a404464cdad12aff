"""Figures: functions of results that draw every row they are given."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.paper import published
from saverouter.studies import designs, intervals
from saverouter.workbook import figures

matplotlib.use("Agg")


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_payback_is_money_over_queries(made):
    results = {name: made[name].result.at(target=0.9) for name in ("SaveRouter", "kNN")}
    ours = results["SaveRouter"]
    ax = figures.payback(results, volume=10_000)
    assert f"SaveRouter: {figures.short(ours.sa_bep)}" in words(ax)
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_ydata(), ours.net_saving(line.get_xdata()) / ours.reference.cost)
    dollars = figures.payback(results, volume=10_000, dollars=True)
    np.testing.assert_allclose(dollars.lines[0].get_ydata(), ours.net_saving([0, 10_000]))
    assert "dollars" in dollars.get_ylabel()
    never = figures.payback({"kNN": results["kNN"].at(target=9)})
    assert words(never) == ["kNN: never, the quality is not reached"]


def test_who_never_pays_back_is_named_above_the_axis(made):
    dear = made["kNN"].result
    dear = replace(dear, frontier=dear.frontier.assign(cost=dear.reference.cost, quality=dear.reference.quality))
    ax = figures.payback({"kNN": dear})
    text, zero = ax.texts[-1], ax.transData.transform((0, 0))[1]
    assert "nothing is saved" in text.get_text()
    assert text.get_window_extent(ax.figure.canvas.get_renderer()).y0 > zero


def test_a_frontier_names_what_it_cannot_show(made):
    results = {name: done.result for name, done in made.items()}
    ax = figures.frontier(results, lines=("SaveRouter",), spoken_of=("kNN",))
    drawn = [line for line in ax.lines if len(line.get_xdata()) > 2]
    assert [line.get_label() for line in drawn] == ["SaveRouter"]
    assert set(words(ax)) == {"SaveRouter", "kNN", "best single model"}
    tight = figures.frontier(results, lines=("SaveRouter",), span=(5, 6))
    assert all(
        name in words(tight)[-1].replace("\xa0", " ").replace("\n", " ") for name in ("below the axis", "WISERouter")
    )
    np.testing.assert_allclose(
        drawn[0].get_ydata()[-1], 100 * (results["SaveRouter"].peak_score - results["SaveRouter"].reference.quality)
    )


@pytest.mark.parametrize("name", ["saverouter", "knn"])
def test_a_choice_is_drawn_with_what_it_would_take_to_change_it(name):
    train, test = make_workload().split()
    router = sr.make_router(name).fit(train.queries, train.feedback())
    frame = router.explain(test.queries.take([0]), cost_weight=0.3).frame
    ax = figures.explained(frame)
    ordered = frame.sort_values("quality")
    assert [label.get_text() for label in ax.get_yticklabels()] == ordered["model"].tolist()
    dots = [line for line in ax.lines if line.get_markersize() == 10]
    assert [dot.get_xdata()[0] for dot in dots] == pytest.approx((100 * ordered["quality"]).tolist())
    assert [dot.get_color() == figures.ACCENT for dot in dots] == ordered["chosen"].tolist()
    said = words(ax)
    assert said.count("chosen") == 1 and sum(text.endswith(" points") for text in said) == len(frame) - 1


def test_short_numbers():
    assert [figures.short(x) for x in (5263, 1.23e6, 12, np.inf, np.nan)] == ["5.26K", "1.23M", "12", "never", "–"]


def test_a_router_has_one_colour():
    assert figures.colour("SaveRouter") == figures.ACCENT == figures.colour("SaveRouter", ("kNN",))
    assert figures.colour("kNN", ("kNN",)) == figures.colour("kNN") != figures.colour("kNN", ()) == figures.GREY
    routers = {
        name: shade for name, shade in figures.COLOURS.items() if name != "best dense router"
    }  # the one name of a role
    assert len(set(routers.values())) == len(routers)


def test_who_pays_back_and_who_never_does():
    paper = published("main_results")
    ax = figures.paybacks(paper, paper)
    never = paper.groupby("benchmark")["sa_bep"].apply(lambda found: int(np.isinf(found).sum()))
    for name, count in never.items():
        assert words(ax).count(f"{count} of 11 never") >= 2, name
    assert "SaveRouter 5.3K" in words(ax) and "never" in words(ax)


def test_a_race_counts_who_never_pays_back():
    paper = published("large_pool")
    ax = figures.race(paper, paper)
    finite = np.isfinite(paper["sa_bep"]).sum()
    assert len(ax.get_yticks()) == finite and ax.get_yticklabels()[-1].get_text() == "SaveRouter"
    assert f"the other {len(paper) - finite} of {len(paper)} routers never pay back, here or in the paper" in words(ax)
    nobody = paper.assign(sa_bep=np.inf)
    assert len(figures.race(nobody, nobody).get_yticks()) == 1  # SaveRouter, in the lane


def test_the_hero_has_a_row_per_workload():
    table = pd.DataFrame({"workload": ["a", "b"], "saverouter": [5e3, np.inf], "next_router": ["kNN", "TRouter"],
                          "next": [9e3, np.inf], "published_saverouter": [5.3e3, np.nan], "published_next": [np.inf, np.nan],
                          "low": [4e3, np.nan], "high": [6e3, np.nan], "never": ["", "5 of 5"]})  # fmt: skip
    figure = figures.hero(table, "a finding", "its unit")
    (ax,) = figure.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["b", "a"]
    shown = words(ax)
    assert "SaveRouter 5K" in shown and "kNN 9K" in shown and "never on\n5 of 5 seeds" in shown and "never" in shown
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert len(hollow) == 2  # a published "never" lies in the lane; what is not published is not drawn


def test_a_single_model_stands_beside_the_router():
    table = pd.DataFrame({"points below the best": [0.0, 1.0], "cost_ratio": [np.inf, 0.5], "sa_bep": [np.inf, 10.0],
                          "cheapest single model": ["big", "a/small"], "its cost ratio": [1.0, 0.034]})  # fmt: skip
    shown = words(figures.margins(table))
    assert "SaveRouter: not reached" in shown and "small 3.4%" in shown and "SaveRouter 50%" in shown


def test_a_best_model_that_is_free_leaves_nothing_to_save():
    table = pd.DataFrame({"points below the best": [0.0], "cost_ratio": [np.nan], "sa_bep": [np.inf],
                          "cheapest single model": ["a/best"], "its cost ratio": [np.nan]})  # fmt: skip
    assert {"SaveRouter: nothing to save", "best: free"} <= set(words(figures.margins(table)))
    missing = table.assign(cost_ratio=0.5, **{"its cost ratio": np.inf, "cheapest single model": "none"})
    assert {"SaveRouter 50%", "no single model"} <= set(words(figures.margins(missing)))


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
    assert "never" in words(ax) and len(ax.get_yticklabels()) == 7
    curve = published("k_scaling").query("benchmark == 'routerbench'").assign(acquisition="ucb", best_single=0.8)
    budget = figures.budget(curve, "sa_bep", plt.subplots()[1])
    drawn = next(line for line in budget.lines if line.get_label() == "SaveRouter").get_ydata()
    assert "never" in words(budget) and drawn[0] > 10 * np.nanmin(drawn) and drawn[1] == 25_041
    table = published("quality_targets").query("benchmark == 'mmrbench'")
    targets = figures.targets(table, plt.subplots()[1])
    assert {line.get_label() for line in targets.lines} >= set(table["method"]) and "never" in words(targets)
    strips = figures.strips({"published": published("quality_targets")})
    assert len(strips.axes[0].patches) == 20 and "WISERouter" in words(strips.axes[0])
    seeds = pd.DataFrame({"benchmark": "b", "method": "m", "sa_bep": [10, 20, np.inf]})
    assert "1 of 3" in words(figures.seeds(seeds, "sa_bep", plt.subplots()[1]))
    plt.close("all")


def test_an_arrival_hides_nothing():
    import matplotlib.pyplot as plt

    table = published("expansion").assign(model="m", best_single=0.7)
    ax = figures.arrival_scores(table, "cost_ratio", plt.subplots()[1])
    shown = [line.get_label() for line in ax.lines]
    for kind in ("SaveRouter, a tenth of its supervision", "SaveRouter, all of it", "best dense router"):
        assert shown.count(kind) == len(table)
    plt.close("all")


def test_every_batch_size_is_drawn_in_every_panel():
    sizes, measures = ("1", "8", "128", "a whole pass"), {"cost": "cost ratio", "saving": "certified saving"}
    compared = pd.DataFrame([
        {"workload": name, "size": size, "measure": measure, "difference": shift, "from": shift - 1, "to": shift + 1}
        for name, shift in (("one", 0.2), ("two", 0.4), ("all", 0.3)) for size in sizes for measure in measures
        if (name, measure) != ("two", "saving")
    ])  # fmt: skip
    figure = figures.batch_sizes(compared, measures, "all")
    assert [ax.get_title(loc="left") for ax in figure.axes] == list(measures.values())
    for ax, names in zip(figure.axes, (2, 1), strict=True):
        ticks = [tick.get_text().replace("\n", " ") for tick in ax.get_xticklabels()]
        assert ticks == list(sizes) and (np.diff(ax.get_xticks()) > 0).all() and ax.get_xscale() == "log"
        dots = [line for line in ax.lines if line.get_label() == "one workload"]
        assert [len(line.get_ydata()) for line in dots] == [names] * 3
        spans = [line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 2 and np.ptp(line.get_ydata()) == 2]
        assert len(spans) == 3 and all(list(span) == [-0.7, 1.3] for span in spans)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "one workload",
        "mean of the workloads, 95% interval",
    ]


@pytest.mark.parametrize("saved", [(21.3, 16.2, 27.4), (120, 80, 130), (40, 5, 60), (1, 0.2, 2)])
def test_no_name_lies_across_an_interval(saved):
    """Of a month's bill of 141; the name stands in the bar or behind it."""
    found = SimpleNamespace(result=True, action="route", reference="the model in use", bill=141.0, monthly=1e6, month=1e6,
                            saved=saved, currency="EUR")  # fmt: skip
    ax = figures.month(found)
    ax.figure.canvas.draw()
    line, (_, name) = ax.lines[0].get_window_extent(), (text.get_window_extent() for text in ax.texts)
    assert "SaveRouter, certified: " in words(ax)[1] and (name.x1 < line.x0 or name.x0 > line.x1)
    assert name.x0 > ax.bbox.x0 and name.x1 < ax.figure.bbox.x1


def test_gains_are_filled_where_their_interval_lies_off_zero():
    rows = pd.DataFrame({"rule": ["up", "down", "open", "few", "all"], "difference": [0.1, -0.1, 0.02, np.nan, 0.05],
                         "from": [0.05, -0.2, -0.1, np.nan, 1e-12], "to": [0.2, -0.01, 0.1, np.nan, 0.1],
                         "tables from": [0.0, -0.3, -0.2, np.nan, -0.1], "tables to": [0.3, 0.1, 0.2, np.nan, 0.2]})  # fmt: skip
    ax = figures.gains(rows, plt.subplots()[1], "rule", "saving", last="all")
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in dots] == [0.1, -0.1, 0.02, 0.05]
    assert [line.get_markerfacecolor() == figures.ACCENT for line in dots] == [True, True, False, False]
    assert words(ax) == ["too few queries"] and [tick.get_text() for tick in ax.get_yticklabels()] == list(rows["rule"])
    heights = [line.get_ydata()[0] for line in dots]
    assert (
        heights == sorted(heights, reverse=True) and heights[-2] - heights[-1] > 2
    )  # a row missing, and a line between
    spans = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert [0.05, 0.2] in spans and [0.0, 0.3] in spans


def test_gains_by_size_and_savings_by_judge_draw_every_row():
    sizes, names = (50, 200, 400), ("one", "two", "all")
    rows = pd.DataFrame([
        {"workload": name, "queries": size, "difference": size / 1000, "from": 0.0, "to": 0.5, "tables from": -0.1,
         "tables to": 0.6}
        for name in names for size in sizes
    ])  # fmt: skip
    ax = figures.gains_by_size(rows, plt.subplots()[1], "all")
    curves = [line for line in ax.lines if len(line.get_xdata()) == 3]
    assert len(curves) == 3 and all(list(line.get_ydata()) == [0.05, 0.2, 0.4] for line in curves)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["50", "200", "400"]
    errors = (0.0, 0.1)
    found = pd.DataFrame([
        {"workload": f"recorded/{name}", "judge errs": errs, "router": router, "judge error": error, "mean": 0.5 - error,
         "from": 0.1, "to": 0.9, "SaveRouter": 0.2}
        for name in names for errs in ("evenly", "on hard") for router in ("plain", "routed") for error in errors
    ])  # fmt: skip
    figure = figures.savings_by_judge(found, "plain", "routed", "SaveRouter")
    drawn = [ax for ax in figure.axes if ax.lines]
    assert [ax.get_title(loc="left") for ax in drawn] == list(names)
    for ax in drawn:
        curves = [line for line in ax.lines if line.get_marker() == "o"]
        assert len(curves) == 3 and all(list(line.get_ydata()) == [0.5, 0.4] for line in curves)
        assert [0.2, 0.2] in [list(line.get_ydata()) for line in ax.lines]
