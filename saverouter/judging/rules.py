"""The rules by which operating points choose a model, as plain functions of estimates.

Estimates of quality are -inf where a model cannot be asked, so that it is never chosen.
"""

from __future__ import annotations

import numpy as np

LEAST_EXTRA_COST = 1e-8  # relative to the dearest model's mean; what a gain is divided by is no smaller


def relative(cost: np.ndarray, scale: float) -> np.ndarray:
    """Costs in units of a scale; nothing costs anything where that is 0."""
    return cost / scale if scale > 0 else np.zeros_like(cost)


def always(column: int, quality: np.ndarray) -> np.ndarray:
    """One column for every query, and the best predicted model where it cannot be asked."""
    return np.where(np.isneginf(quality[:, column]), np.argmax(quality, axis=1), column)


def best_affordable(quality: np.ndarray, cost: np.ndarray, threshold: float, fallback: str = "cheapest") -> np.ndarray:
    """The best predicted model among those that cost at most a threshold; ``cost`` is (n, M), or (M,) prices."""
    cost = np.asarray(cost)
    affordable = np.where(cost <= threshold, quality, -np.inf)
    chosen = np.argmax(affordable, axis=1)
    stuck = np.flatnonzero(np.isneginf(affordable[np.arange(len(chosen)), chosen]))
    if len(stuck):
        price = np.broadcast_to(cost, quality.shape)[stuck]
        shut = np.isneginf(quality[stuck])
        cheapest = np.argmin(np.where(shut, np.inf, price), axis=1)
        chosen[stuck] = np.where(shut[:, 0], cheapest, 0) if fallback == "first" else cheapest
    return chosen


def gain_per_cost(quality: np.ndarray, relative_cost: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """What ``high`` is predicted to be better than ``low``, per extra cost."""
    rows = np.arange(len(quality))
    extra = relative_cost[rows, high] - relative_cost[rows, low]
    return (quality[rows, high] - quality[rows, low]) / np.maximum(extra, LEAST_EXTRA_COST)
