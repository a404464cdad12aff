"""What judging may ask of a fitted router: what it expects of every model, and what it learnt a call costs."""

from __future__ import annotations

import numpy as np

from ..errors import SaveRouterError
from ..workloads import Asked, Queries
from .operating_points import masked


def estimates(router, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    """A router's (n, M) estimates of quality, -inf where a model cannot be asked, and of cost."""
    if getattr(router, "hindsight", False):
        raise SaveRouterError(f"{router.label} chooses in hindsight: it has no estimates, so no policy can be served")
    if hasattr(router, "estimates"):
        return router.estimates(queries)
    return masked(router.predict_quality(queries), queries.available), router.predict_cost(queries)


def mean_costs(router, cost: np.ndarray) -> np.ndarray:
    """(M,) what a call to each model costs on average, as the router learnt it; else the means of its predictions."""
    learnt = getattr(router, "mean_costs", None)
    return np.asarray(cost.mean(axis=0) if learnt is None else learnt, dtype=np.float64)


def training_queries(router, train: Asked | None, what: str) -> Queries:
    """The queries that a router was fitted on: those given, or those it holds in memory."""
    train = getattr(router, "train_queries_", None) if train is None else train
    if train is None:
        raise SaveRouterError(
            f"this {type(router).__name__} does not hold the queries it was fitted on (none are saved or copied); "
            f"give them: {what}(..., train=train.queries)"
        )
    return Queries.of(train)
