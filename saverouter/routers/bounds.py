"""References: what knowing outcomes beforehand, chance, or a single model would give. None of them learns anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SaveRouterError
from ..judging import QUERY_THRESHOLDS, ChoicePolicies, best_column, threshold_grid
from ..workloads import Asked, Workload, model_means
from .base import Router, price_list

SHARES = np.linspace(0, 1, 11)
TIES = ("random", "cheapest")


class _Hindsight:
    """Operating points that are chosen by the very outcomes they are judged on."""

    def choice(self, index):
        raise SaveRouterError("choices made in hindsight need outcomes; call realised(quality, cost)")


@dataclass(frozen=True)
class OraclePolicies(_Hindsight):
    """The best model among those that truly cost at most a threshold; the last threshold is repeated to fill the family."""

    ties: str
    seed: int

    def __len__(self) -> int:
        return QUERY_THRESHOLDS

    def label(self, index: int) -> str:
        return f"true cost at most threshold {index + 1} of {QUERY_THRESHOLDS}"

    def realised(self, quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean quality and mean cost at every threshold."""
        rows = np.arange(len(quality))
        price = np.where(np.isfinite(quality), cost, np.inf)
        cheapest = price.min(axis=1, keepdims=True)
        liking = -price if self.ties == "cheapest" else np.random.default_rng(self.seed).random(price.shape)
        scores = []
        for threshold in threshold_grid(price[np.isfinite(price)], QUERY_THRESHOLDS):
            # a query that can afford nothing takes its cheapest model
            affordable = np.where(price <= np.maximum(threshold, cheapest), quality, -np.inf)
            best = affordable == affordable.max(axis=1, keepdims=True)
            chosen = np.argmax(np.where(best, liking, -np.inf), axis=1)
            scores.append((quality[rows, chosen].mean(), cost[rows, chosen].mean()))
        scores += scores[-1:] * (len(self) - len(scores))
        return tuple(np.array(scores).T)


@dataclass(frozen=True)
class BestSinglePolicies(_Hindsight):
    """One model for all queries, the one that turns out best; queries it cannot serve are left out of its means."""

    def __len__(self) -> int:
        return 1

    def label(self, index: int) -> str:
        return "best single model"

    def realised(self, quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean quality and mean cost of the best model."""
        best = best_column(quality)
        return np.nanmean(quality[:, [best]], axis=0), np.nanmean(cost[:, [best]], axis=0)


class HindsightRouter(Router):
    """A bound rather than a router: it buys nothing, and is told the outcomes that judge it.

    ``predict_quality`` and ``predict_cost`` need a ``Workload``, for its outcomes.
    """

    hindsight = True

    def _fit(self, queries, feedback):
        pass

    def predict_quality(self, queries: Asked) -> np.ndarray:
        return self._filled(self._outcomes(queries).quality)

    def predict_cost(self, queries: Asked) -> np.ndarray:
        return self._filled(self._outcomes(queries).cost)

    def _filled(self, values) -> np.ndarray:
        return np.where(np.isfinite(values), values, model_means(values))

    def _outcomes(self, queries) -> Workload:
        self._refuse_unfitted()
        if not isinstance(queries, Workload):
            raise SaveRouterError(
                f"{type(self).__name__} has no estimates for {type(queries).__name__}; "
                "give it the test workload itself: an oracle knows outcomes"
            )
        return queries

    def _estimates(self, queries):
        raise SaveRouterError(
            f"{type(self).__name__} routes no new query: it needs outcomes; use evaluate(router, test)"
        )


class Oracle(HindsightRouter):
    """The best affordable model of each query, known from its outcomes.

    Parameters
    ----------
    ties : among equally good models take a "random" one, as ORBIT does, or the "cheapest", a stronger bound
    seed : of the random ties
    """

    def __init__(self, *, ties="random", seed=42):
        self.ties = ties
        self.seed = seed

    @property
    def label(self) -> str:
        return "Oracle, cheapest" if self.ties == "cheapest" else "Oracle"

    def _fit(self, queries, feedback):
        if self.ties not in TIES:
            raise SaveRouterError(f"ties is {self.ties!r}; expected one of {', '.join(TIES)}")

    def policies(self, queries: Asked) -> list:
        return [OraclePolicies(self.ties, self.seed)]


class BestSingle(HindsightRouter):
    """The model with the best mean quality on the test outcomes, for all queries: the reference of every cost ratio.

    Its estimates are a model's means, the same for every query.
    """

    label = "Best single"

    def _filled(self, values) -> np.ndarray:
        return np.tile(model_means(values), (len(values), 1))

    def policies(self, queries: Asked) -> list:
        return [BestSinglePolicies()]


class _PriceRouter(Router):
    """A router that knows the price list only."""

    def __init__(self, *, seed=42):
        self.seed = seed

    def _fit(self, queries, feedback):
        self.prices_ = price_list(queries, feedback, self.seed)

    def predict_cost(self, queries: Asked) -> np.ndarray:
        size = len(self._queries(queries))
        return np.tile(self.prices_, (size, 1))


class Random(_PriceRouter):
    """Sends a share of the queries, from 0 to 100%, to a random available model, and the others to the cheapest one.

    Parameters
    ----------
    seed : of the draws, and of the pilot where there is no price list

    A larger share keeps the draws of a smaller one. ``predict_quality`` is the draw itself: uniform numbers.
    """

    label = "Random"

    def predict_quality(self, queries: Asked) -> np.ndarray:
        size = len(self._queries(queries))
        return np.random.default_rng(self.seed).random((size, len(self.models_)))

    def policies(self, queries: Asked) -> list:
        quality, cost = self._estimates(self._queries(queries))
        drawn = np.argmax(quality, axis=1)
        cheapest = np.argmin(np.where(np.isneginf(quality), np.inf, cost), axis=1)
        turn = np.random.default_rng((self.seed, 1)).random(len(drawn))
        choices = np.where(turn < SHARES[:, None], drawn, cheapest)
        return [ChoicePolicies(choices, [f"{share:.0%} at random" for share in SHARES])]


class CheapestSingle(_PriceRouter):
    """The model with the lowest price, or the next one where that is unavailable.

    Parameters
    ----------
    seed : of the pilot where there is no price list

    ``predict_quality`` is a preference, not an estimate: 0 for the cheapest model down to -1 for the dearest.
    """

    label = "Cheapest single"

    def predict_quality(self, queries: Asked) -> np.ndarray:
        size = len(self._queries(queries))
        rank = np.argsort(np.argsort(self.prices_, kind="stable"))
        return np.tile(-rank / max(len(rank) - 1, 1), (size, 1))

    def policies(self, queries: Asked) -> list:
        quality, _ = self._estimates(self._queries(queries))
        return [ChoicePolicies(np.argmax(quality, axis=1)[None], ["cheapest model"])]
