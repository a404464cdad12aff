"""Outcomes that are bought: the money over time, as the ledger has it; ways to buy at equal money; cascades and their judges."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...workloads.ledger import LedgerContents
from .look import ACCENT, GREY, INK, SOFT, colour, legend_below, panels

SHOWN = 0.0005  # a smaller difference is written as zero


def money_over_time(book: LedgerContents, ax: Axes | None = None) -> Axes:
    """What was spent, and above it what is set aside for calls under way; the time between two runs is left out."""
    ax = ax or plt.subplots(figsize=(8, 4))[1]
    calls, starts, gone, spent = book.calls, book.runs["at"].to_numpy(), 0.0, 0.0
    run = np.searchsorted(starts, calls["at"].to_numpy(), side="right") - 1
    for place in np.unique(run):
        mine = calls[run == place]
        end = (mine["at"] + mine["seconds"].fillna(0.0)).to_numpy()
        start = mine["at"].min()
        if gone:
            ax.axvline(gone, color=SOFT, lw=1, ls=":")
            ax.annotate("stopped,\nthen resumed", (gone, 0.97), xycoords=("data", "axes fraction"), xytext=(6, 0),
                        textcoords="offset points", va="top", color=SOFT, fontsize=10)  # fmt: skip
        moments = np.concatenate([mine["at"], end]) - start + gone
        order = np.argsort(moments, kind="stable")
        worst, known = mine["worst"].to_numpy(), mine["status"].notna().to_numpy()
        money = spent + np.concatenate([np.zeros(len(mine)), mine["cost"].fillna(0.0)])[order].cumsum()
        aside = np.concatenate([worst, np.where(known, -worst, 0.0)])[order].cumsum()
        at = moments[order]
        ax.fill_between(
            at, money, money + aside, step="post", color=GREY, lw=0, label="set aside" if not gone else None
        )
        ax.step(at, money, where="post", color=ACCENT, lw=2, label="spent" if not gone else None)
        gone, spent = at[-1], money[-1]
    cap = book.runs["max_spend"].iloc[-1]
    if cap <= 3 * max(spent, 1e-300):
        ax.axhline(cap, color=INK, lw=1)
        ax.annotate("cap", (1, cap), xycoords=("axes fraction", "data"), xytext=(-4, 4), textcoords="offset points",
                    ha="right")  # fmt: skip
    ax.set(
        xlim=(0, None), ylim=(0, None), xlabel="seconds", ylabel=f"money{', ' + book.currency if book.currency else ''}"
    )
    ax.legend(loc="upper left", frameon=False)
    return ax


def gains(rows: pd.DataFrame, ax: Axes, names: str, unit: str, last: str | None = None) -> Axes:
    """Differences with their intervals, a row each: filled where the interval lies off zero by as much as tables show.

    ``rows`` has the column ``names``, difference, from and to, and may have ``tables from`` and ``tables to``, which are drawn
    thin. What is ``last`` lies below a line, and what has no difference says so.
    """
    ordered = list(rows[names])
    places = {name: len(ordered) - 1 - row - 0.6 * (name == last) for row, name in enumerate(ordered)}
    ax.axvline(0, color=INK, lw=1)
    for row in rows.to_dict("records"):
        y, shade = places[row[names]], ACCENT
        if not np.isfinite(row["difference"]):
            ax.annotate(
                "too few queries",
                (0, y),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=SOFT,
                fontsize=9,
            )
            continue
        if np.isfinite(row.get("tables from", np.nan)):
            ax.plot([row["tables from"], row["tables to"]], [y, y], color=shade, lw=1)
        ax.plot([row["from"], row["to"]], [y, y], color=shade, lw=2.8)
        sure = row["from"] >= SHOWN or row["to"] <= -SHOWN
        ax.plot(row["difference"], y, "o", ms=8, color=shade, mfc=shade if sure else "white", mew=1.6, zorder=3)
    if last is not None:
        ax.axhline(places[last] + 0.8, color="#c9cfd6", lw=1)
    ax.set(yticks=list(places.values()), xlabel=unit, ylim=(min(places.values()) - 0.6, len(ordered) - 0.4))
    ax.set_yticklabels([name.rpartition("/")[2] for name in places])
    ax.tick_params(axis="y", labelsize=10.5, labelcolor=INK)
    ax.grid(False, axis="y")
    ax.margins(x=0.1)
    return ax


def gains_by_size(rows: pd.DataFrame, ax: Axes, everywhere: str) -> Axes:
    """What anchored buying gains against the number of training queries: workloads in grey, their mean with its interval.

    ``rows`` is the frame of ``purchases.enough_queries``.
    """
    ax.axhline(0, color=INK, lw=1)
    for _, points in rows[rows["workload"] != everywhere].groupby("workload", sort=False):
        points = points.sort_values("queries")
        ax.plot(points["queries"], points["difference"], "-o", ms=3.5, lw=1, color=GREY, label="one workload")
    mean = rows[rows["workload"] == everywhere].sort_values("queries")
    for row in mean.to_dict("records"):
        ax.plot([row["queries"]] * 2, [row["tables from"], row["tables to"]], color=ACCENT, lw=1)
        ax.plot([row["queries"]] * 2, [row["from"], row["to"]], color=ACCENT, lw=2.8)
    ax.plot(mean["queries"], mean["difference"], "o-", ms=8, color=ACCENT, label="mean of the workloads, 95% intervals")
    sizes = sorted(rows["queries"].unique())
    ax.set(xscale="log", xlabel="training queries", ylabel="certified saving gained")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.grid(False, axis="x")
    return ax


def savings_by_judge(found: pd.DataFrame, plain: str, routed: str, reference: str) -> Figure:
    """What cascades save against their judge's error, a panel per workload, beside SaveRouter, which has no judge.

    ``found`` is the frame of ``cascades.savings`` at one margin; the band is a 95% interval over splits.
    """
    figure, axes = panels([name.rpartition("/")[2] for name in dict.fromkeys(found["workload"])], height=2.7)
    looks = {
        ("evenly", plain): ("-", colour("kNN"), "cascade"),
        ("on hard", plain): (":", colour("kNN"), "cascade whose judge errs more on hard queries"),
        ("evenly", routed): ("-", colour("WISERouter"), "cascade, SaveRouter ahead"),
    }
    for name, rows in found.groupby("workload", sort=False):
        ax = axes[name.rpartition("/")[2]]
        for (errs, router), (line, shade, label) in looks.items():
            points = rows[(rows["judge errs"] == errs) & (rows["router"] == router)].sort_values("judge error")
            ax.plot(points["judge error"], points["mean"], line, marker="o", ms=4, color=shade, lw=1.8, label=label)
            if line == "-":
                ax.fill_between(points["judge error"], points["from"], points["to"], color=shade, alpha=0.12, lw=0)
        ax.axhline(rows[reference].mean(), color=ACCENT, lw=2.2, label=reference)
        ax.set(xlabel="probability that the judge errs", ylabel="saving", ylim=(-0.04, 1))
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    legend_below(figure, 2)
    return figure
