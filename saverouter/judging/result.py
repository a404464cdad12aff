"""What an evaluation found: a frontier, the point to operate at, and when the supervision pays back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import SaveRouterError, number
from . import economics
from .operating_points import pareto
from .policies import Policy

QUALITY_NOISE = 1e-9
LARGEST_TARGET = 10  # a larger one must be a percentage
SELECTIONS = {
    "test": "operating point chosen on test outcomes",
    "given": "operating point fixed beforehand",
}


@dataclass(frozen=True)
class Reference:
    """The best single model on the test outcomes: its name, quality Q_b and cost C_b."""

    model: str
    quality: float
    cost: float


@dataclass(frozen=True)
class Result:
    """A router's frontier on a test set and the economics that follow from it.

    frontier : policy, quality and cost of every point, and ``reference_cost``, the part of the cost that the best single
        model takes; NaN for choices made in hindsight, which would follow another price
    selection : how the operating point was chosen, a key of ``SELECTIONS``, which has the words for it
    policies : the frontier's points as objects, in its order; None where no thresholds describe one
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
    selection: str = "test"
    last_quality: float | None = None
    synthetic_best_point: bool = False
    policies: tuple[Policy | None, ...] = ()

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
        refuse_goal(target, margin, horizon)
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
        frontier = pareto(points.assign(place=np.arange(len(points))))
        places = frontier.pop("place")
        return replace(
            self,
            frontier=frontier,
            policies=tuple(self.policies[place] for place in places) if self.policies else (),
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
        """The cheapest point of the frontier that meets the target, or None; a given policy whatever it meets."""
        points = self.frontier
        if self.selection != "test":
            return points.iloc[0]
        if self.synthetic_best_point and self.last_quality is not None:
            unreal = {"policy": "synthetic", "quality": self.last_quality, "cost": self.reference.cost}
            points = pd.concat([points, pd.DataFrame([unreal], index=[-1])]).sort_values("cost", kind="stable")
        good = points[points["quality"] >= self.target_quality - QUALITY_NOISE]
        return None if good.empty else good.iloc[0]

    @property
    def policy(self) -> Policy:
        """The operating point as an object, for ``router.route(prompts, policy=...)``; refused where there is none."""
        point = self.operating_point
        if point is None:
            raise SaveRouterError(
                f"{self.router} does not reach the target, so there is no policy; ask for a lower one: result.at(margin=1)"
            )
        found = self.policies[point.name] if 0 <= point.name < len(self.policies) else None
        if found is None:
            why = "this result holds no policies" if not self.policies else "it is a choice that no thresholds describe"
            raise SaveRouterError(
                f"{point['policy']!r} of {self.router} cannot be deployed: {why}; a router of thresholds can, and "
                "evaluate gives its policies"
            )
        return found

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
            f"supervision included, is {self.sa_cr:.0%} of the best single model's ({SELECTIONS[self.selection]})."
        )


def two_digits(number: float) -> int:
    """1,234 as 1,200: a break-even point moves by more than that from seed to seed."""
    return int(float(f"{number:.1e}"))


def refuse_goal(target: float | None, margin: float | None, horizon: float | None) -> None:
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
