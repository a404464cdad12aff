"""Money over queries, quality against money, and what little supervision teaches: the figures of routers' results."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ...judging import Result
from .look import GREY, INK, SOFT, colour, label_ends, name_points, queries_axis, short

OURS, DASHES = "SaveRouter", ("-", "--", ":", "-.")


def payback(
    results: dict[str, Result], volume: float | None = None, ax: Axes | None = None, dollars: bool = False
) -> Axes:
    """Net saving over deployment volume: one line per router, a dot where it crosses zero, the volume in its label.

    The unit is the dollar, or the price of one query to the best single model unless that is free. ``volume`` is the
    right end of the axis; by default a little beyond the latest payback. Who does not pay back, or not within the axis,
    is named in words.
    """
    ax = ax or plt.subplots()[1]
    volume = volume or 1.6 * max((r.sa_bep for r in results.values() if np.isfinite(r.sa_bep)), default=100_000)
    volumes, ends, said, used = np.array([0, volume]), [], [], {}
    for name, result in results.items():
        shade, saved = colour(name), result.net_saving([0, volume]) / (1 if dollars else _price(result))
        used[shade] = used.get(shade, -1) + 1  # variants of one router share its colour, not its dashes
        if np.isnan(saved).all():
            said.append(f"{name}: never, the quality is not reached")
            continue
        ax.plot(volumes, saved, color=shade, lw=2.2, ls=DASHES[used[shade] % len(DASHES)])
        ends.append((saved[-1], f"{name}: {short(result.sa_bep)}", shade))
        if result.sa_bep <= volume:
            ax.plot(
                result.sa_bep, 0, "o", ms=9, mfc=(shade, 0.35), mec=shade, mew=2, zorder=3
            )  # neighbours show through
        else:
            saves = np.isfinite(result.sa_bep)
            said.append(f"{name}: {f'after {short(result.sa_bep)} queries' if saves else 'never, nothing is saved'}")
    ax.axhline(0, color=INK, lw=1)
    unit = "dollars" if dollars else "cost" if _free(results) else "best-model queries"
    ax.set(xlabel="queries served", ylabel=f"{unit} saved, net")
    ax.set_xlim(0, volume)
    queries_axis(ax, "x", log=False)
    ax.yaxis.set_major_formatter(lambda value, _: f"{'−' if value < 0 else ''}{_amount(abs(value), dollars)}")
    label_ends(ax, volume, ends)
    if said:
        if all(saved <= 0 for saved, *_ in ends):  # the axis is at the top, where the words go
            low, high = ax.get_ylim()
            ax.set_ylim(low, high + 0.1 * len(said) * (high - low))
        ax.text(0.02, 0.97, "\n".join(said), transform=ax.transAxes, va="top", color=SOFT, fontsize=10)
    return ax


def _amount(value: float, dollars: bool) -> str:
    return (f"${value:,.0f}" if value >= 10 else f"${value:.2g}") if dollars else short(value)


def _price(result: Result) -> float:
    """What costs are divided by: the best single model's, or 1 where that is free."""
    return result.reference.cost or 1.0


def _free(results: dict[str, Result]) -> bool:
    return any(result.reference.cost == 0 for result in results.values())


def frontier(
    results: dict[str, Result], ax: Axes | None = None, title: str = "", lines: Iterable[str] | None = None,
    spoken_of: Iterable[str] = (), span: tuple[float, float] | None = None, right: float | None = None,
) -> Axes:  # fmt: skip
    """Quality, in points above or below the best single model (the cross), against serving cost relative to it.

    Routers of ``lines`` (all by default) are drawn as frontiers; of the others the peak is shown, labelled where they are
    ``spoken_of`` and grey where not. Peaks below ``span`` (points) or dearer than ``right`` are arrows at the edge, and
    named in words.
    """
    ax = ax or plt.subplots()[1]
    lines = tuple(results if lines is None else lines)
    named, outside, drawn = {*lines, *spoken_of}, {"below": [], "right of": []}, []
    peaks = {name: _peak(result) for name, result in results.items()}
    low, high = span or _span([y for _, y in peaks.values()])
    right = right or 1.05 * max(0 if _free(results) else 1.1, max(x for x, _ in peaks.values())) or 1.0
    free = _free(results)
    ax.set(xlim=(0, right), ylim=(low, high), xlabel="serving cost" if free else "serving cost / best single model's")
    ax.set_ylabel("points above the best single model")
    ax.set_title(title, loc="left", fontsize=11, color=INK)
    ax.axhline(0, color=SOFT, lw=1, ls=":", zorder=1)
    ax.plot(not free, 0, "x", color=INK, ms=14, mew=2.2, zorder=2, label="best single model", ls="")  # it hides no peak
    for name in sorted(results, key=lambda name: (name in named, name == OURS)):
        (x, y), shade, result = peaks[name], colour(name, named), results[name]
        if name in lines:
            costs = result.frontier["cost"] / _price(result)
            above = 100 * (result.frontier["quality"] - result.reference.quality)
            ax.step(costs, above, where="post", color=shade, lw=2, label=name, zorder=3)
            drawn += _along(costs.to_numpy(), above.to_numpy(), (right / 40, (high - low) / 25), low)
        if low <= y and x <= right:
            ax.plot(x, y, "o", color=shade, ms=8 if name in named else 6.5, mec="white", mew=1, zorder=4)
        else:
            kind, at = ("below", (min(x, right), low)) if y < low else ("right of", (right, y))
            ax.plot(*at, "v" if kind == "below" else ">", color=shade, ms=8, clip_on=False, zorder=5)
            outside[kind].append(f"{name}\xa0{y:+.1f}".replace("-", "−") if kind == "below" else f"{name}\xa0{x:.2g}")
    inside = {name: at for name, at in peaks.items() if low <= at[1] and at[0] <= right}
    _name_peaks(ax, inside, named, (float(not free), 0.0), [*inside.values(), *drawn])
    said = [f"{kind} the axis: {', '.join(names)}" for kind, names in outside.items() if names]
    if said:
        ax.text(0.985, 0.05, "\n".join(fill(text, 28) for text in said), transform=ax.transAxes, va="bottom", ha="right",
                fontsize=9, color=SOFT, zorder=6)  # fmt: skip
    return ax


def _along(x: np.ndarray, y: np.ndarray, gaps: tuple[float, float], low: float) -> list[tuple[float, float]]:
    """Points along a line of steps, close enough that a name between two of them would touch it."""
    found = []
    for x0, y0, x1, y1 in zip(x, y, [*x[1:], x[-1]], [*y[1:], y[-1]], strict=True):
        found += [(at, y0) for at in np.arange(x0, x1 + gaps[0], gaps[0])]
        found += [(x1, at) for at in np.arange(max(y0, low), y1, gaps[1])]
    return [(at, height) for at, height in found if height >= low]


def _peak(result: Result) -> tuple[float, float]:
    """Relative cost of the point of highest quality, and by how many points it is above the best single model."""
    best = result.frontier.loc[result.frontier["quality"].idxmax()]
    return best["cost"] / _price(result), 100 * (best["quality"] - result.reference.quality)


def _span(peaks: list[float]) -> tuple[float, float]:
    """All peaks, but never less than two points, so that noise stays small."""
    low, high = min(*peaks, 0.0), max(*peaks, 0.0)
    margin = max(0.1 * (high - low), (2 - (high - low)) / 2)
    return low - margin, high + margin


def _name_peaks(
    ax: Axes, peaks: dict[str, tuple[float, float]], named: set[str], best: tuple[float, float], marks: list
) -> None:
    """Names beside their peaks, from the highest down; that of the best single model finds its place last."""
    names = sorted(
        ((*peaks[name], name, colour(name, named)) for name in peaks if name in named), key=lambda name: -name[1]
    )
    name_points(ax, [*names, (*best, "best single model", INK)], [best, *marks])


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
            text = f"{name or model} {value:.0%}" if value >= 0.1 else f"{name or model} {100 * value:.1f}%"
            if np.isnan(value):
                text = f"{name}: nothing to save" if name else f"{model}: free"
            elif np.isinf(value):
                text = f"{name}: not reached" if name else "no single model"
            inside = np.isfinite(value) and value > 0.75
            ax.annotate(text, (value if np.isfinite(value) else 0, place + shift), xytext=(-6 if inside else 6, 0),
                        textcoords="offset points", va="center", ha="right" if inside else "left", fontsize=10,
                        color=("white" if name else INK) if inside else (shade if name else INK))  # fmt: skip
    goals = [f"{margin:g}" for margin in table["points below the best"]]
    ax.set_xlabel("cost per query / best single model's")
    ax.set(yticks=places, yticklabels=goals, ylabel="points of quality\nthat may go",
           xlim=(0, max(1, np.nanmax(np.where(np.isfinite(ratios[router]), ratios[router], 0)))))  # fmt: skip
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.grid(False, axis="y")
    return ax
