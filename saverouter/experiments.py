"""One experiment: a workload, a router and its options, judged once and remembered.

A result is kept under the content of everything that made it (data, options, code), so that one computation
serves every notebook that shows it.
"""

from __future__ import annotations

import inspect
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd

from .cache import Busy, atomic_path, cache_folder, code_version, digest_of, only_one
from .catalog import load, sample
from .evaluate import Reference, Result, evaluate
from .profiles import profile as profile_named
from .routers import MAIN, ROUTERS, make_router
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


def paper_options(work: Workload, **options) -> dict:
    """SaveRouter's published settings on a benchmark, with changes."""
    ridge = 200.0 if work.name.endswith("llmrouterbench") else 100.0
    k = 108 if work.name.endswith("routereval") else 4
    return {"k": k, "grouping": work.grouping, "residual_ridge": ridge, **options}


def run(
    work: Workload, router: str, *, train: float = 0.2, split_seed: int = 42, wait: bool = True, **options
) -> Run:
    """Fit a router on the training part of a workload and judge it on the rest, or recall having done so.

    With ``wait=False``, a run that another process is busy with raises ``cache.Busy`` instead of waiting for it.
    """
    options = {**make_router(router).get_params(), **options}
    code = _code_of(ROUTERS[router])
    if code is None:
        return _compute(work, router, options, train, split_seed)
    key = digest_of(code, work.fingerprint, router, options, train, split_seed)
    path = cache_folder("runs") / f"{key}.json"
    with only_one(path, wait):
        if path.is_file():
            return _recall(json.loads(path.read_text()))
        done = _compute(work, router, options, train, split_seed)
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(_record(done)))
    return done


def _compute(work: Workload, router: str, options: dict, train: float, split_seed: int) -> Run:
    learn, test = work.split(train, split_seed)
    feedback = learn.feedback()
    fitted = make_router(router, **options).fit(learn.queries, feedback)
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
        note=deviations(router, options, work),
    )


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
        sources = [inspect.getsource(base) for base in parts if base not in own]
    except (OSError, TypeError):
        return None
    return digest_of(code_version(frozenset(others - {Path(inspect.getfile(base)) for base in own})), *sources)


def saverouter_run(work: Workload, **options) -> Run:
    """SaveRouter as published, with changes; ``train`` and ``split_seed`` as in ``run``."""
    return run(work, "saverouter", **paper_options(work, **options))


def published_options(router: str, work: Workload, profile: str = "paper") -> dict:
    """A router's options in tables: as published, but that smaller profiles train the slowest for fewer epochs."""
    options = profile_named(profile).options.get(router, {})
    return paper_options(work, **options) if router == "saverouter" else dict(options)


def main_runs(works: dict[str, Workload], profile: str = "paper", *, routers=MAIN, **split) -> dict[str, dict[str, Run]]:
    """Routers on every workload, by its name and their label, with their published options.

    ``train`` and ``split_seed`` are as in ``run``. What another process is busy with is left for last, so that two
    notebooks that need the same runs share the work.
    """
    wanted = [(key, name) for key in works for name in routers]
    found: dict[tuple[str, str], Run] = {}
    for wait in (False, True):
        for key, name in [pair for pair in wanted if pair not in found]:
            options = published_options(name, works[key], profile)
            with suppress(Busy):
                found[key, name] = run(works[key], name, wait=wait, **split, **options)
    return {key: {make_router(name).label: found[key, name] for name in routers} for key in works}


def deviations(router: str, options: dict, work: Workload) -> str:
    """What sets a run apart from the published configuration, for the notes of a table."""
    kind = ROUTERS[router]
    notes = ["reconstructed"] if kind.reconstructed else []
    notes += [kind.deviation] if kind.deviation else []
    published = paper_options(work) if router == "saverouter" else {}
    for name, usual in {**kind().get_params(), **published}.items():
        if options[name] != usual and name != "seed":
            notes.append(f"{name.replace('_', ' ')} {options[name]} instead of {usual}")
    return "; ".join(notes)


def saturation(work: Workload, fractions, seeds=(42,), split_seed: int = 42) -> pd.DataFrame:
    """Peak score against the share of supervision: two conventional routers on random pairs, SaveRouter buying K a query."""
    rows = []
    for seed in seeds:
        for fraction in fractions:
            for name in ("embedllm", "knn"):
                done = run(work, name, fraction=float(fraction), seed=seed, split_seed=split_seed)
                rows.append((done.result.router, seed, float(fraction), done.result.peak_score))
        for k in sorted({max(1, round(f * len(work.models))) for f in fractions}):
            done = saverouter_run(work, k=k, seed=seed, split_seed=split_seed)
            rows.append(("SaveRouter", seed, done.supervision_share, done.result.peak_score))
    return pd.DataFrame(rows, columns=["router", "seed", "supervision", "peak_score"])


def recovery(curve: pd.DataFrame, share: float = 0.99) -> pd.Series:
    """The least supervision from which on each router keeps ``share`` of its peak score under full supervision."""

    def first(points: pd.DataFrame) -> float:
        points = points.groupby("supervision")["peak_score"].mean().sort_index()
        short = np.flatnonzero(points.to_numpy() < share * points.iloc[-1])
        return float(points.index[short[-1] + 1] if len(short) else points.index[0])

    return pd.Series({name: first(points) for name, points in curve.groupby("router")}, name="supervision")


def _record(done: Run) -> dict:
    result = done.result
    kept = {
        k: getattr(result, k)
        for k in ("router", "workload", "supervision_cost", "n_policies", "selection", "last_quality")
    }
    counted = {field.name: getattr(done, field.name) for field in fields(Run) if field.name != "result"}
    return {
        "result": kept,
        "reference": asdict(result.reference),
        "frontier": result.frontier.to_dict("list"),
        "counted": counted,
    }


def _recall(kept: dict) -> Run:
    reference = Reference(**kept["reference"])
    result = Result(frontier=pd.DataFrame(kept["frontier"]), reference=reference, **kept["result"])
    return Run(result, **kept["counted"])
