"""Judges a fitted router on test outcomes: its frontier, and when its supervision pays back.

The only place where test outcomes are read. As in the paper, the operating point that meets the target is
the cheapest one *found on the test outcomes themselves*; ``Result.selection`` says so wherever it is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import SaveRouterError, number, one_of
from ..workloads import Queries, Workload
from . import economics
from .operating_points import cost_of_model, operating_points, pareto

QUALITY_NOISE = 1e-9
LARGEST_TARGET = 10  # a larger one must be a percentage
SELECTIONS = {"test": "operating point chosen on test outcomes"}


class Judged(Protocol):
    """What can be judged: a fitted router, of this package or not."""

    models_: tuple[str, ...]

    def policies(self, queries: Queries) -> list: ...


@dataclass(frozen=True)
class Reference:
    """The best single model on the test outcomes: its name, quality Q_b and cost C_b."""

    model: str
    quality: float
    cost: float


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


@dataclass(frozen=True)
class Result:
    """A router's frontier on a test set and the economics that follow from it.

    frontier : policy, quality and cost of every point, and ``reference_cost``, the part of the cost that the best single
        model takes; NaN for choices made in hindsight, which would follow another price
    """

    router: str
    workload: str
    frontier: pd.DataFrame
    reference: Reference
    supervision_cost: float
    target: float = 1.0
    margin: float | None = None
    horizon: float = 1_000_000
    n_policies: int = 0
    selection: str = SELECTIONS["test"]
    last_quality: float | None = None
    synthetic_best_point: bool = False

    def __repr__(self) -> str:
        return (
            f"<Result of {self.router} on {self.workload}: cost ratio {self.cost_ratio:.4g} at {self.target_quality:.4g}, "
            f"SA-BEP {self.sa_bep:,.0f}, SA-CR {self.sa_cr:.4g}>"
        )

    def at(
        self, *, target: float | None = None, margin: float | None = None, horizon: float | None = None,
        synthetic_best_point: bool | None = None,
    ) -> Result:  # fmt: skip
        """The same frontier judged at another target, margin or horizon, or with the synthetic point of ``evaluate``."""
        _refuse_goal(target, margin, horizon)
        changes = {"horizon": horizon} if horizon is not None else {}
        if synthetic_best_point is not None:
            changes["synthetic_best_point"] = synthetic_best_point
        if target is not None or margin is not None:
            changes |= {"target": 1.0 if target is None else target, "margin": margin}
        return replace(self, **changes)

    def repriced(self, factor: float, reference_supervision: float) -> Result:
        """The same choices if the best single model cost ``factor`` times as much.

        ``reference_supervision`` is the part of the supervision cost that bought outcomes of that model. The policies
        stay those of today's frontier: a router that knew the new price could do better.
        """
        number("factor", factor, "a finite number >= 0, e.g. 0.5 for half the price")
        number("reference_supervision", reference_supervision, "the part of the supervision cost that the model took")
        if self.frontier["reference_cost"].isna().any():
            raise SaveRouterError(
                f"{self.router} chooses in hindsight, so another price changes its choices; evaluate it on a workload "
                "with that price"
            )
        dearer = (factor - 1) * self.frontier["reference_cost"]
        points = self.frontier.assign(cost=self.frontier["cost"] + dearer,
                                      reference_cost=factor * self.frontier["reference_cost"])  # fmt: skip
        return replace(
            self,
            frontier=pareto(points),
            reference=replace(self.reference, cost=factor * self.reference.cost),
            supervision_cost=self.supervision_cost + (factor - 1) * reference_supervision,
        )

    @property
    def target_quality(self) -> float:
        """``target`` x Q_b, or Q_b less ``margin`` points (hundredths) where a margin is given."""
        if self.margin is not None:
            return self.reference.quality - self.margin / 100
        return self.target * self.reference.quality

    @property
    def operating_point(self) -> pd.Series | None:
        """The cheapest point of the frontier that meets the target, or None."""
        points = self.frontier
        if self.synthetic_best_point and self.last_quality is not None:
            unreal = {"policy": "synthetic", "quality": self.last_quality, "cost": self.reference.cost}
            points = pd.concat([points, pd.DataFrame([unreal])]).sort_values("cost", kind="stable")
        good = points[points["quality"] >= self.target_quality - QUALITY_NOISE]
        return None if good.empty else good.iloc[0]

    @property
    def peak_score(self) -> float:
        """P_s: the highest quality over all operating points."""
        return float(self.frontier["quality"].max())

    @property
    def serving_cost(self) -> float:
        """c_r: mean cost at the operating point, inf where the target is not reached."""
        point = self.operating_point
        return math.inf if point is None else float(point["cost"])

    @property
    def cost_ratio(self) -> float:
        """CR: serving cost over the best single model's cost."""
        if math.isinf(self.serving_cost) or self.reference.cost == 0:
            return math.inf
        return self.serving_cost / self.reference.cost

    @property
    def sa_bep(self) -> float:
        """Queries until the supervision is paid back."""
        return economics.sa_bep(self.supervision_cost, self.reference.cost, self.serving_cost)

    @property
    def sa_cr(self) -> float:
        """Cost ratio with the supervision spread over the horizon."""
        return economics.sa_cr(self.supervision_cost, self.reference.cost, self.serving_cost, self.horizon)

    def net_saving(self, volumes: ArrayLike) -> np.ndarray:
        """Money saved after each deployment volume, the supervision deducted; NaN where the target is not reached."""
        if math.isinf(self.serving_cost):
            return np.full(len(np.atleast_1d(volumes)), np.nan)
        return economics.net_saving(volumes, self.supervision_cost, self.reference.cost, self.serving_cost)

    def crossing(self, other: Result) -> float:
        """Volume from which the more heavily supervised of the two is the cheaper one."""
        return economics.crossing_horizon(
            (self.supervision_cost, self.serving_cost), (other.supervision_cost, other.serving_cost)
        )

    def metrics(self) -> dict[str, float]:
        """The paper's four metrics and the supervision cost, by name."""
        return {
            "peak_score": self.peak_score,
            "cost_ratio": self.cost_ratio,
            "sa_bep": self.sa_bep,
            "sa_cr": self.sa_cr,
            "supervision_cost": self.supervision_cost,
        }

    def verdict(self) -> str:
        """Whether routing pays for itself here: a sentence or two, with numbers rounded to what can be trusted."""
        goal = "the best single model's quality"
        if self.margin is not None:
            goal = f"within {self.margin:g} points of the best single model's quality"
        elif self.target != 1:
            goal = f"{self.target:.4g} of the best single model's quality"
        best = f"{self.reference.model}, {self.reference.quality:.2f}"
        if self.operating_point is None:
            return f"No: {self.router} peaks at {self.peak_score:.2f} and does not reach {goal} ({best})."
        if math.isinf(self.sa_bep):
            return f"No: {self.router} reaches {goal} ({best}) but saves nothing over it."
        pays = "Yes" if self.sa_bep <= self.horizon else "Not within the horizon"
        return (
            f"{pays}: {self.router} reaches {goal} ({best}) at {self.cost_ratio:.0%} of its cost. The supervision is paid "
            f"back after about {two_digits(self.sa_bep):,} queries; over {self.horizon:,.0f} queries the whole bill, "
            f"supervision included, is {self.sa_cr:.0%} of the best single model's ({self.selection})."
        )


def two_digits(number: float) -> int:
    """1,234 as 1,200: a break-even point moves by more than that from seed to seed."""
    return int(float(f"{number:.1e}"))


def evaluate(
    router: Judged, test: Workload, *, supervision_cost: float, target: float | None = None,
    margin: float | None = None, horizon: float = 1_000_000, select: str = "test", synthetic_best_point: bool = False,
) -> Result:  # fmt: skip
    """Score every operating point of a fitted router on a test workload.

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
    """
    _refuse_test(test)
    one_of("select", select, SELECTIONS)
    number("supervision_cost", supervision_cost, "feedback.spent, a finite number >= 0")
    _refuse_goal(target, margin, horizon)
    if not hasattr(router, "models_"):
        raise SaveRouterError(
            f"{type(router).__name__} has not been fitted; call fit(train.queries, train.feedback()) first"
        )
    if tuple(router.models_) != test.models:
        raise SaveRouterError(
            f"the router was fitted on the pool {list(router.models_)}, the test workload has {list(test.models)}; "
            "use the same models in the same order"
        )
    families, reference = router.policies(test.queries), best_single(test)
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
        selection=SELECTIONS[select],
        last_quality=float(points["quality"].iloc[-1]) if getattr(router, "synthetic_best_point", False) else None,
        synthetic_best_point=synthetic_best_point,
    )


def _only(cost: np.ndarray, column: int) -> np.ndarray:
    """The costs of one model; the others' are zero."""
    return np.where(np.arange(cost.shape[1]) == column, np.nan_to_num(cost), 0.0)


def _refuse_test(test) -> None:
    if not isinstance(test, Workload):
        raise SaveRouterError(
            f"test is a {type(test).__name__}; expected a Workload with outcomes: evaluate(router, test, supervision_cost=...)"
        )


def _refuse_goal(target: float | None, margin: float | None, horizon: float | None) -> None:
    """None stands for what was not given."""
    if target is not None and margin is not None:
        raise SaveRouterError(f"target is {target} and margin is {margin}; give one of the two")
    if target is not None:
        number("target", target, "a positive multiple of the best single model's quality, e.g. 0.95", least=1e-9)
        if target > LARGEST_TARGET:
            raise SaveRouterError(
                f"target is {target:g}; expected a multiple of the best single model's quality: write {target / 100:g} for "
                f"{target:g}%"
            )
    if margin is not None:
        number("margin", margin, "points of quality below the best single model, e.g. 1", least=-100)
    if horizon is not None and not (isinstance(horizon, Real) and horizon > 0):
        raise SaveRouterError(f"horizon is {horizon!r}; expected a positive number of queries")
