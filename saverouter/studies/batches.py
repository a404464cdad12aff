"""What it costs to buy many outcomes at a time: SaveRouter with batches of every size on many splits.

Two runs that differ only in their random numbers differ too, so that each split is bought on several times with each size,
and once more one at a time with other random numbers: that is how large a difference by chance is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ..judging import evaluate
from ..routers import SaveRouter
from ..workloads import Feedback, Workload, at_once
from .intervals import mean_of
from .kept import kept
from .retaught import FAR, Retaught

ONE, TENTH, PASS, ANEW = "1", "a tenth", "a whole pass", "1, drawn anew"
SIZES_AT_ONCE = (ONE, "8", "32", "128", TENTH, PASS)
DRAWS = 3
EVERYWHERE, TRAINING = "all workloads", "training"
MEASURES = {
    "cost ratio": "cost ratio at full quality (1 if not reached)",
    "reached": "share of runs that reach full quality",
    "points above": "peak score, points above the best model",
    "certified saving": "certified saving (within 1 point, 90%)",
}


def batch_of(size: str, queries: int) -> int:
    """How many queries choose at once; none more than there are."""
    named = {ONE: 1, ANEW: 1, TENTH: max(1, queries // 10), PASS: queries}
    return named[size] if size in named else min(int(size), queries)


def batches_on_splits(works: Iterable[Workload], seeds: Sequence[int], draws: int = DRAWS) -> pd.DataFrame:
    """One row per workload, split, draw and size: the four ``MEASURES``, and the ``training`` in calls to the best single model.

    ``batch`` is the size in queries, of the ``queries`` that teach, and ``live`` the size that a live feedback takes unless told
    otherwise. Full quality is that of the best single model, and points are counted from there. The certificate is that of
    ``promises`` with the largest number of ``fresh`` queries; a workload that is too small for any has no such saving. SaveRouter
    buys a third of the pool per query, which is not the same money for every size.
    """
    rows = kept(_batches_on_one, [(work, {"seed": int(seed), "draws": draws}) for work in works for seed in seeds])
    return pd.DataFrame(rows).astype({"certified saving": float})


def _batches_on_one(work: Workload, seed: int, draws: int) -> list[dict]:
    split = Retaught(work, seed)
    queries, rows, known = len(split.learn), [], {}
    for draw in range(2 * draws):
        for size in SIZES_AT_ONCE if draw < draws else (ANEW,):
            batch = batch_of(size, queries)
            if (draw, batch) not in known:  # a tenth of few queries is the same as eight
                known[draw, batch] = _measured(split, *split.taught(seed=seed + FAR * draw, batch=batch))
            rows.append({
                "workload": work.name, "seed": seed, "draw": draw % draws, "size": size, "batch": batch,
                "queries": queries, "live": at_once(queries), **known[draw, batch],
            })  # fmt: skip
    return rows


def _measured(split: Retaught, router: SaveRouter, feedback: Feedback) -> dict:
    result, certified = evaluate(router, split.rest, supervision_cost=feedback.spent), split.certified(router)
    return {
        "cost ratio": min(1.0, result.cost_ratio), "reached": bool(np.isfinite(result.cost_ratio)),
        "points above": 100 * (result.peak_score - result.reference.quality),
        "training": feedback.spent / result.reference.cost,
        "fresh": certified["fresh"], "certified saving": certified["certified saving"],
    }  # fmt: skip


def against_one_at_a_time(table: pd.DataFrame) -> pd.DataFrame:
    """One row per workload, size and measure: its mean, and its paired difference from one at a time with a 95% interval.

    Draws are averaged within a split, and the interval is over splits. ``EVERYWHERE`` is the mean over workloads, each counting
    alike. Beside the ``MEASURES`` stands the ``training`` cost, relative to that of one at a time.
    """
    values = table.melt(["workload", "seed", "size"], [*MEASURES, TRAINING], "measure").dropna()
    values = values.astype({"value": float}).groupby(["workload", "seed", "measure", "size"])["value"].mean().unstack()
    paid = values.index.get_level_values("measure") == TRAINING
    values[paid] = values[paid].div(values.loc[paid, ONE], axis=0)
    overall = values.groupby(["seed", "measure"]).mean()
    wide = pd.concat([values, pd.concat({EVERYWHERE: overall}, names=["workload"])])
    rows = []
    for name in [*dict.fromkeys(table["workload"]), EVERYWHERE]:
        for size in (*SIZES_AT_ONCE, ANEW):
            for measure in (*MEASURES, TRAINING):
                if (name, measure) not in wide.index.droplevel("seed"):
                    continue
                runs = wide.xs((name, measure), level=("workload", "measure"))
                found = dict(zip(("difference", "from", "to"), mean_of(runs[size] - runs[ONE]), strict=True))
                rows.append({"workload": name, "size": size, "measure": measure, "splits": len(runs),
                             "mean": runs[size].mean(), **found})  # fmt: skip
    return pd.DataFrame(rows)


def batches_in_words(compared: pd.DataFrame, name: str = EVERYWHERE) -> pd.DataFrame:
    """Sizes down, measures across: the mean, and the difference from one at a time with its interval."""
    rows = compared[compared["workload"] == name]
    told = [
        f"{row['mean']:.3f}" if row["size"] == ONE
        else f"{row['mean']:.3f} ({row['difference']:+.3f}, {row['from']:+.3f} to {row['to']:+.3f})"
        for row in rows.to_dict("records")
    ]  # fmt: skip
    wide = rows.assign(told=told).pivot(index="size", columns="measure", values="told")
    return (
        wide.loc[rows["size"].unique(), list(rows["measure"].unique())]
        .rename_axis("queries at once")
        .rename_axis(None, axis=1)
    )


def batches_finding(compared: pd.DataFrame) -> str:
    """What the differences over all workloads say: how many are losses that their interval tells from zero."""
    rows = compared[
        (compared["workload"] == EVERYWHERE) & compared["measure"].isin(MEASURES) & ~compared["size"].isin([ONE, ANEW])
    ]
    lost = np.where(rows["measure"] == "cost ratio", rows["from"] > 0, rows["to"] < 0).sum()
    return f"{lost or 'None'} of {len(rows)} differences {'is a loss' if lost < 2 else 'are losses'} by their 95% intervals"
