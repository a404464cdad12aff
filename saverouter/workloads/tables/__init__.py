"""Reads the user's own tables, long (one row per query and model) or wide (one row per query), into a ``Workload``.

From file to workload: ``opening`` (bytes and encoding, within ``limits``), ``delimited`` and ``rows`` (CSV, JSON) make a
``sheet``; ``columns`` finds out which is which, ``numbers`` what a cell says; ``layouts`` make a ``grid`` of either form,
``units`` apply scale and prices, ``moments`` keep what orders queries in time, and ``building`` puts it together.
Whatever cannot be used is refused with file, line and remedy; whatever is changed stands in the provenance.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from ...errors import SaveRouterError
from ..workload import Workload
from .building import built
from .opening import name_of, opened
from .sheet import Sheet
from .units import Prices


def read_table(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    prices: Prices | None = None,
) -> Workload:
    """A workload from a file; its columns tell which of the two layouts it has. ``from_frame`` has the options."""
    path = Path(path)
    return built(
        opened(path, columns.values() if isinstance(columns, Mapping) else ()), name_of(path), columns, scale, prices
    )


def from_frame(
    frame: pd.DataFrame,
    *,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    prices: Prices | None = None,
    name: str = "frame",
) -> Workload:
    """A workload from a data frame with the columns of a long or a wide table.

    Long: ``query_id, prompt, task, model, quality, cost``, one row per query and model; wide: ``query_id, prompt, task``
    and ``quality:<model>, cost:<model>`` for every model. ``task`` may be missing, and ``query_id`` where the prompts
    tell queries apart. Case, spaces and hyphens of headers do not matter.

    Parameters
    ----------
    columns : where a column has another header, our name and the table's, e.g. ``{"query_id": "id", "prompt": "question"}``
    scale : (worst, best) of the qualities, e.g. ``(1, 5)`` for stars; without it they are 0..1, true/false, yes/no or 85%
    prices : (per input token, per output token) of every model, e.g. ``{"gpt": (2.5e-6, 1e-5)}``; costs are then computed
        from the columns ``input_tokens`` and ``output_tokens``
    name : of the workload
    """
    if not isinstance(frame, pd.DataFrame):
        raise SaveRouterError(
            f"the table is a {type(frame).__name__}; expected a pandas DataFrame, e.g. pd.DataFrame(rows)"
        )
    return built(Sheet.of(frame, "the table", "sr.from_frame(table"), name, columns, scale, prices)
