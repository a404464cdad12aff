"""Reads the user's own tables: CSV or Parquet, long (one row per query and model) or wide (one row per query)."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import SaveRouterError
from .workload import Workload

LONG = ("query_id", "prompt", "task", "model", "quality", "cost")
WIDE = ("query_id", "prompt", "task")
MISSING = {"", "na", "n/a", "nan", "null", "none"}


def read_table(path: str | Path) -> Workload:
    """A workload from a file; its columns tell which of the two layouts it has."""
    path = Path(path)
    return from_frame(_frame(path), name=path.stem, place=path.name)


def from_frame(frame: pd.DataFrame, *, name: str = "frame", place: str = "the table") -> Workload:
    """A workload from a data frame with the columns of a long or a wide table."""
    if not isinstance(frame, pd.DataFrame):
        raise SaveRouterError(
            f"{place} is a {type(frame).__name__}; expected a pandas DataFrame, e.g. pd.DataFrame(rows)"
        )
    frame = frame.reset_index(drop=True)
    if not frame.columns.is_unique:
        raise SaveRouterError(
            f"{place}: column {frame.columns[frame.columns.duplicated()][0]!r} appears twice; rename one"
        )
    layout = _long if "model" in frame.columns else _wide
    return layout(frame, name, place)


def _frame(path: Path) -> pd.DataFrame:
    suffixes = "".join(path.suffixes[-2:]).lower()
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        if path.suffix.lower() == ".csv" or suffixes == ".csv.gz":
            return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise SaveRouterError(f"{path.name} cannot be read: {error}") from error
    raise SaveRouterError(f"{path.name} ends in {path.suffix!r}; expected .csv, .csv.gz or .parquet")


def _long(frame: pd.DataFrame, name: str, place: str) -> Workload:
    _check_columns(frame, set(LONG) - {"task"}, set(LONG), place)
    ids, first = _factor(frame, "query_id", place)
    models, _ = _factor(frame, "model", place)
    repeated = pd.Series(ids.codes.astype(np.int64) * len(models.categories) + models.codes).duplicated()
    if repeated.any():
        row = int(np.flatnonzero(repeated)[0])
        raise SaveRouterError(
            f"{place}, row {row}: query {frame['query_id'][row]!r} and model {frame['model'][row]!r} appear twice; keep one"
        )
    for column in {"prompt", "task"} & set(frame.columns):
        expected = frame[column].to_numpy()[first][ids.codes]
        differs = np.flatnonzero(frame[column].to_numpy() != expected)
        if len(differs):
            raise SaveRouterError(
                f"{place}, row {differs[0]}: {column} of query {frame['query_id'][differs[0]]!r} differs from its first row; "
                "one query has one prompt and one task"
            )
    shape = len(ids.categories), len(models.categories)
    values = {}
    for column in ("quality", "cost"):
        values[column] = np.full(shape, np.nan)
        values[column][ids.codes, models.codes] = _numbers(frame[column], column, place, frame["query_id"])
    return _build(frame.iloc[first], list(models.categories), values["quality"], values["cost"], name, place)


def _factor(frame: pd.DataFrame, column: str, place: str) -> tuple[pd.Categorical, np.ndarray]:
    """A column as codes in order of first appearance, and the row where each value first appears."""
    texts = _texts(frame, column, place)
    codes, values = pd.factorize(texts)
    first = np.unique(codes, return_index=True)[1]
    return pd.Categorical.from_codes(codes, categories=pd.Index(values)), first


def _wide(frame: pd.DataFrame, name: str, place: str) -> Workload:
    models = [c.removeprefix("quality:") for c in frame.columns if str(c).startswith("quality:")]
    outcomes = [f"{kind}:{model}" for model in models for kind in ("quality", "cost")]
    if not models:
        raise SaveRouterError(
            f"{place} is neither a long table (no 'model' column) nor a wide one (no 'quality:<model>' column); "
            f"it has {', '.join(map(str, frame.columns))}"
        )
    _check_columns(frame, {"query_id", "prompt", *outcomes}, {*WIDE, *outcomes}, place)
    quality, cost = (
        np.column_stack([_numbers(frame[f"{kind}:{m}"], f"{kind}:{m}", place, frame["query_id"]) for m in models])
        for kind in ("quality", "cost")
    )
    return _build(frame, models, quality, cost, name, place)


def _build(frame, models, quality, cost, name, place) -> Workload:
    if len(frame) == 0:
        raise SaveRouterError(f"{place} has no rows; at least one query is needed")
    return Workload(
        query_ids=_texts(frame, "query_id", place),
        prompts=_texts(frame, "prompt", place),
        tasks=_texts(frame, "task", place) if "task" in frame.columns else None,
        models=models,
        quality=quality,
        cost=cost,
        name=name,
        provenance=(f"read from {place}",),
    )


def _check_columns(frame: pd.DataFrame, needed: set[str], known: set[str], place: str) -> None:
    columns = [str(c) for c in frame.columns]
    missing = sorted(needed - set(columns))
    if missing:
        near = difflib.get_close_matches(missing[0], columns, n=1)
        hint = f" (is it the one called {near[0]!r}?)" if near else ""
        raise SaveRouterError(f"{place} lacks column {missing[0]!r}{hint}; it has {', '.join(columns)}")
    unknown = [c for c in columns if c not in known]
    if unknown:
        raise SaveRouterError(
            f"{place} has an unknown column {unknown[0]!r}; drop or rename it (known: {_brief(known)})"
        )


def _brief(names: set[str]) -> str:
    plain = sorted(n for n in names if ":" not in n)
    return ", ".join(plain + (["quality:<model>", "cost:<model>"] if len(plain) < len(names) else []))


def _texts(frame: pd.DataFrame, column: str, place: str) -> np.ndarray:
    """A column as text. Missing values become empty texts, which are refused as query ids and models."""
    values = frame[column]
    texts = values.astype(object).where(values.notna(), "").to_numpy()
    texts = np.array([t if isinstance(t, str) else str(t) for t in texts], dtype=object)
    if column in ("query_id", "model"):
        empty = np.flatnonzero([not t.strip() for t in texts])
        if len(empty):
            raise SaveRouterError(f"{place}, row {empty[0]}: {column} is empty; fill it or drop the row")
    return texts


def _numbers(values: pd.Series, column: str, place: str, ids: pd.Series) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    texts = values.astype(object).where(values.notna(), "").astype(str).str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(np.isnan(numbers) & ~texts.str.lower().isin(MISSING).to_numpy())
    if len(wrong):
        row = wrong[0]
        raise SaveRouterError(
            f"{place}, row {row}: {column} of query {ids[row]!r} is {texts.iloc[row]!r}; expected a number, or nothing"
        )
    return numbers
