"""Who is first: the figures over quality targets and over seeds."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from .look import GREY, INK, SOFT, colour, never_lane, queries_axis, short

EMPTY = "#eceff2"  # a cell in which nobody is first


def strips(frames: dict[str, pd.DataFrame], metric: str = "sa_bep") -> Figure:
    """One strip per benchmark of the first frame: who has the lowest ``metric`` at which target, and its value.

    ``frames`` (measured, published) stand one below the other. A cell has the first router's colour; one in which no
    router has a finite value says "nobody".
    """
    first = next(iter(frames.values()))
    names, targets = list(dict.fromkeys(first["benchmark"])), sorted(first["target"].unique())
    step = 0.72 + len(frames)  # a strip's height, in rows
    size = (1.32 * len(targets) + 1.2, 0.5 * (step * len(names) + 0.5) + 0.75)
    figure, ax = plt.subplots(figsize=size)
    ax.set(xlim=(-0.95, len(targets)), ylim=(-(step * len(names)), 0.5))
    ax.axis("off")
    for column, target in enumerate(targets):
        ax.text(column + 0.5, 0.25, f"{100 * target:g}%", ha="center", va="center", color=SOFT, fontsize=11)
    ax.text(-0.92, 0.25, "target", va="center", color=SOFT, fontsize=11)
    for strip, name in enumerate(names):
        top = -step * strip
        ax.text(-0.92, top - 0.36, name, va="center", color=INK, fontsize=11.5, fontweight="bold")
        for row, (kind, frame) in enumerate(frames.items()):
            y = top - 1.12 - row
            ax.text(-0.92, y, kind, va="center", color=SOFT, fontsize=10.5)
            for column, target in enumerate(targets):
                _cell(ax, column, y, frame[(frame["benchmark"] == name) & (frame["target"] == target)], metric)
    return figure


def _cell(ax: Axes, column: int, y: float, rows: pd.DataFrame, metric: str) -> None:
    """The first router's name and value on its colour."""
    found = rows[np.isfinite(rows[metric])]
    best = found.loc[found[metric].idxmin()] if len(found) else None
    shade = EMPTY if best is None else colour(best["method"])
    box = FancyBboxPatch(
        (column + 0.05, y - 0.42), 0.9, 0.84, boxstyle="round,pad=0,rounding_size=0.06", fc=shade, ec="none"
    )
    ax.add_patch(box)
    if best is None:
        ax.text(column + 0.5, y, "nobody", ha="center", va="center", color=SOFT, fontsize=10)
        return
    ink = INK if np.dot(to_rgb(shade), (0.299, 0.587, 0.114)) > 0.5 else "white"
    value = f"{best[metric]:.0%}" if metric == "sa_cr" else short(best[metric])
    ax.text(column + 0.5, y + 0.19, best["method"], ha="center", va="center", color=ink, fontweight="bold",
            fontsize=min(10.5, 108 / len(best["method"])))  # fmt: skip
    ax.text(column + 0.5, y - 0.19, value, ha="center", va="center", color=ink, fontsize=10.5)


def targets(
    table: pd.DataFrame, ax: Axes, spoken_of: Iterable[str] = (), span: tuple[float, float] | None = None
) -> Axes:
    """Queries until payback against the quality target, a line per router; one that never pays back goes up to the lane.

    The lane counts the routers that never pay back. ``span`` holds the earliest and latest payback of all panels, so that
    they share a scale. Routers that are ``spoken_of`` are named beside their line.
    """
    marks, named = sorted(table["target"].unique()), {"SaveRouter", *spoken_of}
    low, high = span or _span(table["sa_bep"])
    ax.set_yscale("log")
    ax.set_ylim(low / 10**0.55, high)
    queries_axis(ax)
    lane = never_lane(ax, high)
    middle = table.loc[table["target"] == marks[0], "sa_bep"].median()
    for name in sorted(table["method"].unique(), key=lambda name: (name == "SaveRouter", name in named)):
        points = table[table["method"] == name].set_index("target")["sa_bep"].reindex(marks)
        shade, thick = colour(name, spoken_of), name in named
        drawn = points[np.isfinite(points)]
        ax.plot(drawn.index, drawn, "o-", color=shade, lw=2.4 if thick else 1.1, ms=6 if thick else 3.5, label=name,
                zorder=3 if thick else 2)  # fmt: skip
        if len(drawn) and len(drawn) < len(points):
            gone = marks[len(drawn)]
            ax.plot([drawn.index[-1], gone], [drawn.iloc[-1], lane / 10**0.25], ":", color=shade, lw=1.6 if thick else 0.9,
                    zorder=1)  # fmt: skip
        if thick and len(drawn):
            above = drawn.iloc[0] > middle
            at = int(name == "SaveRouter" and len(drawn) > 1)  # its first point may have another router's below it
            ax.annotate(name, (drawn.index[at], drawn.iloc[at]), xytext=(-4, 7 if above else -7), textcoords="offset points",
                        va="bottom" if above else "top", color=shade, fontsize=10, zorder=4)  # fmt: skip
    for mark, rows in table.groupby("target"):
        never = int(np.isinf(rows["sa_bep"]).sum())
        if never:
            ax.text(mark, lane, f"{never} of {len(rows)}", ha="center", va="center", color=SOFT, fontsize=10)
    edge = (marks[-1] - marks[0]) * 0.09
    ax.set(xticks=marks, xlim=(marks[0] - edge, marks[-1] + edge))
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    return ax


def _span(values: pd.Series) -> tuple[float, float]:
    """The lowest and highest finite value; a stand-in where there is none."""
    found = values[np.isfinite(values)]
    return (found.min(), found.max()) if len(found) else (1e3, 1e6)


def seeds(table: pd.DataFrame, metric: str, ax: Axes, label: str = "", largest: float | None = None) -> Axes:
    """Every seed as a dot, one row per router under its benchmark; the lane counts the seeds that never pay back."""
    names, methods = list(dict.fromkeys(table["benchmark"])), list(dict.fromkeys(table["method"]))
    step, ticks = len(methods) + 1.3, {}
    values = table[metric][np.isfinite(table[metric])]
    lane = None
    if metric == "sa_bep":
        low, high = (values.min(), largest or values.max()) if len(values) else (1e3, largest or 1e6)
        ax.set_xlim(low / 10**0.25, high * 10)
        queries_axis(ax, "x")
        lane = never_lane(ax, high, along="x")
    for place, name in enumerate(names):
        ax.axhline(-step * place + 0.95, color=GREY, lw=0.8) if place else None
        for row, method in enumerate(methods):
            y = -step * place - row - 0.35
            found = table[(table["benchmark"] == name) & (table["method"] == method)][metric].to_numpy()
            shade, finite = colour(method), found[np.isfinite(found)]
            ax.plot(finite, np.full(len(finite), y), "o", color=shade, ms=8, alpha=0.55, mec="white", mew=0.6, ls="")
            if lane and len(finite) < len(found):
                ax.text(
                    lane,
                    y,
                    f"{len(found) - len(finite)} of {len(found)}",
                    ha="center",
                    va="center",
                    color=shade,
                    fontsize=9,
                )
            ticks[y] = (method, shade)
    ax.set_yticks(list(ticks), [method for method, _ in ticks.values()])
    for tick, (_, shade) in zip(ax.get_yticklabels(), ticks.values(), strict=True):
        tick.set_color(shade)
    for place, name in enumerate(names):
        ax.text(0.01, -step * place + 0.45, name, transform=ax.get_yaxis_transform(), va="center", color=INK, fontsize=10.5,
                fontweight="bold")  # fmt: skip
    ax.set(ylim=(-step * len(names) + 0.9, 0.95), xlabel=label or metric)
    ax.grid(False, axis="y")
    return ax
