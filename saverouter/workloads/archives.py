"""Reads a publisher's archive without trusting it: nothing outside the folder, no links, no more than agreed.

``extract`` writes files to a temporary folder, which becomes the target only when the whole archive is fine;
``members`` hands them out one by one and writes nothing.
"""

from __future__ import annotations

import io
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import SaveRouterError

MOST_FILES = 500_000
MOST_BYTES = 60 * 1024**3
MOST_BYTES_OF_A_FILE = 256 * 1024**2  # of one that is read into memory


@dataclass(frozen=True)
class Member:
    """One entry of an archive: its name, whether it is a plain file, a folder or something else, and its content."""

    name: str
    kind: str
    content: IO[bytes] | None = None


def extract(
    archive: Path, target: Path, keep: tuple[str, ...] = ("*",), *,
    most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES,
) -> Path:  # fmt: skip
    """Files of a zip or tar archive whose names match one of ``keep``, below ``target``, which must not exist yet.

    A member with an absolute path, a parent folder, a link or a device makes the whole archive unusable, whether it is
    wanted or not. Sizes are counted while they are read, because an archive may declare wrong ones.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        files = written = 0
        for member in _members(archive):
            place = folder / _relative(archive, member)
            if member.kind == "folder" or not any(fnmatch(place.name, pattern) for pattern in keep):
                continue
            files += 1
            if files > most_files:
                raise SaveRouterError(
                    f"{archive.name} holds more than {most_files:,} files; it is not the expected archive"
                )
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                written += _copy(member.content, file, most_bytes - written, archive)
        folder.chmod(0o755)
        folder.rename(target)
    except FileExistsError as error:
        raise SaveRouterError(f"{archive.name} holds {Path(error.filename).name!r} twice; it is not used") from error
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise SaveRouterError(f"{archive.name} cannot be unpacked ({error}); remove it and fetch it again") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def members(
    archive: Path, wanted: str, *, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES_OF_A_FILE
) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file whose whole name matches the pattern ``wanted``, in the order of the archive.

    What makes an archive unusable for ``extract`` does so here; none of its files is larger than ``most_bytes``, and
    at least one must be wanted.
    """
    pattern, found = re.compile(wanted), set()
    try:
        for count, member in enumerate(_members(archive), 1):
            name = str(_relative(archive, member))
            if count > most_files:
                raise SaveRouterError(
                    f"{archive.name} holds more than {most_files:,} files; it is not the expected archive"
                )
            if member.kind == "folder" or not pattern.fullmatch(name):
                continue
            if name in found:
                raise SaveRouterError(f"{archive.name} holds {name!r} twice; it is not used")
            found.add(name)
            with io.BytesIO() as content:
                _copy(member.content, content, most_bytes, archive)
                yield name, content.getvalue()
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise SaveRouterError(f"{archive.name} cannot be read ({error}); remove it and fetch it again") from error
    if not found:
        raise SaveRouterError(f"{archive.name} holds none of the files that are read; it is not the expected archive")


def _relative(archive: Path, member: Member) -> PurePosixPath:
    """The member's place below the folder, or a refusal."""
    path = PurePosixPath(member.name.replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or ":" in member.name.split("/")[0] or "\0" in member.name
    if outside:
        raise SaveRouterError(f"{archive.name} holds {member.name!r}, which leads out of its folder; it is not used")
    if member.kind == "other":
        raise SaveRouterError(f"{archive.name} holds {member.name!r}, a link or a device; it is not used")
    return path


def _copy(source: IO[bytes], file: IO[bytes], room: int, archive: Path) -> int:
    written = 0
    while block := source.read(1 << 20):
        written += len(block)
        if written > room:
            raise SaveRouterError(f"{archive.name} unpacks to more than was agreed; it is not the expected archive")
        file.write(block)
    return written


def _members(archive: Path) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                mode = info.external_attr >> 16
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    yield Member(info.filename, "other")
                elif info.is_dir():
                    yield Member(info.filename, "folder")
                else:
                    with opened.open(info) as content:
                        yield Member(info.filename, "file", content)
        return
    with tarfile.open(archive, "r:*") as opened:
        for info in opened:
            kind = "file" if info.isreg() else "folder" if info.isdir() else "other"
            yield Member(info.name, kind, opened.extractfile(info) if kind == "file" else None)
