"""Every router by name, behind one interface."""

from __future__ import annotations

from ..errors import SaveRouterError, did_you_mean
from .base import Router
from .knn import KNN
from .saverouter import SaveRouter

ROUTERS: dict[str, type[Router]] = {"saverouter": SaveRouter, "knn": KNN}


def make_router(name: str, **options) -> Router:
    """A router by its name in ``ROUTERS``, with options of its own."""
    if name not in ROUTERS:
        raise SaveRouterError(
            f"no router is called {name!r}; {did_you_mean(name, ROUTERS)}there are {', '.join(ROUTERS)}"
        )
    kind = ROUTERS[name]
    unknown = sorted(set(options) - set(kind().get_params()))
    if unknown:
        raise SaveRouterError(
            f"router {name!r} has no option {unknown[0]!r}; it has {', '.join(kind().get_params()) or 'none'}"
        )
    return kind(**options)


__all__ = ["KNN", "ROUTERS", "Router", "SaveRouter", "make_router"]
