"""Made-up inputs of a given size: prompts whose words depend on their task, outcomes that depend on task and words."""

from __future__ import annotations

import numpy as np

LETTERS = np.array(list("eeeettaaooinshrdlucmfwygpbvk"))
COMMON = 0.5  # share of words that all tasks have
WIDTH = 384  # of a vector, as MiniLM's
NOISE = 4.0  # length of what a query adds to its task's vector, which has length 1: nearly all are recognised still
PART = 50_000  # vectors made at a time


def texts(size: int, words: int, tasks: np.ndarray, seed: int = 0, vocabulary: int = 20_000) -> np.ndarray:
    """Prompts of a number of words, common ones and a task's own, each kind with Zipf's frequencies."""
    rng = np.random.default_rng(seed)
    spelled = ["".join(rng.choice(LETTERS, size=n)) for n in np.clip(rng.poisson(5.5, vocabulary), 1, 14)]
    forms = np.array([[word, word.capitalize(), f"{word},", f"{word}."] for word in spelled], dtype=object)
    share = np.cumsum(1 / np.arange(1, vocabulary + 1))
    share /= share[-1]
    prompts = np.empty(size, dtype=object)
    for row in range(size):
        word = np.searchsorted(share, rng.random(words))
        own = rng.random(words) > COMMON
        word[own] = (word[own] * 7 + 101 * (tasks[row] + 1)) % vocabulary
        prompts[row] = " ".join(forms[word, rng.choice(4, size=words, p=(0.82, 0.06, 0.06, 0.06))])
    return prompts


def vectors(tasks: np.ndarray, seed: int = 0) -> np.ndarray:
    """(n, WIDTH) unit vectors, as an encoder makes them, from which a query's task can be recognised."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(tasks.max() + 1, WIDTH)) / np.sqrt(WIDTH)
    made = np.empty((len(tasks), WIDTH), dtype=np.float32)
    for start in range(0, len(tasks), PART):
        part = slice(start, start + PART)
        rows = middles[tasks[part]]
        rows += rng.normal(0, NOISE / np.sqrt(WIDTH), rows.shape)
        made[part] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made


def outcomes(size: int, models: int, tasks: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n, M) quality of 0 or 1, and cost: dearer models are better, some tasks need them."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0, 0.7, (tasks.max() + 1, models)) + np.linspace(-0.8, 1, models)
    chance = 1 / (1 + np.exp(-skill[tasks] - rng.normal(0, 0.8, (size, 1))))
    quality = (rng.random((size, models)) < chance).astype(np.float64)
    return quality, np.geomspace(1e-4, 1e-2, models) * rng.lognormal(0, 0.4, (size, models))


def estimates(quality: np.ndarray, cost: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions as a router makes them: noisy quality, group-wise cost, and the models' mean costs."""
    rng = np.random.default_rng(seed)
    group = rng.integers(20, size=len(quality))
    means = np.array([cost[group == g].mean(axis=0) for g in range(20)])
    return 0.4 * quality + 0.6 * rng.random(quality.shape), means[group], cost.mean(axis=0)
