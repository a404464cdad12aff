"""One prompt's choice: what every model is expected to score and cost, and how far from chosen the others are."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .look import ACCENT, GREY, INK, SOFT

COLUMNS = (10, 70)  # points from the right edge, of two columns of text


def explained(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """One row per model of ``router.explain(prompt).frame``, the best above: the expected quality (dot), and where the router
    has groups what the prompt's group scores (ring, joined by a line). The chosen model has the accent.

    On the right its cost in units of the chosen model's, and how many points the estimates must be wrong by before the
    choice changes in its favour.
    """
    frame = frame[np.isfinite(frame["quality"])].sort_values("quality", kind="stable").reset_index(drop=True)
    ax = ax or plt.subplots(figsize=(8, 0.42 * len(frame) + 1.4))[1]
    price = frame.loc[frame["chosen"], "cost"].iloc[0]
    for place, row in frame.iterrows():
        shade = ACCENT if row["chosen"] else GREY
        if "group_quality" in frame:
            ax.plot(100 * row[["group_quality", "quality"]].astype(float), [place, place], color=shade, lw=2)
            ax.plot(100 * row["group_quality"], place, "o", mfc="white", mec=shade, mew=1.8, ms=8)
        ax.plot(100 * row["quality"], place, "o", color=shade, ms=10)
        for x, text in zip(COLUMNS, (_times(row["cost"], price), _far(row["error"], row["chosen"])), strict=True):
            ax.annotate(text, (1, place), xytext=(x, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                        va="center", fontsize=10, color=INK if row["chosen"] else SOFT)  # fmt: skip
    for x, text in zip(COLUMNS, ("cost", "chosen if wrong by"), strict=True):
        ax.annotate(text, (1, len(frame) - 0.4), xytext=(x, 2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", va="bottom", color=SOFT, fontsize=10)  # fmt: skip
    ax.set(yticks=range(len(frame)), yticklabels=frame["model"], ylim=(-0.6, len(frame) - 0.4))
    ax.set_xlabel("expected quality, points")
    ax.tick_params(axis="y", labelcolor=INK)
    return ax


def _times(cost: float, price: float) -> str:
    return f"×{cost / price:.2g}" if price > 0 else f"{cost:.2g}"


def _far(error: float, chosen: bool) -> str:
    if chosen:
        return "chosen"
    if np.isnan(error):
        return "–"
    return f"{100 * error:.1f} points" if np.isfinite(error) else "never"
