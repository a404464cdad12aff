"""Money over queries, quality against money, and what little supervision teaches: the figures of routers' results."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...judging import Result
from .look import ACCENT, GREY, INK, SOFT, colour, headline, label_ends, never_lane, queries_axis, short

OURS, DASHES = "SaveRouter", ("-", "--", ":", "-.")


def payback(
    results: dict[str, Result], volume: float | None = None, ax: Axes | None = None, dollars: bool = False
) -> Axes:
    """Net saving over deployment volume: one line per router, a dot where it crosses zero, the volume in its label.

    The unit is the dollar, or the price of one query to the best single model. ``volume`` is the right end of the axis; by
    default a little beyond the latest payback. Who does not pay back, or not within the axis, is named in words.
    """
    ax = ax or plt.subplots()[1]
    volume = volume or 1.6 * max((r.sa_bep for r in results.values() if np.isfinite(r.sa_bep)), default=100_000)
    volumes, ends, said, used = np.array([0, volume]), [], [], {}
    for name, result in results.items():
        shade, saved = colour(name), result.net_saving([0, volume]) / (1 if dollars else result.reference.cost)
        used[shade] = used.get(shade, -1) + 1  # variants of one router share its colour, not its dashes
        if np.isnan(saved).all():
            said.append(f"{name}: never, the quality is not reached")
            continue
        ax.plot(volumes, saved, color=shade, lw=2.2, ls=DASHES[used[shade] % len(DASHES)])
        ends.append((saved[-1], f"{name}: {short(result.sa_bep)}", shade))
        if result.sa_bep <= volume:
            ax.plot(result.sa_bep, 0, "o", color=shade, ms=9, mec="white", mew=1.2, zorder=3)
        else:
            saves = np.isfinite(result.sa_bep)
            said.append(f"{name}: {f'after {short(result.sa_bep)} queries' if saves else 'never, nothing is saved'}")
    ax.axhline(0, color=INK, lw=1)
    ax.set(
        xlabel="queries served", ylabel=f"{'dollars' if dollars else 'best-model queries'} saved, supervision deducted"
    )
    ax.set_xlim(0, volume)
    queries_axis(ax, "x", log=False)
    ax.yaxis.set_major_formatter(lambda value, _: f"{'−' if value < 0 else ''}{_amount(abs(value), dollars)}")
    label_ends(ax, volume, ends)
    if said:
        ax.text(0.02, 0.97, "\n".join(said), transform=ax.transAxes, va="top", color=SOFT, fontsize=10)
    return ax


def _amount(value: float, dollars: bool) -> str:
    return f"${value:,.0f}" if dollars else short(value)


def frontier(
    results: dict[str, Result], ax: Axes | None = None, title: str = "", lines: Iterable[str] | None = None,
    spoken_of: Iterable[str] = (), span: tuple[float, float] | None = None, right: float | None = None,
) -> Axes:  # fmt: skip
    """Quality, in points above or below the best single model (the cross), against serving cost relative to it.

    Routers of ``lines`` (all by default) are drawn as frontiers; of the others the peak is shown, labelled where they are
    ``spoken_of`` and grey where not. Peaks outside ``span`` (points) or dearer than ``right`` are arrows at the edge, with
    names.
    """
    ax = ax or plt.subplots()[1]
    lines = tuple(results if lines is None else lines)
    named, outside = {*lines, *spoken_of}, {"below": [], "dearer": []}
    peaks = {name: _peak(result) for name, result in results.items()}
    low, high = span or _span([y for _, y in peaks.values()])
    right = right or 1.05 * max(1.1, max(x for x, _ in peaks.values()))
    ax.axhline(0, color=SOFT, lw=1, ls=":", zorder=1)
    ax.plot(1, 0, "x", color=INK, ms=13, mew=2.2, zorder=2)  # under the peaks, so that it hides none
    ax.annotate("best single model", (1, 0), xytext=(0, -11), textcoords="offset points", ha="center", va="top", fontsize=9,
                color=INK, zorder=2)  # fmt: skip
    for name in sorted(results, key=lambda name: (name in named, name == OURS)):
        (x, y), shade, result = peaks[name], colour(name, named), results[name]
        if name in lines:
            points = result.frontier
            ax.step(points["cost"] / result.reference.cost, 100 * (points["quality"] - result.reference.quality),
                    where="post", color=shade, lw=2, label=name, zorder=3)  # fmt: skip
        if low <= y and x <= right:
            ax.plot(x, y, "o", color=shade, ms=8 if name in named else 6.5, mec="white", mew=1, zorder=4)
        else:
            kind, at = ("below", (min(x, right), low)) if y < low else ("dearer", (right, y))
            ax.plot(*at, "v" if kind == "below" else ">", color=shade, ms=8, clip_on=False, zorder=5)
            outside[kind].append(f"{name} {y:+.1f}".replace("-", "−") if kind == "below" else f"{name} {x:.2g}")
    ax.set(xlim=(0, right), ylim=(low, high), xlabel="serving cost / best single model's")
    ax.set_ylabel("points above the best single model")
    ax.set_title(title, loc="left", fontsize=11, color=INK)
    _name_peaks(
        ax, {name: at for name, at in peaks.items() if name in named and low <= at[1] and at[0] <= right}, named
    )
    said = [f"{kind}: {', '.join(names)}" for kind, names in outside.items() if names]
    if said:
        ax.text(0.015, 0.02, "\n".join(map(_wrapped, said)), transform=ax.transAxes, va="bottom", fontsize=8.5, color=SOFT,
                zorder=6, bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1})  # fmt: skip
    return ax


def _peak(result: Result) -> tuple[float, float]:
    """Relative cost of the point of highest quality, and by how many points it is above the best single model."""
    best = result.frontier.loc[result.frontier["quality"].idxmax()]
    return best["cost"] / result.reference.cost, 100 * (best["quality"] - result.reference.quality)


def _span(peaks: list[float]) -> tuple[float, float]:
    """All peaks, but never less than two points, so that noise stays small."""
    low, high = min(*peaks, 0.0), max(*peaks, 0.0)
    margin = max(0.1 * (high - low), (2 - (high - low)) / 2)
    return low - margin, high + margin


def _name_peaks(ax: Axes, peaks: dict[str, tuple[float, float]], named: Iterable[str]) -> None:
    """Names above their peaks, from the highest down; one that would meet another goes below or further down."""
    taken, (left, right), (low, high) = [], ax.get_xlim(), ax.get_ylim()
    box = ax.get_window_extent()
    for name, (x, y) in sorted(peaks.items(), key=lambda item: (item[0] != OURS, -item[1][1])):
        px, py = (x - left) / (right - left) * box.width, (y - low) / (high - low) * box.height
        wide, tall = 0.075 * ax.figure.dpi * len(name), 0.17 * ax.figure.dpi
        px = float(np.clip(px, wide / 2, box.width - wide / 2))
        tries = [py + step * tall for step in (0.95, -0.95, 1.9, -1.9, 2.9, -2.9)]
        free = [at for at in tries if tall / 2 < at < box.height and all(
            abs(px - x2) > (wide + wide2) / 2 or abs(at - y2) > tall for x2, y2, wide2 in taken)]  # fmt: skip
        at = (free or tries)[0]
        taken.append((px, at, wide))
        ax.text(left + px / box.width * (right - left), low + at / box.height * (high - low), name, ha="center", va="center",
                color=colour(name, named), fontsize=10, zorder=6)  # fmt: skip


def _wrapped(text: str, width: int = 58) -> str:
    lines = [""]
    for word in text.split(", "):
        lines = (
            [*lines, word]
            if len(lines[-1]) + len(word) > width
            else [*lines[:-1], ", ".join(filter(None, (lines[-1], word)))]
        )
    return ",\n".join(filter(None, lines))


def saturation_curve(
    curve: pd.DataFrame,
    recovered: pd.Series,
    best_single: float,
    ax: Axes | None = None,
    spoken_of: Iterable[str] | None = None,
) -> Axes:
    """Peak score, in points above the best single model, against the share of outcomes bought; bands span the draws.

    Diamonds mark the share from which on a router keeps 99% of its score with everything.
    """
    ax = ax or plt.subplots()[1]
    ends = []
    for name, points in curve.groupby("router", sort=False):
        shade = colour(name, spoken_of)
        draws = (100 * (points["peak_score"] - best_single)).groupby(points["supervision"])
        mean, at = draws.mean(), recovered[name]
        ax.plot(mean.index, mean, "o-", color=shade, ms=4.5, lw=2)
        if points["seed"].nunique() > 1:
            ax.fill_between(mean.index, draws.min(), draws.max(), color=shade, alpha=0.13, lw=0)
        ax.plot(at, mean[at], "D", color=shade, ms=12, mfc="white", mew=2.2, zorder=4)
        ax.annotate(f"{at:.0%}", (at, mean[at]), xytext=(0, 11), textcoords="offset points", color=shade, ha="center",
                    fontweight="bold", zorder=5)  # fmt: skip
        ends.append((mean.iloc[-1], name, shade))
    ax.axhline(0, color=INK, lw=1.2)
    ends.append((0.0, "best single model", INK))
    ax.set(xlabel="share of outcomes bought", ylabel="points above the best single model", xlim=(0, 1))
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    label_ends(ax, 1, ends)
    return ax


def margins(table: pd.DataFrame, ax: Axes | None = None, router: str = OURS) -> Axes:
    """The router's serving cost beside the cheapest single model's, for every number of points that may go.

    ``table`` is ``designs.without_router`` of one workload. A bar is a share of the best single model's cost.
    """
    ax = ax or plt.subplots()[1]
    ratios = {router: table["cost_ratio"].to_numpy(), "": table["its cost ratio"].to_numpy()}
    models = table["cheapest single model"].str.rpartition("/")[2].tolist()
    places = np.arange(len(table))[::-1]
    for shift, (name, values) in zip((0.19, -0.19), ratios.items(), strict=True):
        shade = colour(name) if name else GREY
        ax.barh(places + shift, np.where(np.isfinite(values), values, 0), height=0.34, color=shade)
        for place, value, model in zip(places, values, models, strict=True):
            reached = f"{value:.0%}" if value >= 0.1 else f"{100 * value:.1f}%"
            text = f"{name or model} {reached}" if np.isfinite(value) else f"{name}: not reached"
            inside = np.isfinite(value) and value > 0.75
            ax.annotate(text, (value if np.isfinite(value) else 0, place + shift), xytext=(-6 if inside else 6, 0),
                        textcoords="offset points", va="center", ha="right" if inside else "left", fontsize=10,
                        color=("white" if name else INK) if inside else (shade if name else INK))  # fmt: skip
    goals = ["none" if margin == 0 else f"{margin:g}" for margin in table["points below the best"]]
    ax.set(yticks=places, yticklabels=goals, ylabel="points of quality\nthat may go", xlabel="cost per query / best single model's",
           xlim=(0, max(1, np.nanmax(np.where(np.isfinite(ratios[router]), ratios[router], 0)))))  # fmt: skip
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.grid(False, axis="y")
    return ax


def paybacks(table: pd.DataFrame, paper: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Queries until payback of every router, one row per benchmark: measured (filled), and below it published (hollow).

    SaveRouter and the earliest of the others are labelled. Who never pays back is counted beside the lane "never".
    """
    names = list(dict.fromkeys(table["benchmark"]))
    ax = ax or plt.subplots(figsize=(9.6, 1.05 * len(names) + 1.6))[1]
    paper = paper[paper["benchmark"].isin(names)]
    both = np.concatenate([frame["sa_bep"].to_numpy(float) for frame in (table, paper)])
    finite = both[np.isfinite(both)] if np.isfinite(both).any() else np.array([1e3, 1e5])
    ax.set_xlim(finite.min() / 10**0.95, finite.max())
    queries_axis(ax, "x")
    lane = never_lane(ax, finite.max(), along="x")
    for place, name in enumerate(reversed(names)):
        ax.axhspan(place - 0.5, place + 0.5, color="#f7f8fa" if place % 2 else "white", lw=0, zorder=-1)
        for shift, frame, hollow in ((0.19, table, False), (-0.23, paper, True)):
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
        shift = -shift or 0.09 if np.log10(volume) - last < 0.075 else 0.0
        last, shade = np.log10(volume), colour(name, (following,))
        ax.plot(volume, y + shift, "o", ms=9 if name in (OURS, following) else 7, color=shade, zorder=4 if name == OURS else 3,
                mfc="white" if hollow else shade, mec=shade if hollow else "white", mew=1.8 if hollow else 1)  # fmt: skip
        if name in (OURS, following):
            first = name == volumes.idxmin()
            ax.annotate(f"{name} {short(volume)}", (volume, y + shift), xytext=(-8 if first else 0, 0 if first else 7),
                        textcoords="offset points", ha="right" if first else "left", va="center" if first else "bottom",
                        fontsize=10, color=shade, fontweight="bold" if name == OURS and not hollow else None)  # fmt: skip
    never = ~np.isfinite(volumes)
    if never.get(OURS, False):
        ax.plot(lane, y, "o", ms=9, color=ACCENT, mfc="white" if hollow else ACCENT, mew=1.8, zorder=4)
        ax.annotate(OURS, (lane, y), xytext=(-8, 0), textcoords="offset points", ha="right", va="center", fontsize=10,
                    color=ACCENT, fontweight=None if hollow else "bold")  # fmt: skip
    ax.annotate(f"{never.sum()} of {len(volumes)} never", (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=9.5, color=SOFT)  # fmt: skip


def hero(table: pd.DataFrame, title: str, subtitle: str = "") -> Figure:
    """Workloads down, queries until payback across: SaveRouter against the next router.

    Columns: workload, saverouter, next_router, next, published_saverouter, published_next, low, high (whiskers over seeds),
    never (how many seeds never pay back, such as "4 of 5", or ""). Published values are hollow.
    """
    values = table[["saverouter", "next", "published_saverouter", "published_next", "low", "high"]].to_numpy(float)
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([1e3, 1e5])
    figure, ax = plt.subplots(figsize=(10, 0.62 * len(table) + 1.7))
    ax.set_xlim(finite.min() / 10**0.45, finite.max())
    queries_axis(ax, "x")
    lane = never_lane(ax, finite.max(), along="x")
    for place, row in zip(range(len(table) - 1, -1, -1), table.itertuples(), strict=True):
        _hero_row(ax, row, place, lane)
    ax.set(yticks=range(len(table)), yticklabels=table["workload"][::-1], ylim=(-0.6, len(table) - 0.4))
    ax.set_xlabel("queries until payback")
    ax.tick_params(axis="y", labelsize=11.5, labelcolor=INK, length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(False, axis="y")
    headline(figure, title, subtitle)
    return figure


def _hero_row(ax: Axes, row, place: int, lane: float) -> None:
    """A workload: whisker, measured pair with labels, published pair below it, and what happened in the lane."""
    rival = row.next_router if isinstance(row.next_router, str) else ""
    theirs = getattr(row, "published_next_router", rival)
    ours, following = (value if np.isfinite(value) else lane for value in (row.saverouter, row.next))
    y, below = place + 0.12, place - 0.26
    if rival:
        ax.plot([ours, following], [y, y], color="#d5dae0", lw=3, zorder=1)
    if np.isfinite(row.low) and np.isfinite(row.high):
        ax.errorbar(
            ours,
            y,
            xerr=[[max(0, ours - row.low)], [max(0, row.high - ours)]],
            color=ACCENT,
            capsize=4,
            lw=1.8,
            zorder=3,
        )
    earlier = ours <= following or not rival
    start = min(ours, row.low if np.isfinite(row.low) else ours)
    labels = [(start if earlier else ours, ours, short(row.saverouter), OURS, earlier)]
    labels += [(following, following, f"{rival} {short(row.next)}", rival, not earlier)] if rival else []
    for edge, at, text, name, left in labels:
        shade = colour(name)
        ax.plot(at, y, "o", ms=12, color=shade, mec="white", mew=1.2, zorder=5 if name == OURS else 4)
        if at < lane or name != OURS:
            left = left or at == lane
            text = text.removesuffix(" never")
            ax.annotate(text, (edge, y), xytext=(-10 if left else 10, 0), textcoords="offset points", va="center", fontsize=11,
                        ha="right" if left else "left", color=shade, fontweight="bold" if name == OURS else None)  # fmt: skip
    for value, name in ((row.published_saverouter, OURS), (row.published_next, theirs)):
        if not np.isnan(value):
            shade = colour(name) if isinstance(name, str) else SOFT
            ax.plot(value if np.isfinite(value) else lane, below, "o", ms=8, mfc="white", mec=shade, mew=1.9, zorder=4)
    if not rival:
        ax.annotate("no other router pays back", (lane, y), xytext=(-26, 0), textcoords="offset points", ha="right", va="center",
                    color=SOFT, fontsize=10)  # fmt: skip
    if row.never:
        shift = -14 if ours == lane else 0
        ax.annotate(row.never, (lane, y), xytext=(0, shift), textcoords="offset points", ha="center", va="center", color=ACCENT,
                    fontsize=10)  # fmt: skip
