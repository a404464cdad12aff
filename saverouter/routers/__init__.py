"""Routers: one method per file, behind one interface, by name in ``ROUTERS``.

A router buys outcomes through a ``Feedback``, estimates quality and cost, and offers operating points. It never sees a
table of outcomes, and no method imports another; what several need is in ``shared``. A router's module is imported when
the router is first asked for: most need torch, which takes seconds to load.
"""

from .base import DenseRouter, Router
from .registry import EXTENSIONS, LARGE_POOL, MAIN, REFERENCES, ROUTERS, make_router
from .saverouter import SaveRouter
from .saving import load_router

__all__ = [
    "EXTENSIONS",
    "LARGE_POOL",
    "MAIN",
    "REFERENCES",
    "ROUTERS",
    "DenseRouter",
    "Router",
    "SaveRouter",
    "load_router",
    "make_router",
]
