"""What the loaders of the original benchmarks share: numbers from text, pairs that are whole, names that are unique.

Each step returns what it did, in words with a count, for ``Workload.provenance``: nothing is repaired silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from ...errors import SaveRouterError

_TRUTH = {"true": 1.0, "false": 0.0}


def numbers(values: pd.Series) -> tuple[np.ndarray, int]:
    """Numbers, textual true and false as 1 and 0, NaN elsewhere; and how many entries were neither empty nor a number."""
    if pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=np.float64, na_value=np.nan), 0
    texts = values.astype(object).where(values.notna(), "").astype(str).str.strip().str.lower()
    found = pd.to_numeric(texts.replace(_TRUTH), errors="coerce").to_numpy(dtype=np.float64)
    return found, int((np.isnan(found) & (texts != "").to_numpy()).sum())


def whole_pairs(quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Both outcomes of a pair or neither: one without the other is unavailable."""
    known = np.isfinite(quality), np.isfinite(cost)
    available = known[0] & known[1]
    lone, missing = int((known[0] ^ known[1]).sum()), int((~available).sum())
    notes = [f"{missing:,} of {available.size:,} query-model pairs are unavailable"]
    if lone:
        notes.append(f"{lone:,} of these have only one of quality and cost, which is not used")
    return np.where(available, quality, np.nan), np.where(available, cost, np.nan), notes


def unique_names(names: Iterable) -> tuple[list[str], list[str]]:
    """Repeated ids get "#2", "#3" and so on in order of appearance; and a note on how many."""
    seen: Counter[str] = Counter()
    unique = []
    for name in map(str, names):
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    repeats = len(unique) - len(seen)
    return unique, [f"{repeats:,} repeated query ids were numbered (#2, #3, ...)"] if repeats else []


def need_columns(frame: pd.DataFrame, columns: Iterable[str], place: str) -> None:
    """Refuse a table that lacks one of the columns."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        have = ", ".join(map(str, frame.columns[:12])) + (", ..." if len(frame.columns) > 12 else "")
        raise SaveRouterError(
            f"{place} lacks column {missing[0]!r}; it has {have}. Is it the file named in data/registry.csv?"
        )
