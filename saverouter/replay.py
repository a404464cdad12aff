"""The acquisition rule on recorded outcomes, at the speed of compiled code.

It buys the pairs that ``acquisition._choose`` would, which stays as the readable form and the tested reference. A random
number is drawn for every model and query there, only to break ties of a trillionth. Here scores without it come first,
and numbers are worked out for the models that it could decide between; the generator jumps over the others. That takes the
generator's arithmetic: PCG64 of NumPy, a linear congruential step on 128 bits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
HALF = 1 << 64
LOW = np.uint64(0xFFFFFFFF)
HALF_WORD = np.uint64(32)
NOISE = 1e-12


def replay(passes: Iterable, groups: np.ndarray, open_pairs: np.ndarray, quality: np.ndarray, rule: tuple):
    """Rows and models bought in passes of (generator, order of the queries); bought pairs are closed."""
    size = open_pairs.shape[1]
    powers, sums = [1], [0]
    for _ in range(size):
        powers.append(powers[-1] * MULTIPLIER % HALF**2)
        sums.append((sums[-1] * MULTIPLIER + 1) % HALF**2)
    factors, sums = _words(powers), _words(sums)
    parts = []
    for rng, order in passes:
        state = rng.bit_generator.state
        start = np.array(
            [*divmod(state["state"]["state"], HALF), state["has_uint32"], state["uinteger"]], dtype=np.uint64
        )
        jumps = _jumps(factors, sums, _words([state["state"]["inc"]])[0])
        parts.append(_pass(start, jumps, order, groups, open_pairs, quality, *rule))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _words(numbers: list[int]) -> np.ndarray:
    """(n, 2) high and low halves."""
    return np.array([divmod(number, HALF) for number in numbers], dtype=np.uint64)


@njit(cache=True)
def _times(a, b):
    """High and low half of the product of two 64-bit numbers."""
    a1, a0, b1, b0 = a >> HALF_WORD, a & LOW, b >> HALF_WORD, b & LOW
    low, middle = a0 * b0, a1 * b0
    other = a0 * b1 + (middle & LOW) + (low >> HALF_WORD)
    return a1 * b1 + (middle >> HALF_WORD) + (other >> HALF_WORD), a * b


@njit(cache=True)
def _times_wide(a, b):
    """The product of two 128-bit numbers modulo 2^128."""
    high, low = _times(a[1], b[1])
    return high + a[0] * b[1] + a[1] * b[0], low


@njit(cache=True)
def _jumps(factors, sums, step):
    """Factor and offset of a jump over 0, 1, 2, ... numbers; the generator adds ``step`` at each."""
    jumps = np.empty((len(factors), 4), dtype=np.uint64)
    for length in range(len(factors)):
        jumps[length, 0], jumps[length, 1] = factors[length, 0], factors[length, 1]
        jumps[length, 2], jumps[length, 3] = _times_wide(sums[length], step)
    return jumps


@njit(cache=True)
def _ahead(state, jump):
    """The state after a jump: factor x state + offset, modulo 2^128."""
    high, low = _times_wide(jump, state)
    high += jump[2]
    total = low + jump[3]
    if total < low:
        high += np.uint64(1)
    return high, total


@njit(cache=True)
def _output(high, low):
    word, turn = high ^ low, high >> np.uint64(58)
    return (word >> turn) | (word << ((np.uint64(64) - turn) & np.uint64(63)))


@njit(cache=True)
def _next32(state, jumps):
    """The upper half of a number is kept for the next time, as NumPy does."""
    if state[2]:
        state[2] = 0
        return state[3]
    state[0], state[1] = _ahead(state, jumps[1])
    number = _output(state[0], state[1])
    state[2], state[3] = 1, number >> HALF_WORD
    return number & LOW


@njit(cache=True)
def _below(state, jumps, size):
    """A whole number from 0 to size - 1 by Lemire's method; none is drawn where there is no choice."""
    if size == 1:
        return 0
    bound = np.uint64(size)
    product = _next32(state, jumps) * bound
    if (product & LOW) < bound:
        refused = (LOW + np.uint64(1) - bound) % bound
        while (product & LOW) < refused:
            product = _next32(state, jumps) * bound
    return np.int64(product >> HALF_WORD)


@njit(cache=True, fastmath=True)
def _scores(is_open, sums, share, overall, bonus, prior, root, scores):
    """Scores up to rounding, without noise; returns the highest."""
    for model in range(len(scores)):
        score = (sums[model] + prior * overall[model]) * share[model] + bonus[model] * root
        scores[model] = score if is_open[model] else -1e300
    a = b = c = d = -1e300  # four at a time: one comparison need not wait for another
    even = len(scores) // 4 * 4
    for model in range(0, even, 4):
        a = scores[model] if scores[model] > a else a
        b = scores[model + 1] if scores[model + 1] > b else b
        c = scores[model + 2] if scores[model + 2] > c else c
        d = scores[model + 3] if scores[model + 3] > d else d
    for model in range(even, len(scores)):
        a = scores[model] if scores[model] > a else a
    return max(max(a, b), max(c, d))


@njit(cache=True)
def _pass(state, jumps, order, groups, open_pairs, quality, policy, exploration, prior):
    size = open_pairs.shape[1]
    n_groups = groups.max() + 1
    counts, sums = np.zeros((n_groups, size)), np.zeros((n_groups, size))
    model_count, model_sum = np.zeros(size), np.zeros(size)
    # What scores are made of, kept up to date one pair at a time; a part that the policy ignores is 0.
    share = np.full((n_groups, size), 0.0 if policy == 3 else 1.0 / max(prior, 1e-300))
    bonus = np.full((n_groups, size), 0.0 if policy == 2 else exploration)
    overall, scores = np.full(size, 0.5), np.empty(size)
    untried, tries = np.full(n_groups, size), np.zeros(n_groups)
    rows, models = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    bought = 0
    for row in order:
        group, is_open = groups[row], open_pairs[row]
        model, choices, tried = -1, 0, counts[group]
        if policy == 1 or untried[group] > 0:
            for each in range(size):
                choices += is_open[each] & ((policy == 1) | (tried[each] == 0))
        if choices > 0:
            skip = _below(state, jumps, choices)
            while skip >= 0:
                model += 1
                skip -= is_open[model] & ((policy == 1) | (tried[model] == 0))
        else:
            spread = np.log(tries[group] + 1.0)
            highest = _scores(is_open, sums[group], share[group], overall, bonus[group], prior, np.sqrt(spread), scores)
            if highest == -1e300:  # all available models were tried
                continue
            near = highest - 2 * NOISE - 1e-12 * abs(highest)
            best_score = -np.inf
            for each in range(size):
                if scores[each] < near:
                    continue
                high, low = _ahead(state, jumps[each + 1])
                noise = np.float64(_output(high, low) >> np.uint64(11)) / 9007199254740992.0 * NOISE
                score = 0.0
                if policy != 3:
                    score += (sums[group, each] + prior * overall[each]) / (counts[group, each] + prior)
                if policy != 2:
                    score += exploration * np.sqrt(spread / max(counts[group, each], 1.0))
                if score + noise > best_score:
                    best_score, model = score + noise, each
            state[0], state[1] = _ahead(state, jumps[size])
        rows[bought], models[bought] = row, model
        bought += 1
        open_pairs[row, model] = False
        if counts[group, model] == 0:
            untried[group] -= 1
        tries[group] += 1
        counts[group, model] += 1
        sums[group, model] += quality[row, model]
        model_count[model] += 1
        model_sum[model] += quality[row, model]
        overall[model] = (model_sum[model] + 1.0) / (model_count[model] + 2.0)
        if policy != 3:
            share[group, model] = 1.0 / (counts[group, model] + prior)
        if policy != 2:
            bonus[group, model] = exploration / np.sqrt(counts[group, model])
    return rows[:bought], models[:bought]
