"""The two layouts: one row per query and model, or one row per query. Both become a ``Grid``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd

from ...errors import SaveRouterError
from . import limits
from .columns import Columns
from .grid import Grid
from .numbers import NotANumber, as_numbers
from .sheet import Sheet, distinct

NOTHING = {"", "nan", "none", "null", "<na>", "#n/a"}  # as others write a name that is missing
HALF = re.compile(r"[\ud800-\udfff]")  # of a character: nothing can print or save it


def long_grid(columns: Columns, kinds: dict[str, str], told: list[str]) -> Grid:
    """One row per query and model. Without ``query_id``, equal prompts are one query."""
    by_prompt = "query_id" not in columns and columns.guess("query_id") is None
    columns.need(*(["prompt"] if by_prompt else ["query_id", "prompt"]), *kinds)
    sheet = columns.sheet
    model, models = _names(columns, "model")
    prompt, prompts = _texts(columns, "prompt")
    if by_prompt:
        query, ids = prompt, np.array([str(place + 1) for place in range(len(prompts))], dtype=object)
        told.append("queries are numbered: equal prompts are one query")
    else:
        query, ids = _names(columns, "query_id")
    limits.check_cells(sheet.name, len(ids), len(models))
    repeated = pd.Series(query.astype(np.int64) * len(models) + model).duplicated().to_numpy()
    if repeated.any():
        row = int(np.flatnonzero(repeated)[0])
        remedy = "give them a column 'query_id'" if by_prompt else "keep one"
        what = f"prompt {prompts[prompt[row]]!r:.60}" if by_prompt else f"query {ids[query[row]]!r:.80}"
        raise SaveRouterError(f"{sheet.at(row)}: {what} and model {models[model[row]]!r} appear twice; {remedy}")
    first = np.unique(query, return_index=True)[1]
    texts = {"prompt": (prompt, prompts)}
    if "task" in columns:
        texts["task"] = _names(columns, "task", needed=False)
    for column, (codes, values) in texts.items():
        _one_per_query(column, codes, values, query, first, ids, sheet)
    numbers = {}
    for kind, read_as in kinds.items():
        numbers[kind] = np.full((len(ids), len(models)), np.nan)
        read, _ = _numbers(columns, kind, read_as, lambda row: ids[query[row]])
        numbers[kind][query, model] = read
    of_query = {column: values[codes[first]] for column, (codes, values) in texts.items()}

    def row(query_: int, model_: int | None = None) -> int:
        return int(first[query_] if model_ is None else np.flatnonzero((query == query_) & (model == model_))[0])

    return Grid(ids, of_query["prompt"], _tasks(of_query.get("task"), told), list(models), numbers, query, row)


def _one_per_query(column, codes, values, query, first, ids, sheet) -> None:
    """Refuse a query with two prompts or two tasks, and one of them that is empty in some row."""
    differs = np.flatnonzero(codes != codes[first][query])
    if not len(differs):
        return
    row = int(differs[0])
    for place in (int(first[query[row]]), row):
        if not values[codes[place]].strip():
            raise SaveRouterError(
                f"{sheet.at(place)}: {column} of query {ids[query[row]]!r:.80} is empty; fill it or drop the row"
            )
    raise SaveRouterError(
        f"{sheet.at(row)}: {column} of query {ids[query[row]]!r:.80} differs from its first row ({sheet.at(first[query[row]])}); "
        "one query has one prompt and one task"
    )


def wide_grid(columns: Columns, kinds: dict[str, str], told: list[str]) -> Grid:
    """One row per query. Without ``query_id``, rows are numbered."""
    models, sheet = columns.of_models(kinds), columns.sheet
    if not models:
        if columns.guess("model") or {"quality", "cost"} & set(columns.places):
            columns.need("query_id", "prompt", "model", *kinds)
        raise SaveRouterError(
            f"{sheet.name} is neither a long table (no 'model' column) nor a wide one (no 'quality:<model>' column); "
            f"it has {', '.join(f'{header:.40}' for header in sheet.headers[:20])}"
        )
    numbered = "query_id" not in columns and columns.guess("query_id") is None
    columns.need(*(["prompt"] if numbered else ["query_id", "prompt"]),
                 *(f"{kind}:{model}" for model in models for kind in kinds))  # fmt: skip
    if numbered:
        ids = np.array([str(place + 1) for place in range(len(sheet.frame))], dtype=object)
        told.append("queries are numbered")
    else:
        codes, values = _names(columns, "query_id")
        again = pd.Series(codes).duplicated().to_numpy()
        if again.any():
            row = int(np.flatnonzero(again)[0])
            before = sheet.at(int(np.flatnonzero(codes == codes[row])[0]))
            raise SaveRouterError(
                f"{sheet.at(row)}: query_id {values[codes[row]]!r:.80} appears twice (first in {before}); keep one row per query"
            )
        ids = values[codes]
    numbers, paid = {}, set()
    for kind, read_as in kinds.items():
        found = [_numbers(columns, f"{kind}:{model}", read_as, ids.__getitem__) for model in models]
        numbers[kind] = np.column_stack([read for read, _ in found])
        paid |= {currency for _, currencies in found for currency in currencies}
    _one_currency(paid, sheet)
    codes, prompts = _texts(columns, "prompt")
    tasks = None
    if "task" in columns:
        which, names = _names(columns, "task", needed=False)
        tasks = _tasks(names[which], told)
    return Grid(ids, prompts[codes], tasks, models, numbers, np.arange(len(ids)), lambda query, model=None: query)


def _tasks(tasks: np.ndarray | None, told: list[str]) -> np.ndarray | None:
    """Task labels, or None where the column is there and empty throughout."""
    if tasks is None or any(tasks):
        return tasks
    told.append("the column 'task' is empty and was left out")
    return None


def _texts(columns: Columns, name: str) -> tuple[np.ndarray, np.ndarray]:
    values = columns.take(name)
    with _naming(columns, name):
        return distinct(values)


@contextmanager
def _naming(columns: Columns, name: str) -> Iterator[None]:
    """Inside, an error about a cell gets the name of its column."""
    try:
        yield
    except SaveRouterError as error:
        raise SaveRouterError(f"{columns.sheet.name}, column {columns.header(name).strip()!r}: {error}") from None


def _names(columns: Columns, name: str, needed: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Texts in which spaces at either end do not count."""
    codes, values = _texts(columns, name)
    stripped, values = pd.factorize(np.array([value.strip() for value in values], dtype=object))
    codes = stripped[codes]
    for code, value in enumerate(values):
        wrong = ""
        if needed and value.lower() in NOTHING:
            wrong = (
                f"{value!r}, which stands for nothing; fill it or drop the row"
                if value
                else "empty; fill it or drop the row"
            )
        elif HALF.search(value):
            wrong = f"{value!r:.80}, which was cut within a character; write it again"
        if wrong:
            raise SaveRouterError(f"{columns.sheet.at(int(np.argmax(codes == code)))}: {name} is {wrong}")
    return codes, values


def _numbers(columns: Columns, name: str, read_as: str, id_of: Callable[[int], str]) -> tuple[np.ndarray, set[str]]:
    sheet, values = columns.sheet, columns.take(name)
    try:
        with _naming(columns, name):
            numbers, currencies = as_numbers(values, read_as)
    except NotANumber as wrong:
        raise SaveRouterError(
            f"{sheet.at(wrong.row)}: {columns.header(name).strip()} of query {id_of(wrong.row)!r:.80} is {wrong.text!r:.60}; "
            f"expected {wrong.expected}"
        ) from None
    _one_currency(currencies, sheet)
    return numbers, currencies


def _one_currency(found: set[str], sheet: Sheet) -> None:
    if len(found) > 1:
        raise SaveRouterError(
            f"{sheet.name} has costs in {' and '.join(sorted(found))}; convert them into one currency"
        )
