"""Judges a fitted router on test outcomes: its frontier, and when its supervision pays back.

The only place where test outcomes are read. As in the paper, the operating point that meets the target is
the cheapest one *found on the test outcomes themselves*, unless a policy is given; ``Result.selection`` says which.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..errors import SaveRouterError, number, one_of
from ..workloads import Queries, Workload
from .asking import estimates
from .operating_points import ChoicePolicies, cost_of_model, objects, operating_points, pareto
from .policies import Policy
from .result import Reference, Result, refuse_goal


class Judged(Protocol):
    """What can be judged: a fitted router, of this package or not."""

    models_: tuple[str, ...]

    def policies(self, queries: Queries) -> list: ...


def best_single(test: Workload) -> Reference:
    """argmax of the mean quality over the available pairs; ties go to the earlier model."""
    _refuse_test(test)
    best = best_column(test.quality)
    quality, cost = (np.nanmean(values[:, best]) for values in (test.quality, test.cost))
    return Reference(test.models[best], float(quality), float(cost))


def best_column(quality: np.ndarray) -> int:
    """The model with the best mean over the available pairs."""
    columns = (column[np.isfinite(column)] for column in quality.T)
    return int(np.argmax([column.mean() if len(column) else -1.0 for column in columns]))


def evaluate(
    router: Judged, test: Workload, *, supervision_cost: float, target: float | None = None,
    margin: float | None = None, horizon: float = 1_000_000, select: str = "test", synthetic_best_point: bool = False,
    policy: Policy | None = None,
) -> Result:  # fmt: skip
    """Score every operating point of a fitted router on a test workload, or the one that is given.

    Parameters
    ----------
    supervision_cost : C_0, what the feedback meter charged (``feedback.spent``)
    target : quality to reach, as a multiple of the best single model's; 1 unless given
    margin : instead of ``target``: points (hundredths of quality) below the best single model
    horizon : H, deployment queries over which SA-CR spreads the supervision
    select : which outcomes choose the operating point; "test", as in the paper, is the only choice
    synthetic_best_point : add a point that no policy realises, as the evaluation behind the paper's numbers does for
        most routers: the quality of the last operating point (the one that cares least about cost) at the cost of the
        best single model. Where that quality reaches the target, a cost ratio above 1 becomes exactly 1.
    policy : judge exactly this operating point, e.g. the ``result.policy`` of an earlier evaluation
    """
    _refuse_test(test)
    one_of("select", select, ("test",))
    number("supervision_cost", supervision_cost, "feedback.spent, a finite number >= 0")
    refuse_goal(target, margin, horizon)
    _refuse_router(router, test)
    families = router.policies(test.queries) if policy is None else [_given(router, test.queries, policy)]
    reference = best_single(test)
    points = operating_points(families, test.quality, test.cost)
    frontier = pareto(points.assign(place=np.arange(len(points))))
    places, column = frontier.pop("place"), test.models.index(reference.model)
    hindsight = getattr(router, "hindsight", False)
    frontier["reference_cost"] = np.nan if hindsight else cost_of_model(families, places, _only(test.cost, column))
    return Result(
        router=getattr(router, "label", type(router).__name__),
        workload=test.name,
        frontier=frontier,
        reference=reference,
        supervision_cost=float(supervision_cost),
        target=1.0 if target is None else target,
        margin=margin,
        horizon=horizon,
        n_policies=len(points),
        selection="test" if policy is None else "given",
        last_quality=float(points["quality"].iloc[-1]) if getattr(router, "synthetic_best_point", False) else None,
        synthetic_best_point=synthetic_best_point,
        policies=objects(families, places, test.models) if policy is None else (policy,),
    )


def _given(router, queries: Queries, policy: Policy) -> ChoicePolicies:
    policy.refuse_pool(router.models_)
    return ChoicePolicies(policy.choice(*estimates(router, queries))[None], [policy.label])


def _refuse_router(router, test: Workload) -> None:
    if not hasattr(router, "models_"):
        raise SaveRouterError(
            f"{type(router).__name__} has not been fitted; call fit(train.queries, train.feedback()) first"
        )
    if tuple(router.models_) != test.models:
        raise SaveRouterError(
            f"the router was fitted on the pool {list(router.models_)}, the test workload has {list(test.models)}; "
            "use the same models in the same order"
        )


def _only(cost: np.ndarray, column: int) -> np.ndarray:
    """The costs of one model; the others' are zero."""
    return np.where(np.arange(cost.shape[1]) == column, np.nan_to_num(cost), 0.0)


def _refuse_test(test) -> None:
    if not isinstance(test, Workload):
        raise SaveRouterError(
            f"test is a {type(test).__name__}; expected a Workload with outcomes: evaluate(router, test, supervision_cost=...)"
        )
