"""The parts that statements about a table are made of: rows and values of a frame, which router leads, what rises.

Frames have the columns of ``data/published/<study>.csv``. A frame that lacks what is asked for raises ``NotTestable``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from .evidence import about, note, written

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
    value = _only(frame, metric, **where)
    note(f"{_words(where)} {_TITLES.get(metric, metric)} {written(metric, value)}".strip())
    return value


_TITLES = {"peak_score": "peak score", "cost_ratio": "cost ratio", "sa_bep": "pays back after", "sa_cr": "bill over 1M",
           "supervision": "supervision"}  # fmt: skip
_NAMED = {"k": "K={}", "train": "{:.0%} to learn from", "target": "at {:.3g}", "residual_scale": "scale {:g}",
          "shrinkage": "shrinkage {:g}", "residual_ridge": "ridge {:g}"}  # fmt: skip


def _words(where: dict) -> str:
    """Which row, in words."""
    return " ".join(_NAMED[key].format(value) if key in _NAMED else str(value) for key, value in where.items())


def _only(frame: pd.DataFrame, metric: str, **where) -> float:
    if metric not in frame:
        raise NotTestable(f"no column {metric}")
    (value,) = part(frame, **where)[metric]
    return float(value)


def noted(metric: str, values: pd.Series) -> pd.Series:
    """The values themselves, their range noted."""
    found = [written(metric, value) for value in (values.min(), values.max())]
    note(f"{_TITLES.get(metric, metric.replace('_', ' '))} {' to '.join(dict.fromkeys(found))}")
    return values


def everywhere(frame: pd.DataFrame, test: Callable[[pd.DataFrame], bool], by: str = "benchmark") -> bool:
    """Whether the test holds for every benchmark of the frame, or for every value of ``by``; all of them are looked at."""
    answers, untestable = [], None
    for value, rows in frame.groupby(by, sort=False):
        with about(value):
            try:
                answers.append(bool(test(rows)))
            except NotTestable as problem:
                untestable = problem
    if untestable and all(answers):
        raise untestable
    return all(answers)


def best(frame: pd.DataFrame, metric: str, **ours) -> bool:
    """Whether one row (by default SaveRouter's) has the highest peak score, or the lowest of any other metric."""
    ours = ours or {"method": OURS}
    mine = _only(frame, metric, **ours)
    (column, value), *_ = ours.items()
    others = frame[frame[column] != value].set_index(column)[metric]
    if others.empty:
        raise NotTestable("nothing to compare with")
    sign = -1 if metric == "peak_score" else 1
    leader = (sign * others).idxmin()
    note(f"{value} {written(metric, mine)}", f"best other {leader} {written(metric, others[[leader]].iloc[0])}")
    return bool(np.isfinite(mine) and (sign * mine < sign * others).all())


def conventional(frame: pd.DataFrame) -> pd.DataFrame:
    """Routers with dense supervision."""
    return frame[~frame["method"].isin(SPARSE)]


def k_of(frame: pd.DataFrame, metric: str, benchmark: str) -> int:
    """The K with the lowest value of a metric."""
    found = int(finite(part(ucb(frame), benchmark=benchmark).set_index("k")[metric]).idxmin())
    note(f"{benchmark}: {'earliest payback' if metric == 'sa_bep' else 'lowest ' + _TITLES[metric]} at K={found}")
    return found


def ucb(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the rows of random purchases, which the published table does not have."""
    return frame[frame["acquisition"] == "ucb"] if "acquisition" in frame else frame


def bought_at_random(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of random purchases."""
    return part(frame, acquisition="random")


def ratio(frame: pd.DataFrame) -> float:
    """The earliest break-even of a conventional router over SaveRouter's."""
    ours, others = _only(frame, "sa_bep", method=OURS), conventional(frame).set_index("method")["sa_bep"]
    note(f"{OURS} {written('sa_bep', ours)}", f"{others.idxmin()} {written('sa_bep', others.min())}")
    return others.min() / ours if np.isfinite(ours) else 0.0


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
    rows = part(frame, method=method)
    reached = rows.loc[np.isfinite(rows["cost_ratio"]), "target"]
    note(f"{method} reaches {', '.join(f'{target:.3g}' for target in reached) or 'none of them'}")
    return reached.empty


def mostly(frame: pd.DataFrame, better: Callable[[pd.DataFrame], pd.Series], at_least: float) -> bool:
    """Whether a comparison holds in at least that share of the rows."""
    found = better(frame)
    note(f"{int(found.sum())} of {len(found)}")
    return bool(found.mean() >= at_least - 1e-9)


def fresh_over_cached(frame: pd.DataFrame, metric: str) -> pd.Series:
    """A metric under fresh accounting over the one under cached accounting, by benchmark."""
    by_kind = frame.pivot(index="benchmark", columns="accounting", values=metric)
    found = by_kind["fresh"] / by_kind["cached"]
    note(*(f"{name} {value:.3g} times" for name, value in found.items() if np.isfinite(value)))
    return found


def twelve(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame itself, if it has all arrivals of all four benchmarks."""
    if len(frame) != 12:
        raise NotTestable("not all arrivals")
    return frame


def lowest(scores: pd.Series) -> str:
    """Whose score is the lowest."""
    note(*(f"{name} {written('peak_score', score)}" for name, score in scores.items()))
    return scores.idxmin()


def row_of(frame: pd.DataFrame, index) -> tuple:
    """The setting in a row of the grid of hyper-parameters."""
    found = {name: frame.loc[index, name] for name in ("residual_scale", "shrinkage", "residual_ridge")}
    note(_words(found))
    return tuple(found.values())


def shared(values: pd.Series) -> int:
    """How many share the commonest value."""
    counts = values.value_counts()
    note(f"{counts.max()} of {len(values)} at {written('cost_ratio', counts.idxmax())}")
    return int(counts.max())


def steadily(values: pd.Series) -> bool:
    """Whether values never fall from one row to the next."""
    note(", ".join(written("peak_score", abs(value)) for value in values))
    return values.is_monotonic_increasing


def rises(values: pd.Series) -> bool:
    """Whether the finite values rise strictly; at least two are needed."""
    note(", ".join(written("sa_bep", value) for value in values))
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
