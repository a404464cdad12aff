"""SaveRouter: few outcomes per query, shared across related queries, refined by the words of the query."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from ...encoders import MINILM_WIDTH, ResidualFeatures
from ...errors import SaveRouterError, share
from ...judging import masked, saverouter_policies
from ...workloads import Asked, Feedback, came_back
from ..base import Router
from ._ridge import predictions
from .acquisition import acquire, place_of, within_groups
from .capability import Observations, additive_prior, cost_table, residual_weights, shrunken
from .grouping import Grouper
from .pool import repriced, with_model

TERMS = ("words", "characters")  # whose vocabularies the features have
PART = 25_000  # queries whose words are turned into features at a time


class SaveRouter(Router):
    """Sparse-supervision router of the paper.

    Parameters
    ----------
    k : K, outcomes bought per training query (all it has, where fewer models are available)
    acquisition : what to buy: "ucb" (capability plus uncertainty), "random", "capability" or "uncertainty"; or "anchored",
        which is not the paper's: whether a cheaper model may take the place of the ``reference``, for a ``budget``
    grouping : "auto", "labels", "latent" or "global"
    exploration : beta_ucb, weight of the uncertainty bonus
    acquisition_prior : tau_0, strength of the model's overall mean inside a group during acquisition
    prior_ridge : lambda_prior of the additive group-model prior
    shrinkage : tau, strength of that prior against local evidence
    residual_ridge : lambda_ctx of the residual predictors (the paper: 100, and 200 on LLMRouterBench)
    residual_scale : gamma, weight of the residual; 0 leaves it out
    min_observations : outcomes a model needs before it gets a residual predictor
    newcomer : a model that joined the pool later, or None: it is never among the ``k``, and outcomes of it are bought
        on ``newcomer_share`` of each group's queries (at least one where there is any), drawn at random
    newcomer_share : the paper's sparse onboarding takes 0.1; 1 is full supervision of the newcomer
    residual_tolerance : at which the least-squares solver stops (the authors' release: 1e-4)
    batch : queries that choose at once, with the answers known before them, so that a live feedback can ask many models at a
        time; 1 is the paper's rule, None what the feedback prefers: 1 for recorded outcomes
    budget : money for outcomes, in the unit of their costs, instead of ``k``: passes go on until it is spent
    reference : the model in use today, by name, for "anchored"
    seed : of grouping and acquisition
    policy : the former name of ``acquisition``, which it overrides where it is given

    After ``fit``: ``groups_`` (of the training queries), ``grouper_``, ``observations_``, ``bought_`` (how many by group and
    model), ``group_quality_``, ``group_cost_``, ``model_cost_`` and the residual's ``weights_`` and ``intercepts_``.
    """

    label = "SaveRouter"

    def __init__(
        self, *, k: int = 4, acquisition: str = "ucb", grouping: str = "auto", exploration: float = 0.35,
        acquisition_prior: float = 10.0, prior_ridge: float = 10.0, shrinkage: float = 40.0,
        residual_ridge: float = 100.0, residual_scale: float = 2.0, min_observations: int = 8,
        newcomer: str | None = None, newcomer_share: float = 0.1, residual_tolerance: float = 1e-6, seed: int = 42,
        batch: int | None = None, budget: float | None = None, reference: str | None = None, policy: str | None = None,
    ) -> None:  # fmt: skip
        self.k = k
        self.acquisition = acquisition
        self.grouping = grouping
        self.exploration = exploration
        self.acquisition_prior = acquisition_prior
        self.prior_ridge = prior_ridge
        self.shrinkage = shrinkage
        self.residual_ridge = residual_ridge
        self.residual_scale = residual_scale
        self.min_observations = min_observations
        self.newcomer = newcomer
        self.newcomer_share = newcomer_share
        self.residual_tolerance = residual_tolerance
        self.seed = seed
        self.batch = batch
        self.budget = budget
        self.reference = reference
        self.policy = policy

    def _fit(self, queries, feedback):
        rule = self.policy or self.acquisition
        place_of(rule, self.reference, self.budget, self.models_)  # before prompts are encoded, which takes long
        self.grouper_ = Grouper(self.grouping, self.seed).fit(queries)
        self.groups_ = self.grouper_.train_groups_
        available = feedback.available(queries)
        arriving = self._arriving()
        bought = acquire(
            feedback, self.groups_, k=self.k, rule=rule, exploration=self.exploration,
            acquisition_prior=self.acquisition_prior, seed=self.seed, available=available & ~arriving,
            batch=self.batch, budget=self.budget, reference=self.reference, models=self.models_,
        )  # fmt: skip
        if arriving.any():
            column = int(np.flatnonzero(arriving)[0])
            rows = within_groups(self.groups_, available[:, column], self.newcomer_share, self.seed)
            later = came_back(rows, np.full(len(rows), column), *feedback.reveal(rows, column))
            bought = tuple(np.concatenate(pair) for pair in zip(bought, later, strict=True))
        self._learn(queries, *bought)

    def _arriving(self) -> np.ndarray:
        """(M,) mask of the newcomer in the pool."""
        arriving = np.array([model == self.newcomer for model in self.models_])
        if self.newcomer is None:
            return arriving
        if not arriving.any():
            raise SaveRouterError(f"newcomer {self.newcomer!r} is not in the pool; it has {', '.join(self.models_)}")
        if len(arriving) == 1:
            raise SaveRouterError(f"newcomer {self.newcomer!r} is the whole pool; there is nothing for it to join")
        share("newcomer_share", self.newcomer_share)
        return arriving

    def _learn(self, queries, rows, models, quality, cost):
        """Everything after the purchase; the outcomes given are all it uses."""
        self.features_ = ResidualFeatures() if self.residual_scale else None
        self._learn_from(
            None if self.features_ is None else self.features_.fit_transform(queries.prompts, queries.vectors),
            Observations.of(rows, models, quality, cost, self.groups_, self.grouper_.n_groups_, len(self.models_)),
        )

    def _learn_from(self, features, seen: Observations) -> None:
        self.observations_ = seen
        counts, sums = seen.table(), seen.table(seen.quality)
        prior = additive_prior(counts, sums, self.prior_ridge)
        self.bought_ = counts
        self.group_quality_ = shrunken(counts, sums, prior, self.shrinkage)
        self.group_cost_, self.model_cost_ = cost_table(seen)
        if features is None:
            return
        self.weights_, self.intercepts_ = residual_weights(
            seen, prior, features, shrinkage=self.shrinkage, ridge=self.residual_ridge,
            min_observations=self.min_observations, tolerance=self.residual_tolerance,
        )  # fmt: skip

    def reprice(
        self, factors: Mapping[str, float] | None = None, *, costs: Mapping[str, float] | None = None
    ) -> SaveRouter:
        """A copy for changed prices: what a fit on the same purchases at the new prices learns, without fitting.

        ``factors`` multiply a model's costs: ``reprice({"gpt-4o": 0.5})`` halves them. ``costs`` give its mean cost per query:
        ``reprice(costs={"gpt-4o": 0.002})``. Purchases do not depend on prices. A policy holds thresholds in money: choose
        it anew.
        """
        self._refuse_unfitted()
        return repriced(self, factors, costs)

    def add_model(self, name: str, queries: Asked, feedback: Feedback, share: float = 0.1) -> SaveRouter:
        """A copy for a pool with one model more: what a fit with the same purchases learns, and only the newcomer is paid.

        ``queries`` are those of ``fit``. Outcomes of the newcomer are bought on a ``share`` of each group's queries, as for the
        option ``newcomer``. The feedback sells the newcomer alone, or the whole new pool, whose order is then kept.
        """
        self._refuse_unfitted()
        return with_model(self, name, queries, feedback, share)

    def _details(self, queries):
        group = int(self.grouper_.predict(queries)[0])
        expected = self.group_quality_[group]
        known = {"group_quality": expected, "residual": self._quality(queries, np.array([group]))[0] - expected}
        return self.grouper_.name(group), {**known, "bought": self.bought_[group].astype(int)}

    def _state(self):
        state = {name: getattr(self, name) for name in ("bought_", "group_quality_", "group_cost_", "model_cost_")}
        if self.features_ is not None:
            state |= {"weights_": self.weights_, "intercepts_": self.intercepts_}
            for kind, (terms, idf) in zip(TERMS, self.features_.vocabularies, strict=True):
                state |= {kind: terms, f"{kind}_idf": idf}
        return state | self.grouper_.state()

    def _restore(self, state):
        size = len(self.models_)
        self.grouper_ = Grouper(self.grouping, self.seed).restore(state, self.own_vectors_ or MINILM_WIDTH)
        for name in ("bought_", "group_quality_", "group_cost_"):
            setattr(self, name, state.array(name, self.grouper_.n_groups_, size))
        self.model_cost_, self.features_ = state.array("model_cost_", size), None
        if self.residual_scale:
            terms = [state.texts(kind) for kind in TERMS]
            idf = [state.array(f"{kind}_idf", len(known)) for kind, known in zip(TERMS, terms, strict=True)]
            self.features_ = ResidualFeatures.of(list(zip(terms, idf, strict=True)))
            self.weights_ = state.array("weights_", sum(map(len, terms)) + self.own_vectors_, size)
            self.intercepts_ = state.array("intercepts_", size)

    def predict_groups(self, queries: Asked) -> np.ndarray:
        """The group of each query, recognised from its vector."""
        queries = self._queries(queries)
        return self.grouper_.predict(queries)

    def predict_quality(self, queries: Asked) -> np.ndarray:
        queries = self._queries(queries)
        return self._quality(queries, self.grouper_.predict(queries))

    def predict_cost(self, queries: Asked) -> np.ndarray:
        groups = self.predict_groups(queries)
        return self.group_cost_[groups]

    def _quality(self, queries, groups) -> np.ndarray:
        """Long lists are taken in parts: the features of all their words need not fit in memory at once."""
        if self.features_ is None:
            return self.group_quality_[groups]
        quality = np.empty((len(queries), len(self.models_)))
        for start in range(0, len(queries), PART):
            part = slice(start, start + PART)
            some = queries.take(part)
            features = self.features_.transform(some.prompts, some.vectors)
            quality[part] = self._with_residual(features, groups[part])
        return quality

    def _with_residual(self, features, groups) -> np.ndarray:
        quality = predictions(features, self.weights_)  # changed in place: it may be large
        quality += self.intercepts_
        quality *= self.residual_scale
        quality += self.group_quality_[groups]
        return quality

    def route_features(
        self, features: sp.csr_matrix | None, vectors: np.ndarray, *, cost_weight: float = 0.0
    ) -> np.ndarray:
        """``route`` for queries encoded before, as in a running service.

        ``features`` are rows of ``features_.transform(prompts)``, None without a residual; ``vectors`` tell the group.
        """
        groups = self.grouper_.recognise(vectors)
        quality = self.group_quality_[groups] if features is None else self._with_residual(features, groups)
        return np.asarray(self.models_, dtype=object)[self._best(quality, self.group_cost_[groups], cost_weight)]

    def policies(self, queries: Asked) -> list:
        return saverouter_policies(*self._estimates(self._queries(queries)), self.model_cost_)

    def _estimates(self, queries):
        groups = self.grouper_.predict(queries)  # recognised once for both
        return masked(self._quality(queries, groups), queries.available), self.group_cost_[groups]

    def _dearest(self, cost):
        return float(self.model_cost_.max())
