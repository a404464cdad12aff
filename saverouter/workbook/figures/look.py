"""How every figure looks: one colour per router, a title that states the finding, a lane for "never"."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ...paper import short

ACCENT, GREY, INK, SOFT = "#0b62a4", "#a9b0b8", "#1c2330", "#5a6472"
# A router keeps its colour in every figure. Those that the text does not speak of are grey.
COLOURS = {
    "SaveRouter": ACCENT, "kNN": "#d55e00", "WISERouter": "#009e73", "BaRP": "#b0568c", "TRouter": "#c98a00",
    "InferenceDynamics": "#7b5ea7", "SemiRouter": "#3a9bc8", "EmbedLLM": "#8c564b", "RMSoftmax": "#7d7a00",
    "OmniRouter": "#c2403a", "UniRoute": "#3f6f5f", "Random-K": "#5a6472", "best dense router": "#d55e00",
    "best single model": INK,
}  # fmt: skip
WIDTH = 8.0  # inches; a figure as wide as the text


def style() -> None:
    """White face, thin grid; call once in a notebook."""
    sns.set_theme(style="whitegrid", context="notebook", rc={"axes.spines.top": False, "axes.spines.right": False})
    plt.rcParams.update({
        "figure.facecolor": "white", "figure.figsize": (WIDTH, 4.5), "svg.hashsalt": "saverouter", "text.color": INK,
        "axes.labelcolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT, "grid.color": "#e6e9ed", "axes.edgecolor": "#c9cfd6",
        "font.size": 11, "axes.labelsize": 11, "xtick.labelsize": 10, "ytick.labelsize": 10,
    })  # fmt: skip


def colour(router: str, spoken_of: Iterable[str] | None = None) -> str:
    """A router's own colour, by the part of its label before a comma or bracket; grey for one that is not spoken of.

    SaveRouter always has the accent. Without ``spoken_of`` every router has its own colour.
    """
    name = router.split(",")[0].split(" (")[0]
    if name != "SaveRouter" and spoken_of is not None and router not in spoken_of and name not in spoken_of:
        return GREY
    return COLOURS.get(name, GREY)


def headline(drawn: Figure | Axes, title: str, subtitle: str = "") -> None:
    """The finding in bold, and under it in grey the unit and the data; call last, it makes its own room."""
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    height, lines = figure.get_size_inches()[1], 1 + title.count("\n")
    room = 0.27 * lines + (0.24 * (1 + subtitle.count("\n")) if subtitle else 0) + 0.12
    legends = 0.08 + sum(0.26 * _lines(legend) for legend in figure.legends) if figure.legends else 0
    figure.tight_layout(rect=(0, legends / height, 1, 1 - room / height))
    figure.text(0.01, 1 - 0.05 / height, title, ha="left", va="top", fontsize=13, fontweight="bold", color=INK)
    if subtitle:
        below = (0.08 + 0.27 * lines) / height
        figure.text(0.01, 1 - below, subtitle, ha="left", va="top", fontsize=10.5, color=SOFT)


def _lines(legend) -> int:
    """How many lines a legend takes."""
    return -(-len(legend.get_texts()) // legend._ncols)


def panels(names: Iterable[str], height: float = 3.1) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one panel per name, two in a row, and the panels by name."""
    names = list(names)
    rows, columns = (1, 1) if len(names) == 1 else ((len(names) + 1) // 2, 2)
    size = (WIDTH if columns == 1 else 1.2 * WIDTH, height * rows + 0.9)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for unused in axes.flat[len(names) :]:
        unused.axis("off")
    found = dict(zip(names, axes.flat, strict=False))
    for name, ax in found.items():
        ax.set_title(name, loc="left", fontsize=11, color=INK)
    return figure, found


def legend_below(figure: Figure, columns: int = 6) -> None:
    """One legend for all panels, under them; call before ``headline``, which makes room for it."""
    handles = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="lower center", ncols=columns, frameon=False, fontsize=10)


def never_lane(ax: Axes, largest: float, along: str = "y") -> float:
    """A shaded lane beyond the largest finite value of a log axis, labelled "never"; returns where to draw in it."""
    at = largest * 10**0.55
    edge, end = largest * 10**0.3, largest * 10**0.8
    shade, limit = (ax.axhspan, ax.set_ylim) if along == "y" else (ax.axvspan, ax.set_xlim)
    shade(edge, end, color="#f1f3f5", lw=0, zorder=0)
    limit(None, end)
    axis = ax.yaxis if along == "y" else ax.xaxis
    axis.set_major_formatter(lambda value, _: "" if value > edge else short(value))  # no number beside "never"
    if along == "y":
        ax.annotate("never", (0, at), xycoords=("axes fraction", "data"), xytext=(-6, 0), textcoords="offset points",
                    ha="right", va="center", color=SOFT, fontsize=10)  # fmt: skip
    else:
        ax.annotate("never", (at, 0), xycoords=("data", "axes fraction"), xytext=(0, -6), textcoords="offset points",
                    ha="center", va="top", color=SOFT, fontsize=10)  # fmt: skip
    return at


def queries_axis(ax: Axes, along: str = "y", log: bool = True) -> None:
    """Numbers of queries as 5.3K and 1.2M; on a log axis at 1, 2 and 5 of every power of ten that fit."""
    axis = ax.yaxis if along == "y" else ax.xaxis
    if log:
        (ax.set_yscale if along == "y" else ax.set_xscale)("log")
        low, high = ax.get_ylim() if along == "y" else ax.get_xlim()
        steps = (1, 2, 5) if np.log10(high / low) < 2.2 else (1,)
        axis.set_major_locator(LogLocator(subs=steps))
        axis.set_minor_formatter(lambda value, _: "")
    axis.set_major_formatter(lambda value, _: short(value))


def label_ends(ax: Axes, x: float, ends: list[tuple[float, str, str]], gap: float = 0.065) -> None:
    """Names right of the lines' ends (height, name, colour), pushed apart where they would overlap."""
    low, high = ax.get_ylim()
    last = -np.inf
    for y, name, shade in sorted(ends):
        last = max(y, last + gap * (high - low))
        ax.annotate(name, (x, last), xytext=(6, 0), textcoords="offset points", va="center", color=shade, fontsize=10,
                    annotation_clip=False)  # fmt: skip


PLACES = (
    (0, 1), (0, -1.15), (1, 0), (-1, 0), (0, 1.8), (0.7, -1.15), (0, -1.9), (0.7, 1), (-0.7, 1), (0, -2.7), (0, 2.6),
    (-1, 1), (1, -1), (1, 1), (-1, -1), (-1, 1.9), (1, -1.9), (1, 1.9), (-1, -1.9),
)  # fmt: skip  # of a name around its point


def name_points(ax: Axes, names: list[tuple[float, float, str, str]], marks: Iterable[tuple[float, float]]) -> None:
    """Names (x, y, name, colour) beside their points, in this order, where they meet neither each other nor a mark."""
    box, tall, taken = ax.get_window_extent(), 0.17 * ax.figure.dpi, []

    def pixels(x: float, y: float) -> np.ndarray:
        return ax.transData.transform((x, y)) - (box.x0, box.y0)

    taken = [(*pixels(x, y), 0.6 * tall, 0.3 * tall) for x, y in marks]
    for x, y, name, shade in names:
        wide, (px, py) = 0.08 * ax.figure.dpi * len(name), pixels(x, y)
        places = [(px + dx * (wide / 2 + 0.7 * tall), py + dy * tall) for dx, dy in PLACES]
        places = [(float(np.clip(at, wide / 2, box.width - wide / 2)), height) for at, height in places]
        free = [
            (at, height) for at, height in places if tall / 2 < height < box.height - tall / 2
            and all(abs(at - x2) > (wide + w) / 2 or abs(height - y2) > (tall + h) / 2 for x2, y2, w, h in taken)
        ]  # fmt: skip
        at, height = (free or places)[0]
        taken.append((at, height, wide, tall))
        where = ax.transData.inverted().transform((at + box.x0, height + box.y0))
        ax.text(*where, name, ha="center", va="center", color=shade, zorder=6, fontsize=9 if shade == INK else 10)
