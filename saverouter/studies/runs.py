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
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from ..encoders import encoder_name
from ..errors import SaveRouterError
from ..files import Busy, atomic_path, cache_folder, data_folder, digest_of, digest_of_files, only_one
from ..judging import Reference, Result, coverage_from, evaluate, policies_from, policies_to_dict
from ..paper import paper_options
from ..routers import ROUTERS, make_router
from ..workloads import Workload


@dataclass(frozen=True)
class Run:
    """A result, and how much supervision it took.

    interactions : outcomes bought, one bought twice counted twice
    pairs_bought, distinct_cost : what was bought and paid if repeated requests are answered from a cache
    dense_cost : the price of every available training pair
    reference_spent : the part of the supervision cost that bought outcomes of the best single model
    note : what differs from the published configuration, "" where nothing does
    """

    result: Result
    interactions: int
    pairs_bought: int
    pairs_available: int
    distinct_cost: float
    dense_cost: float
    reference_spent: float = 0.0
    note: str = ""

    def __repr__(self) -> str:
        return f"<Run of {self.result.router} on {self.result.workload}: {self.interactions:,} outcomes bought>"

    @property
    def supervision_share(self) -> float:
        """Share of the available training pairs that was bought."""
        return self.pairs_bought / self.pairs_available

    @property
    def cached(self) -> Result:
        """The same result with every pair charged once."""
        return replace(self.result, supervision_cost=self.distinct_cost)

    def repriced(self, factor: float) -> Result:
        """The same choices if the best single model cost ``factor`` times as much, when learning and when serving."""
        return self.result.repriced(factor, self.reference_spent)


@dataclass(frozen=True)
class RunKey:
    """What to run, but for the workload: small enough to travel, and the same on the asking and the computing side.

    digest : of the content that makes the result, None where a router's source cannot be read and nothing is remembered
    version : of the asking side's code and encoder
    """

    router: str
    kind: type
    options: dict
    train: float
    split_seed: int
    digest: str | None
    version: str

    @classmethod
    def of(cls, work: Workload, router: str, *, train: float = 0.2, split_seed: int = 42, **options) -> RunKey:
        options, kind = {**make_router(router).get_params(), **options}, ROUTERS[router]
        code = code_of(kind)
        digest = code and digest_of(code, encoder_of(work), work.fingerprint, router, options, train, split_seed)
        return cls(router, kind, options, train, split_seed, digest, code_version() + encoder_of(work))

    @property
    def path(self) -> Path:
        return cache_folder("runs") / f"{self.digest}.json"

    @property
    def is_done(self) -> bool:
        return self.digest is not None and self.path.is_file()

    def name(self, wait: bool) -> str | None:
        """The call's name on a cluster, the same for everybody who asks the same.

        Those who would wait and those who would not have two names: "busy" answers the latter alone. A cluster learns how
        long a call takes from calls whose names begin alike.
        """
        return self.digest and f"{self.router}-{self.digest}-{'wait' if wait else 'ask'}"


def attempt(work: Workload, key: RunKey, wait: bool) -> Run | None:
    """A run in whichever process; None where another is busy with it."""
    if code_version() + encoder_of(work) != key.version:  # it would be remembered as the result of what did not make it
        raise SaveRouterError(
            f"{socket.gethostname()} runs another saverouter than you do, or another encoder; install the same versions "
            "there and restart its workers"
        )
    with suppress(Busy):
        return once(work, key, wait)
    return None


def encoder_of(work: Workload) -> str:
    """What encodes the prompts, nothing where the workload brings vectors."""
    return encoder_name() if work.vectors is None else ""


def once(work: Workload, key: RunKey, wait: bool) -> Run:
    """Recalled, or computed and kept; another process that wants the same waits, or raises ``Busy``."""
    if key.digest is None:
        return _compute(work, key)
    with only_one(key.path, wait):
        if key.is_done:
            return recall(key)
        done = _compute(work, key)
        keep(key, done)
    return done


def _compute(work: Workload, key: RunKey) -> Run:
    learn, test = work.split(key.train, key.split_seed)
    feedback = learn.feedback()
    fitted = key.kind(**key.options).fit(learn.queries, feedback)
    result = replace(evaluate(fitted, test, supervision_cost=feedback.spent), sample=None)  # as it would be recalled
    bought = feedback.observations
    distinct = bought.drop_duplicates(["row", "model"])
    return Run(
        result,
        interactions=len(bought),
        pairs_bought=len(distinct),
        pairs_available=int(learn.available.sum()),
        distinct_cost=float(distinct["cost"].sum()),
        dense_cost=float(np.nansum(learn.cost)),
        reference_spent=float(bought.loc[bought["model"] == result.reference.model, "cost"].sum()),
        note=deviations(key.router, key.options, work, key.kind),
    )


_READING = threading.Lock()  # Python 3.11 cannot parse source in two threads at once


PACKAGE = Path(__file__).parents[1]
SCIENCE = ("encoders", "workloads", "judging", "routers")  # rooms whose code can change a number
LOADING = ("workloads/originals", "workloads/recorded")  # their work is in the workload, which counts by itself


@cache
def code_version(without: frozenset[Path] = frozenset()) -> str:
    """A hash of the code and of the texts that can change a result; ``without`` names files that play no part in it."""
    files = {path for room in SCIENCE for path in (PACKAGE / room).rglob("*.py")} | {Path(__file__)}
    files -= {path for folder in LOADING for path in (PACKAGE / folder).rglob("*.py")}
    texts = data_folder() / "descriptions.csv"
    return digest_of(digest_of_files(PACKAGE, files - without), texts.read_bytes())


def code_of(kind: type) -> str | None:
    """A hash of the code behind a router's results, other methods' files left out; None where it cannot be read.

    A router that a user registered counts with the source of its class, and is not remembered where that has none.
    """
    parts = [base for base in kind.__mro__ if base is not object and not base.__module__.startswith("sklearn.")]
    own = [base for base in parts if base.__module__.startswith("saverouter.")]
    try:
        with _READING:
            sources = [inspect.getsource(base) for base in parts if base not in own]
    except (OSError, TypeError):
        return None
    return digest_of(code_version(_methods() - {file for base in own for file in _files_of(base)}), *sources)


def _methods() -> frozenset[Path]:
    """The files of all routers, without what they share."""
    routers = PACKAGE / "routers"
    plain = {path for path in routers.glob("*.py") if path.stem not in ("__init__", "base")}
    return frozenset(plain | set((routers / "saverouter").glob("*.py")))


def _files_of(kind: type) -> list[Path]:
    """The file of a class, or all of its folder where it is a package of its own."""
    path = Path(inspect.getfile(kind))
    return list(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]


def keep(key: RunKey, done: Run) -> None:
    """Remember a run; one that is remembered already stays as it is."""
    if key.digest is None or key.is_done:
        return
    result = done.result
    kept = {
        k: getattr(result, k)
        for k in ("router", "workload", "supervision_cost", "n_policies", "selection", "last_quality", "test_cost")
    }
    counted = {field.name: getattr(done, field.name) for field in fields(Run) if field.name != "result"}
    record = {
        "result": kept,
        "reference": asdict(result.reference),
        "frontier": result.frontier.to_dict("list"),
        "policies": policies_to_dict(result.policies),
        "singles": [asdict(one) for one in result.singles],
        "comparable": [asdict(one) for one in result.comparable],
        "coverage": result.coverage and asdict(result.coverage),
        "counted": counted,
    }
    with atomic_path(key.path) as temporary:
        temporary.write_text(json.dumps(record))


def recall(key: RunKey) -> Run:
    """A run that was kept."""
    kept = json.loads(key.path.read_text())
    reference = Reference(**kept["reference"])
    frontier, policies = pd.DataFrame(kept["frontier"]), policies_from(kept["policies"])
    singles, comparable = (tuple(Reference(**one) for one in kept.get(of, ())) for of in ("singles", "comparable"))
    result = Result(
        frontier=frontier, reference=reference, policies=policies, singles=singles, comparable=comparable,
        coverage=coverage_from(kept.get("coverage")), **kept["result"],
    )  # fmt: skip
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
