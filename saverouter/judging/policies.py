"""One operating point as an object: what to choose, given estimates, with every threshold in it.

A policy is a pure function of a query's own estimates, so that one prompt is served as it would be among a thousand. It is
plain data: ``to_dict`` gives what JSON can hold, and ``policy_from`` takes it back and refuses anything else. Estimates of
quality are -inf where a model cannot be asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import ClassVar

import numpy as np

from ..errors import SaveRouterError, number, one_of
from .rules import always, best_affordable, gain_per_cost, relative

FALLBACKS = ("cheapest", "first")
PREFERENCE_WEIGHT = 0.1  # of cost against quality, when the alternative to a reference is picked
LEAST_SAVING = 0.02  # of a switch, relative to the reference's mean cost


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What all operating points have in common: the pool they were made for.

    models : the pool, in order. It may be empty where no position matters; a policy that names a model or holds prices
        needs it before it can serve.
    """

    kind: ClassVar[str] = ""

    models: tuple[str, ...] = ()

    def __post_init__(self):
        for field in fields(self):
            object.__setattr__(self, field.name, CHECKS[field.name](field.name, getattr(self, field.name)))
        prices = getattr(self, "prices", None)
        if self.models and prices is not None and len(prices) != len(self.models):
            raise SaveRouterError(f"a policy has {len(prices)} prices for a pool of {len(self.models)} models")

    @property
    def label(self) -> str:
        """The policy in a few words, as frontiers name it."""
        raise NotImplementedError

    def choice(self, quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """(n,) columns of the pool, from (n, M) estimates of quality and cost."""
        raise NotImplementedError

    @property
    def needs_pool(self) -> bool:
        """Whether the order of the pool matters to it."""
        return False

    def refuse_pool(self, models: Iterable[str]) -> None:
        """Refuse to serve another pool than the one the policy was made for."""
        models = tuple(models)
        if self.models != models and (self.models or self.needs_pool):
            raise SaveRouterError(
                f"the policy {self.label!r} was made for the pool {list(self.models)}, the router's is {list(models)}; "
                "take a policy of this router: evaluate(router, test, ...).policy"
            )

    def to_dict(self) -> dict:
        """Plain data for JSON; ``policy_from`` takes it back."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"kind": self.kind, **values}

    def _column(self, name: str) -> int:
        if name not in self.models:
            raise SaveRouterError(f"model {name!r} of a policy is not in its pool {list(self.models)}")
        return self.models.index(name)


@dataclass(frozen=True, kw_only=True)
class CostWeight(Policy):
    """argmax of quality - weight x cost / scale; ties go to the earlier model.

    weight : lambda of the paper
    scale : mean cost of the dearest model (C_max), so that the unit of money does not matter; 0 where all is free
    """

    kind = "cost weight"

    weight: float = 0.0
    scale: float = 1.0

    @property
    def label(self) -> str:
        return f"cost weight {self.weight:.4g}"

    def choice(self, quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
        return np.argmax(quality - self.weight * relative(cost, self.scale), axis=1)


@dataclass(frozen=True, kw_only=True)
class CostLimit(Policy):
    """Best predicted model among those that cost at most a threshold.

    prices : one per model; None compares the cost predicted for the query
    fallback : where a query's models all cost more: its "cheapest" available one, or the "first" of the pool if available
    """

    kind = "cost limit"

    threshold: float = 0.0
    prices: tuple[float, ...] | None = None
    fallback: str = "cheapest"

    @property
    def label(self) -> str:
        return f"cost at most {self.threshold:.4g}"

    @property
    def needs_pool(self) -> bool:
        return self.prices is not None or self.fallback == "first"

    def choice(self, quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
        return best_affordable(quality, cost if self.prices is None else self.prices, self.threshold, self.fallback)


@dataclass(frozen=True, kw_only=True)
class Gate(Policy):
    """The best model where its gain per extra cost reaches a gate, the best one within a cost limit elsewhere.

    threshold, prices : of the limit, as in ``CostLimit``
    scale : as in ``CostWeight``; extra cost is relative to it
    """

    kind = "gate"

    threshold: float = 0.0
    prices: tuple[float, ...] | None = None
    gate: float = 0.0
    scale: float = 1.0

    @property
    def label(self) -> str:
        return f"cost at most {self.threshold:.4g}, gain at least {self.gate:.4g}"

    @property
    def needs_pool(self) -> bool:
        return self.prices is not None

    def choice(self, quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
        low = best_affordable(quality, cost if self.prices is None else self.prices, self.threshold)
        high = np.argmax(quality, axis=1)
        return np.where(gain_per_cost(quality, relative(cost, self.scale), low, high) >= self.gate, high, low)


@dataclass(frozen=True, kw_only=True)
class Switch(Policy):
    """The reference, except where a cheaper model is a good enough bargain.

    reference : the model in use, by name; queries that cannot have it go to the best predicted model
    threshold : the least bargain for which the reference is left
    prices : mean cost of each model; "cheaper" means a lower one than the reference's
    """

    kind = "switch"

    reference: str = ""
    threshold: float = 0.0
    prices: tuple[float, ...] = ()

    def __post_init__(self):
        super().__post_init__()
        self._column(self.reference)
        if self.prices is None or len(self.prices) != len(self.models):
            raise SaveRouterError(f"a switch from {self.reference!r} needs one price per model of its pool")

    @property
    def label(self) -> str:
        if self.threshold <= -np.finfo(float).max:
            return f"a cheaper model than {self.reference} wherever there is one"
        return f"{self.reference} unless a cheaper model's bargain is at least {self.threshold:.4g}"

    @property
    def needs_pool(self) -> bool:
        return True

    def choice(self, quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
        other, bargain = self.bargains(quality, cost)
        stay = always(self._column(self.reference), quality)
        return np.where(bargain >= self.threshold, other, stay)

    def bargains(self, quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best cheaper model of every query, and how good a bargain it is to leave the reference for it.

        Gain in quality times saving; where quality is lost, points lost per unit saved. Costs are relative to the
        reference's mean. -inf: the query has no cheaper model, or cannot have the reference.
        """
        column, prices, rows = self._column(self.reference), np.array(self.prices), np.arange(len(quality))
        cost = relative(cost, prices[column])
        open_ = ~np.isneginf(quality)
        cheaper = open_ & (prices < prices[column])
        known = np.where(open_, quality, 0.0)
        other = np.argmax(np.where(cheaper, known - PREFERENCE_WEIGHT * cost, -np.inf), axis=1)
        gain = known[rows, other] - known[:, column]
        saving = np.maximum(cost[:, column] - cost[rows, other], LEAST_SAVING)
        bargain = np.where(gain < 0, gain / saving, gain * saving)
        return other, np.where(cheaper.any(axis=1) & open_[:, column], bargain, -np.inf)


@dataclass(frozen=True, kw_only=True)
class Always(Policy):
    """One model for every query; those that cannot have it go to the best predicted model."""

    kind = "always"

    model: str = ""

    def __post_init__(self):
        super().__post_init__()
        self._column(self.model)

    @property
    def label(self) -> str:
        return f"always {self.model}"

    @property
    def needs_pool(self) -> bool:
        return True

    def choice(self, quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
        return always(self._column(self.model), quality)


KINDS = {kind.kind: kind for kind in (CostWeight, CostLimit, Gate, Switch, Always)}


def policy_from(content: Mapping) -> Policy:
    """The policy that ``to_dict`` described; anything unknown, missing or damaged is refused."""
    if not isinstance(content, Mapping):
        raise SaveRouterError(f"a policy is described by {content!r:.60}; expected what policy.to_dict() gave")
    given = dict(content)
    one_of("kind of a policy", given.pop("kind", None), KINDS)
    kind = KINDS[content["kind"]]
    known = {field.name for field in fields(kind)}
    for name in sorted(known ^ set(given), key=str):
        raise SaveRouterError(
            f"a policy of kind {kind.kind!r} {'lacks' if name in known else 'has an unknown'} {name!r}"
        )
    return kind(**given)


def policies_to_dict(policies: Iterable[Policy | None]) -> dict:
    """The policies of a frontier as plain data; what all share, such as prices, is said once."""
    each = [policy and policy.to_dict() for policy in policies]
    common = {}
    for name in {name for one in each if one for name in one} - {"kind"}:
        values = [one[name] for one in each if one and name in one]
        if all(value == values[0] for value in values):
            common[name] = values[0]
    return {"common": common, "each": [one and {k: v for k, v in one.items() if k not in common} for one in each]}


def policies_from(content: Mapping) -> tuple[Policy | None, ...]:
    """What ``policies_to_dict`` was given."""
    common, found = content["common"], []
    for one in content["each"]:
        shared = {field.name for field in fields(KINDS[one["kind"]])} & set(common) if one else ()
        found.append(one and policy_from({**{name: common[name] for name in shared}, **one}))
    return tuple(found)


def _finite(name: str, value: object) -> float:
    return number(f"{name} of a policy", value, "a finite number", least=-math.inf)


def _positive(name: str, value: object) -> float:
    return number(f"{name} of a policy", value)


def _word(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise SaveRouterError(f"{name} of a policy is {value!r}; expected the name of a model")
    return value


def _fallback(name: str, value: object) -> str:
    one_of(f"{name} of a policy", value, FALLBACKS)
    return value


def _list(name: str, value: object, check) -> tuple:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise SaveRouterError(f"{name} of a policy are {value!r:.60}; expected a list")
    return tuple(check(name, one) for one in value)


CHECKS = {
    "models": lambda name, value: _list(name, value, _word),
    "prices": lambda name, value: None if value is None else _list(name, value, _positive),
    "weight": _positive, "scale": _positive, "threshold": _finite, "gate": _finite,
    "reference": _word, "model": _word, "fallback": _fallback,
}  # fmt: skip
