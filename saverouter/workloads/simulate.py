"""The paper's benchmarks, simulated: their sizes, pools and prices, with outcomes that are generated.

One generator serves all; every number is in ``data/simulated/<name>.json``. A specification describes a fixed
world (which model is good at which task, which topics are hard); ``seed`` draws the queries that are asked in it.
Calibrated on facts about the data alone (``paper.facts`` shows them), never on how a router scores.
"""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from ..errors import SaveRouterError, seed_of
from ..files import data_folder
from .large_pool import models_by_rule
from .prompts import Wording, compose
from .workload import Workload


def benchmarks(*, large_pool: bool = False) -> list[str]:
    """Names of the paper's four main benchmarks; with ``large_pool`` also of the one with hundreds of models."""
    every = sorted(path.stem for path in (data_folder() / "simulated").glob("*.json"))
    return every if large_pool else [name for name in every if not specification(name).get("large_pool")]


@cache
def specification(name: str) -> dict:
    """The numbers behind a simulated benchmark, as written in its file; a pool given by rule is written out."""
    known = benchmarks(large_pool=True)
    if name not in known:
        raise SaveRouterError(f"no simulated benchmark {name!r}; there are {', '.join(known)}")
    spec = json.loads((data_folder() / "simulated" / f"{name}.json").read_text(encoding="utf-8"))
    if "pool" in spec:
        spec["models"] = models_by_rule(spec["pool"], spec["models"])
    return spec


def simulate(name: str, *, size: int | None = None, seed: int = 0) -> Workload:
    """A simulated benchmark, the same for the same seed; ``size`` gives a smaller one of the same structure."""
    spec = specification(name)
    seed_of(seed)
    world, rng = np.random.default_rng(spec["world_seed"]), np.random.default_rng([seed, spec["world_seed"]])
    task = _tasks(spec, name, size, rng)
    wording = compose(spec, task, rng)
    ease = _ease(spec, task, wording, world)
    hidden = rng.standard_normal(len(task))
    quality = _quality(spec, ease + spec["quality"]["hidden"] * hidden[:, None], rng)
    cost = _cost(spec, task, quality, hidden, world, rng)
    vectors = _vectors(spec, task, wording, hidden, world, rng) if "vectors" in spec else None
    if "missing" in spec:
        gone = _missing(spec, len(task), seed)
        quality[gone], cost[gone] = np.nan, np.nan
    names = np.array([entry["name"] for entry in spec["tasks"]], dtype=object)[task]
    return Workload(
        query_ids=[f"{label}.{number}" for label, number in zip(names, _numbers(task), strict=True)],
        prompts=wording.prompts,
        models=[model["name"] for model in spec["models"]],
        quality=quality,
        cost=cost,
        tasks=names,
        vectors=vectors,
        name=f"simulated/{name}",
        provenance=(
            f"Simulated: prompts, qualities and costs were generated from the specification data/simulated/{name}.json.",
            *spec["provenance"],
            f"Drawn with seed {seed}; {len(task):,} of the {spec['size']:,} queries of the published size.",
        ),
        simulated=True,
        grouping=spec["grouping"],
    )


def _tasks(spec: dict, name: str, size: int | None, rng: np.random.Generator) -> np.ndarray:
    """Each query's task: shares as specified, every task kept where the size allows it."""
    largest = spec["size"]
    size = largest if size is None else size
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= largest:
        raise SaveRouterError(
            f"size of simulated benchmark {name!r} is {size!r}; expected a whole number from 1 to {largest:,}"
        )
    shares = np.array([entry["queries"] for entry in spec["tasks"]]) * size / largest
    counts = np.maximum(np.floor(shares).astype(int), 1)
    while counts.sum() < size:
        counts[np.argmax(shares - counts)] += 1
    while counts.sum() > size:  # too small for all: the most over-represented task gives one up
        counts[np.argmax(np.where(counts > 1, counts / shares, 0) if counts.max() > 1 else counts / shares)] -= 1
    task = np.repeat(np.arange(len(counts)), counts)
    return rng.permutation(task) if spec["order"] == "mixed" else task


def _numbers(task: np.ndarray) -> np.ndarray:
    """0, 1, 2, ... inside each task, in order of appearance."""
    order = np.argsort(task, kind="stable")
    numbers = np.empty(len(task), dtype=int)
    counts = np.bincount(task)
    numbers[order] = np.arange(len(task)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def _ease(spec: dict, task: np.ndarray, wording: Wording, world: np.random.Generator) -> np.ndarray:
    """(n, M): how easy a query is for a model, as far as task and words tell."""
    tasks, models, scale = spec["tasks"], spec["models"], spec["quality"]
    longest = max(len(entry["topics"]) for entry in tasks)
    skill = scale["task_by_model"] * world.standard_normal((len(tasks), len(models)))
    skill += [
        [entry["ease"] + model.get("strengths", {}).get(entry["name"], 0.0) for model in models] for entry in tasks
    ]
    topic = scale["topic_words"] * world.standard_normal((len(tasks), longest, 1))
    topic = topic + scale["topic_by_model"] * world.standard_normal((len(tasks), longest, len(models)))
    level = scale["level_words"] * np.array([entry["ease"] for entry in spec["levels"]])
    # The two topics of a prompt count alike: a bag of words does not know which came first.
    words = (topic[task, wording.topics[:, 0]] + topic[task, wording.topics[:, 1]]) / np.sqrt(2)
    return skill[task] + words + level[wording.level][:, None]


def _quality(spec: dict, ease: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores whose mean is exactly the specified one for every model: 0 or 1, or spread around the mean."""
    target = np.array([model["quality"] for model in spec["models"]])
    liability = ease + spec["quality"]["noise"] * rng.standard_normal(ease.shape)
    if spec["quality"]["kind"] == "binary":
        bars = [np.quantile(column, 1 - share) for column, share in zip(liability.T, target, strict=True)]
        return (liability > bars).astype(np.float64)
    return np.clip(target + spec["quality"]["spread"] * (liability - liability.mean(axis=0)), 0, 1)


def _cost(spec: dict, task, quality, hidden, world: np.random.Generator, rng: np.random.Generator) -> np.ndarray:
    """Log-normal costs with the specified mean per model: long tasks, long queries, hard queries and failures cost more."""
    price, scale = np.array([model["price"] for model in spec["models"]]), spec["cost"]
    if scale.get("constant"):
        return np.tile(price, (len(task), 1))
    length = np.array([entry["length"] for entry in spec["tasks"]])
    habit = scale["task_by_model"] * world.standard_normal((len(length), len(price)))
    logs = (length[:, None] + habit)[task] + scale["own"] * rng.standard_normal(quality.shape)
    logs += (scale["shared"] * rng.standard_normal(len(task)) - scale["hard"] * hidden)[:, None]
    logs += scale["wrong"] * (quality < 0.5)
    cost = np.exp(logs)
    return np.minimum(cost * price / cost.mean(axis=0), scale.get("limit", np.inf))


def _vectors(
    spec: dict, task, wording: Wording, hidden, world: np.random.Generator, rng: np.random.Generator
) -> np.ndarray:
    """Two halves of equal norm in place of CLIP's text and image: a task's centre, topics, a trace of difficulty, noise."""
    scale, tasks = spec["vectors"], spec["tasks"]
    width, longest = scale["half"], max(len(entry["topics"]) for entry in tasks)
    halves = []
    for _ in ("text", "image"):
        centre = scale["task"] * world.standard_normal((len(tasks), width))
        topic = scale["topic"] * world.standard_normal((len(tasks), longest, width))
        trace = scale["difficulty"] * world.standard_normal(width)
        half = centre[task] + topic[task, wording.topics[:, 0]] + topic[task, wording.topics[:, 1]]
        half += hidden[:, None] * trace + rng.standard_normal(half.shape)
        halves.append(half / np.linalg.norm(half, axis=1, keepdims=True))
    return (np.hstack(halves) / np.sqrt(2)).astype(np.float32)


def _missing(spec: dict, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs without an outcome, at most one per query."""
    scale = spec["missing"]
    rng = np.random.default_rng([seed, scale["seed"]])
    rows = rng.choice(size, round(scale["pairs"] * size / spec["size"]), replace=False)
    weights = np.array([model.get("gaps", 1.0) for model in spec["models"]])
    return rows, rng.choice(len(weights), len(rows), p=weights / weights.sum())
