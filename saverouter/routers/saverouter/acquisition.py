"""Which outcomes to buy: K passes over the training queries, one new model per query and pass.

Section 4.1 of the paper. Inside a pass every (group, model) pair is tried once, then the pair with the
highest empirical-Bayes upper confidence bound is bought. Statistics start afresh in each pass; the memory
of what was bought persists. Random numbers are consumed in the order of the authors' release, so that
the same seed buys the same pairs.

Queries may choose in batches, so that many calls run at once. All of a batch know the answers at its start. A purchase
counts as tried at once, in the coverage and in the uncertainty, else a batch would try the same model over and over; the
capability is a mean of answers, and waits for them. One query at a time is the paper's rule.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ...errors import one_of, seed_of, whole
from ...workloads import Feedback, one_by_one

RULES = ("ucb", "random", "capability", "uncertainty")
RANDOM, CAPABILITY, UNCERTAINTY = 1, 2, 3  # places in RULES
PASS_STRIDE = 1009  # the paper seeds pass p with seed + 1009 p


def acquire(
    feedback: Feedback, groups: np.ndarray, *, k: int = 4, rule: str = "ucb", exploration: float = 0.35,
    acquisition_prior: float = 10.0, seed: int = 42, available: np.ndarray | None = None, batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Buy up to ``k`` outcomes per query; returns rows, models, quality and cost in order of purchase, missing ones left out.

    Parameters
    ----------
    groups : a group number from 0 for every query
    rule : "ucb" (capability plus uncertainty), "random", "capability" or "uncertainty" alone
    exploration : beta_ucb, weight of the uncertainty bonus
    acquisition_prior : tau_0, how many observations the model's overall mean is worth inside a group
    available : (n, M) mask of the models that can be asked; asked of ``feedback`` unless given
    batch : queries that choose at once, never across two passes; 1 is the paper's rule, None what ``feedback`` prefers

    A query with fewer than ``k`` available models gets all it has.
    """
    one_of("acquisition", rule, RULES)
    whole("k", k, 1, "a whole number of models to try per query")
    seed_of(seed)
    batch = getattr(feedback, "batch", 1) if batch is None else batch
    batch = whole("batch", batch, 1, "a whole number of queries that choose at once")
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    # A copy, because bought pairs are closed in it.
    open_pairs = np.array(feedback.available() if available is None else available, dtype=bool, order="C")
    rngs = [np.random.default_rng(seed + PASS_STRIDE * number) for number in range(min(int(k), open_pairs.shape[1]))]
    passes = ((rng, rng.permutation(len(groups))) for rng in rngs)
    options = np.array([RULES.index(rule), exploration, acquisition_prior], dtype=np.float64)
    buy = feedback.in_turn if isinstance(feedback, Feedback) else partial(one_by_one, feedback)
    return buy(choose, passes, groups, open_pairs, options, batch)


def choose(
    rng: np.random.Generator, is_open: np.ndarray, tried: np.ndarray, counts: np.ndarray, sums: np.ndarray,
    model_counts: np.ndarray, model_sums: np.ndarray, options: np.ndarray,
) -> int:  # fmt: skip
    """The model to try next for one query of a group, or -1 where all available ones were tried.

    ``Feedback.in_turn`` calls it, and compiles it where outcomes are recorded: ``options`` are numbers for that reason.
    ``tried`` counts what was bought in the group, ``counts`` and ``sums`` what was answered.
    """
    rule, exploration, prior = options
    coverage = np.flatnonzero(is_open if rule == RANDOM else is_open & (tried == 0))
    if len(coverage):
        return coverage[rng.integers(0, len(coverage))]
    if not is_open.any():
        return -1
    noise = rng.random(len(is_open))  # breaks ties; drawn for every model, as the release does
    if rule == UNCERTAINTY:
        score = np.zeros(len(is_open))
    else:
        overall = (model_sums + 1) / (model_counts + 2)
        score = (sums + prior * overall) / (counts + prior)
        if prior == 0:  # bought and not answered yet: no mean of its own
            score = np.where(counts > 0, score, overall)
    if rule != CAPABILITY:
        score = score + exploration * np.sqrt(np.log(tried.sum() + 1) / np.maximum(tried, 1))
    # Noise is added last, as the release does: the order of additions may decide a tie.
    return np.argmax(np.where(is_open, score + noise * 1e-12, -np.inf))


def within_groups(groups: np.ndarray, available: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Available rows, as many as a share of each group's queries, rounded up, drawn at random; in ascending order."""
    rng, drawn = np.random.default_rng(seed), []
    for group, size in enumerate(np.bincount(groups)):
        rows = np.flatnonzero((groups == group) & available)
        drawn.append(rng.choice(rows, min(math.ceil(share * size - 1e-9), len(rows)), replace=False))
    return np.sort(np.concatenate(drawn))
