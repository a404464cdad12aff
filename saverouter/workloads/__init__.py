"""Workloads: queries, a pool of models, and what each model scored and cost, with the one door to those outcomes.

Everything that reads, makes or checks data lives here: users' tables, recorded, original and simulated benchmarks. Nothing here
knows how to route or how a router is judged. An outcome leaves this room through a ``Feedback``, which charges for it, or
inside a ``Workload``.
"""

from .catalog import load, names, sample
from .coverage import (
    COMMON,
    CONTENDS,
    best_available,
    best_column,
    common_rows,
    difference,
    mean_error,
    on_other_queries,
    only_where_good,
)
from .feedback import (
    ANSWERED,
    EARNED,
    PAID,
    TRIED,
    Feedback,
    ReplayFeedback,
    at_once,
    backed_off,
    came_back,
    model_means,
    one_by_one,
)
from .findings import Finding, Findings, named
from .queries import Asked, Queries
from .simulate import benchmarks, simulate, specification
from .tables import from_frame
from .workload import Workload

__all__ = [
    "ANSWERED", "COMMON", "CONTENDS", "EARNED", "PAID", "TRIED", "Asked", "Feedback", "Finding", "Findings", "Queries",
    "ReplayFeedback", "Workload", "at_once", "backed_off", "benchmarks", "best_available", "best_column", "came_back",
    "common_rows", "difference", "from_frame", "load", "mean_error", "model_means", "named", "names", "on_other_queries",
    "one_by_one", "only_where_good", "sample", "simulate", "specification",
]  # fmt: skip
