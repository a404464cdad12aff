"""What an outcome table looks like inside: where quality varies, what words tell of it, how costs behave.

A simulated benchmark is believable as far as these numbers lie in the range of real tables
(``data/published/structure.csv``). Nothing here involves a router.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from ..errors import SaveRouterError
from ..files import data_folder
from ..workloads import Workload

MIN_QUERIES = 20  # of a task: fewer cannot tell a task's mean from chance


def structure(work: Workload, words: bool = True) -> pd.Series:
    """Shares of variance of quality, and how costs vary, over complete rows of tasks with 20 queries or more.

    The shares of ``model``, ``task``, ``task x model``, ``query`` (difficulty shared by all models inside a
    task) and ``rest`` sum to 1. ``words=False`` skips the cross-validated R2, which take most of the time.
    """
    rows, task = _usable(work)
    quality, cost = work.quality[rows], work.cost[rows]
    shares, difficulty, rest = _shares(quality, task)
    table = shares | _outcomes(quality, cost) | _costs(quality, cost, task)
    if words:
        table |= _from_words(work.prompts[rows], difficulty, rest)
        if work.vectors is not None:
            table["R2 of difficulty from vectors"] = float(_predictable(work.vectors[rows], difficulty[:, None])[0])
    return pd.Series(table, name=work.name)


def real_ranges() -> pd.DataFrame:
    """Lowest and highest value measured on five real tables, by statistic: columns low, high, source."""
    return pd.read_csv(data_folder() / "published" / "structure.csv", index_col="statistic")


def _usable(work: Workload) -> tuple[np.ndarray, np.ndarray]:
    complete = work.available.all(axis=1)
    labels = np.zeros(len(work), int) if work.tasks is None else np.unique(work.tasks, return_inverse=True)[1]
    counts = np.bincount(labels[complete], minlength=labels.max() + 1)
    rows = np.flatnonzero(complete & (counts[labels] >= MIN_QUERIES))
    if len(rows) == 0:
        raise SaveRouterError(
            f"{work.name}: no task has {MIN_QUERIES} queries with every model's outcome; use more queries or fewer tasks"
        )
    return rows, np.unique(labels[rows], return_inverse=True)[1]


def _cell_means(values: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Mean of each column inside each task, repeated for every row."""
    sums = np.zeros((task.max() + 1, values.shape[1]))
    np.add.at(sums, task, values)
    return (sums / np.bincount(task)[:, None])[task]


def _shares(quality: np.ndarray, task: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray]:
    """Shares of the total variance; the difficulty of each query; and what is left per query and model."""
    size = quality.shape[1]
    mean, by_model, cell = quality.mean(), quality.mean(axis=0), _cell_means(quality, task)
    by_task = cell.mean(axis=1, keepdims=True)
    difficulty = quality.mean(axis=1, keepdims=True) - by_task
    rest = quality - cell - difficulty
    # A query's mean over M models carries 1/M of the rest: that part is chance, not difficulty.
    noise = (rest**2).mean() * size / max(size - 1, 1)
    parts = {
        "model": ((by_model - mean) ** 2).mean(),
        "task": ((by_task - mean) ** 2).mean(),
        "task x model": ((cell - by_task - by_model + mean) ** 2).mean(),
        "query": (difficulty**2).mean() - noise / size,
        "rest": noise,
    }
    total = quality.var()
    if total == 0:
        raise SaveRouterError("quality is the same for every query and model; there is no variance to share out")
    return {name: float(part / total) for name, part in parts.items()}, difficulty[:, 0], rest


def _outcomes(quality: np.ndarray, cost: np.ndarray) -> dict:
    price, best = cost.mean(axis=0), quality.mean(axis=0).max()
    return {
        "best single": float(best),
        "per-query best": float(quality.max(axis=1).mean()),
        "gain of per-query best": float(quality.max(axis=1).mean() - best),
        "dearest / cheapest": float(price.max() / price.min()),
        "correlation of quality and log price": _correlation(np.column_stack([quality.mean(axis=0), np.log(price)])),
    }


def _correlation(columns: np.ndarray) -> float:
    """Mean correlation of the pairs of columns, NaN where one of them is constant."""
    if (np.ptp(columns, axis=0) < 1e-12).any():
        return np.nan
    return float(np.corrcoef(columns.T)[np.triu_indices(columns.shape[1], 1)].mean())


def _costs(quality: np.ndarray, cost: np.ndarray, task: np.ndarray) -> dict:
    """How costs vary inside a task and model. An answer is right if it scores at least the model's own mean."""
    logs = np.log(np.maximum(cost, np.finfo(float).tiny))
    logs -= _cell_means(logs, task)
    right = quality >= quality.mean(axis=0) - 1e-9
    ratios = [cost[good, m].mean() / cost[~good, m].mean() for m, good in enumerate(right.T) if not good.all()]
    return {
        "sd of log cost": float(logs.std()),
        "correlation of log cost between models": _correlation(logs),
        "cost right / wrong": float(np.mean(ratios)) if ratios else np.nan,
    }


def _from_words(prompts: np.ndarray, difficulty: np.ndarray, rest: np.ndarray) -> dict:
    """How much of the variation inside tasks a router can read in the words (TF-IDF)."""
    features = TfidfVectorizer(min_df=2, sublinear_tf=True, max_features=30_000).fit_transform(prompts)
    parts = _predictable(features, np.column_stack([difficulty, rest]))
    weights = (rest**2).sum(axis=0)
    return {
        "R2 of difficulty from words": float(parts[0]),
        "R2 of the rest from words": float(np.average(parts[1:], weights=weights)) if weights.sum() else np.nan,
    }


def _predictable(features, targets: np.ndarray) -> np.ndarray:
    """R2 of each column of targets, by ridge regression in five folds; below 0 where there is nothing to learn."""
    folds = KFold(5, shuffle=True, random_state=0)
    missed = targets - cross_val_predict(Ridge(alpha=10.0), features, targets, cv=folds).reshape(targets.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - (missed**2).sum(axis=0) / (targets**2).sum(axis=0)
