"""Opens a file by its ending: its bytes within a limit, its text in whatever encoding can be recognised."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import SaveRouterError
from ...progress import say
from . import limits
from .delimited import read_delimited
from .rows import read_rows
from .sheet import Sheet

DELIMITED, ROWS = (".csv", ".tsv"), (".jsonl", ".ndjson", ".json")
TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
PART = 2**24  # bytes
READ = ".csv, .tsv, .jsonl, .ndjson or .json (also with .gz), or .parquet"
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
NOTES = {
    "utf-8": "",
    "utf-16-le": "decoded as UTF-16",
    "utf-16-be": "decoded as UTF-16",
    "cp1252": "decoded as Windows-1252",
}


def name_of(path: Path) -> str:
    """A file's name without its endings."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def opened(path: Path, known: Iterable[str] = ()) -> Sheet:
    """The cells of a file; ``known`` are headers it is expected to have beside our own names."""
    suffix = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    if suffix in SPREADSHEETS:
        raise SaveRouterError(f"{path.name} is a spreadsheet; save it as CSV (in Excel: CSV UTF-8) and load that")
    if suffix not in (*DELIMITED, *ROWS, ".parquet"):
        raise SaveRouterError(f"{path.name} ends in {path.suffix!r}; expected {READ}")
    call = f'sr.load("{path.name}"'
    try:
        if suffix == ".parquet":
            return Sheet.of(_parquet(path), path.name, call)
        content = _content(path)
    except SaveRouterError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, pa.ArrowException) as error:
        raise SaveRouterError(f"{path.name} cannot be read: {error}") from error
    data, note = _as_utf8(content, path.name)
    if not data[:1000].strip() and not data.strip():
        raise SaveRouterError(f"{path.name} is empty; at least a header and one row are needed")
    if suffix in ROWS:
        return read_rows(data, path.name, call, note)
    return read_delimited(data, path.name, call, note, known)


def _content(path: Path) -> bytes:
    """What a file holds, unpacked if it is packed, whatever its name says."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            limits.check_bytes(path.name, os.fstat(file.fileno()).st_size)
        with gzip.open(file) if packed else file as plain:
            content = plain.read(limits.MOST_BYTES + 1)
    limits.check_bytes(path.name, len(content))
    if content.startswith((b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0")):
        raise SaveRouterError(f"{path.name} is a spreadsheet, an archive or a Parquet file under another name; rename or "
                              "export it as CSV")  # fmt: skip
    return content


def _parquet(path: Path):
    """Texts are read as categories: one that is repeated a million times is kept once, here as in the file.

    Lists and the like are no text or number: they are left empty, however much they unpack to.
    """
    about = pq.read_metadata(path)
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    limits.check_bytes(path.name, sum(group.total_byte_size for group in groups))
    cells = [group.column(place).num_values for group in groups for place in range(group.num_columns)]
    limits.check_cells(path.name, max(sum(cells), about.num_rows), 1)
    schema = about.schema.to_arrow_schema()
    limits.check_bytes(
        path.name,
        about.num_rows * sum(field.type.byte_width for field in schema if pa.types.is_fixed_size_binary(field.type)),
    )
    texts = [field.name for field in schema if any(is_one(field.type) for is_one in TEXTS)]
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    flat = [field.name for field in schema if field.name not in nested]
    frame = pq.ParquetFile(path, read_dictionary=texts).read(flat if nested else None).to_pandas()
    return frame.assign(**{name: [[]] * len(frame) for name in nested})


def _as_utf8(content: bytes, name: str) -> tuple[bytes, str]:
    """Text as UTF-8 without a mark, and what to say of its encoding."""
    mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
    for encoding in [MARKS[mark]] if mark else _likely(content):
        try:
            data = _recoded(content[len(mark) :], encoding)
        except UnicodeDecodeError:
            continue
        if b"\0" in data:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            raise SaveRouterError(f"{name}, line {line}: NUL characters; it is damaged or no text, export it again")
        if encoding == "cp1252":
            say(
                f"{name} is not in UTF-8 and was decoded as Windows-1252 (Latin-1); if letters look wrong, save it as UTF-8"
            )
        return data, NOTES[encoding]
    raise SaveRouterError(
        f"{name}: its encoding was not recognised (tried UTF-8, UTF-16 and Windows-1252, also called Latin-1); save it as "
        "UTF-8, a CSV with comma, semicolon, tab or | between columns"
    )


def _recoded(content: bytes, encoding: str) -> bytes:
    """Text as UTF-8; what is in UTF-8 is only looked through. In parts: as one text it may take four times as much memory."""
    decoder, parts = codecs.getincrementaldecoder(encoding)(), []
    for start in range(0, len(content), PART):
        text = decoder.decode(content[start : start + PART], final=start + PART >= len(content))
        parts += [] if encoding == "utf-8" else [text.encode()]
    return content if encoding == "utf-8" else b"".join(parts)


def _likely(content: bytes) -> list[str]:
    """Encodings to try on text without a mark. In UTF-16 every second byte of plain Latin text is zero."""
    start = content[:4000]
    for encoding, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
        if zeros.count(0) > 0.4 * len(start) and len(content) % 2 == 0:
            return [encoding]
    return ["utf-8", "cp1252"]
