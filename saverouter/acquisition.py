"""Which outcomes to buy: K passes over the training queries, one new model a query and pass.

Section 4.1 of the paper. Inside a pass every (group, model) pair is tried once, then the pair with the
highest empirical-Bayes upper confidence bound is bought. Statistics start afresh in each pass; the memory
of what was bought persists. Random numbers are consumed in the order of the authors' release, so that
the same seed buys the same pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .errors import SaveRouterError
from .feedback import Feedback
from .replay import replay

POLICIES = ("ucb", "random", "capability", "uncertainty")
PASS_STRIDE = 1009  # the paper seeds pass p with seed + 1009 p


def acquire(
    feedback: Feedback,
    groups: np.ndarray,
    *,
    k: int = 4,
    policy: str = "ucb",
    exploration: float = 0.35,
    acquisition_prior: float = 10.0,
    seed: int = 42,
    available: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Buy up to ``k`` outcomes a query; returns rows, models, quality and cost in order of purchase.

    Parameters
    ----------
    groups : a group number from 0 for every query
    policy : "ucb" (capability plus uncertainty), "random", "capability" or "uncertainty" alone
    exploration : beta_ucb, weight of the uncertainty bonus
    acquisition_prior : tau_0, how many observations the model's overall mean is worth inside a group
    available : (n, M) mask of the models that can be asked; asked of ``feedback`` unless given

    A query with fewer than ``k`` available models gets all it has.
    """
    if policy not in POLICIES:
        raise SaveRouterError(f"policy is {policy!r}; expected one of {', '.join(POLICIES)}")
    if int(k) != k or k < 1:
        raise SaveRouterError(f"k is {k}; expected a whole number of models to try a query, at least 1")
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    # A copy, because bought pairs are closed in it.
    open_pairs = np.array(feedback.available() if available is None else available, dtype=bool)
    rule = (POLICIES.index(policy), float(exploration), float(acquisition_prior))

    def passes():
        for number in range(min(int(k), open_pairs.shape[1])):
            rng = np.random.default_rng(seed + PASS_STRIDE * number)
            yield rng, rng.permutation(len(groups))

    if hasattr(feedback, "play"):
        return feedback.play(lambda quality: replay(passes(), groups, open_pairs, quality, rule))
    return _ask_one_by_one(feedback, passes(), groups, open_pairs, rule)


def within_groups(groups: np.ndarray, available: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Available rows, as many as a share of each group's queries, rounded up, drawn at random; in ascending order."""
    rng, drawn = np.random.default_rng(seed), []
    for group, size in enumerate(np.bincount(groups)):
        rows = np.flatnonzero((groups == group) & available)
        drawn.append(rng.choice(rows, min(math.ceil(share * size - 1e-9), len(rows)), replace=False))
    return np.sort(np.concatenate(drawn))


def _fresh(groups: np.ndarray, models: int) -> tuple[np.ndarray, ...]:
    """Counts and quality sums: by group and model, then by model."""
    size = int(groups.max()) + 1
    return np.zeros((size, models)), np.zeros((size, models)), np.zeros(models), np.zeros(models)


def _ask_one_by_one(feedback, passes, groups, open_pairs, rule):
    """The loop for feedback that has to be waited for: buy one, learn from it, choose the next."""
    bought = []
    for rng, order in passes:
        group_count, group_sum, model_count, model_sum = _fresh(groups, open_pairs.shape[1])
        for row in order:
            group = groups[row]
            model = _choose(rng, open_pairs[row], group_count[group], group_sum[group], model_count, model_sum, *rule)
            if model < 0:
                continue
            quality, cost = feedback.reveal(np.array([row]), np.array([model]))
            bought.append((row, model, quality[0], cost[0]))
            open_pairs[row, model] = False
            group_count[group, model] += 1
            group_sum[group, model] += quality[0]
            model_count[model] += 1
            model_sum[model] += quality[0]
    rows, models, quality, cost = (np.array(column) for column in zip(*bought, strict=True))
    return rows, models, quality, cost


@njit(cache=True)
def _choose(rng, is_open, counts, sums, model_count, model_sum, policy, exploration, prior):
    """The model to try next for one query of a group, or -1 where all available ones were tried."""
    size = len(is_open)
    candidates = 0
    untried = 0
    tries = 0.0
    for model in range(size):
        tries += counts[model]
        if is_open[model]:
            candidates += 1
            if counts[model] == 0:
                untried += 1
    if candidates == 0:
        return -1
    if policy == 1 or untried > 0:
        skip = rng.integers(0, candidates if policy == 1 else untried)
        for model in range(size):
            if is_open[model] and (policy == 1 or counts[model] == 0):
                if skip == 0:
                    return model
                skip -= 1
    best = -1
    best_score = -np.inf
    spread = np.log(tries + 1.0)
    for model in range(size):
        noise = rng.random() * 1e-12  # breaks ties; drawn for every model, as the release does
        if not is_open[model]:
            continue
        score = 0.0
        if policy != 3:
            overall = (model_sum[model] + 1.0) / (model_count[model] + 2.0)
            score += (sums[model] + prior * overall) / (counts[model] + prior)
        if policy != 2:
            score += exploration * np.sqrt(spread / max(counts[model], 1.0))
        if score + noise > best_score:  # added last, as the release does: the order of additions may decide a tie
            best_score = score + noise
            best = model
    return best
