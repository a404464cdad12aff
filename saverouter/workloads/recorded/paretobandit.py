"""ParetoBandit: judged rewards and USD costs of three models, from the files of the installed package of that name."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

import numpy as np

from ...errors import SaveRouterError
from ..workload import Workload
from .outcomes import lines


def paretobandit() -> Workload:
    """Real rewards and USD costs of three models on 3,609 prompts, from the package of that name (Apache-2.0).

    The reward is a judge's score between 0 and 1. The package's validation and hold-out files are joined in
    that order; the source of a prompt is its task.
    """
    records, origin = [], []
    for part in ("val", "test_holdout"):
        found = list(lines(_content(f"{part}.jsonl")))
        records += found
        origin += [f"{part}-{number:04d}" for number in range(len(found))]
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


def is_here() -> bool:
    """Whether the package is installed, with its files."""
    try:
        return _place("val.jsonl").is_file()
    except PackageNotFoundError:
        return False


def _place(file: str):
    """Found through the installer's records: importing the package would run its code."""
    return distribution("paretobandit").locate_file(f"pareto_bandit/data/examples/{file}")


def _content(file: str) -> bytes:
    try:
        return _place(file).read_bytes()
    except (PackageNotFoundError, OSError) as error:
        raise SaveRouterError(
            f"paretobandit needs {file} of the package paretobandit 0.1.1 ({error}); install it with 'make install'"
        ) from error
