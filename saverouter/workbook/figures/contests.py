"""Who is first: the figures over targets, seeds and a large pool."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ...judging import Result
from .look import ACCENT, COLOURS, GREY, INK, SOFT, colour, label_ends, never_lane, queries_axis, short


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
