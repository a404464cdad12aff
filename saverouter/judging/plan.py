"""How many fresh queries a certificate needs, and what they cost: to be known before anything is bought."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm

from ..errors import number, one_of, share
from .certificate import BOUNDS
from .verdict import in_points

PER_ROOT = 10  # fresh queries per square root of the horizon; found on real tables, where it made the smallest bills
BETTING = 2  # a proved bound needs about twice the queries


@dataclass(frozen=True)
class Plan:
    """Fresh queries to buy on, and what they cost.

    recommended : what serves the whole bill best
    fewest : with fewer, even a policy that loses nothing can hardly be certified
    enough : for every policy that loses nothing, with the power asked for; more would be wasted
    cost, highest_cost : about one call of the reference per fresh query, and at most two; in money where its price is given
    unit : of the costs
    """

    horizon: float
    margin: float
    confidence: float
    bound: str
    recommended: int
    fewest: float
    enough: float
    cost: float
    highest_cost: float
    unit: str

    def __repr__(self) -> str:
        return (
            f"<Plan for {self.horizon:,.0f} queries within {in_points(self.margin)} at {self.confidence:.0%}: "
            f"{self.recommended:,} fresh queries (fewest {self.fewest:,.0f}, enough {self.enough:,.0f}), about "
            f"{self.cost:,.6g} {self.unit}, at most {self.highest_cost:,.6g}>"
        )


def plan(
    horizon: float, margin: float = 1.0, confidence: float = 0.9, *, bound: str = "guarded", power: float = 0.8,
    disagreement: float = 0.2, reference_cost: float | None = None,
) -> Plan:  # fmt: skip
    """How many fresh queries to certify on.

    Parameters
    ----------
    horizon : queries to be served; a longer one justifies more certainty
    margin, confidence, bound : as in ``certify``; without a margin nothing is the fewest, and nothing enough
    power : chance that a policy which loses nothing is certified by "enough" queries
    disagreement : variance of the difference per query: the share of queries where the two models' outcomes differ, where
        answers are right or wrong
    reference_cost : of one call, to have the cost in money; in calls of the reference otherwise
    """
    number("horizon", horizon, "a positive number of queries", least=1)
    number("margin", margin, "points of quality that may be lost, e.g. 1")
    share("confidence", confidence, below_one=True)
    share("power", power, below_one=True)
    share("disagreement", disagreement)
    one_of("bound", bound, BOUNDS)
    z, more = norm.ppf(confidence), BETTING if bound == "betting" else 1
    delta = margin / 100
    fewest = more * ((z * z + 2) / 3 + z) / delta if delta else math.inf
    enough = more * (z + norm.ppf(power)) ** 2 * disagreement / delta**2 if delta else math.inf
    wanted = more * PER_ROOT * horizon**0.5
    recommended = math.ceil(min(max(wanted, 2 * fewest), max(enough, 2 * fewest)) if delta else wanted)
    price = 1.0 if reference_cost is None else number("reference_cost", reference_cost)
    return Plan(
        horizon, margin, confidence, bound, recommended, *(n if math.isinf(n) else math.ceil(n) for n in (fewest, enough)),
        cost=recommended * price, highest_cost=2 * recommended * price,
        unit="calls of the reference" if reference_cost is None else "in the unit of its cost",
    )  # fmt: skip
