"""One split of a workload on which SaveRouter is taught again and again, each time with other purchases."""

from __future__ import annotations

import numpy as np

from ..judging import certify
from ..judging.policies import Always
from ..paper import paper_options
from ..routers import SaveRouter
from ..routers.saverouter.acquisition import acquire
from ..routers.saverouter.capability import Observations
from ..workloads import Feedback, Workload
from .promises import reference_of, sizes_of
from .splits import third_of

FAR = 100_000  # between the seeds of draws, which a pass must not run into


class Retaught:
    """A split, and what a router learns from given purchases on it. Groups and words do not depend on them, and are found once.

    reference : the best single model of the whole workload; in life, the model in use
    fresh : how many queries certify: the most that leave as many to be served, 0 where there are too few for any
    """

    def __init__(self, work: Workload, seed: int, train: int | None = None):
        self.learn, self.rest = work.split(seed=seed)
        if train is not None:
            self.learn = self.learn.take(slice(train))
        self.reference, self.fresh = reference_of(work), max(sizes_of(work), default=0)
        self._parts = [self.rest.take(slice(*ends)) for ends in ((self.fresh,), (self.fresh, None)) if self.fresh]
        meter = self.learn.feedback()
        self._router = SaveRouter(**paper_options(work, k=third_of(work), seed=seed)).fit(self.learn.queries, meter)
        self._router.features_ = _Words(self._router.features_, work)
        self._router.grouper_ = _Groups(self._router.grouper_)
        self._features = self._router.features_.transform(self.learn.prompts, self.learn.vectors)

    def taught(self, *, seed: int, **how) -> tuple[SaveRouter, Feedback]:
        """What ``fit`` learns from other purchases, and the meter they went through; ``how`` are options of ``acquire``."""
        new, feedback = self._router._copied(), self.learn.feedback()
        options = {"k": new.k, "exploration": new.exploration, "acquisition_prior": new.acquisition_prior, **how}
        bought = acquire(feedback, new.groups_, seed=seed, **options)
        seen = Observations.of(*bought, new.groups_, new.grouper_.n_groups_, len(new.models_))
        new._learn_from(self._features, seen)
        return new, feedback

    def certified(self, router: SaveRouter) -> dict:
        """What a certificate on the fresh queries saves on the others, and what it costs in calls to the reference there; None
        where the queries are too few. Margin 1 point, confidence 90%."""
        if not self.fresh:
            return {"fresh": 0, "certified saving": None, "certificate": None}
        fresh, served = self._parts
        found = certify(
            router, fresh.queries, fresh.feedback(), reference=self.reference, margin=1.0, train=self.learn.queries
        )
        known, rows = router.estimates(served.queries), np.arange(len(served))
        always = Always(model=self.reference, models=served.models)
        cost, base = (float(served.cost[rows, policy.choice(*known)].mean()) for policy in (found.policy, always))
        return {"fresh": self.fresh, "certified saving": 1 - cost / base, "certificate": found.spent / base}


class Once:
    """What was found for a list of prompts, found once. Prompts are told by their places in memory."""

    def __init__(self):
        self.known = {}

    def once(self, prompts: np.ndarray, find):
        prompts = np.asarray(prompts, dtype=object)
        key = prompts.tobytes()
        if key not in self.known:
            self.known[key] = prompts, find()  # held, so that no other prompt takes the place of one
        return self.known[key][1]


class _Words(Once):
    """The features of a workload's prompts, computed once: reading the words is most of the work."""

    def __init__(self, features, work: Workload):
        super().__init__()
        self.rows = {key: row for row, key in enumerate(_keys(work.prompts, work.vectors))}
        self.all = features.transform(work.prompts, work.vectors)

    def transform(self, prompts, vectors=None):
        return self.once(prompts, lambda: self.all[[self.rows[key] for key in _keys(prompts, vectors)]])


class _Groups(Once):
    """A grouper that is asked once about the same queries."""

    def __init__(self, grouper):
        super().__init__()
        self.n_groups_, self._predict = grouper.n_groups_, grouper.predict

    def predict(self, queries) -> np.ndarray:
        return self.once(queries.prompts, lambda: self._predict(queries))


def _keys(prompts, vectors) -> list:
    return list(prompts) if vectors is None else list(zip(prompts, map(bytes, vectors), strict=True))
