"""Routers: one method per file, behind one interface, by name in ``ROUTERS``.

A router buys outcomes through a ``Feedback``, estimates quality and cost, and offers operating points. It never sees a
table of outcomes, and no method imports another; what several need is in ``shared``. A router's module is imported when
the router is first asked for: most need torch, which takes seconds to load.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from pathlib import Path

from ..errors import SaveRouterError, did_you_mean
from .base import DenseRouter, Router
from .saverouter import SaveRouter
from .shared.saving import restored

# The routers of the paper's Table 1, in its order, and those that its RouterEval table adds to them.
_MAIN = {
    "embedllm": "EmbedLLM", "knn": "KNN", "omnirouter": "OmniRouter", "rmsoftmax": "RMSoftmax", "trouter": "TRouter",
    "uniroute": "UniRoute", "inferencedynamics": "InferenceDynamics", "wiserouter": "WISERouter", "barp": "BaRP",
    "semirouter": "SemiRouter", "saverouter": "SaveRouter",
}  # fmt: skip
_LARGE_POOL = {
    "mlp": "MLP", "svm": "SVM", "routellm_mf": "RouteLLMMF", "graphrouter": "GraphRouter", "mirt": "MIRT",
    "avengerspro": "AvengersPro", "equirouter": "EquiRouter",
}  # fmt: skip
# Not in the paper's tables: three more routers, and references: bounds that are no routers to be used, and a cascade.
_EXTENSIONS = {"carrot": "CARROT", "hybridllm": "HybridLLM", "routerdc": "RouterDC"}
_BOUNDS = {
    "oracle": "Oracle", "random": "Random", "best_single": "BestSingle", "cheapest_single": "CheapestSingle"
}  # fmt: skip
_REFERENCES = _BOUNDS | {"cascade": "Cascade"}
MAIN, LARGE_POOL, EXTENSIONS, REFERENCES = map(tuple, (_MAIN, _LARGE_POOL, _EXTENSIONS, _REFERENCES))


class Registry(UserDict):
    """Classes of routers by name; those of this package are imported when they are first asked for."""

    def __getitem__(self, name: str) -> type[Router]:
        kind = self.data[name]
        if isinstance(kind, str):
            module = import_module(".bounds" if name in _BOUNDS else f".{name}", __name__)
            kind = self.data[name] = getattr(module, kind)
        return kind

    def __setitem__(self, name: str, kind: type[Router]) -> None:
        if not (isinstance(kind, type) and issubclass(kind, Router)):
            raise SaveRouterError(f"router {name!r} is {kind!r}; register a subclass of saverouter.Router")
        self.data[name] = kind

    def __repr__(self) -> str:
        return f"<routers: {', '.join(self)}>"


ROUTERS = Registry()
ROUTERS.data = _MAIN | _LARGE_POOL | _EXTENSIONS | _REFERENCES


def make_router(name: str, **options) -> Router:
    """A router by its name in ``ROUTERS``, with options of its own."""
    if name not in ROUTERS:
        raise SaveRouterError(
            f"no router is called {name!r}; {did_you_mean(name, ROUTERS)}there are {', '.join(ROUTERS)}"
        )
    kind = ROUTERS[name]
    known = kind().get_params()
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise SaveRouterError(
            f"router {name!r} has no option {unknown[0]!r}; {did_you_mean(unknown[0], known)}it has "
            f"{', '.join(known) or 'none'}"
        )
    return kind(**options)


def load_router(folder: str | Path) -> Router:
    """A router that ``router.save(folder)`` kept: it gives the same routes to the last bit, without the training data.

    Where MiniLM is run by another encoder than it was fitted with (``provenance_``), vectors differ in the seventh digit.
    What was saved with it is in ``policy_`` and ``certificate_``: ``router.route(prompts, policy=router.policy_)``. A file
    that is damaged, from a newer version or from somewhere else is refused. Nothing in it is run.
    """
    return restored(folder, _by_class)


def _by_class(name: str, **options) -> Router:
    for known, kind in ROUTERS.data.items():
        if name == (kind if isinstance(kind, str) else kind.__name__):
            return make_router(known, **options)
    raise SaveRouterError(
        f"no router in saverouter.ROUTERS is a {name!r}; where it is a class of your own, register it before loading: "
        f"saverouter.ROUTERS['mine'] = {name}"
    )


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
