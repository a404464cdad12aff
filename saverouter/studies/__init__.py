"""Many runs of routers on workloads: how large they are, how they are remembered, and the paper's studies made of them.

Runs are computed through the rooms to the left and kept by content, so that one computation serves every notebook that
shows it. Nothing here draws or prints.
"""

from .experiments import main_runs, run, run_many, saverouter_run, workload
from .profiles import PROFILES, profile
from .runs import Run

__all__ = ["PROFILES", "Run", "main_runs", "profile", "run", "run_many", "saverouter_run", "workload"]
