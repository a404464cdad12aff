"""RouterEval: six tasks, hundreds of models, costs by parameter size (``linggm/Routereval``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import SaveRouterError
from ..large_pool import billions, prices_by_size
from ..workload import Workload
from .cleaning import unique_names, whole_pairs
from .pickles import read_pickle

TASKS = ("arc", "gsm8k", "harness_truthfulqa_mc_0", "hellaswag", "mmlu", "winogrande")
PARTS = ("train", "val", "test")


def convert(files: dict[str, Path]) -> Workload:
    """Models in all six files whose name tells a size, sorted by name; rows file by file, each train, val, test."""
    folder = files["router_dataset.zip"]
    tables = {}
    for task in TASKS:
        found = sorted(folder.rglob(f"{task}_router_dataset.pkl"))
        if not found:
            raise SaveRouterError(
                f"{task}_router_dataset.pkl is not below {folder.name}/; fetch router_dataset.zip again"
            )
        tables[task] = read_pickle(found[0])
    pools = {task: list(_pools(table, task)) for task, table in tables.items()}
    common = set.intersection(*({model for pool in found for model in pool["model"]} for found in pools.values()))
    models = sorted(model for model in common if billions(model) is not None)
    if not models:
        raise SaveRouterError("no model is in all six files of RouterEval with a parameter size in its name")
    ids, prompts, tasks, quality = [], [], [], []
    for task, table in tables.items():
        for part in PARTS:
            indices, texts = _part(table, task, part)
            ids += [f"{task}_router_dataset{part}{index}" for index in indices]
            prompts += texts
            tasks += [f"{task}_router_dataset"] * len(texts)
            quality.append(_scores(pools[task], task, part, models, len(texts)))
    ids, repeats = unique_names(ids)
    price = np.tile(prices_by_size(models), (len(ids), 1))
    quality, cost, notes = whole_pairs(np.vstack(quality), price)
    return Workload(
        query_ids=ids,
        prompts=prompts,
        tasks=tasks,
        models=models,
        quality=quality,
        cost=cost,
        name="original/routereval",
        provenance=(
            f"{len(common):,} models are in all six files, {len(models):,} of them tell a parameter size",
            *notes,
            *repeats,
            "cost is a proxy by parameter size, the same for every query",
        ),
    )


def _pools(table, task: str):
    """Every pool of a file: "easy" and "hard", of all sizes, under all names."""
    try:
        for level in ("easy", "hard"):
            for size in table.get(level, {}).values():
                yield from (pool for pool in size.values() if isinstance(pool, dict) and "model" in pool)
    except AttributeError as error:
        raise SaveRouterError(
            f"{task}_router_dataset.pkl is not made of nested tables by level and pool size"
        ) from error


def _part(table, task: str, part: str) -> tuple[list, list[str]]:
    try:
        indices = [int(index) for index in table["split_index"][f"{part}_indices"]]
        texts = [" ".join(str(text).split()) for text in table["prompt"][f"{part}_prompt"]]
    except (KeyError, TypeError, ValueError) as error:
        raise SaveRouterError(f"{task}_router_dataset.pkl lacks the {part} prompts or indices ({error})") from error
    if len(indices) != len(texts):
        raise SaveRouterError(
            f"{task}_router_dataset.pkl has {len(texts)} {part} prompts but {len(indices)} indices; fetch it again"
        )
    return indices, texts


def _scores(pools, task: str, part: str, models: list[str], rows: int) -> np.ndarray:
    """(rows, M) scores gathered from all pools by model name; the last pool that has a model counts."""
    columns = {model: column for column, model in enumerate(models)}
    found = np.full((rows, len(models)), np.nan)
    for pool in pools:
        scores = np.asarray(pool["data"][f"{part}_score"], dtype=np.float64)
        if scores.shape != (rows, len(pool["model"])):
            raise SaveRouterError(
                f"{task}_router_dataset.pkl has {part} scores of shape {scores.shape} for {rows} prompts and "
                f"{len(pool['model'])} models"
            )
        ours = [(columns[model], place) for place, model in enumerate(pool["model"]) if model in columns]
        for column, place in ours:
            found[:, column] = scores[:, place]
    return found
