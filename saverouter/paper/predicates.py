"""The parts that statements about a table are made of: rows and values of a frame, which router leads, what rises.

Frames have the columns of ``data/published/<study>.csv``. A frame that lacks what is asked for raises ``NotTestable``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

SPARSE = ("WISERouter", "BaRP", "SemiRouter", "SaveRouter")
OURS = "SaveRouter"


class NotTestable(Exception):
    """The frame has no rows or columns for a statement."""


def part(frame: pd.DataFrame, **where) -> pd.DataFrame:
    """The rows where every named column has the given value, or one of the given values."""
    for column, value in where.items():
        if column not in frame:
            raise NotTestable(f"no column {column}")
        frame = frame[frame[column].isin(value) if isinstance(value, (tuple, list)) else frame[column] == value]
    if frame.empty:
        raise NotTestable(f"no rows with {where}")
    return frame


def one(frame: pd.DataFrame, metric: str, **where) -> float:
    """The metric of the only row that matches."""
    if metric not in frame:
        raise NotTestable(f"no column {metric}")
    (value,) = part(frame, **where)[metric]
    return float(value)


def everywhere(frame: pd.DataFrame, test: Callable[[pd.DataFrame], bool], by: str = "benchmark") -> bool:
    """Whether the test holds for every benchmark of the frame, or for every value of ``by``."""
    return all(bool(test(rows)) for _, rows in frame.groupby(by, sort=False))


def best(frame: pd.DataFrame, metric: str, **ours) -> bool:
    """Whether one row (by default SaveRouter's) has the highest peak score, or the lowest of any other metric."""
    ours = ours or {"method": OURS}
    mine = one(frame, metric, **ours)
    (column, value), *_ = ours.items()
    others = frame.loc[frame[column] != value, metric]
    sign = -1 if metric == "peak_score" else 1
    return bool(np.isfinite(mine) and (sign * mine < sign * others).all())


def conventional(frame: pd.DataFrame) -> pd.DataFrame:
    """Routers with dense supervision."""
    return frame[~frame["method"].isin(SPARSE)]


def k_of(frame: pd.DataFrame, metric: str, benchmark: str) -> int:
    """The K with the lowest value of a metric."""
    return int(finite(part(ucb(frame), benchmark=benchmark).set_index("k")[metric]).idxmin())


def ucb(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the rows of random purchases, which the published table does not have."""
    return frame[frame["acquisition"] == "ucb"] if "acquisition" in frame else frame


def bought_at_random(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of random purchases."""
    return part(frame, acquisition="random")


def ratio(frame: pd.DataFrame) -> float:
    """The earliest break-even of a conventional router over SaveRouter's."""
    ours = one(frame, "sa_bep", method=OURS)
    return conventional(frame)["sa_bep"].min() / ours if np.isfinite(ours) else 0.0


def variant(frame: pd.DataFrame, metric: str, name: str) -> float:
    """A metric of one variant of SaveRouter."""
    return one(frame, metric, variant=name)


def grid(frame: pd.DataFrame, metric: str, scale: float = 2, shrinkage: float = 40, ridge: float = 100) -> float:
    """A metric at one point of the grid of hyper-parameters."""
    return one(frame, metric, residual_scale=scale, shrinkage=shrinkage, residual_ridge=ridge)


def target(frame: pd.DataFrame, benchmark: str, *targets: float) -> pd.DataFrame:
    """One benchmark, at some quality targets or at all."""
    return part(frame, benchmark=benchmark, target=list(targets)) if targets else part(frame, benchmark=benchmark)


def wins(frame: pd.DataFrame, metric: str) -> bool:
    """Whether SaveRouter leads at every target of the frame."""
    return everywhere(frame, lambda rows: best(rows, metric), by="target")


def first_to_pay(frame: pd.DataFrame, method: str) -> bool:
    """Whether the method breaks even before all others at every target of the frame."""
    return everywhere(frame, lambda rows: best(rows, "sa_bep", method=method), by="target")


def unreached(frame: pd.DataFrame, method: str) -> bool:
    """Whether the method reaches none of the targets."""
    return bool(np.isinf(part(frame, method=method)["cost_ratio"]).all())


def mostly(frame: pd.DataFrame, better: Callable[[pd.DataFrame], pd.Series], at_least: float) -> bool:
    """Whether a comparison holds in at least that share of the rows."""
    return bool(better(frame).mean() >= at_least - 1e-9)


def fresh_over_cached(frame: pd.DataFrame, metric: str) -> pd.Series:
    """A metric under fresh accounting over the one under cached accounting, by benchmark."""
    by_kind = frame.pivot(index="benchmark", columns="accounting", values=metric)
    return by_kind["fresh"] / by_kind["cached"]


def twelve(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame itself, if it has all arrivals of all four benchmarks."""
    if len(frame) != 12:
        raise NotTestable("not all arrivals")
    return frame


def rises(values: pd.Series) -> bool:
    """Whether the finite values rise strictly; at least two are needed."""
    steps = finite(values).diff().dropna()
    if steps.empty:
        raise NotTestable("a single value")
    return bool((steps > 0).all())


def finite(values: pd.Series) -> pd.Series:
    """The finite values; at least one is needed."""
    values = values[np.isfinite(values)]
    if values.empty:
        raise NotTestable("never reached")
    return values


def reaching(frame: pd.DataFrame) -> list[str]:
    """Benchmarks on which some K pays back."""
    found = ucb(frame).groupby("benchmark")["sa_bep"].min()
    return finite(found).index.tolist()
