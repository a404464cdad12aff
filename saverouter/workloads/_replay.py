"""Purchases one after another, or a batch at a time, on recorded outcomes, compiled: the fast form of ``feedback.one_by_one``.

The rule that chooses is compiled too, from the very function that the slow form calls. It is given what was bought
before, and never the table.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit, types

_NUMBERS, _FLAGS, _PLACES = types.float64[::1], types.boolean[::1], types.int64[::1]
# choose(rng, is_open, tried, counts, sums, model_counts, model_sums, options) -> model
_RULE = types.int64(types.npy_rng, _FLAGS, *[_NUMBERS] * 6)
_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_PASS = _PLACES(
    types.FunctionType(_RULE), types.npy_rng, _PLACES, _PLACES, types.boolean[:, ::1], _TABLE, _NUMBERS, types.int64
)


def replay_pass(choose, rng, order, groups, open_pairs, quality, options, batch) -> np.ndarray:
    """The model bought at each place of ``order``, -1 for none; bought pairs are closed."""
    return _compiled(_pass, _PASS)(_compiled(choose, _RULE), rng, order, groups, open_pairs, quality, options, batch)


@cache
def _compiled(function, signature):
    """With a declared signature a compiled function can be given another one, and is found on disk the next time."""
    return njit(signature, cache=True, error_model="numpy")(function)


def _pass(choose, rng, order, groups, open_pairs, quality, options, batch):
    size, n_groups = open_pairs.shape[1], groups.max() + 1
    tried, counts, sums = np.zeros((n_groups, size)), np.zeros((n_groups, size)), np.zeros((n_groups, size))
    model_counts, model_sums = np.zeros(size), np.zeros(size)
    bought = np.full(len(order), -1)
    for start in range(0, len(order), batch):
        places = range(start, min(start + batch, len(order)))
        for place in places:
            row, group = order[place], groups[order[place]]
            is_open, bought_here = open_pairs[row], tried[group]
            model = choose(rng, is_open, bought_here, counts[group], sums[group], model_counts, model_sums, options)
            bought[place] = model
            if model >= 0:
                is_open[model] = False
                bought_here[model] += 1
        for place in places:
            row, model = order[place], bought[place]
            if model < 0 or np.isnan(quality[row, model]):
                continue
            group = groups[row]
            counts[group, model] += 1
            sums[group, model] += quality[row, model]
            model_counts[model] += 1
            model_sums[model] += quality[row, model]
    return bought
