"""Columns that can be ordered in time: numbers, or dates as 2026-01-31 or 2026-01-31T12:00:00Z."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .numbers import MISSING
from .sheet import distinct, plain_numbers


def moments(columns: dict[str, pd.Series], query: np.ndarray) -> dict[str, np.ndarray]:
    """For each column that can be ordered, the earliest value of every query; ``query`` has the query of each row."""
    found = {header: _ordered(values) for header, values in columns.items() if header}
    return {
        header: pd.Series(values).groupby(query).min().to_numpy()
        for header, values in found.items()
        if values is not None
    }


def _ordered(values: pd.Series) -> np.ndarray | None:
    """Numbers, or seconds since 1970, NaN where nothing stands; None where a value is neither."""
    numbers = plain_numbers(values)
    if numbers is not None:
        pass
    elif pd.api.types.is_datetime64_any_dtype(values):
        numbers = _seconds(values)
    else:
        try:
            codes, texts = distinct(values)
        except ValueError:  # lists and the like
            return None
        known = np.array([text.strip().lower() not in MISSING for text in texts], dtype=bool)
        some = texts[known]
        if not len(some) or _of_texts(some[:1]) is None or (of_some := _of_texts(some)) is None:
            return None
        each = np.full(len(texts), np.nan)
        each[known] = of_some
        numbers = each[codes]
    return numbers if np.isfinite(numbers).any() and not np.isinf(numbers).any() else None


def _of_texts(texts: np.ndarray) -> np.ndarray | None:
    """All of them as numbers, or all of them as dates."""
    try:
        return texts.astype(np.float64)
    except ValueError:
        dates = pd.to_datetime(pd.Series(texts), errors="coerce", format="ISO8601", utc=True)
        return _seconds(dates) if dates.notna().all() else None


def _seconds(dates: pd.Series) -> np.ndarray:
    if dates.dt.tz is not None:
        dates = dates.dt.tz_convert(None)
    seconds = dates.to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6
    return np.where(dates.isna(), np.nan, seconds)
