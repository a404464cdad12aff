"""WISERouter: one outcome per query, cell means in a few contexts, and a linear programme for each budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from ..errors import SaveRouterError
from ..judging import Policies, masked
from ..workloads import Asked
from .base import Router, buy
from .shared.neighbours import cluster_mean, distinct_rows


class WISERouter(Router):
    """Constrained contextual bandit with one exploring pass (WR-Online, arXiv 2607.23765), **reconstructed**.

    The paper states 16 contexts, one interaction per training query and 64 budgets. No source is public: the uniform
    exploration (implied by its charged cost), plain cell means and the budget grid are our reading.

    Parameters
    ----------
    contexts : clusters of query vectors
    budgets : operating points, from the cheapest to the best choice in every context
    explore : "uniform" among the available models, or "round_robin" inside each context
    serve : "sample" from the programme's solution, or the arm with the "largest" share
    seed : of clusters, exploration and sampling
    """

    label = "WISERouter"
    reconstructed = True
    synthetic_best_point = True

    def __init__(self, *, contexts=16, budgets=64, explore="uniform", serve="sample", seed=42):
        self.contexts = contexts
        self.budgets = budgets
        self.explore = explore
        self.serve = serve
        self.seed = seed

    def _fit(self, queries, feedback):
        for name, known in (("explore", ("uniform", "round_robin")), ("serve", ("sample", "largest"))):
            if getattr(self, name) not in known:
                raise SaveRouterError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(known)}")
        vectors = queries.embed()
        n_contexts = min(self.contexts, len(distinct_rows(vectors)))
        self.clusters_ = KMeans(n_contexts, n_init=10, random_state=self.seed).fit(vectors)
        context = self.clusters_.labels_
        available = feedback.available(queries)
        wanted = np.zeros_like(available)
        wanted[np.arange(len(wanted)), self._arms(available, context)] = True
        quality, cost = buy(feedback, wanted)
        self.quality_, self.cost_ = (cluster_mean(context, n_contexts, values) for values in (quality, cost))
        frequency = np.bincount(context, minlength=n_contexts) / len(context)
        self.shares_ = budget_shares(self.quality_, self.cost_, frequency, self.budgets)

    def _arms(self, available, context) -> np.ndarray:
        """The one model each query is tried on."""
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(available))
        count = available.sum(axis=1)
        if self.explore == "uniform":
            place = np.empty(len(count), dtype=np.int64)
            place[order] = (rng.random(len(count)) * count[order]).astype(np.int64)
        else:
            before = np.zeros(len(count), dtype=np.int64)
            for members in (order[context[order] == k] for k in np.unique(context)):
                before[members] = np.arange(len(members))
            place = before % count
        # the position of the place-th available model
        return np.argmax(np.cumsum(available, axis=1) == (place + 1)[:, None], axis=1)

    def predict_contexts(self, queries: Asked) -> np.ndarray:
        """The context of each query: the nearest centre."""
        vectors = self._queries(queries).embed()
        return self.clusters_.predict(vectors)

    def predict_quality(self, queries: Asked) -> np.ndarray:
        contexts = self.predict_contexts(queries)
        return self.quality_[contexts]

    def predict_cost(self, queries: Asked) -> np.ndarray:
        contexts = self.predict_contexts(queries)
        return self.cost_[contexts]

    def policies(self, queries: Asked) -> list:
        queries = self._queries(queries)
        context = self.predict_contexts(queries)
        cheapest = np.argmax(masked(-self.cost_[context], queries.available), axis=1)
        draw = np.random.default_rng(self.seed).random(len(queries)) if self.serve == "sample" else None
        return [_BudgetPolicies(self.shares_, context, queries.available, cheapest, draw)]


@dataclass(frozen=True)
class _BudgetPolicies(Policies):
    """A distribution over models in each context, for every budget."""

    shares: np.ndarray
    context: np.ndarray
    available: np.ndarray | None
    cheapest: np.ndarray
    draw: np.ndarray | None

    def __len__(self) -> int:
        return len(self.shares)

    def label(self, index: int) -> str:
        return f"budget {index + 1} of {len(self)}"

    def choice(self, index: int) -> np.ndarray:
        share = self.shares[index][self.context]
        if self.available is not None:
            share = np.where(self.available, share, 0.0)
        total = share.sum(axis=1)
        if self.draw is None:
            chosen = np.argmax(share, axis=1)
        else:  # the first model whose cumulative share exceeds the draw
            chosen = np.argmax(np.cumsum(share, axis=1) > (self.draw * total)[:, None], axis=1)
        return np.where(total > 0, chosen, self.cheapest)


def budget_shares(quality: np.ndarray, cost: np.ndarray, frequency: np.ndarray, budgets: int) -> np.ndarray:
    """(budgets, contexts, M) solutions of: maximise expected quality while the expected cost stays within the budget.

    The programme separates into concave cost-quality hulls, one per context. Starting from the cheapest model
    everywhere, the budget buys the hulls' segments in order of quality gained per cost, the last one in part.
    """
    hulls = [upper_hull(cost[k], quality[k]) for k in range(len(frequency))]
    segments = [(k, low, high) for k, hull in enumerate(hulls) for low, high in zip(hull, hull[1:], strict=False)]
    price = np.array([frequency[k] * (cost[k, high] - cost[k, low]) for k, low, high in segments])
    gain = np.array([frequency[k] * (quality[k, high] - quality[k, low]) for k, low, high in segments])
    order = np.argsort(-gain / np.where(price > 0, price, np.inf), kind="stable") if segments else []
    spare = np.linspace(0, price.sum(), budgets) if segments else np.zeros(budgets)
    shares = np.zeros((budgets, *cost.shape))
    for k, hull in enumerate(hulls):
        shares[:, k, hull[0]] = 1
    for position in order:
        k, low, high = segments[position]
        part = np.clip(spare / price[position], 0, 1) if price[position] > 0 else np.ones(budgets)
        # a segment starts only when its predecessor in the context is full: slopes fall along a hull
        moved = np.minimum(part, shares[:, k, low])
        shares[:, k, low] -= moved
        shares[:, k, high] += moved
        spare = np.maximum(spare - moved * price[position], 0)
    return shares


def upper_hull(cost: np.ndarray, quality: np.ndarray) -> list[int]:
    """Models on the upper concave hull, from the cheapest to the best, quality and cost strictly rising."""
    hull: list[int] = []
    for model in np.lexsort((-quality, cost)):
        if hull and quality[model] <= quality[hull[-1]]:
            continue
        while len(hull) >= 2 and _slope(cost, quality, hull[-2], hull[-1]) <= _slope(cost, quality, hull[-1], model):
            hull.pop()
        hull.append(int(model))
    return hull


def _slope(cost, quality, low, high) -> float:
    return (quality[high] - quality[low]) / (cost[high] - cost[low])
