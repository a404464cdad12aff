"""One experiment: a workload, a router and its options, judged once and remembered.

A result is kept under the content of everything that made it (data, options, code), so that one computation
serves every notebook that shows it.
"""

from __future__ import annotations

import inspect
import json
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd

from .cache import Busy, atomic_path, cache_folder, code_version, digest_of, only_one
from .catalog import load, sample
from .cluster import each
from .errors import SaveRouterError
from .evaluate import Reference, Result, evaluate
from .profiles import profile as profile_named
from .routers import MAIN, ROUTERS, make_router
from .settings import published_settings
from .simulate import specification
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


def workload(name: str, profile: str = "standard") -> Workload:
    """A workload by name or path, no larger than the profile allows."""
    cap = profile_named(profile).cap(name)
    if cap is None:
        return load(name)
    if name.startswith("simulated/"):  # generated at that size, rather than sampled
        return load(name, size=min(cap, specification(name.removeprefix("simulated/"))["size"]))
    work = load(name)
    return work if len(work) <= cap else sample(work, cap)


def paper_options(work: Workload, settings: str = "paper", **options) -> dict:
    """SaveRouter's published settings on a benchmark, those of the paper or of the release, with changes."""
    return {"grouping": work.grouping, **published_settings(work.name, settings), **options}


def run(work: Workload, router: str, *, train: float = 0.2, split_seed: int = 42, wait: bool = True, **options) -> Run:
    """Fit a router on the training part of a workload and judge it on the rest, or recall having done so.

    With ``wait=False``, a run that another process is busy with raises ``cache.Busy`` instead of waiting for it.
    """
    return _once(work, Task.of(work, router, train=train, split_seed=split_seed, **options), wait)


def run_many(wanted: Iterable[tuple[Workload, str, dict]], *, cluster=None, jobs: int | None = None) -> list[Run]:
    """Runs of ``(work, router, options)`` in the order asked for; options are those of ``run``.

    What is missing is computed one after another, by ``jobs`` processes, or on a Dask cluster: ``cluster`` is its
    address or client, see the module ``cluster``. What another process is busy with is left for last, so that two
    notebooks that need the same runs share the work.

    Each result is kept here as it comes in, and by the worker that computed it before that one hands it over. So a run
    whose worker dies while computing is started again, and nothing else is. Only a result that was finished, not fetched
    yet and kept on no disk but the dead worker's own is computed a second time.
    """
    wanted = [(work, Task.of(work, router, **options)) for work, router, options in wanted]
    found: dict[int, Run] = {}
    for wait in (False, True):
        found |= {place: _recall(task) for place, (_, task) in enumerate(wanted) if place not in found and task.is_done}
        left = [place for place in range(len(wanted)) if place not in found]
        calls = [(wanted[place][1].name(wait), wanted[place][0], (wanted[place][1], wait)) for place in left]
        for position, done in each(_attempt, calls, cluster=cluster, jobs=jobs):
            if done is not None:
                found[left[position]] = done
                _keep(wanted[left[position]][1], done)
    return [found[place] for place in range(len(wanted))]


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
        code = _code_of(kind)
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


def _attempt(work: Workload, task: Task, wait: bool) -> Run | None:
    """A run in whichever process; None where another is busy with it."""
    if code_version() != task.version:  # it would be remembered as the result of code that did not make it
        raise SaveRouterError(
            f"{socket.gethostname()} runs another saverouter than you do; install the same version there and restart its "
            "workers"
        )
    with suppress(Busy):
        return _once(work, task, wait)
    return None


def _once(work: Workload, task: Task, wait: bool) -> Run:
    if task.key is None:
        return _compute(work, task)
    with only_one(task.path, wait):
        if task.is_done:
            return _recall(task)
        done = _compute(work, task)
        _keep(task, done)
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


def _code_of(kind: type) -> str | None:
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


def saverouter_run(work: Workload, **options) -> Run:
    """SaveRouter as published, with changes; ``train`` and ``split_seed`` as in ``run``."""
    return run(work, "saverouter", **paper_options(work, **options))


def published_options(router: str, work: Workload, profile: str = "paper", settings: str = "paper") -> dict:
    """A router's options in tables: as published, but that smaller profiles train the slowest for fewer epochs."""
    options = profile_named(profile).options.get(router, {})
    return paper_options(work, settings, **options) if router == "saverouter" else dict(options)


def main_runs(
    works: dict[str, Workload], profile: str = "paper", *, routers=MAIN, settings: str = "paper", **split
) -> dict[str, dict[str, Run]]:
    """Routers on every workload, by its name and their label, with their published options.

    ``settings`` are SaveRouter's, "paper" or "release"; ``train`` and ``split_seed`` are as in ``run``.
    """
    done = iter(run_many(
        (work, name, published_options(name, work, profile, settings) | split)
        for work in works.values() for name in routers
    ))  # fmt: skip
    return {key: {make_router(name).label: next(done) for name in routers} for key in works}


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


def saturation(work: Workload, fractions, seeds=(42,), split_seed: int = 42) -> pd.DataFrame:
    """Peak score against the share of supervision: two conventional routers on random pairs, SaveRouter buying K a query."""
    wanted = []
    for seed in seeds:
        same = {"seed": seed, "split_seed": split_seed}
        for fraction in map(float, fractions):
            wanted += [(work, name, {"fraction": fraction, **same}) for name in ("embedllm", "knn")]
        budgets = sorted({max(1, round(fraction * len(work.models))) for fraction in fractions})
        wanted += [(work, "saverouter", paper_options(work, k=k, **same)) for k in budgets]
    rows = [
        (done.result.router, options["seed"], options.get("fraction", done.supervision_share), done.result.peak_score)
        for (_, _, options), done in zip(wanted, run_many(wanted), strict=True)
    ]
    return pd.DataFrame(rows, columns=["router", "seed", "supervision", "peak_score"])


def recovery(curve: pd.DataFrame, share: float = 0.99) -> pd.Series:
    """The least supervision from which on each router keeps ``share`` of its peak score under full supervision."""

    def first(points: pd.DataFrame) -> float:
        points = points.groupby("supervision")["peak_score"].mean().sort_index()
        short = np.flatnonzero(points.to_numpy() < share * points.iloc[-1])
        return float(points.index[short[-1] + 1] if len(short) else points.index[0])

    return pd.Series({name: first(points) for name, points in curve.groupby("router")}, name="supervision")


def _keep(task: Task, done: Run) -> None:
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


def _recall(task: Task) -> Run:
    kept = json.loads(task.path.read_text())
    reference = Reference(**kept["reference"])
    result = Result(frontier=pd.DataFrame(kept["frontier"]), reference=reference, **kept["result"])
    return Run(result, **kept["counted"])
