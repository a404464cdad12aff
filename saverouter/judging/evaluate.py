"""Judges a fitted router on test outcomes: its frontier, and when its supervision pays back.

The only place where test outcomes are read. As in the paper, the operating point that meets the target is
the cheapest one *found on the test outcomes themselves*; ``Result.selection`` says so wherever it is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from . import economics
from .errors import SaveRouterError
from .policies import operating_points, pareto
from .workload import Workload

QUALITY_NOISE = 1e-9
SELECTIONS = {"test": "operating point chosen on test outcomes"}


@dataclass(frozen=True)
class Reference:
    """The best single model on the test outcomes: its name, quality Q_b and cost C_b."""

    model: str
    quality: float
    cost: float


def best_single(test: Workload) -> Reference:
    """argmax of the mean quality over the available pairs; ties go to the earlier model."""
    best = best_column(test.quality)
    quality, cost = (np.nanmean(values[:, best]) for values in (test.quality, test.cost))
    return Reference(test.models[best], float(quality), float(cost))


def best_column(quality: np.ndarray) -> int:
    """The model with the best mean over the available pairs."""
    columns = (column[np.isfinite(column)] for column in quality.T)
    return int(np.argmax([column.mean() if len(column) else -1.0 for column in columns]))


@dataclass(frozen=True)
class Result:
    """A router's frontier on a test set and the economics that follow from it."""

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

    def at(
        self,
        *,
        target: float | None = None,
        margin: float | None = None,
        horizon: float | None = None,
        synthetic_best_point: bool | None = None,
    ) -> Result:
        """The same frontier judged at another target, margin or horizon, or with the synthetic point of ``evaluate``."""
        changes = {"horizon": horizon} if horizon is not None else {}
        if synthetic_best_point is not None:
            changes["synthetic_best_point"] = synthetic_best_point
        if target is not None or margin is not None:
            changes |= {"target": 1.0 if target is None else target, "margin": margin}
        return replace(self, **changes)

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

    def net_saving(self, volumes) -> np.ndarray:
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
        return {
            "peak_score": self.peak_score,
            "cost_ratio": self.cost_ratio,
            "sa_bep": self.sa_bep,
            "sa_cr": self.sa_cr,
            "supervision_cost": self.supervision_cost,
        }

    def verdict(self) -> str:
        """Does routing pay for itself here, in a sentence or two, rounded to what can be trusted."""
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
    router,
    test: Workload,
    *,
    supervision_cost: float,
    target: float = 1.0,
    margin: float | None = None,
    horizon: float = 1_000_000,
    select: str = "test",
    synthetic_best_point: bool = False,
) -> Result:
    """Score every operating point of a fitted router on a test workload.

    Parameters
    ----------
    supervision_cost : C_0, what the feedback meter charged (``feedback.spent``)
    target : quality to reach, as a multiple of the best single model's
    margin : instead of ``target``: points (hundredths of quality) below the best single model
    horizon : H, deployment queries over which SA-CR spreads the supervision
    select : which outcomes choose the operating point; "test", the paper's way, is the one there is
    synthetic_best_point : add a point that no policy realises, as the evaluation behind the paper's numbers does for
        most routers: the quality of the last operating point (the one that cares least about cost) at the cost of the
        best single model. Where that quality reaches the target, a cost ratio above 1 becomes exactly 1.
    """
    if select not in SELECTIONS:
        raise SaveRouterError(f"select is {select!r}; expected one of {', '.join(SELECTIONS)}")
    if not horizon > 0:
        raise SaveRouterError(f"horizon is {horizon}; expected a positive number of queries")
    if not (math.isfinite(supervision_cost) and supervision_cost >= 0):
        raise SaveRouterError(f"supervision_cost is {supervision_cost}; expected feedback.spent, a finite number >= 0")
    if not target > 0:
        raise SaveRouterError(f"target is {target}; expected a positive multiple of the best single model's quality")
    if margin is not None and not math.isfinite(margin):
        raise SaveRouterError(f"margin is {margin}; expected points of quality below the best single model, e.g. 1")
    if not hasattr(router, "models_"):
        raise SaveRouterError(
            f"{type(router).__name__} has not been fitted; call fit(train.queries, train.feedback()) first"
        )
    if tuple(router.models_) != test.models:
        raise SaveRouterError(
            f"the router was fitted on the pool {list(router.models_)}, the test workload has {list(test.models)}; "
            "use the same models in the same order"
        )
    points = operating_points(router.policies(test.queries), test.quality, test.cost)
    return Result(
        router=getattr(router, "label", type(router).__name__),
        workload=test.name,
        frontier=pareto(points),
        reference=best_single(test),
        supervision_cost=float(supervision_cost),
        target=target,
        margin=margin,
        horizon=horizon,
        n_policies=len(points),
        selection=SELECTIONS[select],
        last_quality=float(points["quality"].iloc[-1]) if getattr(router, "synthetic_best_point", False) else None,
        synthetic_best_point=synthetic_best_point,
    )
