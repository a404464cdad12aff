"""Choosing before deployment: the certificate's path, what is kept, and what certainty costs. The figures of notebook 10."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ...judging import Certificate, in_points
from .look import ACCENT, GREY, INK, SOFT, colour, label_ends, short

WAYS = {"router's own estimates": "#d55e00", "test outcomes": GREY, "certificate": ACCENT}


def certificate_path(certificate: Certificate, ax: Axes) -> Axes:
    """Every policy of a certificate's path, from "always the reference" to the right: the measured difference in quality, its
    lower bound, the margin, and the policy that was kept."""
    table = certificate.path
    left, margin = 100 * table["share"], -certificate.margin
    ax.axhline(0, color=INK, lw=1)
    ax.axhline(margin, color="#c2403a", lw=1.4, ls="--")
    ax.annotate(f"margin: {in_points(certificate.margin)}", (0, margin), xytext=(4, -4), textcoords="offset points", va="top",
                color="#c2403a", fontsize=10)  # fmt: skip
    ax.plot(left, table["estimate"], color=colour("kNN"), lw=1.6)
    ax.plot(left, table["bound"], color=ACCENT, lw=2.2)
    known = table[np.isfinite(table["bound"])]
    if len(known):
        last = known.iloc[-1]
        for name, shade, text in (("estimate", colour("kNN"), "measured"), ("bound", ACCENT, "at least")):
            ax.annotate(text, (100 * last["share"], last[name]), xytext=(6, 0), textcoords="offset points", va="center",
                        color=shade, fontsize=10, annotation_clip=False)  # fmt: skip
    if certificate.share:
        ax.plot(100 * certificate.share, certificate.bound, "o", ms=10, color=ACCENT, mec="white", mew=1.4, zorder=4)
        text = f"kept: leaves the reference\non {certificate.share:.0%} of queries"
        ax.annotate(text, (100 * certificate.share, certificate.bound), xytext=(-8, -10), textcoords="offset points",
                    ha="right", va="top", color=ACCENT, fontsize=10)  # fmt: skip
    ax.set(
        xlabel="queries that leave the reference, %", ylabel="points of quality against the reference", xlim=(0, 100)
    )
    return ax


def differences(table: pd.DataFrame, ax: Axes, margin: float) -> Axes:
    """A dot per run: points of quality against the reference, by workload and way to choose; left of the dashed line the
    promise is broken. ``table`` has workload, chosen on, difference; one number of fresh queries per workload."""
    names, step = list(dict.fromkeys(table["workload"])), len(WAYS) + 1.0
    rng = np.random.default_rng(0)
    ax.axvline(0, color=INK, lw=1)
    ax.axvline(-margin, color="#c2403a", lw=1.4, ls="--")
    ticks = {}
    for place, name in enumerate(names):
        for row, (way, shade) in enumerate(WAYS.items()):
            y = -step * place - row
            found = table[(table["workload"] == name) & (table["chosen on"] == way)]["difference"]
            held = (found >= -margin - 1e-9).sum()
            ax.plot(
                found.clip(lower=-FURTHEST),
                y + rng.uniform(-0.22, 0.22, len(found)),
                "o",
                ms=5,
                color=shade,
                alpha=0.6,
                mec="white",
                mew=0.3,
                ls="",
            )
            ax.annotate(f"{held} of {len(found)}", (1, y), xycoords=("axes fraction", "data"), xytext=(5, 0), va="center",
                        textcoords="offset points", color=shade if shade != GREY else SOFT, fontsize=9)  # fmt: skip
            ticks[y] = (way, shade if shade != GREY else SOFT)
        ax.text(0.01, -step * place + 0.62, name.rpartition("/")[2], transform=ax.get_yaxis_transform(), va="center", color=INK,
                fontsize=10.5, fontweight="bold", bbox=dict(fc="white", lw=0, pad=0.5))  # fmt: skip
    ax.set_yticks(list(ticks), [way for way, _ in ticks.values()])
    for tick, (_, shade) in zip(ax.get_yticklabels(), ticks.values(), strict=True):
        tick.set(color=shade, fontsize=9.5)
    ax.set(
        ylim=(-step * len(names) + 0.6, 1.0),
        xlim=(max(-FURTHEST, table["difference"].min()) - 0.5, None),
        xlabel="points of quality against the reference",
    )
    ax.grid(False, axis="y")
    return ax


FURTHEST = 10.0  # points; what lies further left is drawn there


def bills_over_fresh(table: pd.DataFrame, ax: Axes, horizon: int) -> Axes:
    """The whole bill over a horizon against the number of fresh queries, a line per workload with its 95% interval.

    ``table`` has workload, fresh, mean, from and to. Above 1 nothing is saved; what is above ``DEAREST`` is not drawn.
    """
    ax.axhline(1, color=INK, lw=1)
    ends = []
    for place, (name, points) in enumerate(table.groupby("workload", sort=False)):
        shade = LINES[place % len(LINES)]
        points = points.sort_values("fresh")
        ax.fill_between(points["fresh"], points["from"], points["to"], color=shade, alpha=0.12, lw=0)
        ax.plot(points["fresh"], points["mean"], "o-", color=shade, lw=1.8, ms=5)
        ends.append((min(points["mean"].iloc[-1], DEAREST - 0.05), name.rpartition("/")[2], shade))
    marks = sorted(table["fresh"].unique())
    ax.set(xscale="log", ylim=(0, DEAREST), xlabel="fresh queries")
    ax.set_xticks(marks, [short(mark) for mark in marks])
    ax.minorticks_off()
    ax.set_title(f"over {short(horizon)} queries", loc="left", fontsize=11, color=INK)
    label_ends(ax, max(marks), ends)
    return ax


DEAREST = 1.6
LINES = (ACCENT, "#d55e00", "#009e73", "#b0568c", "#c98a00", "#7b5ea7", "#5a6472")
