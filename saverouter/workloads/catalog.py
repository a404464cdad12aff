"""``load``: a workload by name or path."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

import numpy as np

from .errors import SaveRouterError, did_you_mean
from .originals import LOADERS, load_original
from .readers import read_table
from .simulate import benchmarks, simulate
from .workload import Workload


def names() -> list[str]:
    """The workloads that come with the project, and those it loads once they were fetched ("original/...")."""
    every = benchmarks(large_pool=True)
    return ["paretobandit", *(f"simulated/{name}" for name in every), *(f"original/{name}" for name in LOADERS)]


def load(name: str | os.PathLike, *, size: int | None = None, seed: int | None = None) -> Workload:
    """A built-in workload by name, or the user's own table by path.

    Parameters
    ----------
    name : "paretobandit", "simulated/routerbench" and its like (``saverouter.names()`` lists them), "original/routerbench"
        for the real one (fetch it first: ``make data``), or the path of a CSV or Parquet file; a file that is not found
        is looked for in ``$SAVEROUTER_DATA``
    size : number of queries; a simulated benchmark is generated at that size, anything else is sampled
    seed : of the simulation or of the sample; 0 unless given
    """
    text = os.fspath(name)
    if text.startswith("simulated/"):
        return simulate(text.removeprefix("simulated/"), size=size, seed=seed or 0)
    if text.startswith("original/"):
        work = load_original(text.removeprefix("original/"))
    else:
        work = paretobandit() if text == "paretobandit" else read_table(_find(text))
    return work if size is None else sample(work, size, seed or 0)


def sample(work: Workload, size: int, seed: int = 0) -> Workload:
    """Some of the queries of a workload, drawn at random and kept in their order."""
    if not 1 <= size <= len(work):
        raise SaveRouterError(f"size is {size}; {work.name} has {len(work):,} queries")
    return work.take(np.sort(np.random.default_rng(seed).choice(len(work), size, replace=False)))


def _find(text: str) -> Path:
    places = [Path(text).expanduser()]
    if os.environ.get("SAVEROUTER_DATA"):
        places.append(Path(os.environ["SAVEROUTER_DATA"], text))
    for place in places:
        if place.is_file():
            return place
    raise SaveRouterError(
        f"no workload or file is called {text!r}; {did_you_mean(text, names(), cutoff=0.5)}there are {', '.join(names())}, "
        "and the path of any CSV or Parquet file will do"
    )


def paretobandit() -> Workload:
    """Real rewards and USD costs of three models on 3,609 prompts, from the package of that name (Apache-2.0).

    The reward is a judge's score between 0 and 1. The package's validation and hold-out files are joined in
    that order; the source of a prompt is its task.
    """
    folder = resources.files("pareto_bandit") / "data" / "examples"
    records, origin = [], []
    for part in ("val", "test_holdout"):
        # Prompts contain other line separators, so only "\n" ends a record.
        lines = [line for line in (folder / f"{part}.jsonl").read_text(encoding="utf-8").split("\n") if line.strip()]
        records += [json.loads(line) for line in lines]
        origin += [f"{part}-{number:04d}" for number in range(len(lines))]
    models = list(records[0]["arms"])
    outcomes = np.array(
        [[[r["arms"].get(m, {}).get(kind, np.nan) for m in models] for kind in ("reward", "cost")] for r in records],
        dtype=np.float64,
    )
    return Workload(
        query_ids=origin,
        prompts=[r["prompt"] for r in records],
        tasks=[r["source"] for r in records],
        models=models,
        quality=outcomes[:, 0],
        cost=outcomes[:, 1],
        name="paretobandit",
        provenance=("recorded rewards and USD costs shipped in the package paretobandit 0.1.1 (Apache-2.0)",),
    )
