"""Judges a fitted router on test outcomes: its frontier, and when its supervision pays back.

The only place where test outcomes are read. As in the paper, the operating point that meets the target is
the cheapest one *found on the test outcomes themselves*, unless a policy is given; ``Result.selection`` says which.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..errors import SaveRouterError, did_you_mean, number, one_of
from ..workloads import Asked, Queries, Workload, best_column
from .asking import estimates, mean_costs, training_queries
from .certificate import Certificate
from .coverage import Coverage, on_common_queries
from .interval import Sample
from .operating_points import ChoicePolicies, SwitchPolicies, choices_of, objects, operating_points, pareto, placed
from .path import thresholds
from .policies import Policy, Switch
from .result import Reference, Result, refuse_goal


class Judged(Protocol):
    """What can be judged: a fitted router, of this package or not."""

    models_: tuple[str, ...]

    def policies(self, queries: Queries) -> list: ...


def best_single(test: Workload) -> Reference:
    """The model with the best mean quality on common queries (``workloads.coverage``); ties go to the earlier one.

    Its quality and cost are means over all queries that it has.
    """
    _refuse_test(test)
    return _named(test, test.models[best_column(test.quality)])


def single_models(test: Workload) -> tuple[Reference, ...]:
    """Every model alone, on the queries that can have it; one that none can have is left out."""
    there = np.isfinite(test.quality).any(axis=0)
    return tuple(_named(test, model) for model, known in zip(test.models, there, strict=True) if known)


def _named(test: Workload, model: str) -> Reference:
    _refuse_name("reference", model, test.models)
    column = test.models.index(model)
    if not np.isfinite(test.quality[:, column]).any():
        raise SaveRouterError(f"reference {model!r} has no outcome on {test.name}; name a model that has some")
    quality, cost = (np.nanmean(values[:, column]) for values in (test.quality, test.cost))
    return Reference(model, float(quality), float(cost))


def evaluate(
    router: Judged, test: Workload, *, supervision_cost: float, target: float | None = None,
    margin: float | None = None, horizon: float = 1_000_000, select: str = "test", synthetic_best_point: bool = False,
    policy: Policy | None = None, certificate: Certificate | None = None, reference: str | None = None,
    anchored: str | None = None, train: Asked | None = None,
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
    certificate : judge its policy against its reference and, unless told otherwise, its margin. What it cost is added to
        ``supervision_cost``, which is then the training's alone.
    reference : the model in use today, by name, which all is compared with; the best single model on the test unless given
    anchored : add the 100 policies of a certificate's path from this model, by name, to the router's own
    train : the queries that the path's steps are taken from, where the router does not hold them
    """
    _refuse_test(test)
    one_of("select", select, ("test",))
    number("supervision_cost", supervision_cost, "feedback.spent, a finite number >= 0")
    refuse_goal(target, margin, horizon)
    _refuse_router(router, test)
    policy, selection = _chosen(policy, certificate, anchored)
    if certificate is not None:
        reference = certificate.reference if reference is None else reference
        margin = certificate.margin if target is None and margin is None else margin
    families = router.policies(test.queries) if policy is None else [_given(router, test.queries, policy)]
    own = sum(len(family) for family in families)
    if anchored is not None:
        families = [*families, _path(router, test.queries, anchored, train)]
    points = operating_points(families, test.quality, test.cost)
    last = points["quality"].iloc[own - 1] if getattr(router, "synthetic_best_point", False) else None
    compared = best_single(test) if reference is None else _named(test, reference)
    column = test.models.index(compared.model)
    alone = single_models(test)
    paid = 0.0 if certificate is None else certificate.spent
    return Result(
        router=getattr(router, "label", type(router).__name__),
        workload=test.name,
        reference=compared,
        supervision_cost=float(supervision_cost) + paid,
        target=1.0 if target is None else target,
        margin=margin,
        horizon=horizon,
        n_policies=len(points),
        selection=selection,
        last_quality=None if last is None else float(last),
        synthetic_best_point=synthetic_best_point,
        singles=alone,
        comparable=on_common_queries(test, compared, alone),
        coverage=Coverage.of(test, column),
        test_cost=float(np.nansum(test.cost)),
        certificate_cost=paid,
        named_reference=reference is not None,
        **_frontier(router, test, families, points, policy, column),
    )


def _frontier(router, test: Workload, families: list, points, policy: Policy | None, column: int) -> dict:
    """The best points, as objects, with the reference's part of their cost and their outcomes by query.

    What a family with ``served`` asks for one query is charged for every call; others ask one model, ``choice``.
    """
    frontier = pareto(points.assign(place=np.arange(len(points))))
    places = frontier.pop("place")
    if getattr(router, "hindsight", False):
        return {"frontier": frontier.assign(reference_cost=np.nan), "policies": (None,) * len(frontier)}
    chosen, several = choices_of(families, places, *test.quality.shape), {}
    paid = np.nan_to_num(test.cost[:, column])
    shares = [float(np.where(row == column, paid, 0.0).mean()) for row in chosen]
    for point, (family, index) in enumerate(placed(families, places)):
        if hasattr(family, "served"):
            *outcomes, to_reference = family.served(index, test.quality, test.cost, column)
            several[point], shares[point] = np.stack(outcomes), float(to_reference.mean())
    return {
        "frontier": frontier.assign(reference_cost=shares),
        "policies": objects(families, places, test.models) if policy is None else (policy,),
        "sample": Sample(chosen, test.quality, test.cost, column, getattr(test, "clusters", None), several),
    }


def _chosen(policy: Policy | None, certificate: Certificate | None, anchored: str | None) -> tuple[Policy | None, str]:
    """The policy to judge, and who chose it."""
    if policy is not None and certificate is not None:
        raise SaveRouterError("a policy and a certificate are given; give one of the two")
    if anchored is not None and (policy is not None or certificate is not None):
        raise SaveRouterError(
            "anchored policies join a frontier, and a given policy is judged alone; give one of the two"
        )
    if certificate is not None and not isinstance(certificate, Certificate):
        raise SaveRouterError(f"certificate is {certificate!r:.60}; expected what certify(...) returned")
    if policy is not None and not isinstance(policy, Policy):
        raise SaveRouterError(f"policy is {policy!r:.60}; expected an operating point, e.g. result.policy")
    return (certificate.policy, "certificate") if certificate else (policy, "test" if policy is None else "given")


def _path(router, queries: Queries, anchored: str, train: Asked | None) -> SwitchPolicies:
    """The certificate's path from a model, its steps taken from training prompts."""
    _refuse_name("anchored", anchored, router.models_)
    known = estimates(router, training_queries(router, train, "evaluate"))
    switch = Switch(reference=anchored, prices=mean_costs(router, known[1]), models=router.models_)
    return SwitchPolicies.of(switch, thresholds(switch.bargains(*known)[1]), *estimates(router, queries))


def _refuse_name(what: str, name: str, models: tuple[str, ...]) -> None:
    if name not in models:
        raise SaveRouterError(
            f"{what} is {name!r}, which is not in the pool; {did_you_mean(name, models)}it has {', '.join(models)}"
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


def _refuse_test(test) -> None:
    if not isinstance(test, Workload):
        raise SaveRouterError(
            f"test is a {type(test).__name__}; expected a Workload with outcomes: evaluate(router, test, supervision_cost=...)"
        )
