"""A workload: prompts, a pool of models, and what each model scored and cost on each prompt.

Everything downstream is built from this one type. ``quality`` and ``cost`` are ``(queries, models)``
float64 arrays in which NaN in both marks a pair that is unavailable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..errors import SaveRouterError, did_you_mean, seed_of, share
from .checks import findings_of
from .feedback import ReplayFeedback
from .findings import Findings
from .queries import Queries, as_texts
from .splits import split_in_time, split_rows
from .validation import validate


@dataclass(frozen=True, eq=False)
class Workload:
    """Recorded outcomes of a pool of models on a set of queries.

    Parameters
    ----------
    query_ids, prompts : arrays of n strings
    models : the pool, in a fixed order (ties in routing go to the earlier model)
    quality : (n, M), 0..1, NaN where the pair is unavailable
    cost : (n, M), any unit as long as it is one unit, NaN where the pair is unavailable
    tasks : n task labels, or None where the workload has none
    vectors : (n, D) query vectors that replace the text encoder, or None
    clusters : n labels of queries that belong together, or None; a split keeps a cluster on one side
    families : further groupings by name, n labels each, that a split heeds where it is told to
    moments : when each query was asked, by name: n numbers each, NaN where unknown; a split by time goes by one of them
    provenance : sentences that say where the data come from and what was done to them
    simulated : True where outcomes were generated rather than recorded
    grouping : the grouping the paper uses on this benchmark ("auto" unless it says otherwise)
    """

    query_ids: np.ndarray
    prompts: np.ndarray
    models: tuple[str, ...]
    quality: np.ndarray
    cost: np.ndarray
    tasks: np.ndarray | None = None
    vectors: np.ndarray | None = None
    name: str = "workload"
    provenance: tuple[str, ...] = ()
    simulated: bool = False
    grouping: str = "auto"
    clusters: np.ndarray | None = None
    families: Mapping[str, np.ndarray] = field(default_factory=dict)
    moments: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        def put(name, value):
            object.__setattr__(self, name, value)

        put("models", tuple(str(m) for m in self.models))
        put("query_ids", as_texts(self.query_ids))
        put("prompts", as_texts(self.prompts))
        put("quality", np.array(self.quality, dtype=np.float64))  # a copy, as it is made read-only
        put("cost", np.array(self.cost, dtype=np.float64))
        if self.tasks is not None:
            put("tasks", as_texts(self.tasks))
        if self.clusters is not None:
            put("clusters", as_texts(self.clusters))
        put("families", {str(name): as_texts(labels) for name, labels in self.families.items()})
        put("moments", {str(name): np.asarray(when, dtype=np.float64) for name, when in self.moments.items()})
        if self.vectors is not None:
            put("vectors", np.asarray(self.vectors, dtype=np.float32))
        validate(self)
        for array in (self.quality, self.cost):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.query_ids)

    def __repr__(self) -> str:
        kind = "simulated " if self.simulated else ""
        return f"<{kind}Workload {self.name!r}: {len(self):,} queries x {len(self.models)} models>"

    @cached_property
    def available(self) -> np.ndarray:
        """(n, M) mask of the pairs that can be asked for."""
        return np.isfinite(self.quality)

    @property
    def queries(self) -> Queries:
        return Queries(self.prompts, self.tasks, self.vectors, self.query_ids, self.models, self.available)

    def take(self, rows: np.ndarray | slice) -> Workload:
        """The same pool on some of the queries, in the given order."""

        def pick(array):
            return None if array is None else array[rows]

        return replace(
            self,
            query_ids=self.query_ids[rows],
            prompts=self.prompts[rows],
            quality=self.quality[rows],
            cost=self.cost[rows],
            tasks=pick(self.tasks),
            vectors=pick(self.vectors),
            clusters=pick(self.clusters),
            families={name: labels[rows] for name, labels in self.families.items()},
            moments={name: when[rows] for name, when in self.moments.items()},
        )

    def split(
        self,
        train: float = 0.2,
        seed: int = 42,
        together: str | bool | None = None,
        *,
        by: str | None = None,
        column: str | None = None,
    ) -> tuple[Workload, Workload]:
        """Some queries to learn from, and the rest to test on; what belongs together is on one side.

        Parameters
        ----------
        train : share of the queries to learn from
        seed : of the shuffle
        together : None keeps ``clusters`` on one side, where there are any (a user's table: equal prompts); "prompt" keeps
            equal prompts on one side too, and the name of one of ``families`` those with equal labels. False heeds nothing,
            and where nothing is heeded this is the paper's split: shuffle all rows once, the first ``int(n * train)`` rows
            teach, the rest test
        by : "time" to learn from the past and test on what came later: the earliest queries by ``column`` teach. No seed
            plays a part. Queries of one moment stay together, and what belongs together counts as its earliest query
        column : one of ``moments``; reading a table keeps each further column of numbers or dates
        """
        share("train", train, below_one=True)
        heeded = self._heeded(together)
        if by is None and column is None:
            seed_of(seed)
            learn, test = split_rows(len(self), train, seed, heeded)
        else:
            learn, test = split_in_time(self._when(by, column), train, heeded)
        if not len(learn) or not len(test):
            one = "" if by is None else ", all of one moment,"
            raise SaveRouterError(
                f"{self.name}: train={train} of {len(self)} queries{one} leaves {len(learn)} to learn from and "
                f"{len(test)} to test on; use more queries or another fraction"
            )
        return self.take(learn), self.take(test)

    def _when(self, by: str | None, column: str | None) -> np.ndarray:
        """The moment of every query."""
        if by != "time":
            raise SaveRouterError(f'by is {by!r}; expected by="time" with a column, or neither of them')
        if column not in self.moments:
            known = ", ".join(map(repr, self.moments)) or "no columns of numbers or dates"
            near = did_you_mean(str(column), self.moments)
            raise SaveRouterError(
                f"column is {column!r}; {near}{self.name} has {known} to order queries in time; write dates as 2026-01-31"
            )
        when = self.moments[column]
        gone = np.flatnonzero(np.isnan(when))
        if len(gone):
            raise SaveRouterError(
                f"{column} of query {self.query_ids[gone[0]]!r} is missing ({len(gone)} such queries); "
                f"fill it, or split work.take(np.isfinite(work.moments[{column!r}]))"
            )
        return when

    def _heeded(self, together: str | bool | None) -> list[np.ndarray]:
        """The groupings that a split heeds."""
        if together is False:
            return []
        declared = [] if self.clusters is None else [self.clusters]
        if together is None:
            return declared
        known = {**self.families, "prompt": self.prompts}
        if not isinstance(together, str) or together not in known:
            raise SaveRouterError(
                f"together is {together!r}; {self.name} has {', '.join(map(repr, known))}, None keeps its clusters "
                "on one side, and False is the paper's split"
            )
        return [*declared, known[together]]

    def check(self) -> Findings:
        """What a careful person would warn of, worst first, each with what to do; false where there is nothing."""
        return Findings(findings_of(self))

    def feedback(self) -> ReplayFeedback:
        """A meter over these recorded outcomes: the only way for a router to see any of them."""
        return ReplayFeedback(self.queries, self.quality, self.cost)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that can influence a result."""
        digest = hashlib.blake2b(digest_size=16)
        for texts in (self.models, self.query_ids, self.prompts, self.tasks if self.tasks is not None else ()):
            digest.update("\x1f".join(texts).encode("utf-8", "surrogatepass") + b"\x1e")
        for array in (self.quality, self.cost, self.vectors):
            if array is not None:
                digest.update(np.ascontiguousarray(array).tobytes())
        declared = {"clusters": self.clusters, **self.families}
        for name, labels in declared.items():
            if labels is not None:
                digest.update("\x1f".join((name, *labels)).encode("utf-8", "surrogatepass") + b"\x1e")
        for name, when in self.moments.items():
            digest.update(f"{name}\x1f".encode("utf-8", "surrogatepass") + when.tobytes())
        return digest.hexdigest()
