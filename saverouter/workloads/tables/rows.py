"""JSON: one object per line, or a list of objects. Numbers and texts stay what they are."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator

import numpy as np
import pandas as pd

from ...errors import SaveRouterError
from . import limits
from .sheet import Sheet

EXPECTED = 'expected one {"query_id": ..., ...} per line, or a list of them'
DECODER = json.JSONDecoder()
BATCH = 5_000
UNREAD = {list: [], dict: {}}  # no text or number, so what is in them need not be kept


def read_rows(data: bytes, name: str, call: str, note: str) -> Sheet:
    """JSON lines or a list of rows, given as UTF-8; which of the two, the first character says."""
    is_list = data.lstrip()[:1] == b"["
    lines, rows, columns = array("q"), [], {}
    for line, row in _listed(data, name) if is_list else _lined(data, name):
        if not isinstance(row, dict):
            raise SaveRouterError(f"{_place(name, line, len(lines))} is {row!r:.40}; {EXPECTED}")
        row = {key: UNREAD.get(type(cell), cell) for key, cell in row.items()}
        lines.append(line or 0)
        rows.append(row)
        if len(rows) == BATCH:
            rows = _move(rows, columns, len(lines), name)
    _move(rows, columns, len(lines), name)
    frame = pd.DataFrame(
        {place: _cells(cells) for place, cells in enumerate(columns.values())}, index=range(len(lines))
    )
    return Sheet(frame, list(columns), name, call, None if is_list else lines.__getitem__, note)


def _move(rows: list[dict], columns: dict[str, list], count: int, name: str) -> list:
    """Rows become parts of columns, which need less memory; nothing is left of them."""
    for key in dict.fromkeys(key for row in rows for key in row if key not in columns):
        limits.check_cells(name, count, len(columns) + 1)
        columns[key] = [None] * (count - len(rows))
    limits.check_cells(name, count, len(columns))
    for key, cells in columns.items():
        cells.extend([row.get(key) for row in rows])
    return []


def _cells(values: list) -> pd.Series:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.Series(column, dtype=object)  # else texts are looked at, and half a character is refused


def _place(name: str, line: int | None, row: int) -> str:
    return f"{name}, row {row + 1} (the first is 1)" if line is None else f"{name}, line {line}"


def _lined(data: bytes, name: str) -> Iterator[tuple[int, object]]:
    """The value in each line. Only a line feed ends one: texts may hold other ends of lines."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        if end - start > limits.MOST_BYTES_OF_A_ROW:
            raise SaveRouterError(_too_long(_place(name, number, 0)))
        text = data[start:end].decode().strip()
        start = end + 1
        if text:
            try:
                value, end = DECODER.raw_decode(text)
                if end < len(text):
                    raise ValueError(f"it goes on with {text[end:]!r:.20}")
            except (ValueError, RecursionError) as error:
                raise SaveRouterError(_broken(_place(name, number, 0), error)) from error
            yield number, value


def _listed(data: bytes, name: str) -> Iterator[tuple[None, object]]:
    """The values of a list, taken from a window that moves along, so that one value cannot fill the memory."""
    size, start, count = limits.MOST_BYTES_OF_A_ROW, data.index(b"[") + 1, 0
    window = _window(data, start)
    here = _after_spaces(window, 0)
    while count or window[here : here + 1] != "]":
        try:
            value, here = DECODER.raw_decode(window, here)
        except (ValueError, RecursionError) as error:
            place, cut = _place(name, None, count), start + 2 * size < len(data)
            too_long = cut and not isinstance(error, RecursionError)
            raise SaveRouterError(_too_long(place) if too_long else _broken(place, error)) from error
        yield None, value
        count += 1
        if here > size // 4:  # characters, of up to four bytes
            start, here = start + len(window[:here].encode()), 0
            window = _window(data, start)
        here = _after_spaces(window, here)
        if window[here : here + 1] == "]":
            break
        if window[here : here + 1] != ",":
            raise SaveRouterError(f"{_place(name, None, count - 1)}: no comma after it; {EXPECTED}")
        here = _after_spaces(window, here + 1)
    if window[here + 1 :].strip() or data[start + 2 * size :].strip():
        raise SaveRouterError(f"{name} goes on after the end of its list; {EXPECTED}")


def _window(data: bytes, start: int) -> str:
    return data[start : start + 2 * limits.MOST_BYTES_OF_A_ROW].decode("utf-8", "ignore")  # its end may cut a character


def _after_spaces(text: str, here: int) -> int:
    while text[here : here + 1] in (" ", "\n", "\r", "\t"):
        here += 1
    return here


def _too_long(place: str) -> str:
    return f"{place} is longer than {limits.MOST_BYTES_OF_A_ROW / 2**20:g} MB; shorten it or leave it out"


def _broken(place: str, error: Exception) -> str:
    why = "it is nested too deep" if isinstance(error, RecursionError) else f"it is no JSON ({error})"
    return f"{place}: {why}; {EXPECTED}"
