"""SaveRouter's parts, its budget and a newcomer: the figures of notebooks 03, 04 and 06."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .look import ACCENT, GREY, INK, SOFT, colour, never_lane, queries_axis

LANE = "#f1f3f5"
DECADES = 1.5  # powers of ten that a panel of paybacks spans at least, so that panels can be compared


def changes(lead: pd.DataFrame, paper: pd.DataFrame, ax: Axes) -> Axes:
    """What each change to SaveRouter costs in peak score, with its interval over splits (the frame of ``intervals.leads`` in
    points), and what it cost in the paper (hollow). A change whose interval holds zero is grey."""
    places = np.arange(len(lead))[::-1]
    for place, (_, row) in zip(places, lead.iterrows(), strict=True):
        shade = ACCENT if row["from"] > 0 or row["to"] < 0 else GREY
        ax.plot([row["from"], row["to"]], [place, place], color=shade, lw=3, solid_capstyle="round")
        ax.plot(row["mean lead"], place, "o", color=shade, ms=10)
        ax.annotate(f"{row['mean lead'] + 0.0:.1f}", (row["mean lead"], place), xytext=(0, 8), textcoords="offset points",
                    ha="center", color=shade if shade == ACCENT else SOFT, fontsize=10,
                    bbox=dict(fc="white", lw=0, pad=0.5))  # fmt: skip
    if len(paper):
        peaks = paper.set_index("variant")["peak_score"]
        lost = 100 * (peaks["SaveRouter"] - peaks.reindex(lead.index))
        ax.plot(lost, places - 0.22, "D", color=SOFT, mfc="white", mew=1.6, ms=7, ls="")
        ax.annotate("published", (lost.iloc[0], places[0] - 0.22), xytext=(9, 0), textcoords="offset points", va="center",
                    color=SOFT, fontsize=10)  # fmt: skip
    ax.axvline(0, color=INK, lw=1)
    ax.set(yticks=places, yticklabels=lead.index, ylim=(-0.7, len(lead) - 0.35), xlabel="peak score lost, points")
    ax.tick_params(axis="y", labelsize=11, labelcolor=INK)
    return ax


def variants(table: pd.DataFrame, paper: pd.DataFrame, metric: str, ax: Axes, label: str = "") -> Axes:
    """One row per variant: measured (dot, with the standard deviation over draws) and published (hollow).

    A line marks SaveRouter's own value; what is not reached lies in a lane of its own.
    """
    names = table["variant"].tolist()
    places = np.arange(len(names))[::-1]
    theirs = paper.set_index("variant")[metric].reindex(names) if len(paper) else pd.Series(np.nan, names)
    ours, spread = table[metric].to_numpy(), table[f"{metric}_sd"].fillna(0).to_numpy()
    reached = np.isfinite(ours)
    largest = max([*(ours + spread)[reached], *theirs[np.isfinite(theirs)]], default=1.0)
    ax.set_xlim(0, 1.12 * largest)
    lane = (
        None
        if reached.all()
        else _lane(ax, 1.1 * largest, 1.35 * largest, "never" if metric == "sa_bep" else "not reached")
    )
    own = ours[names.index("SaveRouter")]
    if np.isfinite(own):
        ax.axvline(own, color=ACCENT, lw=1, ls=":")
    for place, name, value, sd in zip(places, names, ours, spread, strict=True):
        shade = ACCENT if name == "SaveRouter" else colour("Random-K")
        ax.errorbar(value if np.isfinite(value) else lane, place, xerr=sd, fmt="o", color=shade, ms=9, capsize=3)
    ax.plot(theirs, places - 0.24, "D", color=SOFT, mfc="white", mew=1.5, ms=6, ls="")
    if np.isfinite(theirs.iloc[0]):
        ax.annotate("published", (theirs.iloc[0], places[0] - 0.24), xytext=(8, 0), textcoords="offset points", va="center",
                    color=SOFT, fontsize=9.5)  # fmt: skip
    ax.set(yticks=places, yticklabels=names, ylim=(-0.7, len(names) - 0.4), xlabel=label or metric)
    ax.tick_params(axis="y", labelcolor=INK)
    if metric == "sa_bep":
        queries_axis(ax, along="x", log=False)
    return ax


def budget(runs: pd.DataFrame, metric: str, ax: Axes) -> Axes:
    """A metric against K for one benchmark: SaveRouter's purchases (line), and as many at random (a dot per draw, their
    mean or median as a thin line).

    The peak score is drawn in points above the best single model; a draw that never pays back lies in the lane "never".
    """
    points_above, middle_of = 100 * (runs["peak_score"] - runs["best_single"]), "median"
    runs = runs.assign(shown=points_above if metric == "peak_score" else runs[metric])
    if metric == "peak_score":
        middle_of, high = "mean", np.inf
        ax.axhline(0, color=INK, lw=1)
        free = (4, "bottom") if points_above.mean() < 0 else (-4, "top")  # the side of the line without dots
        ax.annotate("best single model", (1, 0), xycoords=("axes fraction", "data"), xytext=(-2, free[0]), ha="right",
                    va=free[1], textcoords="offset points", color=INK, fontsize=9)  # fmt: skip
    else:
        finite = runs.loc[np.isfinite(runs["shown"]), "shown"]
        low, high = (finite.min(), finite.max()) if len(finite) else (1e3, 1e3)
        room = max(0.1, (DECADES - np.log10(high / low)) / 2)
        ax.set_ylim(low / 10**room, high * 10**room)
        queries_axis(ax)
        runs["shown"] = runs["shown"].replace(np.inf, never_lane(ax, high * 10 ** (room - 0.25)))
    for rule, name, aside in (("random", "Random-K", 0.14), ("ucb", "SaveRouter", -0.14)):
        points = runs[runs["acquisition"] == rule]
        middle, own = points.groupby("k")["shown"].agg(middle_of), rule == "ucb"
        ax.plot(points["k"] + aside, points["shown"], "o", color=colour(name), ms=8 if own else 5.5, alpha=0.8 if own else 0.55,
                mec="white" if own else "none", mew=0.8, ls="", label=name, zorder=3)  # fmt: skip
        ax.plot(middle.index + aside, middle.where(middle <= high), color=colour(name), lw=2 if own else 1, zorder=2)
    budgets = sorted(runs["k"].unique())
    ax.set(xlabel="K, outcomes bought per query", xticks=budgets, xlim=(budgets[0] - 0.5, budgets[-1] + 0.5))
    return ax


def arrival_scores(table: pd.DataFrame, metric: str, ax: Axes, label: str = "") -> Axes:
    """One row per arriving model: a tenth of its supervision (dot), all of it (ring, joined by a line), and the best dense
    router (diamond below). Benchmarks are groups of rows; what is not reached lies in a lane of its own.

    With ``metric`` "peak_score" points are counted from the frame's ``best_single``.
    """
    kinds = ["10", "100", "dense"]
    values = table[[f"{metric}_{kind}" for kind in kinds]].set_axis(kinds, axis=1)
    if metric == "peak_score":
        values = 100 * values.sub(table["best_single"], axis=0)
        ax.axvline(0, color=INK, lw=1)
    reached = np.isfinite(values)
    if not reached.all(axis=None):
        largest = max(1.0, values[reached].max().max())
        values = values.where(reached, _lane(ax, 1.06 * largest, 1.3 * largest, "not reached"))
    groups = table["benchmark"].ne(table["benchmark"].shift())
    places = -(np.arange(len(table)) + 0.9 * groups.cumsum().to_numpy())
    for y, name in zip(places[groups], table["benchmark"][groups], strict=True):
        ax.annotate(name, (0, y + 0.75), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
                    va="center", color=INK, fontsize=10, fontweight="bold", bbox=dict(fc="white", lw=0, pad=1))  # fmt: skip
    for y, (few, full, dense) in zip(places, values.to_numpy(), strict=True):
        ax.plot([few, full], [y, y], color=ACCENT, lw=2.5, zorder=2)
        ax.plot(full, y, "o", color=ACCENT, mfc="white", mew=1.8, ms=11, ls="", zorder=2, label="SaveRouter, all of it")
        ax.plot(few, y, "o", color=ACCENT, ms=6, ls="", zorder=3, label="SaveRouter, a tenth of its supervision")
        ax.plot(
            dense, y - 0.32, "D", color=colour("best dense router"), ms=5.5, ls="", zorder=3, label="best dense router"
        )
    arrived = [f"{model} ({arrival})" for model, arrival in zip(table["model"], table["arrival"], strict=True)]
    ax.set(yticks=places, yticklabels=arrived, ylim=(min(places) - 0.8, max(places) + 1.2), xlabel=label)
    ax.tick_params(axis="y", labelcolor=INK)
    return ax


def _lane(ax: Axes, start: float, end: float, text: str) -> float:
    """A shaded lane at the right end of a linear axis that begins at zero; returns where to draw in it."""
    ax.set_xlim(0, end)
    ax.set_xticks([tick for tick in ax.get_xticks() if 0 <= tick < start])
    ax.axvspan(start, end, color=LANE, lw=0, zorder=0)
    at = (start + end) / 2
    ax.annotate(text, (at, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points", ha="center",
                color=SOFT, fontsize=10)  # fmt: skip
    return at
