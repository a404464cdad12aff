"""A run: what is asked of a router on a workload, computed once and remembered.

A result is kept under the content of everything that made it (data, options, code), so that one computation
serves every notebook that shows it.
"""

from __future__ import annotations

import inspect
import json
import socket
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd

from .cache import Busy, atomic_path, cache_folder, code_version, digest_of, only_one
from .errors import SaveRouterError
from .evaluate import Reference, Result, evaluate
from .routers import ROUTERS, make_router
from .settings import paper_options
from .workload import Workload


@dataclass(frozen=True)
class Run:
    """A result, and how much supervision it took.

    interactions : outcomes bought, one bought twice counted twice
    pairs_bought, distinct_cost : what was bought and paid if repeated requests are answered from a cache
    dense_cost : the price of every available training pair
    note : what differs from the published configuration, "" where nothing does
    """

    result: Result
    interactions: int
    pairs_bought: int
    pairs_available: int
    distinct_cost: float
    dense_cost: float
    note: str = ""

    @property
    def supervision_share(self) -> float:
        """Share of the available training pairs that was bought."""
        return self.pairs_bought / self.pairs_available

    @property
    def cached(self) -> Result:
        """The same result with every pair charged once."""
        return replace(self.result, supervision_cost=self.distinct_cost)


@dataclass(frozen=True)
class Task:
    """What to run, but for the workload: small enough to travel, and the same for who asks and who computes.

    key : of the content that makes the result, None where a router's source cannot be read and nothing is remembered
    version : of the code of who asks
    """

    router: str
    kind: type
    options: dict
    train: float
    split_seed: int
    key: str | None
    version: str

    @classmethod
    def of(cls, work: Workload, router: str, *, train: float = 0.2, split_seed: int = 42, **options) -> Task:
        options, kind = {**make_router(router).get_params(), **options}, ROUTERS[router]
        code = code_of(kind)
        key = code and digest_of(code, work.fingerprint, router, options, train, split_seed)
        return cls(router, kind, options, train, split_seed, key, code_version())

    @property
    def path(self) -> Path:
        return cache_folder("runs") / f"{self.key}.json"

    @property
    def is_done(self) -> bool:
        return self.key is not None and self.path.is_file()

    def name(self, wait: bool) -> str | None:
        """One for all who ask the same; that somebody is busy with it is no answer for who would wait.

        A cluster reckons how long a call takes from those whose names begin alike.
        """
        return self.key and f"{self.router}-{self.key}-{'wait' if wait else 'ask'}"


def attempt(work: Workload, task: Task, wait: bool) -> Run | None:
    """A run in whichever process; None where another is busy with it."""
    if code_version() != task.version:  # it would be remembered as the result of code that did not make it
        raise SaveRouterError(
            f"{socket.gethostname()} runs another saverouter than you do; install the same version there and restart its "
            "workers"
        )
    with suppress(Busy):
        return once(work, task, wait)
    return None


def once(work: Workload, task: Task, wait: bool) -> Run:
    """Recalled, or computed and kept; another process that wants the same waits, or raises ``Busy``."""
    if task.key is None:
        return _compute(work, task)
    with only_one(task.path, wait):
        if task.is_done:
            return recall(task)
        done = _compute(work, task)
        keep(task, done)
    return done


def _compute(work: Workload, task: Task) -> Run:
    learn, test = work.split(task.train, task.split_seed)
    feedback = learn.feedback()
    fitted = task.kind(**task.options).fit(learn.queries, feedback)
    result = evaluate(fitted, test, supervision_cost=feedback.spent)
    bought = feedback.observations
    distinct = bought.drop_duplicates(["row", "model"])
    return Run(
        result,
        interactions=len(bought),
        pairs_bought=len(distinct),
        pairs_available=int(learn.available.sum()),
        distinct_cost=float(distinct["cost"].sum()),
        dense_cost=float(np.nansum(learn.cost)),
        note=deviations(task.router, task.options, work, task.kind),
    )


_READING = threading.Lock()  # Python 3.11 cannot parse source in two threads at once


def code_of(kind: type) -> str | None:
    """A hash of the code behind a router's results, other routers' files left out; None where it cannot be read.

    A router that a user registered counts with the source of its class, and is not remembered where that has none.
    """
    parts = [base for base in kind.__mro__ if base is not object and not base.__module__.startswith("sklearn.")]
    own = [base for base in parts if base.__module__.startswith(f"{__package__}.")]
    others = {
        Path(inspect.getfile(other)) for other in ROUTERS.values() if other.__module__.startswith(f"{__package__}.")
    }
    try:
        with _READING:
            sources = [inspect.getsource(base) for base in parts if base not in own]
    except (OSError, TypeError):
        return None
    return digest_of(code_version(frozenset(others - {Path(inspect.getfile(base)) for base in own})), *sources)


def keep(task: Task, done: Run) -> None:
    """Remember a run; one that is remembered already stays as it is."""
    if task.key is None or task.is_done:
        return
    result = done.result
    kept = {
        k: getattr(result, k)
        for k in ("router", "workload", "supervision_cost", "n_policies", "selection", "last_quality")
    }
    counted = {field.name: getattr(done, field.name) for field in fields(Run) if field.name != "result"}
    record = {
        "result": kept,
        "reference": asdict(result.reference),
        "frontier": result.frontier.to_dict("list"),
        "counted": counted,
    }
    with atomic_path(task.path) as temporary:
        temporary.write_text(json.dumps(record))


def recall(task: Task) -> Run:
    """A run that was kept."""
    kept = json.loads(task.path.read_text())
    reference = Reference(**kept["reference"])
    result = Result(frontier=pd.DataFrame(kept["frontier"]), reference=reference, **kept["result"])
    return Run(result, **kept["counted"])


def deviations(router: str, options: dict, work: Workload, kind: type | None = None) -> str:
    """What sets a run apart from the published configuration, for the notes of a table."""
    kind = kind or ROUTERS[router]  # a worker elsewhere knows nothing of a router that a user registered
    notes = ["reconstructed"] if kind.reconstructed else []
    notes += [kind.deviation] if kind.deviation else []
    published = paper_options(work) if router == "saverouter" else {}
    release = paper_options(work, "release") if router == "saverouter" else {}
    if release != published and options == {**kind().get_params(), **release, "seed": options.get("seed")}:
        return "; ".join([*notes, "settings of the release"])
    for name, usual in {**kind().get_params(), **published}.items():
        if options[name] != usual and name != "seed":
            notes.append(f"{name.replace('_', ' ')} {options[name]} instead of {usual}")
    return "; ".join(notes)
