"""Converted workloads as Parquet: read in a second, checked by fingerprint, and no archive or pickle is opened again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import SaveRouterError
from ..files import atomic_path, digest_of, digest_of_files, only_one, stamp_of
from .registry import Source, find
from .workload import Workload

KEY = b"saverouter"
TEXTS = {"query_id": "query_ids", "prompt": "prompts", "task": "tasks", "cluster": "clusters"}


def kept_or_made(
    path: Path, sources: list[Source], code: str, convert: Callable[[], tuple[Workload, dict[str, Path]]]
) -> Workload:
    """The workload kept at ``path``, made anew by ``convert`` if its files or the code that reads them have changed.

    ``convert`` also returns which files it read. A file that is gone since then counts as unchanged.
    """
    with only_one(path.with_name(f"{path.stem}.conversion")):
        kept = made_from(path)
        if kept is None or kept != {"code": code, "files": _stamps(sources, kept)}:
            work, files = convert()
            write(path, work, {"code": code, "files": {file: stamp_of(place) for file, place in files.items()}})
    return read(path)


def _stamps(sources: list[Source], kept: dict) -> dict:
    places = {source.file: find(source) for source in sources}
    return {
        file: stamp if places.get(file) is None else stamp_of(places[file]) for file, stamp in kept["files"].items()
    }


def readers_digest(folder: Path, *others: Path) -> str:
    """A hash of what reads files into workloads: a change in it makes the stored tables stale."""
    here = Path(__file__).parent
    shared = [here / f"{name}.py" for name in ("archives", "registry", "store")]
    readers = [path for path in folder.glob("*.py") if path.name != "fetch.py"]
    return digest_of(digest_of_files(here, [*readers, *shared]), *(other.read_bytes() for other in others))


def write(path: Path, work: Workload, made_from: dict) -> None:
    """A wide table with the workload's texts and outcomes; what it was made from stands in the file's metadata."""
    columns = {column: getattr(work, name) for column, name in TEXTS.items() if getattr(work, name) is not None}
    columns |= {f"family:{name}": labels for name, labels in work.families.items()}
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
        texts = {name: _texts(table[column]) for column, name in TEXTS.items() if column in table.column_names}
        families = {
            name.partition(":")[2]: _texts(table[name]) for name in table.column_names if name.startswith("family:")
        }
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise SaveRouterError(
            f"{path.name} in the cache cannot be read ({error}); remove it, it is then made again"
        ) from error
    described = {name: about[name] for name in ("name", "models", "grouping")}
    work = Workload(**texts, families=families, **outcomes, **described, provenance=tuple(about["provenance"]))
    if work.fingerprint != about["fingerprint"]:
        raise SaveRouterError(
            f"{path.name} in the cache was changed since it was made; remove it, it is then made again"
        )
    return work
