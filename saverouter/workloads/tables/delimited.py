"""CSV with any of the common separators. Cells stay texts, and every row knows the line it begins in."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv

from ...errors import SaveRouterError
from . import limits
from .columns import our_name, plain
from .sheet import Sheet

SEPARATORS = ",;\t|"


def read_delimited(data: bytes, name: str, call: str, note: str, known: Iterable[str]) -> Sheet:
    """A CSV file, given as UTF-8. Excel may write ``sep=;`` above the header: an empty line is as good."""
    data = re.sub(rb"\A(?i:sep)=.(?=\r?\n)", b"", data, count=1)
    separator, headers = _header(data, name, note, known)
    data = _without_blank_end(data, separator)
    most_rows = data.count(separator.encode()) // (len(headers) - 1)  # a row with fewer separators is refused
    limits.check_cells(name, most_rows, len(headers))
    try:
        frame = _cells(data, separator, len(headers))
    except pa.ArrowInvalid as error:
        raise SaveRouterError(_what_is_wrong(data, separator, headers, name, error)) from error
    if len(frame) and re.search(r"[\r\n]", frame.iloc[-1, -1]) and not data.rstrip(b"\r\n").endswith(b'"'):
        raise SaveRouterError(_what_is_wrong(data, separator, headers, name))

    def line(row: int) -> int:
        return next(itertools.islice(_records(data, separator), row + 1, None))[0]

    return Sheet(frame, headers, name, call, line, note)


def _header(data: bytes, name: str, note: str, known: Iterable[str]) -> tuple[str, list[str]]:
    """The separator under which the first line has most columns that are known, then most columns."""
    expected, start = {plain(header) for header in known}, data[: limits.MOST_BYTES_OF_A_ROW]
    first = {separator: list(itertools.islice(_records(start, separator), 2)) for separator in SEPARATORS}
    found = {separator: records[0][1] for separator, records in first.items()}
    limits.check_cells(name, 1, max(map(len, found.values())))
    points = {
        separator: (sum(our_name(h) is not None or plain(h) in expected for h in headers), len(headers))
        for separator, headers in found.items()
    }
    best = max(points, key=points.get)
    if len(start) < len(data) and len(first[best]) < 2:
        raise SaveRouterError(_too_long(f"{name}, line 1"))
    if points[best][1] < 2 or not re.sub(r"\s", "", "".join(found[best])).isprintable():
        raise SaveRouterError(
            f"{name} ({note or 'decoded as UTF-8'}): no separator was recognised in its first line, {found[best][0]!r:.60}; "
            "expected a header with comma, semicolon, tab or | between columns, in UTF-8"
        )
    return best, found[best]


def _without_blank_end(data: bytes, separator: str) -> bytes:
    """The rows without those of a spreadsheet in which nothing was written."""
    end = re.compile(rb"\r\n?|\n").search(data, len(data.rstrip(b" \t\r\n" + separator.encode())))
    return data[: end.end()] if end else data


def _records(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, and the line it begins in; a quoted prompt may go over several lines.

    A row that is longer than any may be is the last, and has no fields.
    """
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", "replace", newline="")  # a start may end within a character
    longest = csv.field_size_limit(limits.MOST_BYTES_OF_A_ROW)
    try:
        reader, begins = csv.reader(lines, delimiter=separator), 1
        for fields in reader:
            if fields:
                yield begins, fields
            begins = reader.line_num + 1
    except csv.Error:
        yield begins, []
    finally:
        csv.field_size_limit(longest)


def _cells(data: bytes, separator: str, count: int) -> pd.DataFrame:
    """All rows below the header as texts."""
    names = [str(place) for place in range(count)]
    table = pacsv.read_csv(
        pa.BufferReader(data if b"\n" in data or b"\r" in data else data + b"\n"),
        pacsv.ReadOptions(column_names=names, block_size=limits.MOST_BYTES_OF_A_ROW),
        pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
        pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), check_utf8=False),
    )
    return table.slice(1).to_pandas().set_axis(range(count), axis=1)


def _what_is_wrong(data: bytes, separator: str, headers: list[str], name: str, error: object = "") -> str:
    """Why a file cannot be taken apart, and in which line."""
    for line, fields in _records(data, separator):  # noqa: B007
        if not fields:
            return f"{_too_long(f'{name}, line {line}')}, and look for a quote that is never closed"
        if len(fields) != len(headers):
            columns = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            return (
                f"{name}, line {line} has {columns} and the header {len(headers)}; "
                f'put texts that hold {separator!r} or a new line in quotes, "like this"'
            )
    if error:
        return f"{name} cannot be read: {error}"
    return f"{name}, line {line}: a quote is opened and never closed; write quotes within a text twice"


def _too_long(place: str) -> str:
    return f"{place} is longer than {limits.MOST_BYTES_OF_A_ROW / 2**20:g} MB; shorten it or leave it out"
