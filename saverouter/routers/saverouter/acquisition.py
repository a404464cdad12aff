"""Which outcomes to buy: K passes over the training queries, one new model per query and pass; or passes for a sum of money.

The paper's rule (section 4.1): inside a pass every (group, model) pair is tried once, then the pair with the highest
empirical-Bayes upper confidence bound is bought. Statistics start afresh in each pass; the memory of what was bought
persists. Random numbers are consumed in the order of the authors' release, so that the same seed buys the same pairs.

Anchored buying asks what a team decides: whether a cheaper model may replace the one in use, the reference. It never buys
what is dearer, keeps its statistics over passes, and buys the reference where that narrows the comparison most for its
price. It is not in the paper, and needs to be told the reference and the money.

Queries may choose in batches, so that many calls run at once. All of a batch know the answers at its start. A purchase
counts as tried at once, in the coverage and in the uncertainty, else a batch would try the same model over and over; the
capability is a mean of answers, and waits for them. One query at a time is the paper's rule.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import islice

import numpy as np

from ...errors import SaveRouterError, did_you_mean, number, one_of, seed_of, whole
from ...workloads import ANSWERED, EARNED, PAID, TRIED, Feedback, one_by_one

RULES = ("ucb", "random", "capability", "uncertainty")  # the paper's, and its ablations
ANCHORED = "anchored"
RANDOM, CAPABILITY, UNCERTAINTY = 1, 2, 3  # places in RULES
PASS_STRIDE = 1009  # the paper seeds pass p with seed + 1009 p
COVERED = 5  # outcomes of each model before anchored buying weighs one against another
INDIFFERENT = 0.34  # share of queries for which it does not look at prices


def acquire(
    feedback: Feedback, groups: np.ndarray, *, k: int = 4, rule: str = "ucb", exploration: float = 0.35,
    acquisition_prior: float = 10.0, seed: int = 42, available: np.ndarray | None = None, batch: int | None = None,
    budget: float | None = None, reference: str | None = None, models: tuple[str, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Buy up to ``k`` outcomes per query; returns rows, models, quality and cost in order of purchase, missing ones left out.

    Parameters
    ----------
    groups : a group number from 0 for every query
    rule : "ucb" (capability plus uncertainty), "random", "capability" or "uncertainty" alone, or "anchored"
    exploration : beta_ucb, weight of the uncertainty bonus
    acquisition_prior : tau_0, how many observations the model's overall mean is worth inside a group
    available : (n, M) mask of the models that can be asked; asked of ``feedback`` unless given
    batch : queries that choose at once, never across two passes; 1 is the paper's rule, None what ``feedback`` prefers
    budget : money for outcomes, instead of ``k``: passes go on until it is spent
    reference : the model in use, by name, for "anchored"
    models : the pool by name; what ``feedback`` says unless given

    A query with fewer than ``k`` available models gets all it has.
    """
    models = getattr(feedback, "models", ()) if models is None else models
    place = place_of(rule, reference, budget, models)
    whole("k", k, 1, "a whole number of models to try per query")
    seed_of(seed)
    batch = getattr(feedback, "batch", 1) if batch is None else batch
    batch = whole("batch", batch, 1, "a whole number of queries that choose at once")
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    # A copy, because bought pairs are closed in it.
    open_pairs = np.array(feedback.available() if available is None else available, dtype=bool, order="C")
    if rule == ANCHORED:
        open_pairs &= _no_dearer(feedback, place)
    rngs = (np.random.default_rng(seed + PASS_STRIDE * number) for number in range(open_pairs.shape[1]))
    passes = ((rng, rng.permutation(len(groups))) for rng in rngs)
    if budget is None:
        passes, budget = islice(passes, int(k)), math.inf
    weighed = place if rule == ANCHORED else RULES.index(rule)
    options = np.array([weighed, exploration, acquisition_prior], dtype=np.float64)
    buy = feedback.in_turn if isinstance(feedback, Feedback) else partial(one_by_one, feedback)
    choose_by = choose_anchored if rule == ANCHORED else choose
    return buy(choose_by, passes, groups, open_pairs, options, batch, budget=budget, afresh=rule != ANCHORED)


def place_of(rule: str, reference: str | None, budget: float | None, models: tuple[str, ...]) -> int | None:
    """The column of the reference; anchored buying is refused without one, and without money."""
    one_of("acquisition", rule, (*RULES, ANCHORED))
    if budget is not None:
        number("budget", budget, "money for outcomes, in the unit of their costs")
    if rule != ANCHORED:
        if reference is not None:
            raise SaveRouterError(
                f"reference is {reference!r}, and acquisition {rule!r} buys without one; leave it out, or take 'anchored'"
            )
        return None
    if reference is None:
        raise SaveRouterError(
            "anchored buying asks which queries a cheaper model may take over; name the model in use today: "
            f"reference={models[0]!r}, for example; without one, take the paper's rule: acquisition='ucb'"
        )
    if reference not in models:
        raise SaveRouterError(
            f"the reference {reference!r} is not in the pool; {did_you_mean(reference, models)}it has {', '.join(models)}"
        )
    if budget is None:
        raise SaveRouterError(
            "anchored buying spends a sum of money instead of k outcomes per query; give it: budget=..., in the unit of costs"
        )
    return models.index(reference)


def _no_dearer(feedback: Feedback, reference: int) -> np.ndarray:
    """(M,) models that are not priced above the reference: only those can take its place. All, where no prices are known."""
    prices = getattr(feedback, "prices", None)
    return np.array(True) if prices is None else prices <= prices[reference] * (1 + 1e-12)


def choose(
    rng: np.random.Generator, is_open: np.ndarray, here: np.ndarray, pool: np.ndarray, options: np.ndarray
) -> int:
    """The model to try next for one query of a group, or -1 where all available ones were tried.

    ``Feedback.in_turn`` calls it, and compiles it where outcomes are recorded: ``options`` are numbers for that reason.
    ``here`` and ``pool`` are what is known of each model in the group and in all.
    """
    rule, exploration, prior = options
    tried = here[TRIED]
    coverage = np.flatnonzero(is_open if rule == RANDOM else is_open & (tried == 0))
    if len(coverage):
        return coverage[rng.integers(0, len(coverage))]
    if not is_open.any():
        return -1
    noise = rng.random(len(is_open))  # breaks ties; drawn for every model, as the release does
    if rule == UNCERTAINTY:
        score = np.zeros(len(is_open))
    else:
        overall = (pool[EARNED] + 1) / (pool[ANSWERED] + 2)
        score = (here[EARNED] + prior * overall) / (here[ANSWERED] + prior)
        if prior == 0:  # bought and not answered yet: no mean of its own
            score = np.where(here[ANSWERED] > 0, score, overall)
    if rule != CAPABILITY:
        score = score + exploration * np.sqrt(np.log(tried.sum() + 1) / np.maximum(tried, 1))
    # Noise is added last, as the release does: the order of additions may decide a tie.
    return np.argmax(np.where(is_open, score + noise * 1e-12, -np.inf))


def choose_anchored(
    rng: np.random.Generator, is_open: np.ndarray, here: np.ndarray, pool: np.ndarray, options: np.ndarray
) -> int:
    """The model to try next for one query, where a cheaper one may take the reference's place; -1 where none is left.

    Called as ``choose`` is. Each query draws how much money matters to it, so that all of the certificate's path is prepared.
    """
    reference, _, prior = int(options[0]), options[1], options[2]
    weight = 0.0 if rng.random() < INDIFFERENT else 10 ** (-1.5 + 2.0 * rng.random())
    tried, answered = pool[TRIED], pool[ANSWERED]
    mean_cost = np.where(answered > 0, pool[PAID] / np.maximum(answered, 1), 0.0)
    candidate = is_open.copy()
    if answered[reference] > 0 and tried[reference] >= COVERED:
        dear = (tried >= COVERED) & (answered > 0) & (mean_cost >= mean_cost[reference])
        dear[reference] = False
        candidate &= ~dear
    few = candidate & (tried < COVERED)
    if few.any():
        fewest = np.flatnonzero(few & (tried == tried[few].min()))
        return fewest[rng.integers(0, len(fewest))]
    price = np.where(answered > 0, mean_cost, mean_cost.max() if mean_cost.max() > 0 else 1.0)
    price = np.maximum(price / max(price[reference], 1e-12), 1e-4)  # relative to the reference's
    capability = (here[EARNED] + prior * (pool[EARNED] + 1) / (answered + 2)) / (here[ANSWERED] + prior)
    worth = np.maximum(here[TRIED] + prior * tried / (tried + prior), 1)  # outcomes that the estimate rests on
    variance = np.maximum(capability * (1 - capability), 0.02) / worth
    score = capability - weight * price + np.sqrt(variance) + rng.random(len(is_open)) * 1e-12
    stays = candidate[reference]
    candidate[reference] = False
    if not candidate.any():
        return reference if stays else -1
    other = np.argmax(np.where(candidate, score, -np.inf))
    gain = variance / (worth + 1) / price  # by how much one more outcome narrows the estimate, per money
    return reference if stays and variance[reference] / (worth[reference] + 1) > gain[other] else other


def within_groups(groups: np.ndarray, available: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Available rows, as many as a share of each group's queries, rounded up, drawn at random; in ascending order."""
    rng, drawn = np.random.default_rng(seed), []
    for group, size in enumerate(np.bincount(groups)):
        rows = np.flatnonzero((groups == group) & available)
        drawn.append(rng.choice(rows, min(math.ceil(share * size - 1e-9), len(rows)), replace=False))
    return np.sort(np.concatenate(drawn))
