"""InferenceDynamics: an index of what each model can do, by capability and by field of knowledge."""

from __future__ import annotations

import re

import numpy as np

from ..workloads import model_means
from .base import DenseRouter, distinct_tasks

FADING = 0.8  # weight of an item relative to the one before it in a query's list

# (words in the task's name, capabilities they stand for), read in this order
CAPABILITIES = (
    (("math", "algebra", "statistics", "econometric"), ("mathematical", "multi-step reasoning")),
    (("code", "program", "computer science", "machine learning"), ("technical", "algorithmic reasoning")),
    (
        ("medicine", "medical", "clinical", "anatomy", "virology", "nutrition"),
        ("clinical reasoning", "factual recall"),
    ),
    (("law", "jurisprudence"), ("legal reasoning", "case analysis")),
    (("history", "prehistory", "dynasty"), ("historical reasoning", "factual recall")),
    (
        ("physics", "chemistry", "biology", "astronomy", "engineering"),
        ("scientific reasoning", "factual recall"),
    ),
    (("visual", "multimodal", "ocr", "image"), ("visual perception", "visual reasoning")),
    (
        ("translation", "poem", "poetry", "idiom", "riddle", "homonym"),
        ("language understanding", "cultural reasoning"),
    ),
    (("summary", "abstract2title"), ("information synthesis", "instruction following")),
    (("commonsense", "hellaswag", "winogrande"), ("commonsense reasoning",)),
)
UNKNOWN = ("instruction following", "domain reasoning")

# tasks that share a field of knowledge, or are known by another name
KNOWLEDGE = {
    "mbpp": "python programming",
    "humaneval": "python programming",
    "mathverse": "visual mathematics",
    "mathvision": "visual mathematics",
    "mathvista": "visual mathematics",
    "mmstar": "multimodal understanding",
    "seedbenchv2plus": "multimodal understanding",
    "gsm8k": "grade school mathematics",
    "hellaswag": "commonsense events",
    "winogrande": "commonsense reference resolution",
    "arc challenge": "grade school science",
    "mtbench": "general instruction following",
    "truthfulqa mc 0": "truthfulness and misconceptions",
    "ocrbench": "optical character recognition",
    "realworldqa": "real world visual understanding",
    "": "general knowledge",
}


class InferenceDynamics(DenseRouter):
    """Capability and knowledge index (Shi et al., 2025), in the toolkit ORBIT's adaptation to task names.

    In the original, a language model profiles each query. Here the profile is derived from the recorded task name,
    **of test queries too**: information about the task that the other routers do not have. Nothing is trained and
    nothing is random.

    Parameters
    ----------
    cost_penalty : how much a unit of cost lowers the indexed score (the paper: 0)
    """

    label = "InferenceDynamics"

    def __init__(self, *, cost_penalty=0.0):
        self.cost_penalty = cost_penalty

    def _learn(self, vectors, quality, cost, queries):
        refined = quality - self.cost_penalty * cost
        row_of, lists = self._profiles(queries)
        self.indexes_ = [_index(refined, row_of, [pair[part] for pair in lists]) for part in (0, 1)]

    def _predict(self, vectors, queries):
        row_of, lists = self._profiles(queries)
        known = [np.stack([_score(index, pair[part], len(self.models_)) for pair in lists])
                 for part, index in enumerate(self.indexes_)]  # fmt: skip
        return sum(known)[row_of], self.mean_cost_

    def _profiles(self, queries):
        """For each query the row of its task, and for each task its capabilities and its knowledge."""
        names, row_of = distinct_tasks(queries)
        return row_of, [task_profile(name) for name in names]


def task_profile(task: str) -> tuple[list[str], list[str]]:
    """Capabilities and the one item of knowledge that a task's name stands for."""
    name = re.sub(r"[_-]+", " ", str(task)).lower()
    name = " ".join(re.sub(r"\brouter dataset\b|\bdataset\b", " ", name).split()).removeprefix("mmlu ")
    knowledge = KNOWLEDGE.get(name, name)
    text = f"{name} {knowledge}"
    found = [item for words, items in CAPABILITIES if any(word in text for word in words) for item in items]
    return list(dict.fromkeys(found or UNKNOWN)), [knowledge]


def _index(refined: np.ndarray, row_of: np.ndarray, lists: list[list[str]]) -> dict[str, np.ndarray]:
    """(M,) mean score for every item; a query counts by the item's place in its task's list."""
    task_means = np.stack([model_means(refined[row_of == task]) for task in range(len(lists))])
    counts = np.stack([np.isfinite(refined[row_of == task]).sum(axis=0) for task in range(len(lists))])
    index = {}
    for item in dict.fromkeys(item for items in lists for item in items):
        shares = np.array([_share(items, item) for items in lists])[:, None]
        total = counts * (shares > 0)
        number = total.sum(axis=0)
        weighted = (task_means * total * shares).sum(axis=0)
        fallback = np.full(refined.shape[1], np.nan)
        index[item] = np.divide(weighted, number, out=fallback, where=number > 0)
    means = model_means(refined)
    return {item: np.where(np.isfinite(values), values, means) for item, values in index.items()}


def _share(items: list[str], item: str) -> float:
    weights = FADING ** np.arange(len(items))
    return float(weights[items.index(item)] / weights.sum()) if item in items else 0.0


def _score(index: dict[str, np.ndarray], items: list[str], n_models: int) -> np.ndarray:
    """(M,) fading mean over the known items, ones where none is known."""
    known = [index[item] for item in items if item in index]
    if not known:
        return np.ones(n_models)
    weights = FADING ** np.arange(len(known))
    return weights @ np.stack(known) / weights.sum()
