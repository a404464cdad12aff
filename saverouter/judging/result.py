"""What an evaluation found: a frontier, the point to operate at, and when the supervision pays back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import SaveRouterError, number, share
from . import economics
from .coverage import Coverage, Reference
from .interval import Sample, bootstrap, saved_over
from .operating_points import pareto
from .policies import Policy
from .verdict import verdict

QUALITY_NOISE = 1e-9
NO_POLICY = "it is a choice that no thresholds describe, or hangs on the answers themselves, as a cascade's does"
LARGEST_TARGET = 10  # a larger one must be a percentage
SELECTIONS = {  # of an operating point, in words for tables and verdicts
    "test": "chosen on test outcomes",
    "certificate": "certified on fresh queries",
    "given": "given beforehand",
}


@dataclass(frozen=True)
class Result:
    """A router's frontier on a test set and the economics that follow from it.

    frontier : policy, quality and cost of every point, and ``reference_cost``, the part of the cost that the best single
        model takes; NaN for choices made in hindsight, which would follow another price
    selection : how the operating point was chosen, a key of ``SELECTIONS``, which has the words for it
    policies : the frontier's points as objects, in its order; None where no thresholds describe one
    singles : every single model on the test queries that it has
    comparable : those that have enough queries in common with the reference, as they do on the reference's queries
    coverage : which test outcomes there are, and whether they can carry a verdict; None where that is not known
    test_cost : what the test outcomes cost. They are on no bill: a deployment needs none of them.
    certificate_cost : the part of the supervision cost that bought the certificate
    named_reference : True where the reference was named, and is not just the best single model
    sample : outcomes by query, from which intervals are drawn; only in memory
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
    singles: tuple[Reference, ...] = ()
    comparable: tuple[Reference, ...] = ()
    coverage: Coverage | None = None
    test_cost: float | None = None
    certificate_cost: float = 0.0
    named_reference: bool = False
    sample: Sample | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict:
        """Without the sample, which is as large as the test table."""
        return {**vars(self), "sample": None}

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
            singles=self._dearer(self.singles, factor),
            comparable=self._dearer(self.comparable, factor),
            sample=None,
            supervision_cost=self.supervision_cost + (factor - 1) * reference_supervision,
        )

    def _dearer(self, models: tuple[Reference, ...], factor: float) -> tuple[Reference, ...]:
        return tuple(
            replace(one, cost=factor * one.cost) if one.model == self.reference.model else one for one in models
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
    def reaches(self) -> bool:
        """Whether the operating point meets the target, which one that was given may miss."""
        point = self.operating_point
        return point is not None and bool(point["quality"] >= self.target_quality - QUALITY_NOISE)

    @property
    def single(self) -> Reference | None:
        """The cheapest single model that meets the same target, chosen on test outcomes; None where none does.

        A model with other queries than the reference is compared with it on those that they share.
        """
        found = self.comparable_single
        return found and next(one for one in self.singles if one.model == found.model)

    @property
    def comparable_single(self) -> Reference | None:
        """``single`` as it does on the reference's queries."""
        compared = self.comparable or self.singles
        good = [one for one in compared if one.quality >= self.target_quality - QUALITY_NOISE]
        return min(good, key=lambda one: one.cost, default=None)

    @property
    def refusal(self) -> str | None:
        """Why the test outcomes carry no verdict, and which would; None where they do."""
        return self.coverage and self.coverage.refusal(self.reference.model, self.named_reference)

    def interval(self, level: float = 0.9) -> pd.DataFrame:
        """Estimate, low and high of the quality difference to the reference (points), the saving and SA-BEP.

        A paired bootstrap over test queries (clusters together) at the operating point. That a point was chosen on the
        same outcomes, out of many, is not in it.
        """
        return bootstrap(self._sums(level), self.supervision_cost, level)

    def _sums(self, level: float) -> np.ndarray:
        """Test outcomes at the operating point, for intervals; refused where there are none."""
        share("level", level, below_one=True)
        point = self.operating_point
        if self.sample is None or point is None or point.name < 0:
            why = "no operating point that a policy realises" if self.sample else "no outcomes by query in memory"
            raise SaveRouterError(
                f"this result of {self.router} has {why}; intervals come from a fresh evaluate(router, test, ...) that "
                "reaches its target, not from a table, a remembered run or another price"
            )
        return self.sample.sums(point.name)

    def saved_over(self, volume: float, level: float = 0.9) -> tuple[float, float, float]:
        """Money saved by serving the next ``volume`` queries, the supervision apart: estimate, low and high.

        As in ``interval``; that the queries to come are a draw as well is in it. Every test query must have the reference.
        """
        number("volume", volume, "a positive number of queries", least=1)
        sums = self._sums(level)
        if not (sums[:, 2] == sums[:, 5]).all():
            raise SaveRouterError(
                f"{self.reference.model} has no outcome on some test queries, so that savings cannot be compared; evaluate on "
                "test.take(rows that have it)"
            )
        return saved_over(sums, volume, level)

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
            why = "this result holds no policies" if not self.policies else NO_POLICY
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
        """Whether routing pays for itself here: a few sentences, with numbers rounded to what can be trusted.

        "No verdict: ..." where the test outcomes cannot carry one; ``refusal`` has the reason alone.
        """
        return verdict(self, SELECTIONS[self.selection])


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
