"""A fitted SaveRouter for a pool that changed: other prices, or one model more. What was bought before is not bought again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...errors import SaveRouterError, did_you_mean, number, share
from ...workloads import Asked, Feedback, Queries, came_back
from .acquisition import within_groups
from .capability import UNSEEN_COST


def repriced(router, factors: Mapping[str, float] | None, costs: Mapping[str, float] | None):
    """``SaveRouter.reprice``."""
    factors, costs = dict(factors or {}), dict(costs or {})
    _refuse_prices(router.models_, factors, costs)
    seen, means = router.bought_ > 0, router.model_cost_
    tried, scale = seen.any(axis=0), np.ones(len(means))
    fixed = {router.models_.index(name): value for name, value in costs.items()}
    for name, factor in factors.items():
        column = router.models_.index(name)
        if not tried[column]:
            raise SaveRouterError(
                f"no outcome of {name!r} was bought, so that a factor has nothing to change; give its mean cost: "
                f"reprice(costs={{{name!r}: ...}})"
            )
        scale[column] = factor
    for column, value in fixed.items():
        scale[column] = value / means[column] if means[column] > 0 else 1.0
    new = router._copied()
    new.model_cost_ = means * scale
    flat = [column for column in fixed if not means[column] > 0 or not tried[column]]  # nothing to be in proportion to
    for column in flat:
        new.model_cost_[column] = fixed[column]
    unseen = ~tried
    unseen[list(fixed)] = False
    new.model_cost_[unseen] = UNSEEN_COST * new.model_cost_[tried].max()
    new.group_cost_ = np.where(seen, router.group_cost_ * scale, new.model_cost_)
    new.group_cost_[:, flat] = new.model_cost_[flat]
    if hasattr(router, "observations_"):
        bought = router.observations_
        paid = np.where(
            np.isin(bought.models, flat), new.model_cost_[bought.models], bought.cost * scale[bought.models]
        )
        new.observations_ = replace(bought, cost=paid)
    return new


def _refuse_prices(models: tuple[str, ...], factors: Mapping, costs: Mapping) -> None:
    if not factors and not costs:
        raise SaveRouterError(
            'reprice was given nothing; give factors, {"gpt-4o": 0.5}, or mean costs: costs={"gpt-4o": 0.002}'
        )
    for what, given in (("factor", factors), ("mean cost", costs)):
        for name, value in given.items():
            if name not in models:
                raise SaveRouterError(
                    f"model {name!r} is not in the pool; {did_you_mean(name, models)}it has {', '.join(models)}"
                )
            number(f"{what} of {name!r}", value)
    both = sorted(set(factors) & set(costs))
    if both:
        raise SaveRouterError(f"model {both[0]!r} has a factor and a mean cost; give one of the two")


def with_model(router, name: str, queries: Asked, feedback: Feedback, part: float):
    """``SaveRouter.add_model``."""
    queries = Queries.of(queries)
    share("share", part)
    _refuse_queries(router, queries, feedback)
    sold, models = tuple(feedback.models), _new_pool(router.models_, name, tuple(feedback.models))
    available = feedback.available(queries)[:, sold.index(name)]
    if not available.any():
        raise SaveRouterError(
            f"model {name!r} can be asked for none of the queries; give feedback that sells its outcomes"
        )
    rows = within_groups(router.groups_, available, part, router.seed)
    bought = came_back(rows, np.full(len(rows), models.index(name)), *feedback.reveal(rows, sold.index(name)))
    seen, place = router.observations_, np.array([models.index(model) for model in router.models_])
    before = seen.rows, place[seen.models], seen.quality, seen.cost
    new = router._copied()
    new.models_, new.train_queries_ = models, queries
    new._learn(queries, *(np.concatenate(pair) for pair in zip(before, bought, strict=True)))
    return new


def _new_pool(models: tuple[str, ...], name: str, sold: tuple[str, ...]) -> tuple[str, ...]:
    if name in models:
        raise SaveRouterError(f"model {name!r} is in the pool already; it has {', '.join(models)}")
    if name not in sold:
        raise SaveRouterError(
            f"the feedback does not sell {name!r}; {did_you_mean(name, sold)}it sells {', '.join(sold)}"
        )
    if sold == (name,):
        return (*models, name)
    if sorted(sold) != sorted((*models, name)):
        other = sorted(set(sold) ^ {*models, name})[0]
        raise SaveRouterError(
            f"the feedback's pool and the router's differ by more than {name!r}: {other!r}; add one model at a time, from "
            "feedback for the router's pool and that model"
        )
    return sold


def _refuse_queries(router, queries: Queries, feedback: Feedback) -> None:
    if not hasattr(router, "observations_"):
        raise SaveRouterError(
            "this SaveRouter was loaded, and outcomes are not saved: a model cannot be added to it; add it to the fitted "
            "router, then save that"
        )
    known, size = getattr(router, "train_queries_", None), len(router.groups_)
    if len(queries) != size or len(feedback.available(queries)) != size or (
        known is not None and not np.array_equal(known.prompts, queries.prompts)
    ):  # fmt: skip
        raise SaveRouterError(
            f"add_model needs the {size} queries that the router was fitted on, in their order, and feedback for them: "
            "add_model(name, train.queries, train.feedback())"
        )
