"""Small workloads that tests share. They bring their own vectors, so that no encoder has to run."""

import functools
import importlib.util
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from saverouter import Workload
from saverouter.studies import main_runs
from saverouter.workloads import ReplayFeedback, simulate


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


def by_kind(chances, prices, n=2_000, seed=0, **changes) -> Workload:
    """Answers right or wrong with a chance that depends on the model and on one of two kinds of query."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    chances = np.array(chances)  # (kinds, models)
    quality = (rng.random((n, chances.shape[1])) < chances[kind]).astype(float)
    cost = np.array(prices) * rng.lognormal(0, 0.3, (n, len(prices)))
    vectors = np.eye(2)[kind] + rng.normal(0, 0.05, (n, 2))
    prompts = [f"{('add', 'prove')[k]} the {('sum', 'lemma')[k]} number {i}" for i, k in enumerate(kind)]
    made = dict(query_ids=[f"q{i}" for i in range(n)], prompts=prompts, models=[f"m{i}" for i in range(len(prices))],
                quality=quality, cost=cost, tasks=[f"kind {k}" for k in kind], vectors=vectors, name="made")  # fmt: skip
    return Workload(**(made | changes))


EASY_AND_HARD = ([0.9, 0.9], [0.3, 0.9])  # the cheap model is as good on one kind of query, and bad on the other


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


@pytest.fixture
def ledger():
    """Where a ledger may be written: on a disk that syncs at once, where there is one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder) / "bought.sqlite"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """An empty cache that the tests of a file share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAVEROUTER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def large_and_small(cache) -> list[Workload]:
    """Two workloads for studies over splits: the first has enough queries for a certificate, the second has not."""
    return [make_workload(n=1_400, seed=2), replace(make_workload(n=200, models=3, seed=3), name="recorded/other")]


@pytest.fixture(scope="module")
def made(cache) -> dict:
    """Every router of Table 1 on a small workload."""
    return main_runs({"small": make_workload(n=800, seed=4)}, "smoke")["small"]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of recorded tables, which a clone does not have."""
    folder = os.environ.get("SAVEROUTER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SAVEROUTER_DATA does not name a folder of recorded outcome tables")
    return Path(folder)


@pytest.fixture
def no_downloads(tmp_path, monkeypatch) -> Path:
    """Fetched files are looked for, and put, in a folder of the test's own."""
    from saverouter.workloads import originals, recorded, registry
    from saverouter.workloads.originals import fetch

    monkeypatch.delenv("SAVEROUTER_DATA", raising=False)
    for module in (originals, recorded, fetch, registry):
        monkeypatch.setattr(
            module, "download_folder", lambda benchmark, room="original": tmp_path / "fetched" / benchmark
        )
    return tmp_path / "fetched"


@pytest.fixture
def tiny_clip(tmp_path):
    """A randomly initialised CLIP with the interface, and the width, of the real one."""
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor, CLIPTokenizer
    from transformers.models.clip import CLIPImageProcessorPil

    letters = [chr(code) for code in range(97, 123)]
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    end = len(tokens) - 1
    small = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    text = dict(small, vocab_size=len(tokens), bos_token_id=end - 1, eos_token_id=end, pad_token_id=end)
    vision = dict(small, image_size=32, patch_size=16)
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=512)).save_pretrained(tmp_path)
    images = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    words = CLIPTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=[])
    CLIPProcessor(images, words).save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def release() -> Path:
    """The authors' release, to be run as a black box."""
    spec = importlib.util.spec_from_file_location(
        "black_box", Path(__file__).parents[1] / "benchmarks" / "black_box.py"
    )
    black_box = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(black_box)
    try:
        return black_box.release_folder()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the authors' release cannot be installed here: {error.stderr.strip().splitlines()[-1]}")


def corrupted(work: Workload, keep: np.ndarray, seed=1) -> Workload:
    """The same workload with nonsense in every available pair outside ``keep``."""
    rng = np.random.default_rng(seed)
    change = work.available & ~keep
    quality, cost = work.quality.copy(), work.cost.copy()
    quality[change] = 1 - quality[change]
    cost[change] = rng.uniform(1, 100, change.sum())
    return replace(work, quality=quality, cost=cost)


class Losing(ReplayFeedback):
    """Recorded outcomes, some of which are paid for and never come back; each query keeps one. ``lost`` says which."""

    lacks = True

    def __init__(self, work: Workload, share=0.2, seed=0, lost=None):
        if lost is None:
            rng = np.random.default_rng(seed)
            lost = rng.random(work.quality.shape) < share
            kept = np.where(work.available, rng.random(work.quality.shape), -1).argmax(axis=1)
            lost[np.arange(len(work)), kept] = False
        self.lost = lost & work.available
        super().__init__(work.queries, np.where(lost, np.nan, work.quality), work.cost)


def long_frame(work: Workload) -> pd.DataFrame:
    """The workload as a user's table: one row per query and model."""
    rows, models = np.nonzero(work.available)
    return pd.DataFrame(
        {
            "query_id": work.query_ids[rows],
            "prompt": work.prompts[rows],
            "task": work.tasks[rows],
            "model": np.array(work.models, dtype=object)[models],
            "quality": work.quality[rows, models],
            "cost": work.cost[rows, models],
        }
    )


@functools.cache
def full_benchmark(name: str) -> Workload:
    """A simulated benchmark at its published size, made once per process."""
    return simulate(name)
