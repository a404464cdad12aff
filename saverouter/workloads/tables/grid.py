"""What either layout comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class Grid:
    """What a layout comes to: texts per query, numbers per query and model, and where each of them stands.

    ``numbers`` has (n, M) arrays by the names of ``OF_A_MODEL``; ``query`` the query of each row of the table; ``row``
    finds the row of a query, or of a query and model.
    """

    ids: np.ndarray
    prompts: np.ndarray
    tasks: np.ndarray | None
    models: list[str]
    numbers: dict[str, np.ndarray]
    query: np.ndarray
    row: Callable[..., int]
