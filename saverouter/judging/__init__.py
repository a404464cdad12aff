"""Judges a router on outcomes: operating points, frontier, break-even point, verdict.

The only room that reads test outcomes. It asks a router for its families of operating points and scores them. It knows
nothing of how any router learns.
"""

from .evaluate import best_column, best_single, evaluate
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
from .policies import Policy, policies_from, policies_to_dict, policy_from
from .result import SELECTIONS, Reference, Result

__all__ = [
    "QUERY_THRESHOLDS", "SELECTIONS", "ChoicePolicies", "Policies", "Policy", "Reference", "Result", "ThresholdPolicies",
    "best_column", "best_single", "evaluate", "masked", "operating_points", "pareto", "policies_from", "policies_to_dict",
    "policy_from", "saverouter_policies", "threshold_grid", "threshold_policies",
]  # fmt: skip
