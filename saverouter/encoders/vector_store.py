"""Vectors of frozen encoders, kept by content: a thing is encoded once on a machine, whichever process wants it."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sized
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..errors import SaveRouterError
from ..files import Busy, atomic_path, digest_of, only_one, remove, trim_cache, used
from ..progress import Progress, say

Thing = TypeVar("Thing")

MERGED = 16  # so many files of about the same size become one: there are at most that many of each size
LARGEST = 64e6  # bytes; a file as large as that is left as it is, so that merging stays cheap
ROUNDS = 3  # of looking for what another process encoded, or removed, meanwhile


def keys_of(texts: Iterable[str]) -> list[bytes]:
    """Each text by its content."""
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


class VectorStore:
    """Files of vectors by key, each written once and never changed; small ones are merged, so that they stay few.

    A file that is damaged, or holds a vector that is not finite, is removed: what was in it is encoded again.

    encoder, things : what they are called in reports of progress, "MiniLM" and "prompts"
    """

    def __init__(self, folder: Path, encoder: str, things: str):
        self.folder, self.encoder, self.things = folder, encoder, things

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those that are not kept yet."""
        where = self._index().where
        return [key for key in keys if key not in where]

    def read(self, keys: Iterable[bytes], width: int | None = None) -> dict[bytes, np.ndarray]:
        """The vectors of those things that are kept. One file is open at a time, however many there are.

        All have the same ``width``; unless it is given, that of most of them.
        """
        where, rows = self._index().where, defaultdict(dict)
        for key in keys:
            if key in where:
                path, row = where[key]
                rows[path][key] = row
        found: dict[bytes, np.ndarray] = {}
        width = width or self._index().width(rows)
        for path, mine in rows.items():
            try:
                vectors = _opened(path)["vector"][list(mine.values())]
            except FileNotFoundError:  # merged or removed by another process
                continue
            except (OSError, ValueError):
                self._forget(path)
                continue
            fits = vectors.shape[1] == (width or vectors.shape[1])
            if fits and np.isfinite(vectors).all():
                found |= zip(mine, vectors, strict=True)
                used(path)
            else:
                self._forget(path)
        return found

    def complete(
        self, wanted: dict[bytes, Thing], encode: Callable[[list[Thing]], np.ndarray], part: int, keep: bool = True
    ) -> dict[bytes, np.ndarray]:
        """The vectors of all wanted things; what is missing is encoded, and kept every ``part`` things.

        Things that take equally long should be neighbours. Processes that want the same things share the work, part by
        part; an interruption loses the part at work.
        """
        found: dict[bytes, np.ndarray] = {}
        for turn in range(ROUNDS + 1):
            width = next((len(vector) for vector in found.values()), None)
            found |= self.read(wanted.keys() - found.keys(), width)
            todo = [key for key in wanted if key not in found]
            if not todo:
                break
            found |= self._encode(todo, wanted, encode, part, keep and turn < ROUNDS)
        return found

    def _encode(self, todo, wanted, encode, part: int, keep: bool) -> dict[bytes, np.ndarray]:
        """What this process encoded; another may have kept the rest."""
        parts, fresh = [todo[start : start + part] for start in range(0, len(todo), part)], {}
        # In any order but that of their length, so that the time left can be told from the time taken.
        waiting = [(parts[place], False) for place in np.random.default_rng(0).permutation(len(parts))]
        progress = Progress(self.encoder, f"new {self.things}", len(todo))
        for keys, wait in waiting:
            try:
                if keep:
                    fresh |= self._keep_part(keys, wanted, encode, wait)
                else:
                    fresh |= self._checked(keys, encode([wanted[key] for key in keys]))
                progress.add(len(keys))
            except Busy:  # by the time that everything else is done, it may be too
                waiting.append((keys, True))
        progress.end()
        if keep and len(parts) > 1:
            trim_cache()
        return fresh

    def _keep_part(self, keys: list[bytes], wanted, encode, wait: bool) -> dict[bytes, np.ndarray]:
        with only_one(self.folder / f"{digest_of(*keys)}.npy", wait):
            new = self.missing(keys)  # another process may have encoded some meanwhile
            fresh = self._checked(new, encode([wanted[key] for key in new])) if new else {}
            if fresh:
                self._write(fresh)
        self._merge()
        return fresh

    def _checked(self, keys: list[bytes], vectors: np.ndarray) -> dict[bytes, np.ndarray]:
        vectors = np.asarray(vectors, np.float32)
        if not np.isfinite(vectors).all():
            raise SaveRouterError(
                f"{self.encoder} gave a vector that is not finite for one of {len(keys)} {self.things}; try "
                "SAVEROUTER_ENCODER=torch or, where it was chosen, leave out SAVEROUTER_PRECISION"
            )
        return dict(zip(keys, vectors, strict=True))

    def _write(self, found: dict[bytes, np.ndarray]) -> Path:
        keys, vectors = list(found), np.stack(list(found.values()))
        shard = np.empty(len(keys), dtype=[("key", np.uint8, 16), ("vector", np.float32, vectors.shape[1])])
        shard["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
        shard["vector"] = vectors
        target = self.folder / f"{digest_of(*keys)}.npy"
        with atomic_path(target) as path:
            np.save(path, shard)
        return target

    def _merge(self) -> None:
        """Make one file of ``MERGED`` that are about as large, as long as there are so many."""
        while small := self._alike():
            try:
                with only_one(self.folder / "merged", wait=False):
                    keys = self._index().of(small)
                    found = self.read(keys)
                    target = self._write(found) if len(found) == len(keys) else None
                    for path in small if target else ():
                        if path != target:
                            remove(path)
            except (Busy, OSError):  # another process is at it, or the disk is full; it is for tidiness alone
                return
            if target is None:  # one of them went meanwhile, or was damaged
                return
            trim_cache()

    def _alike(self) -> list[Path]:
        sizes = defaultdict(list)
        for path, (rows, width) in self._index().rows.items():
            if 4 * rows * width < LARGEST:
                sizes[len(np.base_repr(rows, MERGED)), width].append(path)
        return next((sorted(paths)[:MERGED] for paths in sizes.values() if len(paths) >= MERGED), [])

    def _index(self) -> Index:
        index = _index_of(self.folder)
        for path in index.update():
            self._forget(path)
        return index

    def _forget(self, path: Path) -> None:
        say(f"{self.encoder}: {path.name} in the cache is damaged and is removed; what was in it is encoded again")
        remove(path)
        _index_of(self.folder).drop({path})


class Index:
    """Where the keys of a folder are: file and row. A file is looked into once."""

    def __init__(self, folder: Path):
        self.folder, self.lock = folder, threading.Lock()
        self.where: dict[bytes, tuple[Path, int]] = {}
        self.rows: dict[Path, tuple[int, int]] = {}  # how many, and how wide
        self.names: set[str] = set()  # of the files that were looked into

    def update(self) -> list[Path]:
        """Heed files that came or went; the new ones that are damaged are returned."""
        damaged: list[Path] = []
        with self.lock:
            there = self._listing()
            while there != self.names and not self._look_into(there, damaged):
                there = self._listing()
            self.names = there - {path.name for path in damaged}
        return damaged

    def _listing(self) -> set[str]:
        """The files, listed twice alike: one listing, made while others are merged, may show neither those nor the new."""
        before, there = None, _names(self.folder)
        while there != before:
            before, there = there, _names(self.folder)
        return there

    def _look_into(self, names: set[str], damaged: list[Path]) -> bool:
        """False where a file went meanwhile: merged into one that is not listed yet."""
        there = {self.folder / name for name in names}
        self._drop(self.rows.keys() - there)
        try:
            # The largest last: of a file and the one it was merged into, that counts which will stay.
            new = sorted(there - self.rows.keys() - set(damaged), key=lambda path: (path.stat().st_size, path.name))
            for path in new:
                self._add(path, damaged)
        except FileNotFoundError:
            return False
        return True

    def _add(self, path: Path, damaged: list[Path]) -> None:
        try:
            shard = _opened(path)
        except FileNotFoundError:
            raise
        except (OSError, ValueError):
            damaged.append(path)
            return
        self.where |= {key: (path, row) for row, key in enumerate(map(bytes, shard["key"]))}
        self.rows[path] = len(shard), shard.dtype["vector"].shape[0]

    def drop(self, paths: set[Path]) -> None:
        """Forget what is in some files."""
        with self.lock:
            self._drop(paths)
            self.names -= {path.name for path in paths}

    def _drop(self, paths: Iterable[Path]) -> None:
        gone = {path for path in paths if self.rows.pop(path, None) is not None}
        if gone:
            self.where = {key: place for key, place in self.where.items() if place[0] not in gone}

    def width(self, rows: Mapping[Path, Sized]) -> int | None:
        """How many numbers most of these vectors have, given some rows of each file."""
        wide: dict[int, int] = defaultdict(int)
        for path, mine in rows.items():
            wide[self.rows.get(path, (0, 0))[1]] += len(mine)
        return max(wide, key=lambda width: wide[width]) or None if wide else None

    def of(self, paths: Iterable[Path]) -> list[bytes]:
        """The keys that are found in some files."""
        paths = set(paths)
        with self.lock:
            return [key for key, (path, _) in self.where.items() if path in paths]


@cache
def _index_of(folder: Path) -> Index:
    return Index(folder)


def _names(folder: Path) -> set[str]:
    with suppress(FileNotFoundError):  # nothing was kept yet
        return {name for name in os.listdir(folder) if name.endswith(".npy") and not name.startswith(".")}
    return set()


def _opened(path: Path) -> np.ndarray:
    """A file's rows, read when they are used; closed with the last array that uses it."""
    shard = np.lib.format.open_memmap(path, mode="r")
    names, kinds = shard.dtype.names, [part for part, *_ in (shard.dtype.fields or {}).values()]
    fits = names == ("key", "vector") and kinds[0] == np.dtype((np.uint8, 16)) and shard.ndim == 1
    if not fits or kinds[1].base != np.float32 or len(kinds[1].shape) != 1:
        raise ValueError(f"{path.name} holds no vectors by key")
    return shard
