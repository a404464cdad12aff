"""What the readers share: a complete table of outcomes from single records, and lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...errors import SaveRouterError

Outcomes = Mapping[tuple[str, str], tuple[float, float]]


def complete_table(found: Outcomes, queries: Sequence[str], models: Sequence[str]) -> dict[str, np.ndarray]:
    """Quality and cost of every query and model; a pair that is missing makes the record unusable."""
    lacking = [(query, model) for query in queries for model in models if (query, model) not in found]
    if lacking:
        query, model = lacking[0]
        raise SaveRouterError(
            f"there is no outcome of model {model!r} for query {query!r} ({len(lacking)} such pairs); "
            "it is not the expected file"
        )
    table = np.array([[found[query, model] for model in models] for query in queries], dtype=np.float64)
    return {"quality": table[..., 0], "cost": table[..., 1]}


def lines(content: bytes) -> Iterator[dict]:
    """The records of a file with one JSON object per line; only a line feed ends a record."""
    return (json.loads(line) for line in content.decode("utf-8").split("\n") if line.strip())
