"""What every router has in common: buy through the door, estimate, offer operating points."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..errors import SaveRouterError
from ..feedback import Feedback
from ..policies import masked, threshold_policies
from ..workload import Queries


class Router(BaseEstimator):
    """Base class of all routers, in scikit-learn's manner.

    A subclass stores its options in ``__init__``, buys outcomes and learns in ``_fit``, and returns
    (n, M) estimates from ``predict_quality`` and ``predict_cost``. It may offer operating points of its own in
    ``policies``; by default those are thresholds on the predicted cost.

    label : the name in tables; reconstructed : True where the method's source is not public
    """

    label = "Router"
    reconstructed = False

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
        quality, cost = self._estimates(Queries.of(queries))
        dearest = self._dearest(cost)
        utility = quality - cost_weight * cost / (dearest if dearest > 0 else 1.0)
        return np.asarray(self.models_, dtype=object)[np.argmax(utility, axis=1)]

    def _dearest(self, cost: np.ndarray) -> float:
        """The scale of the cost weight: mean cost of the dearest model."""
        return float(cost.mean(axis=0).max())


def buy_everything(queries: Queries, feedback: Feedback) -> tuple[np.ndarray, np.ndarray]:
    """Dense supervision: every available pair, as (n, M) quality and cost with NaN elsewhere."""
    return buy(feedback, feedback.available(queries))


def buy(feedback: Feedback, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of an (n, M) mask, as (n, M) quality and cost with NaN elsewhere."""
    quality, cost = np.full(wanted.shape, np.nan), np.full(wanted.shape, np.nan)
    rows, models = np.nonzero(wanted)
    quality[rows, models], cost[rows, models] = feedback.reveal(rows, models)
    return quality, cost
