"""Purchases one after another on recorded outcomes, compiled: the fast form of ``feedback.one_by_one``.

The rule that chooses is compiled too, from the very function that the slow form calls. It is given what was bought
before, and never the table.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit, types

_NUMBERS, _FLAGS, _PLACES = types.float64[::1], types.boolean[::1], types.int64[::1]
# choose(rng, is_open, counts, sums, model_counts, model_sums, options) -> model
_RULE = types.int64(types.npy_rng, _FLAGS, *[_NUMBERS] * 5)
_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_PASS = _PLACES(types.FunctionType(_RULE), types.npy_rng, _PLACES, _PLACES, types.boolean[:, ::1], _TABLE, _NUMBERS)


def replay_pass(choose, rng, order, groups, open_pairs, quality, options) -> np.ndarray:
    """The model bought at each place of ``order``, -1 for none; bought pairs are closed."""
    return _compiled(_pass, _PASS)(_compiled(choose, _RULE), rng, order, groups, open_pairs, quality, options)


@cache
def _compiled(function, signature):
    """With a declared signature a compiled function can be given another one, and is found on disk the next time."""
    return njit(signature, cache=True, error_model="numpy")(function)


def _pass(choose, rng, order, groups, open_pairs, quality, options):
    size, n_groups = open_pairs.shape[1], groups.max() + 1
    counts, sums = np.zeros((n_groups, size)), np.zeros((n_groups, size))
    model_counts, model_sums = np.zeros(size), np.zeros(size)
    bought = np.full(len(order), -1)
    for place in range(len(order)):
        row = order[place]
        group = groups[row]
        model = choose(rng, open_pairs[row], counts[group], sums[group], model_counts, model_sums, options)
        if model < 0:
            continue
        bought[place] = model
        open_pairs[row, model] = False
        counts[group, model] += 1
        sums[group, model] += quality[row, model]
        model_counts[model] += 1
        model_sums[model] += quality[row, model]
    return bought
