"""Purchases one after another, or a batch at a time, on recorded outcomes, compiled: the fast form of ``feedback.one_by_one``.

The rule that chooses is compiled too, from the very function that the slow form calls. It is given what was bought
before, and never the table.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit, types

# Rows of what is known of each model: outcomes bought, those of them that were answered, their quality and their cost.
TRIED, ANSWERED, EARNED, PAID = range(4)

_NUMBERS, _FLAGS, _PLACES = types.float64[::1], types.boolean[::1], types.int64[::1]
_KNOWN = types.float64[:, ::1]
# choose(rng, is_open, here, pool, options) -> model
_RULE = types.int64(types.npy_rng, _FLAGS, _KNOWN, _KNOWN, _NUMBERS)
_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_PASS = types.Tuple((_PLACES, types.float64, types.boolean))(
    types.FunctionType(_RULE), types.npy_rng, _PLACES, _PLACES, types.boolean[:, ::1], _TABLE, _TABLE, _NUMBERS, types.int64,
    types.float64[:, :, ::1], _KNOWN, types.float64, types.float64,
)  # fmt: skip


def replay_pass(choose, rng, order, groups, open_pairs, outcomes, options, batch, known, spent, budget):
    """The model bought at each place of ``order``, -1 for none, what was spent until then, and whether the budget ended it.

    ``known`` are the (groups, 4, M) and (4, M) statistics, which grow; bought pairs are closed. ``outcomes`` are quality, cost.
    """
    run = _compiled(_pass, _PASS)
    return run(
        _compiled(choose, _RULE), rng, order, groups, open_pairs, *outcomes, options, batch, *known, spent, budget
    )


@cache
def _compiled(function, signature):
    """With a declared signature a compiled function can be given another one, and is found on disk the next time."""
    return njit(signature, cache=True, error_model="numpy")(function)


def _pass(choose, rng, order, groups, open_pairs, quality, cost, options, batch, in_groups, in_pool, spent, budget):
    bought, over = np.full(len(order), -1), False
    for start in range(0, len(order), batch):
        places = range(start, min(start + batch, len(order)))
        for place in places:
            row = order[place]
            is_open, here = open_pairs[row], in_groups[groups[row]]
            model = choose(rng, is_open, here, in_pool, options)
            if model < 0:
                continue
            if spent + cost[row, model] > budget:
                over = True
                break
            spent += cost[row, model]
            bought[place] = model
            is_open[model] = False
            here[TRIED, model] += 1
            in_pool[TRIED, model] += 1
        if over:
            break
        for place in places:
            row, model = order[place], bought[place]
            if model < 0 or np.isnan(quality[row, model]):
                continue
            for known in (in_groups[groups[row]], in_pool):
                known[ANSWERED, model] += 1
                known[EARNED, model] += quality[row, model]
                known[PAID, model] += cost[row, model]
    return bought, spent, over
