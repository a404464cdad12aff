"""Every router by name, behind one interface."""

from __future__ import annotations

from ..errors import SaveRouterError, did_you_mean
from .avengerspro import AvengersPro
from .barp import BaRP
from .base import DenseRouter, Router
from .carrot import CARROT
from .embedllm import EmbedLLM
from .equirouter import EquiRouter
from .graphrouter import GraphRouter
from .hybridllm import HybridLLM
from .inferencedynamics import InferenceDynamics
from .knn import KNN
from .mirt import MIRT
from .mlp import MLP
from .omnirouter import OmniRouter
from .references import BestSingle, CheapestSingle, Oracle, Random
from .rmsoftmax import RMSoftmax
from .routellm_mf import RouteLLMMF
from .routerdc import RouterDC
from .saverouter import SaveRouter
from .semirouter import SemiRouter
from .svm import SVM
from .trouter import TRouter
from .uniroute import UniRoute
from .wiserouter import WISERouter

ROUTERS: dict[str, type[Router]] = {
    "embedllm": EmbedLLM,
    "knn": KNN,
    "omnirouter": OmniRouter,
    "rmsoftmax": RMSoftmax,
    "trouter": TRouter,
    "uniroute": UniRoute,
    "inferencedynamics": InferenceDynamics,
    "wiserouter": WISERouter,
    "barp": BaRP,
    "semirouter": SemiRouter,
    "saverouter": SaveRouter,
    "mlp": MLP,
    "svm": SVM,
    "routellm_mf": RouteLLMMF,
    "graphrouter": GraphRouter,
    "mirt": MIRT,
    "avengerspro": AvengersPro,
    "equirouter": EquiRouter,
    "carrot": CARROT,
    "hybridllm": HybridLLM,
    "routerdc": RouterDC,
    "oracle": Oracle,
    "random": Random,
    "best_single": BestSingle,
    "cheapest_single": CheapestSingle,
}

# The routers of the paper's Table 1, in its order, and those that its RouterEval table adds to them.
MAIN = tuple(ROUTERS)[:11]
LARGE_POOL = tuple(ROUTERS)[11:18]
# Not in the paper's tables: three more routers, and points of reference that are no routers to be used.
EXTENSIONS = tuple(ROUTERS)[18:21]
REFERENCES = tuple(ROUTERS)[21:]


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


__all__ = ["EXTENSIONS", "LARGE_POOL", "MAIN", "REFERENCES", "ROUTERS", "DenseRouter", "Router", "make_router"]
__all__ += [kind.__name__ for kind in ROUTERS.values()]
