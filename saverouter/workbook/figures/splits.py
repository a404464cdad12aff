"""Many splits of many workloads: the figures of notebook 09."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...paper.claims import FAILS, HOLDS
from .look import ACCENT, GREY, INK, SOFT, colour, legend_below, name_points, never_lane, panels, queries_axis

KINDS = {  # column: name, marker, size, colour, filled
    "single": ("one single model", "D", 8, "#d55e00", True),
    "dense": ("SaveRouter, every outcome bought", "o", 13, ACCENT, False),
    "oracle": ("oracle", "|", 15, INK, True),
    "router": ("SaveRouter", "o", 8, ACCENT, True),
}
SHADES = {HOLDS: "#d7e8f5", FAILS: "#fbe1d3"}
OURS = "SaveRouter"


def ceilings(table: pd.DataFrame, ax: Axes) -> Axes:
    """Cost ratios by workload: what needs no router, SaveRouter with its interval over splits, and what it cannot beat.

    ``table`` has workload, kind (a key of ``KINDS``), mean, from, to, reached and splits. What is not reached on any split lies
    at the right edge; SaveRouter's row says on how many splits it gets there.
    """
    names = list(dict.fromkeys(table["workload"]))
    ax.set(xlim=(0, 1.3), ylim=(-0.6, len(names) - 0.4), xlabel="cost per query / best single model's")
    ax.axvline(1, color=INK, lw=1)
    ax.axvspan(1.12, 1.3, color="#f1f3f5", lw=0, zorder=0)
    ax.annotate("not\nreached", (1.21, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), textcoords="offset points",
                ha="center", color=SOFT, fontsize=9)  # fmt: skip
    for place, name in enumerate(reversed(names)):
        rows = table[table["workload"] == name].set_index("kind")
        for kind, (label, marker, size, shade, filled) in KINDS.items():
            row = rows.loc[kind]
            at = row["mean"] if row["reached"] else 1.21
            if kind == "router" and np.isfinite(row["from"]):
                ax.plot([row["from"], row["to"]], [place, place], color=shade, lw=2.5, zorder=3)
            ax.plot(at, place, marker, ms=size, color=shade, mfc=shade if filled else "none", mew=2 if marker == "|" else 1.6,
                    ls="", label=label, zorder=4 if kind == "router" else 3)  # fmt: skip
        ours = rows.loc["router"]
        ax.annotate(f"{ours['reached']} of {ours['splits']}", (1, place), xycoords=("axes fraction", "data"), xytext=(5, 0),
                    textcoords="offset points", va="center", color=ACCENT, fontsize=9.5)  # fmt: skip
    ax.set(yticks=range(len(names)), yticklabels=[_plain(name) for name in reversed(names)])
    ax.tick_params(axis="y", labelsize=11, labelcolor=INK)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    ax.grid(False, axis="y")
    return ax


def payback_over_splits(table: pd.DataFrame, ax: Axes, span: tuple[float, float]) -> Axes:
    """Queries until payback on one workload, a row per router: median over splits with its quartiles.

    ``table`` is that of ``splits.over_splits`` for ``sa_bep``. A router that does not pay back on every split has the number
    of splits on which it does at the right; where the median is "never", the dot lies in that lane.
    """
    order = table.sort_values(["median", "early"], kind="stable").reset_index(drop=True)
    ax.set_xlim(span[0] / 1.6, span[1])
    queries_axis(ax, "x")
    lane = never_lane(ax, span[1], along="x")
    rival = next((name for name in order["method"] if name != OURS), "")
    for row in order.itertuples():
        place, shade = len(order) - 1 - row.Index, colour(row.method, (rival,))
        early, median, late = (value if np.isfinite(value) else lane for value in (row.early, row.median, row.late))
        ax.plot([early, late], [place, place], color=shade, lw=2, alpha=0.6)
        ax.plot(
            median, place, "o", ms=8 if row.method in (OURS, rival) else 6, color=shade, mec="white", mew=0.8, zorder=3
        )
        ax.annotate(f"{row.reached} of {row.splits}", (1, place), xycoords=("axes fraction", "data"), xytext=(5, 0),
                    textcoords="offset points", va="center", fontsize=8.5, color=shade if shade != GREY else SOFT)  # fmt: skip
    ax.set(yticks=range(len(order)), yticklabels=order["method"][::-1], ylim=(-0.6, len(order) - 0.4))
    for tick, name in zip(ax.get_yticklabels(), order["method"][::-1], strict=True):
        tick.set(color=colour(name, (rival,)) if name in (OURS, rival) else SOFT, fontsize=9)
    ax.grid(False, axis="y")
    return ax


def scores_over_budgets(budgets: pd.DataFrame, ax: Axes, span: tuple[float, float]) -> Axes:
    """Peak score in points above the best single model against the share of outcomes bought: SaveRouter's purchases and
    random ones, with 95% intervals over splits."""
    ax.axhline(0, color=INK, lw=1)
    for name in ("Random-K", OURS):
        points = budgets[budgets["variant"] == name].sort_values("share")
        ax.fill_between(points["share"], points["from"], points["to"], color=colour(name), alpha=0.15, lw=0)
        ax.plot(points["share"], points["mean"], "o-", color=colour(name), ms=6 if name == OURS else 4,
                lw=2.2 if name == OURS else 1.2, label="random purchases" if name == "Random-K" else name)  # fmt: skip
    ax.set(xlim=(0, 1.04), ylim=span, xlabel="share of all outcomes bought")
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    return ax


def verdicts(found: pd.DataFrame) -> Figure:
    """Statements down, workloads across: the measured value with its interval, on blue where the statement holds, on orange
    where it does not, on white where the splits cannot tell. ``found`` is the frame of ``general_statements`` with ``shown``."""
    statements, names = (list(dict.fromkeys(found[column])) for column in ("statement", "workload"))
    figure, ax = plt.subplots(figsize=(11.4, 0.66 * len(statements) + 1.4))
    ax.set(xlim=(-3.9, len(names)), ylim=(-len(statements), 0.6))
    ax.axis("off")
    for column, name in enumerate(names):
        ax.text(column + 0.5, 0.25, _plain(name), ha="center", va="center", color=INK, fontsize=10.5, fontweight="bold")
    for row, statement in enumerate(statements):
        ax.text(-3.87, -row - 0.5, statement, va="center", color=INK, fontsize=10.5)
        for column, name in enumerate(names):
            cell = found[(found["statement"] == statement) & (found["workload"] == name)].iloc[0]
            box = plt.Rectangle(
                (column + 0.03, -row - 0.96), 0.94, 0.92, fc=SHADES.get(cell["here"], "white"), ec="#d5dae0", lw=0.8
            )
            ax.add_patch(box)
            value, _, between = cell["shown"].partition(" (")
            mark = {HOLDS: "✓", FAILS: "✗"}.get(cell["here"], "~")
            ax.text(column + 0.5, -row - 0.36, f"{mark} {value}", ha="center", va="center", color=INK, fontsize=10)
            ax.text(column + 0.5, -row - 0.7, between.rstrip(")"), ha="center", va="center", color=SOFT, fontsize=8.5)
    return figure


def saved_by_traits(table: pd.DataFrame, measures: Iterable[str], panels: Iterable[Axes]) -> None:
    """What a router saves against traits of the workload, a panel per trait: recorded workloads filled, simulated hollow."""
    highest = 100 * table["saved"].max() + 5
    for panel, measure in zip(panels, measures, strict=True):
        shades = [SOFT if simulated else ACCENT for simulated in table["simulated"]]
        points = list(zip(table[measure], 100 * table["saved"], strict=True))
        for (x, y), shade in zip(points, shades, strict=True):
            panel.plot(x, y, "o", ms=9, color=shade, mfc="white" if shade == SOFT else shade, mew=1.6)
        panel.axhline(0, color=INK, lw=1, zorder=0)
        panel.set(xlabel=measure)
        panel.margins(x=0.2)
        panel.set_ylim(-0.4 * highest, 1.15 * highest)  # with room below for the names of those that save nothing
        panel.set_yticks([tick for tick in panel.get_yticks() if 0 <= tick <= highest])
        names = [
            (*point, _plain(name), shade) for point, name, shade in zip(points, table["workload"], shades, strict=True)
        ]
        name_points(panel, names, points)


def batch_sizes(compared: pd.DataFrame, titles: dict[str, str], everywhere: str) -> Figure:
    """What changes if many queries choose at once, a panel per measure: the paired difference from one at a time.

    ``compared`` is the frame of ``batches.against_one_at_a_time``, ``titles`` its measures in words, and ``everywhere`` the name
    of its mean over workloads, drawn with its interval. Sizes that are no numbers lie in a lane beyond the others' log axis.
    """
    sizes = [size for size in dict.fromkeys(compared["size"]) if size != "1"]
    last = max(int(size) for size in sizes if size.isdigit())
    lane = [size for size in sizes if not size.isdigit()]
    places = {size: last * 9.0 ** (1 + lane.index(size)) if size in lane else int(size) for size in sizes}
    end = 4 * max(places.values())
    figure, axes = panels(titles, height=3.3)
    for measure, ax in axes.items():
        ax.axhline(0, color=INK, lw=1)
        ax.axvspan(3 * last, end, color="#f1f3f5", lw=0, zorder=0)
        ax.plot(1, 0, "o", ms=8, color=ACCENT, zorder=4)
        for size, x in places.items():
            rows = compared[(compared["measure"] == measure) & (compared["size"] == size)].set_index("workload")
            others, mean = rows.drop(everywhere)["difference"], rows.loc[everywhere]
            ax.plot([0.75 * x] * len(others), others, "o", ms=4.5, color=GREY, ls="", label="one workload")
            ax.plot([x, x], [mean["from"], mean["to"]], color=ACCENT, lw=2.2)
            ax.plot(x, mean["difference"], "o", ms=8, color=ACCENT, ls="", label="mean of the workloads, 95% interval")
        ax.set(xscale="log", xlim=(0.6, end), xlabel="queries that choose at once")
        names = ["1", *(size if len(size) < 9 else "\n".join(size.rsplit(" ", 1)) for size in sizes)]
        ax.set_xticks([1, *places.values()], names, fontsize=9)
        ax.minorticks_off()
        ax.grid(False, axis="x")
        ax.set_title(titles[measure], loc="left", fontsize=11, color=INK)
    legend_below(figure, 2)
    return figure


def _plain(name: str) -> str:
    return name.rpartition("/")[2]
