"""A table as it was opened, and where each of its rows stands."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...errors import SaveRouterError


@dataclass(frozen=True)
class Sheet:
    """Cells as they came, in columns 0, 1, 2, ...; their headers; and how to speak of them.

    Parameters
    ----------
    frame, headers : the cells, and the text above each column
    name : of the table in messages
    call : how it was asked for, without the closing bracket: ``sr.load("log.csv"``
    line : the line of a row in its file, as an editor shows it, or None where rows have no lines
    note : what was found out while it was opened
    """

    frame: pd.DataFrame
    headers: list[str]
    name: str
    call: str
    line: Callable[[int], int] | None = None
    note: str = ""

    @classmethod
    def of(cls, frame: pd.DataFrame, name: str, call: str, line: Callable[[int], int] | None = None) -> Sheet:
        """A data frame as a sheet. An index with a name is a column: ``query_id`` often is one."""
        named = any(level is not None for level in frame.index.names)
        frame = frame.reset_index(drop=not named, allow_duplicates=True)
        headers = [str(header) for header in frame.columns]
        return cls(frame.set_axis(range(len(headers)), axis=1), headers, name, call, line)

    def with_option(self, option: str) -> str:
        """The call with a further option, for a remedy."""
        return f"{self.call}, {option})"

    def at(self, row: int) -> str:
        """Where a row stands."""
        return f"{self.name}, line {self.line(row)}" if self.line else f"{self.name}, row {row + 1} (the first is 1)"


def distinct(values: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """A column as codes and its distinct texts, in order of appearance; what is missing is the empty text."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, texts = values.cat.codes.to_numpy(dtype=np.int64), _texts(values.cat.categories.to_series())
    elif isinstance(values.dtype, pd.StringDtype):
        codes, found = pd.factorize(values)
        texts = np.array(found, dtype=object)
        if codes.min(initial=0) >= 0:
            return codes, texts
    else:
        codes, texts = np.arange(len(values)), _texts(values)
    codes, found = pd.factorize(np.append(texts, "")[codes])
    return codes, np.array(found, dtype=object)


def plain_numbers(values: pd.Series) -> np.ndarray | None:
    """A column that holds nothing but numbers, as float64 with NaN where nothing stands; None for any other."""
    of_numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if of_numbers or pd.api.types.infer_dtype(values) in ("integer", "floating", "mixed-integer-float", "decimal"):
        with suppress(OverflowError):
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return None


def _texts(values: pd.Series) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    missing = values.isna().to_numpy()
    out[:] = [
        value if isinstance(value, str) else "" if gone else _text(value)
        for value, gone in zip(values.astype(object).to_numpy(), missing, strict=True)
    ]
    return out


def _text(value: object) -> str:
    if isinstance(value, bytes):  # as some write texts into Parquet
        with suppress(UnicodeDecodeError):
            return value.decode()
    if isinstance(value, (list, tuple, dict, set, np.ndarray, bytes)):
        raise SaveRouterError(f"a {type(value).__name__} is no text; join its parts into one")
    return str(value)
