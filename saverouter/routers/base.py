"""What every router has in common: buy through the door, estimate, offer operating points."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..encoders import embed
from ..errors import SaveRouterError
from ..feedback import Feedback, model_means
from ..policies import masked, threshold_policies
from ..workload import Queries

ORBIT = ("early", "late")
PILOT = 16


class Router(BaseEstimator):
    """Base class of all routers, in scikit-learn's manner.

    A subclass stores its options in ``__init__``, buys outcomes and learns in ``_fit``, and returns
    (n, M) estimates from ``predict_quality`` and ``predict_cost``. It may offer operating points of its own in
    ``policies``; by default those are thresholds on the predicted cost.

    label : the name in tables
    reconstructed : True where the method's source is not public, so that parts of it are our reading
    deviation : where this code departs from the published configuration, in a few words for the notes of a table
    synthetic_best_point : True where the paper's evaluation of this router added a point that no policy realises,
        see ``evaluate``
    """

    label = "Router"
    reconstructed = False
    deviation = ""
    synthetic_best_point = False

    def fit(self, queries: Queries, feedback: Feedback) -> Router:
        """Learn from outcomes bought through ``feedback``, whose rows are the rows of ``queries``."""
        queries = Queries.of(queries)
        available = feedback.available(queries)
        if len(queries) != len(available) or (hasattr(feedback, "__len__") and len(queries) != len(feedback)):
            size = len(feedback) if hasattr(feedback, "__len__") else len(available)
            raise SaveRouterError(
                f"{len(queries)} queries but feedback for {size}; take both from the same workload: "
                "fit(train.queries, train.feedback())"
            )
        self.models_ = tuple(getattr(feedback, "models", queries.models))
        self._fit(queries, feedback)
        return self

    def _fit(self, queries: Queries, feedback: Feedback) -> None:
        raise NotImplementedError

    def predict_quality(self, queries) -> np.ndarray:
        raise NotImplementedError

    def predict_cost(self, queries) -> np.ndarray:
        raise NotImplementedError

    def policies(self, queries) -> list:
        """Families of operating points for these queries."""
        return threshold_policies(*self._estimates(Queries.of(queries)))

    def _estimates(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        """Quality, -inf where a model cannot be asked, and cost; a router that shares work between the two overrides it."""
        return masked(self.predict_quality(queries), queries.available), self.predict_cost(queries)

    def route(self, queries, cost_weight: float = 0.0) -> np.ndarray:
        """The model for each query: argmax of quality - cost_weight x cost relative to the dearest model."""
        check_is_fitted(self, "models_")
        if not (np.isfinite(cost_weight) and cost_weight >= 0):
            raise SaveRouterError(f"cost_weight is {cost_weight}; expected a finite number >= 0")
        return np.asarray(self.models_, dtype=object)[self._choose(Queries.of(queries), cost_weight)]

    def _choose(self, queries: Queries, cost_weight: float) -> np.ndarray:
        """The column for each query; a router with a rule of its own for a cost weight overrides it."""
        return self._best(*self._estimates(queries), cost_weight)

    def _best(self, quality: np.ndarray, cost: np.ndarray, cost_weight: float) -> np.ndarray:
        dearest = self._dearest(cost)
        return np.argmax(quality - cost_weight * cost / (dearest if dearest > 0 else 1.0), axis=1)

    def _dearest(self, cost: np.ndarray) -> float:
        """The scale of the cost weight: mean cost of the dearest model."""
        return float(cost.mean(axis=0).max())


class DenseRouter(Router):
    """A router that buys every available pair and estimates quality and cost from query vectors.

    A subclass learns in ``_learn(vectors, quality, cost, queries)``, whose (n, M) outcomes are NaN where a model is
    unavailable, and returns both (n, M) estimates from ``_predict(vectors, queries)``.

    Options that a subclass may have, and this class heeds:

    fraction : share of the available pairs to buy, drawn at random; 1 is dense supervision
    orbit : generation of the toolkit ORBIT whose rules are followed. "early" is behind the paper's numbers: a query that
        no model can serve within a threshold goes to the first model of the pool. "late" sends it to the model with
        the lowest predicted cost, and clips predicted costs to the range seen in training.
    """

    synthetic_best_point = True
    orbit = "early"
    fraction = 1.0
    seed = 42

    def _fit(self, queries, feedback):
        if self.orbit not in ORBIT:
            raise SaveRouterError(f"orbit is {self.orbit!r}; expected one of {', '.join(ORBIT)}")
        quality, cost = buy_share(queries, feedback, self.fraction, self.seed)
        self.mean_quality_, self.mean_cost_ = model_means(quality), model_means(cost)
        known = np.isfinite(cost)
        lowest, highest = np.where(known, cost, np.inf).min(axis=0), np.where(known, cost, -np.inf).max(axis=0)
        self.cost_range_ = np.minimum(lowest, self.mean_cost_), np.maximum(highest, self.mean_cost_)
        self._learn(embed(queries), quality, cost, queries)

    def _learn(self, vectors, quality, cost, queries) -> None:
        raise NotImplementedError

    def _predict(self, vectors, queries) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _both(self, queries) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "mean_cost_")
        queries = Queries.of(queries)
        quality, cost = self._predict(embed(queries), queries)
        shape = len(queries), len(self.models_)
        cost = np.array(np.broadcast_to(cost, shape), dtype=np.float64)
        return np.asarray(quality, dtype=np.float64), np.clip(cost, *self.cost_range_) if self.orbit == "late" else cost

    def predict_quality(self, queries) -> np.ndarray:
        return self._both(queries)[0]

    def predict_cost(self, queries) -> np.ndarray:
        return self._both(queries)[1]

    def _estimates(self, queries):
        quality, cost = self._both(queries)
        return masked(quality, queries.available), cost

    def policies(self, queries) -> list:
        fallback = "first" if self.orbit == "early" else "cheapest"
        return threshold_policies(*self._estimates(Queries.of(queries)), fallback)


def buy_everything(queries: Queries, feedback: Feedback) -> tuple[np.ndarray, np.ndarray]:
    """Dense supervision: every available pair, as (n, M) quality and cost with NaN elsewhere."""
    return buy(feedback, feedback.available(queries))


def buy_share(queries: Queries, feedback: Feedback, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A share of the available pairs, drawn at random; as ``buy``."""
    if not 0 < fraction <= 1:
        raise SaveRouterError(f"fraction is {fraction}; expected more than 0 and at most 1")
    wanted = np.array(feedback.available(queries))
    if fraction < 1:
        pairs = np.flatnonzero(wanted)
        drawn = np.random.default_rng(seed).choice(pairs, max(1, round(fraction * len(pairs))), replace=False)
        wanted[:] = False
        wanted.flat[drawn] = True
    return buy(feedback, wanted)


def buy(feedback: Feedback, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of an (n, M) mask, as (n, M) quality and cost with NaN elsewhere."""
    quality, cost = np.full(wanted.shape, np.nan), np.full(wanted.shape, np.nan)
    rows, models = np.nonzero(wanted)
    quality[rows, models], cost[rows, models] = feedback.reveal(rows, models)
    return quality, cost


def distinct_tasks(queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    """The names of the tasks, sorted, and the position of each query's; one empty name where queries have none."""
    tasks = np.full(len(queries), "") if queries.tasks is None else queries.tasks
    return np.unique(tasks, return_inverse=True)


def price_list(queries: Queries, feedback: Feedback, seed: int) -> np.ndarray:
    """(M,) mean prices: the feedback's own list, which is free, or the means of a small pilot, which is bought."""
    if hasattr(feedback, "prices"):
        return np.asarray(feedback.prices, dtype=np.float64)
    wanted = np.zeros_like(feedback.available(queries))
    rows = np.random.default_rng(seed).permutation(len(queries))[:PILOT]
    wanted[rows] = feedback.available(queries)[rows]
    return model_means(buy(feedback, wanted)[1])
