"""The paper's general statements asked of any workload: what holds, what does not, what cannot be told with these splits.

Each quantity is measured on every split, and a statement holds only where its interval over splits lies on its side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..paper import SPARSE
from ..paper.claims import FAILS, HOLDS, UNTOLD
from .intervals import answer, mean_of, share_of

Found = tuple[float, float, float]  # a mean and its 95% interval


@dataclass(frozen=True)
class Statement:
    """What decides a statement: a measure of runs of routers and of budgets, and what it must exceed.

    ``somewhere`` is True where one workload is enough, as for "not always".
    """

    measure: str
    wanted: float
    ask: Callable[[pd.DataFrame, pd.DataFrame], Found]
    somewhere: bool = False


def general_statements(routers: pd.DataFrame, budgets: pd.DataFrame) -> pd.DataFrame:
    """The paper's general statements by workload: what decides them, its mean and interval over splits, and the verdict.

    ``routers`` is the frame of ``routers_on_splits``, ``budgets`` that of ``budgets_on_splits``.
    """
    rows = []
    for workload, curve in budgets.groupby("workload", sort=False):
        runs = routers[routers["workload"] == workload]
        for name, statement in STATEMENTS.items():
            value, low, high = statement.ask(runs, curve)
            here = answer(low, high, statement.wanted)
            rows.append({"statement": name, "workload": workload, "measure": statement.measure, "value": value, "low": low,
                         "high": high, "here": here})  # fmt: skip
    return pd.DataFrame(rows)


def together(found: pd.DataFrame) -> pd.DataFrame:
    """Each statement over all workloads, in the columns of ``claims.judge``: one workload against it refutes it, except
    where the paper says "not always"."""
    rows = {}
    for name, asked in found.groupby("statement", sort=False):
        order = (HOLDS, UNTOLD, FAILS) if STATEMENTS[name].somewhere else (FAILS, UNTOLD, HOLDS)
        told = [f"{row.workload.rpartition('/')[2]} {row.here}: {in_digits(row)}" for row in asked.itertuples()]
        here = next(answer for answer in order if (asked["here"] == answer).any())
        rows[name] = {"published table": "said in general", "here": here, "published numbers": "",
                      "measured numbers": "; ".join(told)}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("the paper says")


def in_digits(row, measure: bool = True) -> str:
    """A measured value with its interval: "0.4 points (0.1 to 0.7)", or without the measure's name."""
    if np.isnan(row.value):
        return "nobody pays back"
    digits = {"points": 1, "share of splits": 2}.get(row.measure, 3)
    value, low, high = (f"{number + 0.0:.{digits}f}" for number in (row.value, row.low, row.high))
    return f"{value}{f' {row.measure}' if measure else ''} ({low} to {high})"


def _first_to_pay(margin: float) -> Callable[[pd.DataFrame, pd.DataFrame], Found]:
    def ask(runs: pd.DataFrame, _: pd.DataFrame) -> Found:
        """Of the splits on which anybody pays back, the share on which SaveRouter does so before every dense router."""
        paid = runs[runs["margin"] == margin].pivot(index="seed", columns="method", values="sa_bep")
        dense = paid[[method for method in paid if method not in SPARSE]].min(axis=1)
        won, lost = int((paid["SaveRouter"] < dense).sum()), int((paid["SaveRouter"] > dense).sum())
        if not won + lost:
            return np.nan, np.nan, np.nan
        return share_of(won, won + lost)

    return ask


def _scores(curve: pd.DataFrame, variant: str = "SaveRouter") -> pd.DataFrame:
    """Peak scores, one row per split and one column per K."""
    return curve[curve["variant"] == variant].pivot(index="seed", columns="k", values="peak_score")


def _third(curve: pd.DataFrame) -> int:
    return int(curve.loc[curve["is_third"], "k"].iloc[0])


def _kept(_: pd.DataFrame, curve: pd.DataFrame) -> Found:
    """The share of the peak score under full supervision that a third of the outcomes gives."""
    scores = _scores(curve)
    return mean_of(scores[_third(curve)] / scores[scores.columns.max()])


def _lead(variant: str) -> Callable[[pd.DataFrame, pd.DataFrame], Found]:
    """SaveRouter's lead in points over a variant at the same K."""

    def ask(_: pd.DataFrame, curve: pd.DataFrame) -> Found:
        k = _third(curve)
        return mean_of(100 * (_scores(curve)[k] - _scores(curve, variant)[k]))

    return ask


def _lead_at_equal_spend(_: pd.DataFrame, curve: pd.DataFrame) -> Found:
    """The lead in points over purchases at random that cost as much; between two budgets their scores lie on a line."""
    leads = []
    for _seed, runs in curve.groupby("seed"):
        chance = runs[runs["variant"] == "Random-K"].sort_values("supervision_cost")
        ours = runs[(runs["variant"] == "SaveRouter") & runs["is_third"]].iloc[0]
        level = np.interp(ours["supervision_cost"], chance["supervision_cost"], chance["peak_score"])
        leads.append(100 * (ours["peak_score"] - level))
    return mean_of(pd.Series(leads))


def _less_is_more(_: pd.DataFrame, curve: pd.DataFrame) -> Found:
    """Points by which the best smaller K is ahead of buying everything; its interval allows for the choice among them."""
    scores = _scores(curve)
    ahead = 100 * scores.sub(scores[scores.columns.max()], axis=0).drop(columns=scores.columns.max())
    return mean_of(ahead[ahead.mean().idxmax()], 1 - 0.05 / ahead.shape[1])


STATEMENTS = {
    "Sparse supervision pays back first, at full quality": Statement("share of splits", 0.5, _first_to_pay(0.0)),
    "Sparse supervision pays back first, one point below": Statement("share of splits", 0.5, _first_to_pay(1.0)),
    "A third of the outcomes keeps 99% of the score": Statement("share of the score", 0.99, _kept),
    "Its purchases score higher than random ones at equal K": Statement("points", 0.0, _lead("Random-K")),
    "Its purchases score higher than random ones at equal spend": Statement("points", 0.0, _lead_at_equal_spend),
    "More supervision is not always better": Statement("points", 0.0, _less_is_more, somewhere=True),
    "Query residuals help": Statement("points", 0.0, _lead("without query residual")),
    "Groups help": Statement("points", 0.0, _lead("global group")),
}
