"""Vectors of frozen encoders, kept by content: a thing is encoded once on a machine, whichever process wants it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from .cache import atomic_path, digest_of, only_one

LONG = 500  # things from which a terminal is told how far the encoding is
Thing = TypeVar("Thing")


def shown(things: int) -> bool:
    """Whether progress is: in a terminal, where there is any to speak of. In a notebook it would become part of the output."""
    return things >= LONG and sys.stderr.isatty()


@cache  # a file never changes once it is there
def _read_shard(path: Path) -> dict[bytes, np.ndarray]:
    shard = np.load(path, mmap_mode="r")
    return dict(zip(map(bytes, shard["key"]), shard["vector"], strict=True))


class VectorStore:
    """Files of vectors by key, each written once and never changed.

    encoder, things : what they are called where progress is shown, "MiniLM" and "prompts"
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
        clock = time.perf_counter()
        for start in range(0, len(todo), part):
            keys = todo[start : start + part]
            self._add(keys, encode([wanted[key] for key in keys]))
            if shown(len(todo)):
                done = start + len(keys)
                rate = done / (time.perf_counter() - clock)
                print(
                    f"{self.encoder}: {done:,} of {len(todo):,} new {self.things} encoded, {rate:,.0f} a second",
                    file=sys.stderr,
                )

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        shard = np.empty(len(keys), dtype=[("key", np.uint8, 16), ("vector", np.float32, vectors.shape[1])])
        shard["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
        shard["vector"] = vectors
        with atomic_path(self.folder / f"{digest_of(*keys)}.npy") as path:
            np.save(path, shard)
