"""Where files lie: what the project ships, and what was computed, kept by the content it was computed from."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from .errors import SaveRouterError


def data_folder() -> Path:
    """The ``data`` folder: inside the package in an installed wheel, at the root in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "data", package.parent / "data"):
        if (folder / "published").is_dir():
            return folder
    raise SaveRouterError(f"no data folder beside {package.name}; reinstall saverouter, or work in a full checkout")


_keeping: ContextVar[bool | None] = ContextVar("keeping", default=None)
BULK = (
    "minilm/**/*.npy",
    "clip/**/*.npy",
    "tfidf/*.npz",
)  # of the cache, what grows; an earlier release wrote the last
DAY = 86_400  # seconds


@contextmanager
def keeping(asked: bool) -> Iterator[None]:
    """Inside, vectors are kept on disk, however few, or not at all; outside, where that pays.

    Nothing is kept of queries that pass once, of which there may be any number.
    """
    before = _keeping.set(bool(asked))
    try:
        yield
    finally:
        _keeping.reset(before)


def unkept() -> AbstractContextManager[None]:
    """Inside, nothing computed is kept."""
    return keeping(False)


def keeps(enough: bool = True) -> bool:
    """Whether to keep what is computed: as ``keeping`` says, else where there is enough of it to pay."""
    asked = _keeping.get()
    return enough if asked is None else asked


def cache_folder(*parts: str) -> Path:
    """``$SAVEROUTER_CACHE``, or the user's cache folder."""
    folder = Path(os.environ.get("SAVEROUTER_CACHE") or platformdirs.user_cache_dir("saverouter"), *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cache_limit() -> float:
    """How many bytes of vectors the cache may hold: ``$SAVEROUTER_CACHE_GB``, or 5 GB, three million prompts."""
    given = os.environ.get("SAVEROUTER_CACHE_GB") or "5"
    with suppress(ValueError):
        if 0 <= float(given) < float("inf"):
            return 1e9 * float(given)
    raise SaveRouterError(f"SAVEROUTER_CACHE_GB is {given!r}; expected a number of gigabytes, e.g. 5")


def trim_cache() -> None:
    """Remove vectors from the cache until it is within its limit, those first that were not used for longest.

    Remembered runs are tiny, and fetched data cost a download: they stay.
    """
    limit, found = cache_limit(), []
    for path in {path for pattern in BULK for path in cache_folder().glob(pattern)}:
        with suppress(OSError):  # another process removed it
            size, used = stamp_of(path)
            found.append((used, size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        remove(path)
        total -= size


def used(path: Path) -> None:
    """Note that a kept file was read: its date says when it was last used, to the day."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place on success and vanishes on failure."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class Busy(Exception):
    """Another process is computing it."""


@contextmanager
def only_one(path: str | Path, wait: bool = True) -> Iterator[None]:
    """Held while ``path`` is computed: another process that wants it waits, and then finds it there.

    With ``wait=False`` it is told so by ``Busy``, and can do something else first. What exists needs no lock. The
    system frees the lock of a process that ends, however it ends. Where a file cannot be locked (a read-only folder,
    some network drives) nobody waits: at worst a thing is computed twice.
    """
    path = Path(path)
    place = path.with_name(f".{path.name}.lock")
    with ExitStack() as held:
        if not path.exists():
            with suppress(OSError):
                lock = FileLock(place, timeout=-1 if wait else 0, poll_interval=0.2, fallback_to_soft=False)
                try:
                    held.enter_context(lock)
                except Timeout:
                    raise Busy(f"{path.name} is being computed") from None
                held.callback(remove, place)  # before it is let go: who waits sees it gone, and makes a new one
        yield


def remove(path: Path) -> None:
    """Remove a file, if it is there and that is allowed."""
    with suppress(OSError):
        path.unlink()


def digest_of(*parts) -> str:
    """A short hash of texts, bytes and anything JSON can write."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if not isinstance(part, bytes):
            part = json.dumps(part, sort_keys=True, default=str).encode()
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def digest_of_files(root: Path, files: Iterable[Path]) -> str:
    """A hash of files' contents and of their places below ``root``."""
    return digest_of(
        *(part for file in sorted(files) for part in (file.relative_to(root).as_posix(), file.read_bytes()))
    )


def stamp_of(path: str | Path) -> list[int]:
    """Size and date of a file: as long as they stay, so does what is in it."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]


def contents_of(files: Iterable[str | Path]) -> list[str]:
    """The sha256 of each file; one that was read before and kept its stamp is not read again."""
    memory = cache_folder() / "contents.json"
    known = json.loads(memory.read_text()) if memory.is_file() else {}
    places = [os.path.abspath(file) for file in files]
    found = {}
    for place in dict.fromkeys(places):
        stamp = stamp_of(place)
        found[place] = known.get(place)
        if found[place] is None or found[place]["stamp"] != stamp:
            with open(place, "rb") as file:
                found[place] = {"stamp": stamp, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    if any(known.get(place) is not entry for place, entry in found.items()):
        with atomic_path(memory) as temporary:
            temporary.write_text(json.dumps(known | found))
    return [found[place]["sha256"] for place in places]
