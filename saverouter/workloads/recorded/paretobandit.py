"""ParetoBandit: judged rewards and USD costs of three models, from the files of the package of that name."""

from __future__ import annotations

import json
from importlib import resources

import numpy as np

from ..workload import Workload


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
