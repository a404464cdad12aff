"""Judges a router on outcomes: operating points, frontier, break-even point, verdict; and certifies one point beforehand.

The only room that reads test outcomes. It asks a router for its families of operating points and scores them. It knows
nothing of how any router learns. A certificate buys its outcomes through ``Feedback``, as a router does.
"""

from .certificate import Certificate, certificate_from, certify, certify_single
from .coverage import Coverage, coverage_from
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
from .plan import Plan, plan
from .policies import Policy, policies_from, policies_to_dict, policy_from
from .result import SELECTIONS, Reference, Result
from .verdict import in_points

__all__ = [
    "QUERY_THRESHOLDS", "SELECTIONS", "Certificate", "ChoicePolicies", "Coverage", "Plan", "Policies", "Policy",
    "Reference", "Result", "ThresholdPolicies", "best_column", "best_single", "certificate_from", "certify",
    "certify_single", "coverage_from", "evaluate", "in_points", "masked", "operating_points", "pareto", "plan",
    "policies_from", "policies_to_dict", "policy_from", "saverouter_policies", "threshold_grid", "threshold_policies",
]  # fmt: skip
