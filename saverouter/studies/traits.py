"""What kind of workload it is: how prices and qualities are spread, how models disagree, whether prompts tell who is right."""

from __future__ import annotations

import numpy as np

from ..judging import best_single
from ..routers import make_router
from ..workloads import Workload, model_means


def traits(work: Workload, split_seed: int = 42) -> dict[str, float]:
    """Traits of a workload on the test part of a split, each of which a router could live on.

    price spread : the best single model's cost, in times of the median model's
    quality spread : points between the best single model and the median model
    disagreement : points that the oracle is above the best single model, if it knew every outcome
    predictability : correlation of measured with predicted outcomes, a query's and a model's mean taken off both; the
        prediction is that of kNN with all outcomes of the training part
    """
    train, test = work.split(seed=split_seed)
    best, quality, cost = best_single(test), model_means(test.quality), model_means(test.cost)
    router = make_router("knn").fit(train.queries, train.feedback())
    return {
        "price spread": best.cost / float(np.median(cost)) if np.median(cost) > 0 else np.inf,
        "quality spread": 100 * (best.quality - float(np.median(quality))),
        "disagreement": 100 * (float(np.nanmax(test.quality, axis=1).mean()) - best.quality),
        "predictability": _correlation(router.predict_quality(test.queries), test.quality),
    }


def _correlation(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Of what is left of two tables when the means of rows and columns are taken off; 0 where one of them has nothing left."""
    known = np.isfinite(measured)
    left = [_interaction(np.where(known, table, np.nan))[known] for table in (predicted, measured)]
    spread = [part.std() for part in left]
    return float(np.mean(left[0] * left[1]) / (spread[0] * spread[1])) if min(spread) > 1e-12 else 0.0


def _interaction(table: np.ndarray) -> np.ndarray:
    return table - np.nanmean(table, axis=1, keepdims=True) - np.nanmean(table, axis=0) + np.nanmean(table)
