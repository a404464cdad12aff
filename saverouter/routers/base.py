"""What every router has in common: buy through the door, estimate, offer operating points."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from inspect import signature
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import SaveRouterError, number, one_of, seed_of, share, whole
from ..files import keeping
from ..judging import Certificate, Policy, masked, threshold_policies
from ..workloads import Asked, Feedback, Queries, came_back, model_means
from .shared.explaining import Explanation, explain
from .shared.saving import save_router

ORBIT = ("early", "late")
PILOT = 16
MEAN_COSTS = ("model_cost_", "mean_cost_", "prices_")  # where routers keep what a call costs on average
UNSAVED = ("train_queries_", "certified_queries_")


class Router(BaseEstimator):
    """Base class of all routers, in scikit-learn's manner.

    A subclass stores its options in ``__init__``, buys outcomes and learns in ``_fit``, and returns
    (n, M) estimates from ``predict_quality`` and ``predict_cost``. It may offer operating points of its own in
    ``policies``; by default those are thresholds on the predicted cost.

    After ``fit``, ``train_queries_`` are the queries it saw, for certificates; they stay in memory and are never saved.

    label : the name in tables
    reconstructed : True where the method's source is not public, so that parts of it are our reading
    deviation : where this code departs from the published configuration, in a few words for the notes of a table
    policy_, certificate_, provenance_ : of a router that ``load_router`` gave, what was saved with it
    synthetic_best_point : True where the paper's evaluation of this router added a point that no policy realises,
        see ``evaluate``
    needs_answers : True where a query is served by the answers it gets, so that no model can be named beforehand
    """

    label = "Router"
    reconstructed = False
    deviation = ""
    synthetic_best_point = False
    needs_answers = False
    may_be_none: tuple[str, ...] = ()  # whole-numbered options that have a meaning for None
    holds = "what it learnt: no prompt and no outcome"  # what a saved router consists of, in words
    policy_: Policy | None = None
    certificate_: Certificate | None = None
    provenance_: dict | None = None

    def fit(self, queries: Queries, feedback: Feedback) -> Router:
        """Learn from outcomes bought through ``feedback``, whose rows are the rows of ``queries``."""
        self._refuse_arguments(queries, feedback)
        queries = Queries.of(queries)
        available = feedback.available(queries)
        if len(queries) != len(available) or (hasattr(feedback, "__len__") and len(queries) != len(feedback)):
            size = len(feedback) if hasattr(feedback, "__len__") else len(available)
            raise SaveRouterError(
                f"{len(queries)} queries but feedback for {size}; take both from the same workload: "
                "fit(train.queries, train.feedback())"
            )
        self.models_ = tuple(getattr(feedback, "models", queries.models))
        self.policy_ = self.certificate_ = self.provenance_ = None  # they belonged to what it had learnt before
        self.own_vectors_ = 0 if queries.vectors is None else queries.vectors.shape[1]
        try:
            self._fit(queries, feedback)
        except BaseException:  # half learnt is not fitted
            del self.models_
            raise
        self.train_queries_ = queries
        self.__dict__.pop("certified_queries_", None)
        return self

    def __getstate__(self) -> dict:
        """Without the queries it has seen: no prompt is pickled, copied or sent along with a router."""
        return {name: value for name, value in super().__getstate__().items() if name not in UNSAVED}

    @property
    def mean_costs(self) -> np.ndarray | None:
        """(M,) what a call to each model costs on average, as learnt; None where a router learns no such means."""
        return next((getattr(self, name) for name in MEAN_COSTS if hasattr(self, name)), None)

    def _refuse_arguments(self, queries, feedback) -> None:
        if not callable(getattr(feedback, "reveal", None)) or callable(getattr(queries, "reveal", None)):
            raise SaveRouterError(
                f"fit was given a {type(queries).__name__} and a {type(feedback).__name__}; expected queries, then the "
                "feedback that sells their outcomes: fit(train.queries, train.feedback())"
            )
        self._refuse_options()

    def _refuse_options(self) -> None:
        for name, option in signature(type(self)).parameters.items():
            value = getattr(self, name, None)
            if name == "seed":
                seed_of(value)
            elif type(option.default) is int and not (value is None and name in self.may_be_none):
                whole(name, value, least=1 if name in ("k", "sample", "batch") else 0)
            elif type(option.default) is float:
                number(name, value)

    def _fit(self, queries: Queries, feedback: Feedback) -> None:
        raise NotImplementedError

    def predict_quality(self, queries: Asked) -> np.ndarray:
        """(n, M) float64: what each model is expected to score on each query."""
        raise NotImplementedError

    def predict_cost(self, queries: Asked) -> np.ndarray:
        """(n, M) float64: what each model is expected to cost on each query."""
        raise NotImplementedError

    def policies(self, queries: Asked) -> list:
        """Families of operating points for these queries."""
        return threshold_policies(*self._estimates(self._queries(queries)))

    def _queries(self, queries) -> Queries:
        """What the fitted router is asked about, as ``Queries`` of the kind it was fitted on."""
        self._refuse_unfitted()
        queries = Queries.of(queries)
        known, given = getattr(self, "own_vectors_", None), 0 if queries.vectors is None else queries.vectors.shape[1]
        if known is not None and given != known:
            raise SaveRouterError(
                f"{type(self).__name__} was fitted on queries {_with_vectors(known)} and is asked about queries "
                f"{_with_vectors(given)}; ask it with saverouter.Queries(prompts, vectors=...) of the same kind"
                + (", or fit it on prompts alone" if known else "")
            )
        return queries

    def _refuse_unfitted(self) -> None:
        if not hasattr(self, "models_"):
            raise SaveRouterError(
                f"{type(self).__name__} has not been fitted; call fit(train.queries, train.feedback()) first"
            )

    def _estimates(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        """Quality, -inf where a model cannot be asked, and cost; a router that shares work between the two overrides it."""
        return masked(self.predict_quality(queries), queries.available), self.predict_cost(queries)

    def estimates(self, queries: Asked) -> tuple[np.ndarray, np.ndarray]:
        """(n, M) quality, -inf where a model cannot be asked, and cost: all that a policy needs to know."""
        return self._estimates(self._queries(queries))

    def route(
        self, queries: Asked, cost_weight: float = 0.0, *, policy: Policy | None = None, keep: bool = False
    ) -> np.ndarray:
        """The model for each query: argmax of quality - cost_weight x cost relative to the dearest model.

        ``policy`` serves by an operating point instead (``result.policy``, ``certificate.policy``): a query is then
        served alike whether it comes alone or with others. Nothing is kept on disk, as there may be any number of
        prompts, unless ``keep`` asks for their vectors to be.
        """
        number("cost_weight", cost_weight)
        if policy is not None:
            self._refuse_policy(policy, cost_weight)
        with keeping(keep):
            queries = self._queries(queries)
            chosen = self._choose(queries, cost_weight) if policy is None else policy.choice(*self._estimates(queries))
        return np.asarray(self.models_, dtype=object)[chosen]

    def save(self, folder: str | Path, *, policy: Policy | None = None, certificate: Certificate | None = None) -> Path:
        """Keep the fitted router in a folder, for ``saverouter.load_router``: arrays and JSON, no pickle.

        Prompts and outcomes of training stay behind, but for a kNN, which consists of outcomes (``holds`` says what of them
        a router keeps). The vocabularies hold words that two prompts or more have in common, and task labels are named.
        A ``policy`` and a ``certificate`` are kept with it; a certificate's policy, or what the router was loaded with, need
        not be given again. A router saved in that folder before stays whole until the new one is.
        """
        if certificate is None and policy is None:
            policy, certificate = self.policy_, self.certificate_
        policy = certificate.policy if policy is None and certificate is not None else policy
        for given in [policy] if certificate is None else [policy, certificate.policy]:
            if given is not None:
                self._refuse_policy(given, 0.0)
        return save_router(self, folder, policy, certificate)

    def explain(self, prompt: Asked, cost_weight: float = 0.0, *, policy: Policy | None = None) -> Explanation:
        """Why ``route`` chooses a model for one prompt, and how wrong the estimates may be before it chooses another."""
        number("cost_weight", cost_weight)
        if policy is not None:
            self._refuse_policy(policy, cost_weight)
        with keeping(False):
            return explain(self, prompt, cost_weight, policy, own_rule=type(self)._choose is not Router._choose)

    def _details(self, queries: Queries) -> tuple[str | None, dict[str, np.ndarray]]:
        """For ``explain``: the group of the one query, and (M,) columns of what else is known of the models."""
        return None, {}

    def reprice(
        self, factors: Mapping[str, float] | None = None, *, costs: Mapping[str, float] | None = None
    ) -> Router:
        """A copy for changed prices, without fitting anew."""
        raise SaveRouterError(
            f"{type(self).__name__} cannot be repriced: SaveRouter can; fit it again on changed costs"
        )

    def add_model(self, name: str, queries: Asked, feedback: Feedback, share: float = 0.1) -> Router:
        """A copy for a pool with one model more, for which that model alone is bought."""
        raise SaveRouterError(
            f"{type(self).__name__} cannot take in another model: SaveRouter can; fit it again on the whole pool"
        )

    def _copied(self) -> Router:
        """A copy to be changed; the queries it has seen stay known, what was saved with it does not fit any more."""
        new = copy(self)
        vars(new).update({name: value for name, value in vars(self).items() if name in UNSAVED})
        new.policy_ = new.certificate_ = None
        return new

    def _state(self) -> dict:
        """What it learnt, by name, for ``save``: arrays, lists of texts, words and numbers."""
        raise SaveRouterError(
            f"{type(self).__name__} cannot be saved: SaveRouter and KNN can; fit it again where it is needed"
        )

    def _restore(self, state) -> None:
        """Take back what ``_state`` gave; ``state.array(name, rows, columns)`` refuses what is of another shape."""
        self._state()

    def _refuse_policy(self, policy, cost_weight: float) -> None:
        if not isinstance(policy, Policy):
            raise SaveRouterError(f"policy is {policy!r:.60}; expected an operating point, e.g. result.policy")
        if cost_weight:
            raise SaveRouterError(f"cost_weight is {cost_weight} and a policy is given; give one of the two")
        self._refuse_unfitted()
        policy.refuse_pool(self.models_)

    def _choose(self, queries: Queries, cost_weight: float) -> np.ndarray:
        """The column for each query; a router with a rule of its own for a cost weight overrides it."""
        return self._best(*self._estimates(queries), cost_weight)

    def _best(self, quality: np.ndarray, cost: np.ndarray, cost_weight: float) -> np.ndarray:
        return np.argmax(self._utility(quality, cost, cost_weight), axis=1)

    def _utility(self, quality: np.ndarray, cost: np.ndarray, cost_weight: float) -> np.ndarray:
        dearest = self._dearest(cost)
        return quality - cost_weight * cost / (dearest if dearest > 0 else 1.0)

    def _dearest(self, cost: np.ndarray) -> float:
        """The scale of the cost weight: mean cost of the dearest model."""
        return float(cost.mean(axis=0).max())


class DenseRouter(Router):
    """A router that buys every available pair and estimates quality and cost from query vectors.

    A subclass learns in ``_learn(vectors, quality, cost, queries)``, whose (n, M) outcomes are NaN where a model is
    unavailable, and returns both (n, M) estimates from ``_predict(vectors, queries)``.

    Options that a subclass may have, and this class heeds:

    fraction : share of the available pairs to buy, drawn at random; 1 is dense supervision
    orbit : generation of the toolkit ORBIT whose rules are followed. "early" is behind the paper's numbers: estimates
        are rounded to float32 before thresholds and choices are made of them, and a query that no model can serve within
        a threshold goes to the first model of the pool. "late" sends it to the model with the lowest predicted cost,
        and clips predicted costs to the range seen in training.
    """

    synthetic_best_point = True
    orbit = "early"
    fraction = 1.0
    seed = 42

    def _fit(self, queries, feedback):
        one_of("orbit", self.orbit, ORBIT)
        quality, cost = buy_share(queries, feedback, self.fraction, self.seed)
        self.mean_quality_, self.mean_cost_ = model_means(quality), model_means(cost)
        known = np.isfinite(cost)
        lowest, highest = np.where(known, cost, np.inf).min(axis=0), np.where(known, cost, -np.inf).max(axis=0)
        self.cost_range_ = np.minimum(lowest, self.mean_cost_), np.maximum(highest, self.mean_cost_)
        self._learn(queries.embed(), quality, cost, queries)

    def _learn(self, vectors, quality, cost, queries) -> None:
        raise NotImplementedError

    def _predict(self, vectors, queries) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _both(self, queries) -> tuple[np.ndarray, np.ndarray]:
        queries = self._queries(queries)
        quality, cost = self._predict(queries.embed(), queries)
        shape = len(queries), len(self.models_)
        cost = np.array(np.broadcast_to(cost, shape), dtype=np.float64)
        return self._by_generation(np.asarray(quality, dtype=np.float64), cost)

    def _by_generation(self, quality, cost) -> tuple[np.ndarray, np.ndarray]:
        """The estimates that everything is made of: predictions, choices and thresholds. See ``orbit``."""
        if self.orbit == "late":
            return quality, np.clip(cost, *self.cost_range_)
        return rounded(quality), rounded(cost)

    def predict_quality(self, queries: Asked) -> np.ndarray:
        return self._both(queries)[0]

    def predict_cost(self, queries: Asked) -> np.ndarray:
        return self._both(queries)[1]

    def _estimates(self, queries):
        quality, cost = self._both(queries)
        return masked(quality, queries.available), cost

    def policies(self, queries: Asked) -> list:
        fallback = "first" if self.orbit == "early" else "cheapest"
        return threshold_policies(*self._estimates(self._queries(queries)), fallback)


def rounded(values: np.ndarray) -> np.ndarray:
    """Float64 values as float32 would hold them: estimates that differ by less are equal."""
    return values.astype(np.float32).astype(np.float64)


def buy_everything(queries: Queries, feedback: Feedback) -> tuple[np.ndarray, np.ndarray]:
    """Dense supervision: every available pair, as (n, M) quality and cost with NaN elsewhere."""
    return buy(feedback, feedback.available(queries))


def buy_share(queries: Queries, feedback: Feedback, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A share of the available pairs, drawn at random; as ``buy``."""
    share("fraction", fraction)
    wanted = np.array(feedback.available(queries))
    if fraction < 1:
        pairs = np.flatnonzero(wanted)
        drawn = np.random.default_rng(seed).choice(pairs, max(1, round(fraction * len(pairs))), replace=False)
        wanted[:] = False
        wanted.flat[drawn] = True
    return buy(feedback, wanted)


def buy(feedback: Feedback, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of an (n, M) mask, as (n, M) quality and cost with NaN elsewhere, and where an outcome is missing."""
    quality, cost = np.full(wanted.shape, np.nan), np.full(wanted.shape, np.nan)
    rows, models = np.nonzero(wanted)
    rows, models, *outcomes = came_back(rows, models, *feedback.reveal(rows, models))
    quality[rows, models], cost[rows, models] = outcomes
    return quality, cost


def distinct_tasks(queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    """The names of the tasks, sorted, and the position of each query's; one empty name where queries have none."""
    tasks = np.full(len(queries), "") if queries.tasks is None else queries.tasks
    return np.unique(tasks, return_inverse=True)


def price_list(queries: Queries, feedback: Feedback, seed: int) -> np.ndarray:
    """(M,) mean prices: the feedback's own list, which is free, or the means of a small pilot, which is bought."""
    if hasattr(feedback, "prices"):
        return np.asarray(feedback.prices, dtype=np.float64)
    wanted = np.zeros_like(feedback.available(queries))
    rows = np.random.default_rng(seed).permutation(len(queries))[:PILOT]
    wanted[rows] = feedback.available(queries)[rows]
    return model_means(buy(feedback, wanted)[1])


def _with_vectors(size: int) -> str:
    return f"with vectors of {size} numbers" if size else "without vectors of their own"
