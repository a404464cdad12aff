"""From a table to a decision: what a month costs, where models differ, what budgets and other questions change."""

from __future__ import annotations

from textwrap import wrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from ...judging import Result
from ...studies.advice import money
from ...studies.decision import Decision
from .look import ACCENT, GREY, INK, SOFT, name_points

LONGEST = 26  # characters of a model's name beside a bar or above a column
WARNING = "#c2403a"


def short_name(model: str) -> str:
    """A model's name without its maker, no longer than fits."""
    name = model.rpartition("/")[2] or model
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def nothing(ax: Axes, why: str) -> Axes:
    """What a figure shows where there is no answer, in little room."""
    ax.figure.set_figheight(1.7)
    ax.text(0.01, 0.5, "\n".join(wrap(f"Nothing to show. {why}", 90)), va="center", color=SOFT)
    ax.axis("off")
    return ax


def month(found: Decision, ax: Axes | None = None) -> Axes:
    """What a month costs with the reference alone and with what was decided; the line is the interval of the saving."""
    ax = ax or plt.subplots(figsize=(8, 2.3))[1]
    if found.result is None:
        return nothing(ax, str(found))
    scale = found.monthly / found.month
    saved, low, high = (scale * value for value in found.saved)
    bars = [(f"{short_name(found.reference)} alone", found.bill, GREY)]
    if found.action in ("route", "replace"):
        name = "SaveRouter, certified" if found.action == "route" else f"{short_name(found.policy.model)} alone"
        bars.append((name, found.bill - saved, ACCENT))
    for place, (name, bill, shade) in enumerate(bars):
        ax.barh(-place, bill, height=0.6, color=shade)
        text = f"{name}: {money(bill, found.currency)}"
        inside = bill > 0.6 * found.bill
        before, behind = (
            (bill, bill) if place == 0 else (found.bill - high, found.bill - low)
        )  # the interval is in between
        ax.annotate(text, (before if inside else behind, -place), xytext=(-8 if inside else 8, 0),
                    textcoords="offset points", ha="right" if inside else "left", va="center",
                    color=("white" if shade == ACCENT else INK) if inside else shade)  # fmt: skip
    if len(bars) > 1:
        ax.plot([found.bill - high, found.bill - low], [-1, -1], color=INK, lw=2, solid_capstyle="butt")
    ax.set(yticks=[], xlim=(0, 1.02 * found.bill or 1), ylim=(-len(bars) + 0.45, 0.55))
    ax.set_xlabel(f"cost of {found.monthly:,.0f} queries{', ' + found.currency if found.currency else ''}")
    ax.xaxis.set_major_formatter(lambda value, _: money(value, ""))
    ax.grid(False, axis="y")
    return ax


def by_kind(table: pd.DataFrame, reference: str, ax: Axes | None = None) -> Axes:
    """Points against the reference by kind of query (rows) and model (columns, the cheapest first)."""
    ax = ax or plt.subplots(figsize=(max(6.0, 2.4 + 0.85 * table.shape[1]), max(3.6, 1.7 + 0.36 * len(table))))[1]
    widest = max(5.0, np.nanquantile(np.abs(table.to_numpy()), 0.9))
    sns.heatmap(table, ax=ax, cmap="RdBu", center=0, vmin=-widest, vmax=widest, annot=True, fmt="+.0f", cbar=False,
                linewidths=1, annot_kws={"fontsize": 9})  # fmt: skip
    names = [short_name(model) + (" ◂ today" if model == reference else "") for model in table.columns]
    ax.set_xticklabels(names, rotation=35, ha="right", fontsize=9)
    ax.set_yticklabels(
        [label if len(label) <= 34 else f"{label[:33]}…" for label in table.index], fontsize=9, rotation=0
    )
    ax.set(xlabel="", ylabel="")
    return ax


def chances(found: Decision, chosen: Result | None, ceiling: tuple[float, float], ax: Axes | None = None) -> Axes:
    """Single models, the router's operating points, the certified one and the oracle: points against share of the price.

    Models are named that no other one beats in both.
    """
    ax = ax or plt.subplots(figsize=(8, 4.6))[1]
    if chosen is None:
        return nothing(ax, str(found))
    base = chosen.reference
    price = base.cost or 1.0
    singles = [(one.cost / price, 100 * (one.quality - base.quality), one.model) for one in chosen.singles]
    costs, above = chosen.frontier["cost"] / price, 100 * (chosen.frontier["quality"] - base.quality)
    low = min(-6.0, 1.3 * min(above.min(), 0.0))
    right = max(1.15, 1.08 * costs.max())
    ax.step(costs, above, where="post", color=ACCENT, lw=2, zorder=3)
    ax.axhline(0, color=SOFT, lw=1, ls=":", zorder=1)
    ax.axhline(-found.margin, color=WARNING, lw=1.2, ls="--", zorder=1)
    inside = [(x, y, model) for x, y, model in singles if y >= low and x <= right]
    for x, y, _ in inside:
        ax.plot(x, y, "s", color=INK, ms=6, zorder=4, mec="white")
    gain, cost = ceiling
    ax.plot(cost, gain, "*", color="#009e73", ms=15, zorder=4, mec="white")
    names = [(cost, gain, "oracle", "#009e73")]
    best = [one for one in inside if one[2] == base.model or not any(_beats(other, one) for other in singles)]
    names += [
        (x, y, short_name(model), INK)
        for x, y, model in sorted(best, key=lambda one: (one[2] != base.model, -one[1]))[:8]
    ]
    if found.action == "route":
        point = found.result.operating_point
        at = (point["cost"] / price, 100 * (point["quality"] - base.quality))
        ax.plot(*at, "o", color=ACCENT, ms=12, mec="white", mew=1.5, zorder=5)
        names.insert(0, (*at, "certified", ACCENT))
    top = max(gain, above.max(), 0.5)
    ax.set(xlim=(-0.02 * right, right), ylim=(low, top + 0.12 * (top - low)))
    ax.set(xlabel="cost per query / reference's", ylabel="points against the reference")
    name_points(ax, names, list(zip(costs, above, strict=True)))
    hidden = len(singles) - len(inside)
    if hidden:
        ax.text(0.985, 0.03, f"{hidden} single model{'s' * (hidden > 1)} outside", transform=ax.transAxes, ha="right",
                color=SOFT, fontsize=9)  # fmt: skip
    return ax


def _beats(one: tuple[float, float, str], other: tuple[float, float, str]) -> bool:
    """Whether a model is no dearer and no worse than another, and not the same in both."""
    return one[0] <= other[0] and one[1] >= other[1] and one[:2] != other[:2]


def bill_over_k(table: pd.DataFrame, chosen: int, ax: Axes | None = None) -> Axes:
    """What is left of a year's bill over K, with its interval, and supervision on top; the K that was taken has the accent."""
    ax = ax or plt.subplots(figsize=(8, 3.4))[1]
    if table.empty:
        return nothing(ax, "There is no router, or no bill that it could lower.")
    places = np.arange(len(table))
    serving = 1 - table["saving"]
    ax.bar(places, serving, width=0.55, color=[ACCENT if k == chosen else GREY for k in table["k"]])
    ax.bar(places, table["bill"] - serving, bottom=serving, width=0.55, color="#d55e00")
    ax.vlines(places, 1 - table["to"], 1 - table["from"], color=INK, lw=2)
    for place, row in enumerate(table.to_dict("records")):
        ax.annotate(f"{row['bill']:.1%}", (place, max(row["bill"], 1 - row["from"])), xytext=(0, 4), textcoords="offset points",
                    ha="center", color=INK, fontsize=10, bbox={"color": "white", "pad": 1}, zorder=4)  # fmt: skip
    top = 1.25 * max(table["bill"].max(), 1 - table["from"].min())
    if top >= 1:
        ax.axhline(1, color=INK, lw=1)
    ax.set(xticks=places, xticklabels=[f"K = {k}" for k in table["k"]], ylim=(0, top))
    ax.set_ylabel("a year's bill / reference's")
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    ax.grid(False, axis="x")
    return ax


def answers(table: pd.DataFrame, currency: str, ax: Axes | None = None) -> Axes:
    """What a month saves under every question of ``scenarios.what_if``, with its interval; hollow where nothing is promised."""
    ax = ax or plt.subplots(figsize=(8, 0.8 + 0.42 * max(2, len(table))))[1]
    if table.empty:
        return nothing(ax, "Nothing was decided.")
    for place, row in enumerate(table.to_dict("records")):
        promised = row["basis"].startswith("certified")
        ax.plot(
            [row["from"], row["to"]], [-place, -place], color=ACCENT if promised else GREY, lw=3, solid_capstyle="butt"
        )
        ax.plot(row["saves a month"], -place, "o", ms=9, mec=ACCENT if promised else GREY, mew=2,
                mfc=ACCENT if promised else "white", zorder=3)  # fmt: skip
    ax.axvline(0, color=INK, lw=1)
    shown = [name if len(name) <= 44 else f"…{name[-43:]}" for name in table["what if"]]
    ax.set(
        yticks=-np.arange(len(table)),
        yticklabels=shown,
        xlabel=f"saved in a month{', ' + currency if currency else ''}",
    )
    ax.xaxis.set_major_formatter(lambda value, _: money(value, ""))
    ax.grid(False, axis="y")
    return ax


def on_other_halves(table: pd.DataFrame, margin: float) -> plt.Figure:
    """One line per random half: what was promised for the other half, and what came; red where a promise was broken."""
    changed = table[table["action"].isin(["route", "replace"])].sort_values("saved", ignore_index=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 0.9 + 0.13 * max(12, len(changed))), sharey=True,
                                         width_ratios=(3, 2))  # fmt: skip
    if changed.empty:
        right.axis("off")
        return nothing(left, "No half of the table advised a change.").figure
    for place, row in enumerate(changed.to_dict("records")):
        bill = row["reference bill"] or 1.0
        inside = row["low"] <= row["saved"] <= row["high"]
        left.plot([row["low"] / bill, row["high"] / bill], [place, place], color=GREY, lw=4, solid_capstyle="butt")
        left.plot(row["saved"] / bill, place, "o", ms=5, color=ACCENT if inside else WARNING, zorder=3)
        kept = row["difference"] >= -margin - 1e-9
        right.plot(row["difference"], place, "o", ms=5, color=ACCENT if kept else WARNING, zorder=3)
    right.axvline(-margin, color=WARNING, lw=1.4, ls="--")
    right.axvline(0, color=INK, lw=1)
    left.set(yticks=[], xlabel="saved on the other half / reference's bill")
    left.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    right.set(xlabel="points against the reference there")
    for ax in (left, right):
        ax.grid(False, axis="y")
    return figure
