"""Outcomes bought from live models: the money over time, as the ledger has it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from ...workloads.ledger import LedgerContents
from .look import ACCENT, GREY, INK, SOFT


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
