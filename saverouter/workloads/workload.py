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

from ..errors import SaveRouterError, seed_of, share
from .checks import findings_of
from .feedback import ReplayFeedback
from .findings import Findings
from .queries import Queries, as_texts
from .splits import split_rows


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
        )

    def split(
        self, train: float = 0.2, seed: int = 42, together: str | bool | None = None
    ) -> tuple[Workload, Workload]:
        """Some queries to learn from, and the rest to test on; what belongs together is on one side.

        Parameters
        ----------
        train : share of the queries to learn from
        seed : of the shuffle
        together : None keeps ``clusters`` on one side, where there are any; "prompt" keeps equal prompts on one side too,
            and the name of one of ``families`` those with equal labels. False heeds nothing, and where nothing is heeded
            this is the paper's split: shuffle all rows once, the first ``int(n * train)`` rows teach, the rest test
        """
        share("train", train, below_one=True)
        seed_of(seed)
        learn, test = split_rows(len(self), train, seed, self._heeded(together))
        if not len(learn) or not len(test):
            raise SaveRouterError(
                f"{self.name}: train={train} of {len(self)} queries leaves {len(learn)} to learn from and "
                f"{len(test)} to test on; use more queries or another fraction"
            )
        return self.take(learn), self.take(test)

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
        return digest.hexdigest()


def validate(work: Workload) -> None:
    """Refuse a workload that would give wrong numbers later, naming row, column and remedy."""
    n, m = len(work.query_ids), len(work.models)
    if n == 0 or m == 0:
        raise SaveRouterError(f"{work.name} has {n} queries and {m} models; at least one of each is needed")
    _refuse_repeats(work.models, "model", "give every model one column or one name")
    _refuse_repeats(work.query_ids, "query_id", "keep one row per query (a long table: one row per query and model)")
    for label, array, shape in (
        ("prompts", work.prompts, (n,)),
        ("tasks", work.tasks, (n,)),
        ("clusters", work.clusters, (n,)),
        *((f"family {name!r}", labels, (n,)) for name, labels in work.families.items()),
        ("quality", work.quality, (n, m)),
        ("cost", work.cost, (n, m)),
    ):
        if array is not None and array.shape != shape:
            raise SaveRouterError(f"{label} of {work.name} has shape {array.shape}; expected {shape}")
    if work.vectors is not None:
        if work.vectors.ndim != 2 or len(work.vectors) != n:
            raise SaveRouterError(f"vectors of {work.name} have shape {work.vectors.shape}; expected ({n}, D)")
        bad = np.flatnonzero(~np.isfinite(work.vectors).all(axis=1))
        if len(bad):
            raise SaveRouterError(f"vector of query {work.query_ids[bad[0]]!r} has a value that is not finite")
    for row, prompt in enumerate(work.prompts):
        if not prompt or not prompt.strip():
            raise SaveRouterError(
                f"prompt of query {work.query_ids[row]!r} (row {row}) is empty; fill it or drop the row"
            )
    _refuse_empty(work)
    _refuse_values(work, "quality", (work.quality < 0) | (work.quality > 1) | np.isinf(work.quality), "0..1 or missing")
    _refuse_values(work, "cost", (work.cost < 0) | np.isinf(work.cost), "a finite number >= 0 or missing")
    lone = np.isfinite(work.quality) != np.isfinite(work.cost)
    if lone.any():
        row, model = np.argwhere(lone)[0]
        has, lacks = ("quality", "cost") if np.isfinite(work.quality[row, model]) else ("cost", "quality")
        raise SaveRouterError(
            f"model {work.models[model]!r} has a {has} but no {lacks} for query {work.query_ids[row]!r} (row {row}); "
            f"give both, or neither if the pair is unavailable ({lone.sum()} such pairs)"
        )
    nobody = np.flatnonzero(~np.isfinite(work.quality).any(axis=1))
    if len(nobody):
        raise SaveRouterError(
            f"query {work.query_ids[nobody[0]]!r} (row {nobody[0]}) has no available model; "
            f"drop it or add an outcome ({len(nobody)} such queries)"
        )


def _refuse_empty(work: Workload) -> None:
    groups = {"task": work.tasks, "cluster": work.clusters, **work.families}
    for what, labels in groups.items():
        for row, label in enumerate(labels if labels is not None else ()):
            if not label or not label.strip():
                raise SaveRouterError(
                    f"{what} of query {work.query_ids[row]!r} (row {row}) is empty; name it, or leave the whole column out"
                )


def _refuse_repeats(values, what: str, remedy: str) -> None:
    if len(set(values)) == len(values):
        return
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        if value in first:
            raise SaveRouterError(f"{what} {value!r} appears twice (places {first[value]} and {row}); {remedy}")
        first[value] = row


def _refuse_values(work: Workload, column: str, bad: np.ndarray, expected: str) -> None:
    if bad.any():
        row, model = np.argwhere(bad)[0]
        value = getattr(work, column)[row, model]
        more = f" ({bad.sum()} such values)" if bad.sum() > 1 else ""
        raise SaveRouterError(
            f"{column} of model {work.models[model]!r} for query {work.query_ids[row]!r} (row {row}) is {value:g}; "
            f"expected {expected}{more}"
        )
