"""Judges a router on outcomes: operating points, frontier, break-even point, verdict.

The only room that reads test outcomes. It asks a router for its families of operating points and scores them. It knows
nothing of how any router learns.
"""

from .evaluate import Reference, Result, best_column, best_single, evaluate
from .operating_points import (
    QUERY_THRESHOLDS,
    ChoicePolicies,
    Policies,
    ThresholdPolicies,
    masked,
    operating_points,
    pareto,
    saverouter_policies,
    threshold_grid,
    threshold_policies,
)

__all__ = [
    "QUERY_THRESHOLDS", "ChoicePolicies", "Policies", "Reference", "Result", "ThresholdPolicies", "best_column",
    "best_single", "evaluate", "masked", "operating_points", "pareto", "saverouter_policies", "threshold_grid",
    "threshold_policies",
]  # fmt: skip
