"""Converted benchmarks as Parquet: read in a second, checked by fingerprint, and no pickle is opened again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import SaveRouterError
from ...files import atomic_path
from ..workload import Workload

KEY = b"saverouter"
TEXTS = ("query_id", "prompt", "task")


def write(path: Path, work: Workload, made_from: dict) -> None:
    """A wide table with the workload's texts and outcomes; what it was made from stands in the file's metadata."""
    columns = {column: getattr(work, f"{column}s") for column in TEXTS}
    columns |= {f"{kind}:{model}": getattr(work, kind)[:, place] for place, model in enumerate(work.models)
                for kind in ("quality", "cost")}  # fmt: skip
    about = {
        "name": work.name, "models": work.models, "provenance": work.provenance, "grouping": work.grouping,
        "fingerprint": work.fingerprint, "made_from": made_from,
    }  # fmt: skip
    table = pa.table({name: _packed(values) for name, values in columns.items()})
    with atomic_path(path) as temporary:
        pq.write_table(table.replace_schema_metadata({KEY: json.dumps(about).encode()}), temporary, compression="zstd")


def _packed(values: np.ndarray) -> pa.Array:
    """Texts as bytes, because a recorded prompt may hold half a character that is no valid text; numbers as they are."""
    texts = values.dtype == object
    return (
        pa.array([text.encode("utf-8", "surrogatepass") for text in values], pa.large_binary())
        if texts
        else pa.array(values)
    )


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [text.decode("utf-8", "surrogatepass") for text in column.to_pylist()]


def made_from(path: Path) -> dict | None:
    """What a stored workload was made from, or None where there is none that can be read."""
    try:
        return json.loads(pq.read_schema(path).metadata[KEY])["made_from"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read(path: Path) -> Workload:
    """The stored workload; one that is unreadable or was changed is refused."""
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[KEY])
        outcomes = {
            kind: np.column_stack([table[f"{kind}:{model}"].to_numpy() for model in about["models"]])
            for kind in ("quality", "cost")
        }
        texts = {f"{column}s": _texts(table[column]) for column in TEXTS}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise SaveRouterError(
            f"{path.name} in the cache cannot be read ({error}); remove it, it is then made again"
        ) from error
    described = {name: about[name] for name in ("name", "models", "grouping")}
    work = Workload(**texts, **outcomes, **described, provenance=tuple(about["provenance"]))
    if work.fingerprint != about["fingerprint"]:
        raise SaveRouterError(
            f"{path.name} in the cache was changed since it was made; remove it, it is then made again"
        )
    return work
