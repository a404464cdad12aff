"""Which files make up a workload, where they come from, where they lie, and which bytes they must hold.

``data/registry.csv`` pins every file: of an original benchmark to a revision of its publisher's repository, of a recorded
workload to a version of a package. An original's size and hash are written there when a file is first trusted; a package's
always stand there. They are enforced from then on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pandas as pd

from ..errors import SaveRouterError, did_you_mean
from ..files import atomic_path, cache_folder, data_folder, only_one


@dataclass(frozen=True)
class Source:
    """One file: its repository on the hub and revision (complete once fetched), or its package and version; and its bytes."""

    benchmark: str
    repo: str
    kind: str
    revision: str
    file: str
    bytes: str
    sha256: str

    @property
    def is_trusted(self) -> bool:
        """Whether a hash is recorded."""
        return bool(self.sha256)

    @property
    def room(self) -> str:
        """The group of workloads it belongs to, which is also the folder below ``data`` that it is put in."""
        return "recorded" if self.kind == "package" else "original"


def registry_file() -> Path:
    """The list of all files, ``data/registry.csv``."""
    return data_folder() / "registry.csv"


def sources(benchmark: str | None = None, room: str = "original") -> list[Source]:
    """The files of a benchmark, or of all in a room."""
    every = [source for source in _rows() if source.room == room]
    if benchmark is None:
        return every
    found = [source for source in every if source.benchmark == benchmark]
    if not found:
        known = list(dict.fromkeys(source.benchmark for source in every))
        raise SaveRouterError(
            f"no {room} benchmark {benchmark!r}; {did_you_mean(benchmark, known)}there are {', '.join(known)}"
        )
    return found


def _rows() -> list[Source]:
    table = pd.read_csv(registry_file(), dtype=str, keep_default_na=False)
    return [Source(**row) for row in table.to_dict("records")]


def trust(updated: Iterable[Source]) -> None:
    """Write what is now known of some files into the registry; the others stay as they are."""
    path, new = registry_file(), {(source.benchmark, source.file): source for source in updated}
    try:
        with only_one(path.with_name("registry.new")):  # two fetches at a time must not undo each other
            rows = [new.get((source.benchmark, source.file), source) for source in _rows()]
            with atomic_path(path) as temporary:
                columns = [field.name for field in fields(Source)]
                pd.DataFrame(rows, columns=columns).to_csv(temporary, index=False, lineterminator="\n")
    except OSError as error:
        raise SaveRouterError(
            f"the hash cannot be recorded in {path.name} ({error}); work in a clone you may write to"
        ) from error


def download_folder(benchmark: str, room: str = "original") -> Path:
    """Where fetched files are put: ``data/<room>`` of a clone, else the cache; git and ``make clean`` leave it alone."""
    root = data_folder()
    in_clone = (root.parent / "pyproject.toml").is_file()
    return root / room / benchmark if in_clone else cache_folder(room) / benchmark


def find(source: Source) -> Path | None:
    """The path of a file that is already here: in ``$SAVEROUTER_DATA``, in its folder for the benchmark, or fetched."""
    places = [download_folder(source.benchmark, source.room)]
    if os.environ.get("SAVEROUTER_DATA"):
        given = Path(os.environ["SAVEROUTER_DATA"]).expanduser()
        places = [given / source.benchmark, given, *places]
    return next((place / source.file for place in places if (place / source.file).is_file()), None)


def checked(source: Source, path: Path) -> Source:
    """The source with the size and hash of a file; they must equal the recorded ones where there are any."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    found = replace(source, bytes=str(path.stat().st_size), sha256=digest)
    if source.is_trusted and (found.sha256, found.bytes) != (source.sha256, source.bytes):
        trusting = ", or clear the recorded hash if you trust the new file" if source.room == "original" else ""
        raise SaveRouterError(
            f"{source.file} of {source.benchmark} has {int(found.bytes):,} bytes and sha256 {found.sha256[:16]}..., but "
            f"data/registry.csv records {int(source.bytes):,} bytes and {source.sha256[:16]}...; it is not used. Remove "
            f"{path.parent.name}/{path.name} and fetch it again{trusting}"
        )
    return found


def located(benchmark: str, without: str = "") -> dict[str, Path]:
    """The paths of a benchmark's files by name, one left out if asked; a missing file is an error that names the remedy."""
    wanted = [source for source in sources(benchmark) if source.file != without]
    found = {source.file: find(source) for source in wanted}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise SaveRouterError(
            f"original/{benchmark} needs {missing[0]} of {wanted[0].repo}: fetch it with 'make data BENCHMARK={benchmark}', "
            f"or name a folder that has it in SAVEROUTER_DATA"
        )
    return found
