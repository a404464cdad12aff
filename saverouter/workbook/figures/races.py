"""Who pays back first: queries until payback of many routers on many workloads, and who never does."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .look import ACCENT, INK, SOFT, colour, headline, never_lane, queries_axis, short

OURS = "SaveRouter"


def paybacks(table: pd.DataFrame, paper: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Queries until payback of every router, one row per benchmark: measured (filled), and below it published (hollow).

    SaveRouter and the earliest of the others are labelled. Who never pays back is counted beside the lane "never".
    """
    names = list(dict.fromkeys(table["benchmark"]))
    ax = ax or plt.subplots(figsize=(9.6, 1.2 * len(names) + 1.5))[1]
    paper = paper[paper["benchmark"].isin(names)]
    both = np.concatenate([frame["sa_bep"].to_numpy(float) for frame in (table, paper)])
    finite = both[np.isfinite(both)] if np.isfinite(both).any() else np.array([1e3, 1e5])
    ax.set_xlim(finite.min() / 10**1.45, finite.max())
    queries_axis(ax, "x")
    lane = never_lane(ax, finite.max(), along="x")
    for place, name in enumerate(reversed(names)):
        ax.axhspan(place - 0.5, place + 0.5, color="#f7f8fa" if place % 2 else "white", lw=0, zorder=-1)
        for shift, frame, hollow in ((0.2, table, False), (-0.27, paper, True)):
            _paybacks_row(
                ax, frame[frame["benchmark"] == name].set_index("method")["sa_bep"], place + shift, lane, hollow
            )
    ax.set(yticks=range(len(names)), yticklabels=names[::-1], ylim=(-0.55, len(names) - 0.35))
    ax.set_xlabel("queries until payback")
    ax.tick_params(axis="y", labelsize=11, labelcolor=INK)
    ax.grid(False, axis="y")
    return ax


def _paybacks_row(ax: Axes, volumes: pd.Series, y: float, lane: float, hollow: bool) -> None:
    """One row of dots, neighbours shifted so that none hides another."""
    rivals = volumes.drop(OURS, errors="ignore")
    following = rivals.idxmin() if np.isfinite(rivals).any() else ""
    last, shift = -np.inf, 0.0
    for name, volume in volumes[np.isfinite(volumes)].sort_values().items():
        shift = -shift or 0.08 if np.log10(volume) - last < 0.075 else 0.0
        last, shade = np.log10(volume), colour(name, (following,))
        ax.plot(volume, y + shift, "o", ms=9 if name in (OURS, following) else 7, color=shade, zorder=4 if name == OURS else 3,
                mfc="white" if hollow else shade, mec=shade if hollow else "white", mew=1.8 if hollow else 1)  # fmt: skip
        if name in (OURS, following):
            first = name == volumes.idxmin()
            ax.annotate(f"{name} {short(volume)}", (volume, y + shift), xytext=(-8 if first else -4, 0 if first else 12),
                        textcoords="offset points", ha="right" if first else "left", va="center" if first else "bottom",
                        fontsize=10, color=shade, fontweight="bold" if name == OURS and not hollow else None)  # fmt: skip
    never = ~np.isfinite(volumes)
    if never.get(OURS, False):
        ax.plot(lane, y, "o", ms=9, color=ACCENT, mfc="white" if hollow else ACCENT, mew=1.8, zorder=4)
        ax.annotate(OURS, (lane, y), xytext=(-8, 0), textcoords="offset points", ha="right", va="center", fontsize=10,
                    color=ACCENT, fontweight=None if hollow else "bold")  # fmt: skip
    ax.annotate(f"{never.sum()} of {len(volumes)} never", (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=9.5, color=SOFT)  # fmt: skip


def race(table: pd.DataFrame, paper: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Queries until payback on one workload, one row per router: measured (filled, with its value) and published (hollow).

    The first to pay back stands on top. Routers that never pay back, neither here nor in the paper, are counted in words.
    """
    here, there = (frame.drop_duplicates("method").set_index("method")["sa_bep"] for frame in (table, paper))
    there = there.reindex(here.index)
    shown = here[np.isfinite(here) | np.isfinite(there) | (here.index == OURS)].sort_values(kind="stable")
    ax = ax or plt.subplots(figsize=(8, 0.42 * len(shown) + 1.6))[1]
    finite = np.concatenate([here[np.isfinite(here)], there[np.isfinite(there)]])
    finite = finite if len(finite) else np.array([1e3, 1e5])
    ax.set_xlim(finite.min() / 1.6, finite.max())
    queries_axis(ax, "x")
    lane = never_lane(ax, finite.max(), along="x")
    spoken = (OURS, *shown.drop(OURS).index[:1])
    for place, (name, volume) in zip(range(len(shown) - 1, -1, -1), shown.items(), strict=True):
        shade, at = colour(name, spoken), volume if np.isfinite(volume) else lane
        ax.plot(at, place, "o", ms=11, color=shade, mec="white", mew=1, zorder=4)
        ax.annotate(short(volume) if np.isfinite(volume) else "", (at, place), xytext=(9, 0), textcoords="offset points",
                    va="center", fontsize=10.5, color=shade if name in spoken else SOFT,
                    fontweight="bold" if name == OURS else None)  # fmt: skip
        if not np.isnan(there[name]):
            ax.plot(there[name] if np.isfinite(there[name]) else lane, place - 0.2 * (volume == there[name]), "o", ms=9,
                    mfc="white", mec=shade, mew=1.8, zorder=3)  # fmt: skip
    first = next((place for place, name in enumerate(shown.index) if np.isfinite(there[name])), None)
    if first is not None:
        ax.annotate("published", (there[shown.index[first]], len(shown) - 1 - first), xytext=(9, 0), va="center",
                    textcoords="offset points", fontsize=10, color=SOFT)  # fmt: skip
    rest, paid = len(here) - len(shown), " or in the paper" if there.notna().any() else ""
    if rest:
        text = f"the other {rest} of {len(here)} routers never pay back, here{paid}"
        ax.text(0.012, -1, text, transform=ax.get_yaxis_transform(), va="center", fontsize=10.5, color=SOFT)
    ax.set(yticks=range(len(shown)), yticklabels=shown.index[::-1], ylim=(-1.6 if rest else -0.6, len(shown) - 0.4))
    ax.set_xlabel("queries until payback")
    ax.tick_params(axis="y", labelsize=11, labelcolor=INK)
    ax.grid(False, axis="y")
    return ax


def hero(table: pd.DataFrame, title: str, subtitle: str = "") -> Figure:
    """Workloads down, queries until payback across: SaveRouter against the next router.

    Columns: workload, saverouter, next_router, next, published_saverouter, published_next, low, high (whiskers over seeds),
    never (how many seeds never pay back, such as "4 of 5", or ""). Published values are hollow.
    """
    values = table[["saverouter", "next", "published_saverouter", "published_next", "low", "high"]].to_numpy(float)
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([1e3, 1e5])
    figure, ax = plt.subplots(figsize=(10, 0.62 * len(table) + 1.7))
    ax.set_xlim(finite.min() / 10**1.6, finite.max())
    queries_axis(ax, "x")
    lane = never_lane(ax, finite.max(), along="x")
    first = table.index[np.isfinite(table["saverouter"])].min()  # the row that says whose the blue dots are
    for place, row in zip(range(len(table) - 1, -1, -1), table.itertuples(), strict=True):
        if place % 2:
            ax.axhspan(place - 0.5, place + 0.5, color="#f7f8fa", lw=0, zorder=-1)
        _hero_row(ax, row, place, lane, name_ours=row.Index == first)
    ax.set(yticks=range(len(table)), yticklabels=table["workload"][::-1], ylim=(-0.6, len(table) - 0.4))
    ax.set_xlabel("queries until payback")
    ax.tick_params(axis="y", labelsize=11.5, labelcolor=INK, length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(False, axis="y")
    headline(figure, title, subtitle)
    return figure


def _hero_row(ax: Axes, row, place: int, lane: float, name_ours: bool) -> None:
    """A workload: a whisker, the measured pair with labels, the published pair below it."""
    rival = row.next_router if isinstance(row.next_router, str) else ""
    ours, following = (value if np.isfinite(value) else lane for value in (row.saverouter, row.next))
    y, published = (
        place + 0.13,
        {OURS: row.published_saverouter, getattr(row, "published_next_router", rival): row.published_next},
    )
    if rival:
        ax.plot([ours, following], [y, y], color="#d5dae0", lw=3, zorder=1)
    if np.isfinite(row.low) and np.isfinite(row.high):
        ax.plot([row.low, row.high], [y, y], "|-", color=ACCENT, ms=10, mew=1.8, lw=1.8, zorder=3)
    left = {OURS: ours <= following or not rival, rival: ours > following or following == lane}
    _measured(ax, OURS, ours, y, f"{OURS} {short(row.saverouter)}" if name_ours else short(row.saverouter), left[OURS], lane,
              edge=min(ours, row.low) if left[OURS] and np.isfinite(row.low) else ours)  # fmt: skip
    if rival:
        _measured(ax, rival, following, y, f"{rival} {short(row.next)}".removesuffix(" never"), left[rival], lane)
    else:
        ax.annotate("no other router pays back", (lane, y), xytext=(-26, 0), textcoords="offset points", ha="right", va="center",
                    color=SOFT, fontsize=10)  # fmt: skip
    for name, value in published.items():
        if not np.isnan(value):
            ax.plot(
                value if np.isfinite(value) else lane,
                place - 0.25,
                "o",
                ms=8,
                mfc="white",
                mec=colour(name),
                mew=1.9,
                zorder=4,
            )
    if isinstance(row.never, str) and row.never:
        ax.annotate(f"never on\n{row.never} seeds", (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0), va="center",
                    textcoords="offset points", color=ACCENT, fontsize=9.5)  # fmt: skip


def _measured(
    ax: Axes, name: str, at: float, y: float, text: str, left: bool, lane: float, edge: float | None = None
) -> None:
    """A large dot and its label on the side away from the other one; in the lane SaveRouter needs none."""
    ax.plot(at, y, "o", ms=12, color=colour(name), mec="white", mew=1.2, zorder=5 if name == OURS else 4)
    if name != OURS or at != lane:
        ax.annotate(text, (edge or at, y), xytext=(-10 if left else 10, 0), textcoords="offset points", va="center", fontsize=11,
                    ha="right" if left else "left", color=colour(name), fontweight="bold" if name == OURS else None)  # fmt: skip
