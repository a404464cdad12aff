"""CSV with any of the common separators. Cells stay texts, and every row knows the line it begins in."""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
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
    expected = {plain(header) for header in known}
    found = {separator: next(_records(data, separator))[1] for separator in SEPARATORS}
    points = {
        separator: (sum(our_name(h) is not None or plain(h) in expected for h in headers), len(headers))
        for separator, headers in found.items()
    }
    best = max(points, key=points.get)
    if points[best][1] < 2 or not re.sub(r"\s", "", "".join(found[best])).isprintable():
        raise SaveRouterError(
            f"{name} ({note or 'decoded as UTF-8'}): no separator was recognised in its first line, {found[best][0]!r:.60}; "
            "expected a header with comma, semicolon, tab or | between columns, in UTF-8"
        )
    return best, found[best]


def _records(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not blank, and the line it begins in; a quoted prompt may go over several lines."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    longest = csv.field_size_limit(sys.maxsize)
    try:
        reader, begins = csv.reader(lines, delimiter=separator), 1
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip(" \t"):
                yield begins, fields
            begins = reader.line_num + 1
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
        if len(fields) != len(headers):
            columns = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            return (
                f"{name}, line {line} has {columns} and the header {len(headers)}; "
                f'put texts that hold {separator!r} or a new line in quotes, "like this"'
            )
    if error:
        return f"{name} cannot be read: {error}"
    return f"{name}, line {line}: a quote is opened and never closed; write quotes within a text twice"
