"""Descriptions of models, for the routers that read them, and texts as vectors."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache

import numpy as np

from ...encoders import minilm_vectors
from ...files import data_folder

MAKERS = {
    "baichuan": "Baichuan", "bloom": "BigScience", "claude": "Anthropic", "command": "Cohere", "deepseek": "DeepSeek",
    "falcon": "the Technology Innovation Institute", "gemini": "Google", "gemma": "Google", "glm": "Zhipu AI",
    "gpt": "OpenAI", "grok": "xAI", "internlm": "Shanghai AI Laboratory", "internvl": "Shanghai AI Laboratory",
    "kimi": "Moonshot AI", "llama": "Meta", "mistral": "Mistral AI", "mixtral": "Mistral AI", "mpt": "MosaicML",
    "nova": "Amazon", "olmo": "the Allen Institute for AI", "phi": "Microsoft", "qwen": "Alibaba", "yi": "01.AI",
}  # fmt: skip
SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z0-9])")
PROJECTION_SEED = 42


def describe(models: Iterable[str]) -> list[str]:
    """A few sentences on each model, from ``data/descriptions.csv``, or what its name alone gives away."""
    known = _known()
    return [known.get(model) or _from_name(model) for model in models]


@cache
def _known() -> dict[str, str]:
    with (data_folder() / "descriptions.csv").open(encoding="utf-8", newline="") as file:
        return {row["model"]: row["description"] for row in csv.DictReader(file)}


def _from_name(model: str) -> str:
    words = re.findall(r"[a-z]+", model.lower())
    families = [word for word in words if word in MAKERS]
    # Only where one family is named: a "deepseek-distill-llama" is neither simply DeepSeek's nor Meta's.
    line = f" of the {families[0]} family, which is by {MAKERS[families[0]]}" if len(set(families)) == 1 else ""
    sentences = [f"{model} is a language model{line}."]
    if size := SIZE.search(model.lower()):
        experts, billions = size.groups()
        parts = f"{experts} experts of {billions} billion" if experts else f"{billions} billion"
        sentences.append(f"It has {parts} parameters.")
    return " ".join(sentences)


def text_vectors(texts: Iterable[str], dimension: int) -> np.ndarray:
    """(n, dimension) float32 unit vectors of texts, to stand beside query vectors of that dimension.

    They are MiniLM's, of dimension 384. For a larger dimension zeros are appended, as the toolkit ORBIT does on the
    multimodal benchmark. For a smaller one they are projected by a fixed Gaussian matrix and normalised again.
    """
    vectors = minilm_vectors(list(texts)).astype(np.float32)
    width = vectors.shape[1]
    if dimension >= width:
        return np.pad(vectors, ((0, 0), (0, dimension - width)))
    projected = vectors @ np.random.default_rng(PROJECTION_SEED).normal(size=(width, dimension))
    return (projected / np.linalg.norm(projected, axis=1, keepdims=True)).astype(np.float32)
