"""Does LLM routing pay for itself, once the feedback that taught the router is on the bill?

From a workload to a verdict:

    import saverouter as sr

    work = sr.load("paretobandit")
    train, test = work.split()
    feedback = train.feedback()
    router = sr.SaveRouter(k=2).fit(train.queries, feedback)
    print(sr.evaluate(router, test, supervision_cost=feedback.spent).verdict())

The rooms of the house, each of which may use those before it:
encoders, workloads, judging and live, routers, paper and scale, studies, workbook.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import SaveRouterError
from .judging import Certificate, Policy, Result, best_single, certify, evaluate, plan, policy_from
from .workloads import Feedback, Queries, ReplayFeedback, Workload, from_frame, load, names

if TYPE_CHECKING:
    from .routers import ROUTERS, Router, SaveRouter, load_router, make_router
    from .studies.decision import decide

__version__ = "0.1.0"

__all__ = [
    "ROUTERS", "Certificate", "Feedback", "Policy", "Queries", "ReplayFeedback", "Result", "Router", "SaveRouter",
    "SaveRouterError", "Workload", "best_single", "certify", "decide", "evaluate", "from_frame", "load", "load_router",
    "make_router", "names", "plan", "policy_from",
]  # fmt: skip


LATE = {name: ".routers" for name in ("ROUTERS", "Router", "SaveRouter", "load_router", "make_router")}
LATE["decide"] = ".studies.decision"


def __getattr__(name: str):
    """Names of rooms that are loaded when they are first used: scikit-learn takes a second."""
    if name == "live":
        return import_module(".live", __name__)
    if name in LATE:
        globals()[name] = getattr(import_module(LATE[name], __name__), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
