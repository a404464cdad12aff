"""From a sheet to a workload: its columns, its layout, its units, and what was done to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ...errors import SaveRouterError
from ..validation import Unusable
from ..workload import Workload
from .columns import TOKENS, Columns, notice
from .layouts import long_grid, wide_grid
from .moments import moments
from .sheet import Sheet
from .units import Prices, price, rescale


def built(
    sheet: Sheet, name: str, given: Mapping[str, str] | None, scale: tuple[float, float] | None, prices: Prices | None
) -> Workload:
    """The workload in a sheet."""
    told = [f"read from {sheet.name}" + (f", {sheet.note}" if sheet.note else "")]
    columns = Columns(sheet, given)
    layout = long_grid if "model" in columns else wide_grid
    kinds = {"quality": "quality" if scale is None else "scaled", **_of_cost(columns, prices)}
    if not len(sheet.frame):
        raise SaveRouterError(f"{sheet.name} has no rows; at least one query is needed")
    grid = layout(columns, kinds, told)
    if prices is not None:
        price(grid, prices, sheet, told)
    rescale(grid, scale, sheet, told)
    left = columns.left_out()
    in_time = moments({header: sheet.frame[place] for place, header in left.items()}, grid.query)
    told += notice(list(left.values()), list(in_time), sheet.name)
    codes, count = _repeats(grid.prompts)
    repeated = count < len(codes)
    if repeated:
        told.append(
            f"{len(codes) - count:,} queries repeat the prompt of another; a split keeps equal prompts together"
        )
    try:
        return Workload(
            query_ids=grid.ids, prompts=grid.prompts, tasks=grid.tasks, models=grid.models,
            quality=grid.numbers["quality"], cost=grid.numbers["cost"], name=name, provenance=tuple(told),
            clusters=[f"prompt {code + 1}" for code in codes] if repeated else None, moments=in_time,
        )  # fmt: skip
    except Unusable as bad:
        row = grid.row(bad.row) if bad.model is None else grid.row(bad.row, bad.model)
        raise SaveRouterError(f"{sheet.at(row)}: {bad.thing}{bad.wrong}") from None


def _repeats(prompts: np.ndarray) -> tuple[np.ndarray, int]:
    """Prompts as numbers, and how many differ. Spaces and case do not count: the text encoder sees neither."""
    codes, texts = pd.factorize(prompts)
    plain = np.array([hash(" ".join(text.casefold().split())) for text in texts], dtype=np.int64)
    alike, different = pd.factorize(plain)
    return alike[codes], len(different)


def _of_cost(columns: Columns, prices: Prices | None) -> dict[str, str]:
    """The columns that costs come from, and how each is read: costs themselves, or tokens."""
    names = {name.partition(":")[0] for name in columns.places}
    if prices is None:
        if "cost" not in names and names.issuperset(TOKENS) and columns.guess("cost") is None:
            example = columns.sheet.with_option('prices={"gpt": (2.5e-6, 1e-5)}')
            raise SaveRouterError(
                f"{columns.sheet.name} lacks column 'cost', but has tokens; give (input, output) prices per token: {example}"
            )
        return {"cost": "cost"}
    if "cost" in names:
        raise SaveRouterError(
            f"{columns.sheet.name} has costs, and prices were given too; leave prices out, or drop the column 'cost'"
        )
    return dict.fromkeys(TOKENS, "tokens")
