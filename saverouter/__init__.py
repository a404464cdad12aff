"""Does LLM routing pay for itself, once the feedback that taught the router is on the bill?

From a workload to a verdict:

    import saverouter as sr

    work = sr.load("paretobandit")
    train, test = work.split()
    feedback = train.feedback()
    router = sr.SaveRouter(k=2).fit(train.queries, feedback)
    print(sr.evaluate(router, test, supervision_cost=feedback.spent).verdict())
"""

from .catalog import load, names
from .errors import SaveRouterError
from .evaluate import Result, best_single, evaluate
from .feedback import Feedback, ReplayFeedback
from .readers import from_frame
from .routers import ROUTERS, Router, SaveRouter, make_router
from .workload import Queries, Workload

__version__ = "0.1.0"

__all__ = [
    "ROUTERS", "Feedback", "Queries", "ReplayFeedback", "Result", "Router", "SaveRouter", "SaveRouterError", "Workload",
    "best_single", "evaluate", "from_frame", "load", "make_router", "names",
]  # fmt: skip
