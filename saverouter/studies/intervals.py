"""What many runs say together: means and intervals over seeds and splits, who leads, which budget is best."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from ..paper.claims import FAILS, HOLDS, UNTOLD

METRICS = ["peak_score", "cost_ratio", "sa_bep", "sa_cr"]


def interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean, or the range of the values where one of them is infinite."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all() or len(values) < 2:
        return float(values.min()), float(values.max())
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def mean_of(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """A mean and its interval."""
    return float(np.mean(values)), *interval(values, level)


def resampled(
    tables: Iterable[ArrayLike], level: float = 0.95, draws: int = 4_000, seed: int = 0
) -> tuple[float, float]:
    """An interval for the mean of several tables' means, each counting alike: tables are drawn anew, and the values in them."""
    tables, rng = [np.asarray(values, dtype=np.float64) for values in tables], np.random.default_rng(seed)
    means = [
        np.mean(
            [
                rng.choice(tables[place], len(tables[place])).mean()
                for place in rng.integers(len(tables), size=len(tables))
            ]
        )
        for _ in range(draws)
    ]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def share_of(count: int, size: int) -> tuple[float, float, float]:
    """A share and its exact 95% interval."""
    found = stats.binomtest(count, size).proportion_ci()
    return count / size, float(found.low), float(found.high)


def answer(low: float, high: float, wanted: float) -> str:
    """Whether a statement holds: only where its interval lies on its side of what is wanted."""
    return HOLDS if low > wanted else FAILS if high < wanted else UNTOLD


def summary(frame: pd.DataFrame, keys: list[str], metrics: Iterable[str] = METRICS) -> pd.DataFrame:
    """One row for each combination of the keys: over its seeds the mean of every metric, ``<metric>_sd`` and ``runs``.

    A metric that is not reached with every seed has no mean and no standard deviation; its median stands in, and may be
    inf. ``reached`` counts the seeds with a finite break-even point.
    """
    rows = []
    for values, group in frame.groupby(keys, sort=False, dropna=False):
        found = dict(zip(keys, values, strict=True))
        for metric in metrics:
            finite = np.isfinite(group[metric]).all()
            found[metric] = group[metric].mean() if finite else group[metric].median()
            found[f"{metric}_sd"] = group[metric].std(ddof=1) if finite and len(group) > 1 else np.nan
        found |= {"runs": len(group), "reached": int(np.isfinite(group["sa_bep"]).sum())}
        others = [c for c in ("supervision", "supervision_cost", "best_single") if c in group]
        rows.append(found | group[others].mean().to_dict())
    return pd.DataFrame(rows)


def leads(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """SaveRouter against every variant on the same splits: mean difference in a metric, and on how many splits it leads."""
    sign = 1 if metric == "peak_score" else -1
    by_split = frame.pivot(index="split", columns="variant", values=metric)
    rows = {}
    for variant in [name for name in dict.fromkeys(frame["variant"]) if name != "SaveRouter"]:
        ahead = sign * (by_split["SaveRouter"] - by_split[variant])
        low, high = interval(ahead)
        rows[variant] = {"mean lead": ahead.mean(), "from": low, "to": high,
                         "splits with a lead": f"{(ahead > 0).sum()} of {len(ahead)}"}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("SaveRouter against")


def main_row(table: pd.DataFrame, method: str = "SaveRouter") -> pd.DataFrame:
    """A method over the seeds of ``over_seeds``: its peak in points above the best single model with a 95% interval for
    the mean, on how many splits it gets there, and the range of its break-even points."""
    rows = {}
    for name, ours in table[table["method"] == method].groupby("benchmark", sort=False):
        above = 100 * (ours["peak_score"] - ours["best_single"])
        low, high = interval(above)
        reached = f"{np.isfinite(ours['cost_ratio']).sum()} of {len(ours)}"
        rows[name] = {"points above": above.mean(), "from": low, "to": high, "reached": reached,
                      "earliest payback": ours["sa_bep"].min(), "latest payback": ours["sa_bep"].max()}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(method)


def best_k(curve: pd.DataFrame, share: float = 0.99) -> pd.DataFrame:
    """For each benchmark the K from which on ``share`` of the score with the largest K is kept, and the K of highest score,
    lowest serving cost, earliest payback and lowest bill; "never" where no K saves anything."""
    wanted = {"highest score": "peak_score", "cheapest to serve": "cost_ratio", "first to pay back": "sa_bep",
              "lowest bill over 1M": "sa_cr"}  # fmt: skip
    rows = {}
    for name, points in curve.groupby("benchmark", sort=False):
        points = points.set_index("k").sort_index()
        short = np.flatnonzero(points["peak_score"] < share * points["peak_score"].iloc[-1])
        rows[name] = {f"keeps {share:.0%}": int(points.index[short[-1] + 1 if len(short) else 0])}
        rows[name] |= {title: _first(points[metric], metric == "peak_score") for title, metric in wanted.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("benchmark")


def _first(values: pd.Series, rising: bool = False) -> int | str:
    if rising:
        return int(values.idxmax())
    return int(values.idxmin()) if np.isfinite(values).any() else "never"
