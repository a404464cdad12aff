"""Vectors of frozen encoders, kept by content: a thing is encoded once on a machine, whichever process wants it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..files import atomic_path, digest_of, only_one
from ..progress import Progress

Thing = TypeVar("Thing")


def keys_of(texts: Iterable[str]) -> list[bytes]:
    """Each text by its content."""
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


@cache  # a file never changes once it is there
def _read_shard(path: Path) -> dict[bytes, np.ndarray]:
    shard = np.load(path, mmap_mode="r")
    return dict(zip(map(bytes, shard["key"]), shard["vector"], strict=True))


class VectorStore:
    """Files of vectors by key, each written once and never changed.

    encoder, things : what they are called in reports of progress, "MiniLM" and "prompts"
    """

    def __init__(self, folder: Path, encoder: str, things: str):
        self.folder, self.encoder, self.things = folder, encoder, things

    def read(self) -> dict[bytes, np.ndarray]:
        known: dict[bytes, np.ndarray] = {}
        for path in self.folder.glob("[!.]*.npy"):
            known.update(_read_shard(path))
        return known

    def complete(
        self, wanted: dict[bytes, Thing], encode: Callable[[list[Thing]], np.ndarray], part: int
    ) -> dict[bytes, np.ndarray]:
        """All known vectors, once those of the wanted things are among them.

        What is missing is encoded in the order given and kept every ``part`` things, which is what an interruption may
        lose. Another process that wants the same things waits; one that wants others need not.
        """
        if wanted.keys() - self.read().keys():
            with only_one(self.folder / digest_of(*sorted(wanted))):
                self._encode_missing(wanted, encode, part)
        return self.read()

    def _encode_missing(self, wanted: dict[bytes, Thing], encode, part: int) -> None:
        known = self.read()  # another process may have encoded some meanwhile
        todo = [key for key in wanted if key not in known]
        progress = Progress(self.encoder, f"new {self.things}", len(todo))
        for start in range(0, len(todo), part):
            keys = todo[start : start + part]
            self._add(keys, encode([wanted[key] for key in keys]))
            progress.at(start + len(keys))

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        shard = np.empty(len(keys), dtype=[("key", np.uint8, 16), ("vector", np.float32, vectors.shape[1])])
        shard["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
        shard["vector"] = vectors
        with atomic_path(self.folder / f"{digest_of(*keys)}.npy") as path:
            np.save(path, shard)
