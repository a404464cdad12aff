"""The figures: functions of results that return axes, with labels on the lines and a colour-blind palette."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ..judging import Result

PALETTE = [*sns.color_palette("colorblind"), (0.35, 0.1, 0.1)]
MARKERS = "osD^vP<>phd*"  # one more than there are colours, so that no two of many routers look alike


def style() -> None:
    """White face, thin grid; call once in a notebook."""
    sns.set_theme(style="whitegrid", context="notebook", rc={"axes.spines.top": False, "axes.spines.right": False})
    plt.rcParams.update({"figure.facecolor": "white", "figure.figsize": (8, 4.5), "svg.hashsalt": "saverouter"})


def panels(names: Iterable[str]) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one panel per name, two in a row, and the panels by name."""
    names = list(names)
    rows, columns = (1, 1) if len(names) == 1 else ((len(names) + 1) // 2, 2)
    figure, axes = plt.subplots(rows, columns, figsize=(5.5 * columns, 3.7 * rows + 1), squeeze=False)
    for unused in axes.flat[len(names) :]:
        unused.axis("off")
    return figure, dict(zip(names, axes.flat, strict=False))


def legend_below(figure: Figure, columns: int = 6) -> None:
    """One legend for all panels, under them."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = min(columns, 3) if len(figure.axes) == 1 else columns
    height = figure.get_size_inches()[1]
    lines = -(-len(labels) // columns)
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False, fontsize="small")
    figure.tight_layout(rect=(0, (0.1 + 0.28 * lines) / height, 1, 1))


def payback(results: dict[str, Result], volume: float | None = None, ax: Axes | None = None) -> Axes:
    """Net saving over deployment volume, in units of what the best single model costs; break-even points marked.

    ``volume`` is the right end of the axis; by default a little beyond the latest break-even point.
    """
    ax = ax or plt.subplots()[1]
    finite = [r.sa_bep for r in results.values() if np.isfinite(r.sa_bep)]
    volume = volume or 1.6 * max(finite, default=100_000)
    volumes = np.linspace(0, volume, 200)
    ends = []
    for colour, (name, result) in zip(PALETTE, results.items(), strict=False):
        saved = result.net_saving(volumes) / (result.reference.cost * volume) * 100
        if np.isnan(saved).all():
            ax.plot([], [], color=colour, label=f"{name}: target not reached")
            continue
        ax.plot(volumes, saved, color=colour, lw=2)
        ends.append((saved[-1], name, colour))
        if result.sa_bep <= volume:
            ax.plot(result.sa_bep, 0, "o", color=colour, ms=8, zorder=3)
    _label_ends(ax, volume, ends)
    ax.axhline(0, color="0.3", lw=1)
    ax.set(xlabel="deployment queries", ylabel="net saving, % of the best single\nmodel's bill at the right end")
    ax.xaxis.set_major_formatter(lambda x, _: short(x))
    ax.set_xlim(0, volume)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="upper left")
    return ax


def _label_ends(ax: Axes, x: float, ends: list[tuple[float, str, tuple]]) -> None:
    """Names right of the lines' ends, pushed apart where they would overlap."""
    if not ends:
        return
    low, high = ax.get_ylim()
    gap, last = 0.065 * (high - low), -np.inf
    for y, name, colour in sorted(ends):
        last = max(y, last + gap)
        ax.annotate(name, (x, last), xytext=(6, 0), textcoords="offset points", va="center", color=colour,
                    annotation_clip=False)  # fmt: skip


def frontier(
    results: dict[str, Result], ax: Axes | None = None, title: str = "", lines: tuple[str, ...] | None = None,
    legend: bool = True,
) -> Axes:  # fmt: skip
    """Quality against serving cost relative to the best single model (the cross).

    Dots are peaks. With ``lines``, only those routers are drawn as lines; of the others the peak alone is shown, and the
    axis starts at the lowest peak.
    """
    ax = ax or plt.subplots()[1]
    reference = next(iter(results.values())).reference
    for number, (name, result) in enumerate(results.items()):
        points = result.frontier
        peak = points.iloc[points["quality"].argmax()]
        colour = PALETTE[number % len(PALETTE)]
        if lines is None or name in lines:
            ax.step(points["cost"] / reference.cost, points["quality"], where="post", color=colour, lw=1.8, label=name)
            ax.plot(peak["cost"] / reference.cost, peak["quality"], "o", color=colour, ms=6)
        else:
            marker = MARKERS[number % len(MARKERS)]
            ax.plot(peak["cost"] / reference.cost, peak["quality"], marker, color=colour, ms=7, ls="", label=name)
    ax.plot(1, reference.quality, "X", color="black", ms=9, label="best single model", zorder=4, ls="")
    ax.axhline(reference.quality, color="0.5", lw=1, ls=":")
    ax.set(xlabel="serving cost / best single model's", ylabel="quality on test outcomes", title=title)
    if lines is not None:
        peaks = [result.peak_score for result in results.values()] + [reference.quality]
        margin = 0.08 * max(np.ptp(peaks), 1e-3)
        ax.set_ylim(min(peaks) - margin, max(peaks) + margin)
    if legend:
        ax.legend(frameon=False, loc="lower right", fontsize="small")
    return ax


def saturation_curve(curve: pd.DataFrame, recovered: pd.Series, ax: Axes | None = None) -> Axes:
    """Peak score against the share of supervision, with the point from which 99% of full supervision is kept."""
    ax = ax or plt.subplots()[1]
    for colour, (name, points) in zip(PALETTE, curve.groupby("router", sort=False), strict=False):
        seeds = points.groupby("supervision")["peak_score"]
        mean = seeds.mean()
        ax.plot(mean.index, mean, "o-", color=colour, ms=4, label=name)
        if points["seed"].nunique() > 1:
            ax.fill_between(mean.index, seeds.min(), seeds.max(), color=colour, alpha=0.2, lw=0)
        ax.axhline(0.99 * mean.iloc[-1], color=colour, lw=1, ls=":")
        at = recovered[name]
        ax.plot(at, mean[at], "D", color=colour, ms=10, mfc="none", mew=2)
        ax.annotate(f"{at:.0%}", (at, mean[at]), xytext=(4, -18), textcoords="offset points", color=colour)
    ax.set(xlabel="share of query-model outcomes bought", ylabel="peak score on test outcomes")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    ax.legend(frameon=False, loc="lower right")
    return ax


def variants(
    table: pd.DataFrame, paper: pd.DataFrame, metric: str, ax: Axes, label: str = "", source: str = "simulated"
) -> Axes:
    """One row per variant: measured (dot, with the standard deviation over draws) and published (hollow diamond)."""
    names = table["variant"].tolist()
    places = np.arange(len(names))[::-1]
    spread = table.get(f"{metric}_sd", pd.Series(np.nan, table.index))
    finite = np.isfinite(table[metric].to_numpy())
    ax.errorbar(table[metric][finite], places[finite], xerr=spread[finite].fillna(0), fmt="o", color=PALETTE[0], ms=7,
                capsize=3, label=f"measured ({source})")  # fmt: skip
    ax.plot(paper.set_index("variant")[metric].reindex(names), places, "D", color=PALETTE[1], mfc="none", mew=1.6,
            label="published", ls="")  # fmt: skip
    for place in places[~finite]:
        ax.annotate("not reached", (0.98, place), xycoords=("axes fraction", "data"), ha="right", va="center",
                    color=PALETTE[0], fontsize="small")  # fmt: skip
    ax.set(yticks=places, yticklabels=names, xlabel=label or metric, ylim=(-0.6, len(names) - 0.4))
    if metric == "sa_bep":
        ax.xaxis.set_major_formatter(lambda x, _: short(x))
    return ax


def budget(curve: pd.DataFrame, metric: str, ax: Axes, title: str = "", label: str = "") -> Axes:
    """A metric against K: SaveRouter's purchases, and as many at random with their standard deviation over draws.

    For the peak score a dashed line shows the largest K. A point that is not reached is left out.
    """
    for colour, (rule, name) in zip(PALETTE, (("ucb", "SaveRouter"), ("random", "Random-K")), strict=False):
        points = curve[curve["acquisition"] == rule].replace(np.inf, np.nan).sort_values("k")
        ax.errorbar(points["k"], points[metric], yerr=points[f"{metric}_sd"].fillna(0), fmt="o-", color=colour, ms=5,
                    capsize=3, label=name)  # fmt: skip
    if metric == "peak_score":
        ours = curve[curve["acquisition"] == "ucb"].set_index("k")["peak_score"]
        ax.axhline(ours[ours.index.max()], color="0.4", lw=1, ls="--", label="SaveRouter at the largest K")
        ax.axhline(curve["best_single"].iloc[0], color="0.4", lw=1, ls=":", label="best single model")
    else:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))  # a panel may span less than a power of ten
        ax.yaxis.set_major_formatter(lambda y, _: short(y))
        ax.yaxis.set_minor_formatter(lambda y, _: "")
    budgets = sorted(curve["k"].unique())
    ax.set(xlabel="K, outcomes bought per query", ylabel=label, title=title, xticks=budgets)
    ax.set_xlim(budgets[0] - 0.5, budgets[-1] + 0.5)  # a single point would sit on the frame
    return ax


def targets(table: pd.DataFrame, ax: Axes, title: str = "") -> Axes:
    """Break-even volume against the quality target, one line per router; a target where it never pays back is left out."""
    for number, (name, points) in enumerate(table.groupby("method", sort=False)):
        points = points.replace(np.inf, np.nan).sort_values("target")
        ours = name == "SaveRouter"
        ax.plot(points["target"], points["sa_bep"], marker=MARKERS[number % len(MARKERS)], label=name,
                color="black" if ours else PALETTE[number % len(PALETTE)], lw=2.5 if ours else 1.2, ms=6,
                zorder=3 if ours else 2)  # fmt: skip
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda y, _: short(y))
    ax.yaxis.set_minor_formatter(lambda y, _: "")
    ax.set(xlabel="quality target, share of the best single model's", ylabel="queries until payback", title=title)
    ax.set_xticks(sorted(table["target"].unique()))
    return ax


def arrival_scores(table: pd.DataFrame, ax: Axes, title: str = "") -> Axes:
    """Peak score for each arriving model: a tenth of its feedback, all of it, and the best dense router."""
    places = np.arange(len(table))
    for colour, marker, (kind, name) in zip(PALETTE, "osD", (
        ("10", "SaveRouter, 10% of its feedback"), ("100", "SaveRouter, all of it"), ("dense", "best dense router"),
    ), strict=False):  # fmt: skip
        ax.plot(places, table[f"peak_score_{kind}"], marker, color=colour, ms=8, label=name, ls="")
    ax.set(xticks=places, xticklabels=table["arrival"], xlim=(-0.5, len(table) - 0.5), title=title)
    ax.set(ylabel="peak score on test outcomes", xlabel="arriving model")
    return ax


def seeds(table: pd.DataFrame, metric: str, ax: Axes, label: str = "") -> Axes:
    """Every seed as a dot, one column per benchmark and router; the number above counts the seeds that never reach it."""
    methods = list(dict.fromkeys(table["method"]))
    for column, (_, rows) in enumerate(table.groupby("benchmark", sort=False)):
        for number, method in enumerate(methods):
            values = rows.loc[rows["method"] == method, metric].to_numpy()
            x = column + 0.22 * (number - (len(methods) - 1) / 2)
            finite = values[np.isfinite(values)]
            ax.plot(np.full(len(finite), x), finite, "o", color=PALETTE[number], ms=6, alpha=0.75,
                    label=method if column == 0 else None, ls="")  # fmt: skip
            if len(finite) < len(values):
                ax.annotate(f"{len(values) - len(finite)}\nnever", (x, 1.01), xycoords=("data", "axes fraction"), ha="center",
                            color=PALETTE[number], fontsize="x-small", linespacing=1.0)  # fmt: skip
    names = list(dict.fromkeys(table["benchmark"]))
    ax.set(xticks=range(len(names)), xticklabels=names, ylabel=label or metric, xlim=(-0.5, len(names) - 0.5))
    if metric == "sa_bep":
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda y, _: short(y))
    return ax


def short(number: float) -> str:
    """5263 as 5.3K, 1.23e6 as 1.23M, as the paper prints them."""
    if not np.isfinite(number):
        return "inf"
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}K" if number >= 1e3 else f"{number:.0f}"
