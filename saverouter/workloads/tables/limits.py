"""How much of a table is read: no file, however it was packed, fills the memory."""

from __future__ import annotations

from ...errors import SaveRouterError

MOST_BYTES = 10**9  # of a table, unpacked
MOST_BYTES_OF_A_ROW = 16 * 2**20  # of JSON, which needs twenty times as much memory once it is read, or of a header
MOST_CELLS = 50_000_000
MOST_COLUMNS = 50_000  # each of which takes memory of its own, however few rows there are


def check_bytes(name: str, count: int) -> None:
    """Refuse a file that holds more than is read."""
    if count > MOST_BYTES:
        raise SaveRouterError(
            f"{name} holds more than {MOST_BYTES / 1e9:g} GB, unpacked; load some of its queries, or leave columns out"
        )


def check_cells(name: str, rows: int, columns: int) -> None:
    """Refuse a table that is small as a file and large in memory."""
    if rows * columns > MOST_CELLS:
        raise SaveRouterError(
            f"{name} has {rows:,} rows and {columns:,} columns, more than {MOST_CELLS:,} cells; "
            "load some of its queries, or leave columns out"
        )
    if columns > MOST_COLUMNS:
        raise SaveRouterError(f"{name} has {columns:,} columns, more than {MOST_COLUMNS:,}; leave some out")
