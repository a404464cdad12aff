"""Vectors of frozen encoders, kept by content: a thing is encoded once on a machine, whichever process wants it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..files import Busy, atomic_path, digest_of, only_one
from ..progress import Progress

Thing = TypeVar("Thing")


def keys_of(texts: Iterable[str]) -> list[bytes]:
    """Each text by its content."""
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


class VectorStore:
    """Files of vectors by key, each written once and never changed.

    encoder, things : what they are called in reports of progress, "MiniLM" and "prompts"
    """

    def __init__(self, folder: Path, encoder: str, things: str):
        self.folder, self.encoder, self.things = folder, encoder, things

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those that are not kept yet."""
        where = _places(self.folder)
        return [key for key in keys if key not in where]

    def read(self, keys: Iterable[bytes]) -> dict[bytes, np.ndarray]:
        """The vectors of things that are kept. One file is open at a time, however many there are."""
        where, rows = _places(self.folder), defaultdict(dict)
        for key in keys:
            path, row = where[key]
            rows[path][key] = row
        found: dict[bytes, np.ndarray] = {}
        for path, mine in rows.items():
            found |= zip(mine, np.load(path, mmap_mode="r")["vector"][list(mine.values())], strict=True)
        return found

    def complete(
        self, wanted: dict[bytes, Thing], encode: Callable[[list[Thing]], np.ndarray], part: int, keep: bool = True
    ) -> dict[bytes, np.ndarray]:
        """The vectors of all wanted things; what is missing is encoded, and kept every ``part`` things.

        Things that take equally long should be neighbours. Processes that want the same things share the work, part by
        part; an interruption loses the part at work.
        """
        todo, fresh = self.missing(wanted), {}
        parts = [todo[start : start + part] for start in range(0, len(todo), part)]
        # In any order but that of their length, so that the time left can be told from the time taken.
        waiting = [(parts[place], False) for place in np.random.default_rng(0).permutation(len(parts))]
        progress = Progress(self.encoder, f"new {self.things}", len(todo))
        for keys, wait in waiting:
            try:
                if keep:
                    self._encode_part(keys, wanted, encode, wait)
                else:
                    fresh |= zip(keys, encode([wanted[key] for key in keys]), strict=True)
                progress.add(len(keys))
            except Busy:  # by the time that everything else is done, it may be too
                waiting.append((keys, True))
        progress.end()
        return self.read(wanted.keys() - fresh.keys()) | fresh

    def _encode_part(self, keys: list[bytes], wanted: dict[bytes, Thing], encode: Callable, wait: bool) -> None:
        with only_one(self.folder / f"{digest_of(*keys)}.npy", wait):
            new = self.missing(keys)  # another process may have encoded some meanwhile
            if new:
                self._add(new, encode([wanted[key] for key in new]))

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        shard = np.empty(len(keys), dtype=[("key", np.uint8, 16), ("vector", np.float32, vectors.shape[1])])
        shard["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
        shard["vector"] = vectors
        with atomic_path(self.folder / f"{digest_of(*keys)}.npy") as path:
            np.save(path, shard)


def _places(folder: Path) -> dict[bytes, tuple[Path, int]]:
    """File and row of every key that is kept in a folder; a file is looked into once."""
    seen, where = _looked_into(folder)
    there = set(folder.glob("[!.]*.npy"))
    if seen - there:  # somebody emptied the cache
        seen.clear()
        where.clear()
    for path in there - seen:
        keys = map(bytes, np.load(path, mmap_mode="r")["key"])
        where |= {key: (path, row) for row, key in enumerate(keys)}
    seen |= there
    return where


@cache
def _looked_into(folder: Path) -> tuple[set[Path], dict[bytes, tuple[Path, int]]]:
    return set(), {}
