"""Small workloads that tests share. They bring their own vectors, so that no encoder has to run."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saverouter import Workload


def make_workload(n=300, models=5, tasks=4, *, missing=0.0, seed=0, with_vectors=True, flat_cost=False) -> Workload:
    """A pool with a good dear model and cheap ones that are good at some tasks."""
    rng = np.random.default_rng(seed)
    task = rng.integers(tasks, size=n)
    skill = rng.normal(0, 1, (tasks, models)) + np.linspace(-0.5, 1, models)
    chance = 1 / (1 + np.exp(-skill[task] - rng.normal(0, 0.5, n)[:, None]))
    quality = (rng.random((n, models)) < chance).astype(float)
    price = np.geomspace(1e-4, 1e-2, models)
    cost = np.tile(price, (n, 1)) if flat_cost else price * rng.lognormal(0, 0.3, (n, models))
    if missing:
        gone = rng.random((n, models)) < missing
        gone[np.arange(n), rng.integers(models, size=n)] = False
        quality[gone] = cost[gone] = np.nan
    subjects = ["river", "engine", "poem", "theorem", "recipe", "market", "planet"]
    words = ["short", "long", "old", "new", "strange", "simple", "hard"]
    prompts = [f"Tell a {words[rng.integers(7)]} and {words[rng.integers(7)]} thing about the {subjects[t % 7]} no {i}"
               for i, t in enumerate(task)]  # fmt: skip
    vectors = np.eye(tasks)[task] + rng.normal(0, 0.1, (n, tasks))
    return Workload(
        query_ids=[f"q{i}" for i in range(n)],
        prompts=prompts,
        tasks=[f"task {t}" for t in task],
        models=[f"model-{m}" for m in range(models)],
        quality=quality,
        cost=cost,
        vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if with_vectors else None,
        name="small",
    )


@pytest.fixture
def work() -> Workload:
    return make_workload()


@pytest.fixture
def masked_work() -> Workload:
    return make_workload(missing=0.3)


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of the test's own."""
    monkeypatch.setenv("SAVEROUTER_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of recorded tables, which a clone does not have."""
    folder = os.environ.get("SAVEROUTER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SAVEROUTER_DATA does not name a folder of recorded outcome tables")
    return Path(folder)


def corrupted(work: Workload, keep: np.ndarray, seed=1) -> Workload:
    """The same workload with nonsense in every available pair outside ``keep``."""
    rng = np.random.default_rng(seed)
    change = work.available & ~keep
    quality, cost = work.quality.copy(), work.cost.copy()
    quality[change] = 1 - quality[change]
    cost[change] = rng.uniform(1, 100, change.sum())
    return replace(work, quality=quality, cost=cost)
