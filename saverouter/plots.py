"""The figures: functions of results that return axes, with labels on the lines and a colour-blind palette."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from .evaluate import Result

PALETTE = [*sns.color_palette("colorblind"), (0.35, 0.1, 0.1)]
MARKERS = "osD^vP<>phd"


def style() -> None:
    """White face, thin grid; call once in a notebook."""
    sns.set_theme(style="whitegrid", context="notebook", rc={"axes.spines.top": False, "axes.spines.right": False})
    plt.rcParams.update({"figure.facecolor": "white", "figure.figsize": (8, 4.5), "svg.hashsalt": "saverouter"})


def payback(results: dict[str, Result], volume: float | None = None, ax=None):
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


def _label_ends(ax, x: float, ends: list[tuple[float, str, tuple]]) -> None:
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
    results: dict[str, Result], ax=None, title: str = "", lines: tuple[str, ...] | None = None, legend: bool = True
):
    """Quality against serving cost relative to the best single model, which is the cross.

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


def saturation(curve: pd.DataFrame, recovered: pd.Series, ax=None):
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


def short(number: float) -> str:
    """5263 as 5.3K, 1.23e6 as 1.23M, as the paper prints them."""
    if not np.isfinite(number):
        return "inf"
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}K" if number >= 1e3 else f"{number:.0f}"
