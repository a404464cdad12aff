"""The choices of a whole family of policies in one pass over the queries, and their mean outcomes.

They equal ``choice(index)`` of every policy (``operating_points.py``), the readable form and the tested reference.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MARGIN = 1e-12  # relative; far above the rounding of one product and one difference


def cost_weight_choices(quality: np.ndarray, cost: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(weights, n) argmax of quality - weight x cost, for weights >= 0; ties go to the earlier model.

    A model that is no better and no cheaper than another is never chosen, and few models are left without those.
    Where rounding could make two models equal, both stay, and the argmax itself decides.
    """
    top = np.max(np.abs(quality[np.isfinite(quality)]), initial=0.0)
    margin = MARGIN * (top + np.max(weights, initial=0.0) * np.max(np.abs(cost), initial=0.0))
    chosen = np.empty((len(weights), len(quality)), dtype=smallest(quality.shape[1]))
    _sweep(np.ascontiguousarray(quality), np.ascontiguousarray(cost), weights, margin, chosen)
    return chosen


def threshold_choices(quality: np.ndarray, cost: np.ndarray, thresholds: np.ndarray, first: bool) -> np.ndarray:
    """(thresholds, n) best model among those that cost at most a threshold; thresholds ascend.

    Each model is looked at once, at the first threshold that admits it. ``first`` is the fallback of that name.
    """
    admitted = np.searchsorted(thresholds, np.ascontiguousarray(cost), side="left")
    admitted = np.where(np.isnan(cost), len(thresholds), admitted)
    chosen = np.empty((len(thresholds), len(quality)), dtype=smallest(quality.shape[1]))
    everywhere = np.broadcast_to(np.asarray(cost, dtype=np.float64), quality.shape)
    _climb(np.ascontiguousarray(quality), everywhere, np.broadcast_to(admitted, quality.shape), first, chosen)
    return chosen


@njit(cache=True, nogil=True)
def mean_outcomes(chosen, quality, cost):
    """(2, policies) mean quality and mean cost of the models chosen by each policy.

    Rows are summed in blocks, each for all policies: its outcomes stay in the processor's cache, and long sums round
    no worse than short ones.
    """
    (policies, n), models = chosen.shape, quality.shape[1]
    totals = np.zeros((2, policies))
    for start in range(0, n, 128):
        for policy in range(policies):
            earned = spent = 0.0
            for row in range(start, min(start + 128, n)):
                model = chosen[policy, row]
                if model < 0 or model >= models:
                    raise IndexError("a policy chooses a model beyond the pool; choices are columns from 0")
                earned += quality[row, model]
                spent += cost[row, model]
            totals[0, policy] += earned
            totals[1, policy] += spent
    return totals / n


def smallest(models: int) -> type:
    return np.int16 if models < 2**15 else np.int32


@njit(cache=True, nogil=True)
def _sweep(quality, cost, weights, margin, chosen):
    n, size = quality.shape
    stairs, kept = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for row in range(n):
        q, c = quality[row], cost[row]
        # The stairs: the best model, the best of those that are cheaper, and so on.
        steps, bound = 0, np.inf
        while True:
            best = -1
            for model in range(size):
                if c[model] < bound and (best < 0 or q[model] > q[best]):
                    best = model
            if best < 0:
                break
            stairs[steps] = best
            steps += 1
            bound = c[best]
        some = 0
        for model in range(size):
            beaten = False
            for step in range(steps):
                other = stairs[step]
                if c[other] <= c[model] and (q[other] > q[model] + margin or (other < model and q[other] >= q[model])):
                    beaten = True
                    break
            if not beaten:
                kept[some] = model
                some += 1
        for index in range(len(weights)):
            best = kept[0]
            most = q[best] - weights[index] * c[best]
            for place in range(1, some):
                model = kept[place]
                value = q[model] - weights[index] * c[model]
                if value > most:
                    best, most = model, value
            chosen[index, row] = best


@njit(cache=True, nogil=True)
def _climb(quality, cost, admitted, first, chosen):
    n, size = quality.shape
    levels = len(chosen)
    best_at = np.empty(levels, dtype=np.int64)
    for row in range(n):
        best_at[:] = -1
        cheapest = -1
        for model in range(size):
            value = quality[row, model]
            if value == -np.inf:
                continue
            if cheapest < 0 or cost[row, model] < cost[row, cheapest]:
                cheapest = model
            level = admitted[row, model]
            if level < levels and (best_at[level] < 0 or value > quality[row, best_at[level]]):
                best_at[level] = model
        stuck = 0 if first and quality[row, 0] != -np.inf else cheapest
        best = -1
        for level in range(levels):
            new = best_at[level]
            if new >= 0 and (
                best < 0
                or quality[row, new] > quality[row, best]
                or (quality[row, new] == quality[row, best] and new < best)
            ):
                best = new
            chosen[level, row] = best if best >= 0 else stuck
