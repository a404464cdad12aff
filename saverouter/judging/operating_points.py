"""Families of operating points, built from estimates alone, and what they turn out to score and cost.

A policy is one operating point: it chooses one model per query. A family holds many policies, and sees no outcome until
``realised`` is given those that judge it. Estimates of unavailable pairs are -inf in quality, so they are never chosen.

A family that asks several models for one query has no ``choice``. It says instead, in ``served(index, quality, cost, column)``,
each query's expected quality and cost, and the part of that cost that one model takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..errors import SaveRouterError
from ..threads import in_threads
from . import _choices
from .policies import CostLimit, CostWeight, Gate, Policy, Switch
from .rules import LEAST_EXTRA_COST, always, best_affordable, relative

COST_WEIGHTS = np.concatenate([[0.0], np.logspace(-4, 3, 200)])
GATES = 100
MODEL_THRESHOLDS = 64
QUERY_THRESHOLDS = 100


class Policies:
    """A family that says what each of its policies chooses; a family with a faster way to score them overrides ``realised``."""

    def realised(self, quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean quality and mean cost of every policy."""
        outcomes = [np.ascontiguousarray(values, dtype=np.float64) for values in (quality, cost)]
        choices = self.choices()
        parts = [choices] if isinstance(choices, np.ndarray) else (chosen[None] for chosen in choices)
        return tuple(np.hstack([_choices.mean_outcomes(part, *outcomes) for part in parts]))

    def choices(self) -> Iterable[np.ndarray]:
        """``choice(index)`` for every policy in turn; a family with a faster way overrides it."""
        return (self.choice(index) for index in range(len(self)))

    def policy(self, index: int, models: tuple[str, ...] = ()) -> Policy:
        """One policy of the family as an object that can be deployed, for the pool of that name."""
        raise SaveRouterError(f"{self.label(index)!r} is a choice of the router itself, which no thresholds describe")


@dataclass(frozen=True)
class CostWeightPolicies(Policies):
    """argmax of quality - weight x relative cost, for every weight (lambda of the paper).

    scale : what costs were divided by to become relative
    """

    quality: np.ndarray
    relative_cost: np.ndarray
    weights: np.ndarray
    scale: float = 1.0

    def __len__(self) -> int:
        return len(self.weights)

    def label(self, index: int) -> str:
        return f"cost weight {self.weights[index]:.4g}"

    def choice(self, index: int) -> np.ndarray:
        """The model for each query; ties go to the earlier one."""
        return np.argmax(self.quality - self.weights[index] * self.relative_cost, axis=1)

    def choices(self) -> Iterable[np.ndarray]:
        if np.isnan(self.quality).any():
            return super().choices()
        return _choices.cost_weight_choices(self.quality, self.relative_cost, self.weights)

    def policy(self, index: int, models: tuple[str, ...] = ()) -> CostWeight:
        return CostWeight(weight=self.weights[index], scale=self.scale, models=models)


@dataclass(frozen=True)
class ThresholdPolicies(Policies):
    """Best predicted model among those predicted to cost at most a threshold, for every threshold.

    ``cost`` is (n, M), or (M,) where a model has one price. A query that no model can serve within the
    threshold goes to its cheapest available model. With ``fallback="first"``, the rule behind the paper's
    numbers for other routers, it goes to the first model of the pool where that one is available.
    """

    quality: np.ndarray
    cost: np.ndarray
    thresholds: np.ndarray
    fallback: str = "cheapest"

    def __len__(self) -> int:
        return len(self.thresholds)

    def label(self, index: int) -> str:
        return f"cost at most {self.thresholds[index]:.4g}"

    def choice(self, index: int) -> np.ndarray:
        """The best affordable model for each query, or the fallback."""
        return best_affordable(self.quality, self.cost, self.thresholds[index], self.fallback)

    def choices(self) -> Iterable[np.ndarray]:
        if np.isnan(self.thresholds).any() or np.isnan(self.quality).any():
            return super().choices()
        return _choices.threshold_choices(self.quality, self.cost, self.thresholds, self.fallback == "first")

    def policy(self, index: int, models: tuple[str, ...] = ()) -> CostLimit:
        prices = self.cost if self.cost.ndim == 1 else None
        return CostLimit(threshold=self.thresholds[index], prices=prices, fallback=self.fallback, models=models)


@dataclass(frozen=True)
class ChoicePolicies(Policies):
    """Choices that a router made itself, (policies, n) columns of the pool, each with its label."""

    chosen: np.ndarray
    labels: list[str]

    def __len__(self) -> int:
        return len(self.chosen)

    def label(self, index: int) -> str:
        return self.labels[index]

    def choice(self, index: int) -> np.ndarray:
        return self.chosen[index]


@dataclass(frozen=True)
class GatePolicies(Policies):
    """Two choices per query: ``high`` where its gain reaches a gate, ``low`` elsewhere, for every gate.

    A query counts at the last gate that it reaches. Cumulative sums, from the highest gate down, then score every gate.

    threshold, prices, scale : how ``low`` was chosen, and the unit of the gain's extra cost
    """

    low: np.ndarray
    high: np.ndarray
    gain: np.ndarray
    gates: np.ndarray
    name: str
    threshold: float | None = None
    prices: np.ndarray | None = None
    scale: float = 1.0

    def __len__(self) -> int:
        return len(self.gates)

    def label(self, index: int) -> str:
        return f"{self.name}, gain at least {self.gates[index]:.4g}"

    def choice(self, index: int) -> np.ndarray:
        return np.where(self.gain >= self.gates[index], self.high, self.low)

    def realised(self, quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(len(self.gain))
        reached = np.searchsorted(self.gates, self.gain, side="right")
        means = []
        for outcome in (quality, cost):
            low, high = outcome[rows, self.low], outcome[rows, self.high]
            steps = np.bincount(reached, high - low, minlength=len(self.gates) + 1)
            means.append((low.sum() + np.cumsum(steps[:0:-1])[::-1]) / len(rows))
        return means[0], means[1]

    def policy(self, index: int, models: tuple[str, ...] = ()) -> Gate:
        if self.threshold is None:
            return super().policy(index)
        limit = {"threshold": self.threshold, "prices": self.prices}
        return Gate(gate=self.gates[index], scale=self.scale, models=models, **limit)


@dataclass(frozen=True)
class SwitchPolicies(GatePolicies):
    """The path of ``certify``: the reference, and a cheaper model where its bargain reaches a step; gates ascend."""

    switch: Switch | None = None

    @classmethod
    def of(cls, switch: Switch, steps: np.ndarray, quality: np.ndarray, cost: np.ndarray) -> SwitchPolicies:
        """``steps`` fall, as ``path.thresholds`` gives them."""
        other, bargain = switch.bargains(quality, cost)
        stay = always(switch.models.index(switch.reference), quality)
        return cls(stay, other, bargain, steps[::-1], "switch", switch=switch)

    def label(self, index: int) -> str:
        return self.policy(index).label

    def policy(self, index: int, models: tuple[str, ...] = ()) -> Switch:
        return replace(self.switch, threshold=float(self.gates[index]))


def masked(quality: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """Quality estimates with -inf where a model cannot be asked."""
    return quality if available is None else np.where(available, quality, -np.inf)


def threshold_grid(values: np.ndarray, size: int) -> np.ndarray:
    """All distinct values, or ``size`` of their quantiles where there are more."""
    distinct = np.unique(values)
    return distinct if len(distinct) <= size else np.unique(np.quantile(distinct, np.linspace(0, 1, size)))


def threshold_policies(quality: np.ndarray, cost: np.ndarray, fallback: str = "cheapest") -> list:
    """ORBIT's predicted-cost frontier: at most 100 thresholds on the predicted costs."""
    grid = threshold_grid(cost[np.isfinite(quality)], QUERY_THRESHOLDS)
    return [ThresholdPolicies(quality, cost, grid, fallback)]


def saverouter_policies(quality: np.ndarray, cost: np.ndarray, model_cost: np.ndarray) -> list:
    """The paper's whole family: cost weights, thresholds on a model's mean cost, and gates at each threshold.

    A gate weighs predicted gain in quality against predicted extra cost. Costs enter relative to the
    dearest model's mean (C_max), so that the unit of money cannot matter.
    """
    dearest = float(model_cost.max())
    paid = relative(cost, dearest)
    rows = np.arange(len(quality))
    high = np.argmax(quality, axis=1)
    thresholds = ThresholdPolicies(quality, model_cost, threshold_grid(model_cost, MODEL_THRESHOLDS))
    families = [CostWeightPolicies(quality, paid, COST_WEIGHTS, dearest), thresholds]
    best, dearer = quality[rows, high], paid[rows, high]

    def gated(threshold):
        index, low = threshold
        gain = (best - quality[rows, low]) / np.maximum(dearer - paid[rows, low], LEAST_EXTRA_COST)
        gates = np.unique(np.quantile(gain, np.linspace(0, 1, GATES)))
        limit = float(thresholds.thresholds[index])
        return GatePolicies(low, high, gain, gates, thresholds.label(index), limit, model_cost, dearest)

    return families + in_threads(gated, enumerate(thresholds.choices()))


def operating_points(families: list, quality: np.ndarray, cost: np.ndarray) -> pd.DataFrame:
    """What every policy of the families scores and costs on given outcomes."""
    scores = in_threads(lambda family: family.realised(quality, cost), families)
    return pd.DataFrame({
        "policy": [family.label(index) for family in families for index in range(len(family))],
        "quality": np.concatenate([scored for scored, _ in scores]),
        "cost": np.concatenate([paid for _, paid in scores]),
    })  # fmt: skip


def choices_of(families: list, places: Iterable[int], queries: int, models: int) -> np.ndarray:
    """(policies, n) columns chosen by some policies, -1 of those that ask several; ``places`` count through all families.

    Only a frontier's few policies are asked, so that their choices may be made one by one.
    """
    none = np.full(queries, -1)
    found = [none if hasattr(family, "served") else family.choice(index) for family, index in placed(families, places)]
    return np.array(found, dtype=_choices.smallest(models))


def objects(families: list, places: Iterable[int], models: tuple[str, ...]) -> tuple[Policy | None, ...]:
    """Some policies as objects, None where no thresholds describe one."""
    return tuple(_object(family, index, models) for family, index in placed(families, places))


def _object(family, index: int, models: tuple[str, ...]) -> Policy | None:
    with suppress(SaveRouterError, AttributeError):  # families of others' routers may know no such objects
        return family.policy(index, models)
    return None


def placed(families: list, places: Iterable[int]) -> Iterator[tuple[Policies, int]]:
    """The family and the index in it of some policies; ``places`` count through all families."""
    starts = np.cumsum([0, *(len(family) for family in families)])
    for place in places:
        number = int(np.searchsorted(starts, place, side="right")) - 1
        yield families[number], int(place - starts[number])


def pareto(points: pd.DataFrame) -> pd.DataFrame:
    """The points that are better than every cheaper or equally cheap one: quality strictly rises with cost."""
    ordered = points.sort_values(["cost", "quality"], ascending=[True, False], kind="stable")
    best_before = ordered["quality"].cummax().shift(fill_value=-np.inf)
    return ordered[ordered["quality"] > best_before + 1e-12].reset_index(drop=True)
