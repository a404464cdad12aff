"""Where files lie: what the project ships, and what was computed, kept by the content it was computed from."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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


_keeping: ContextVar[bool] = ContextVar("keeping", default=True)


@contextmanager
def unkept() -> Iterator[None]:
    """Inside, nothing computed is kept: for queries that pass once, of which there may be any number."""
    before = _keeping.set(False)
    try:
        yield
    finally:
        _keeping.reset(before)


def keeps() -> bool:
    """False inside ``unkept``."""
    return _keeping.get()


def cache_folder(*parts: str) -> Path:
    """``$SAVEROUTER_CACHE``, or the user's cache folder."""
    folder = Path(os.environ.get("SAVEROUTER_CACHE") or platformdirs.user_cache_dir("saverouter"), *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


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
                held.callback(_remove, place)  # before it is let go: who waits sees it gone, and makes a new one
        yield


def _remove(path: Path) -> None:
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
