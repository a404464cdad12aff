"""A log of queries, larger than memory: Parquet parts go in, the same rows with a model for each come out.

It runs part by part in this process, or on a Dask cluster whose workers see the same disk.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import SaveRouterError, did_you_mean
from ..files import unkept
from ..routers import Router
from .cluster import connected, imported, wait_for_workers
from .parallel import chosen

BATCH = 2048  # prompts routed at a time: features of a prompt take more memory than its text
PART = "32MiB"  # read at a time from a file with several row groups


def route_log(
    router: Router, source: str | os.PathLike, target: str | os.PathLike, *, cost_weight: float = 0.0,
    prompt_column: str = "prompt", model_column: str = "model", overwrite: bool = False, cluster: object = None,
) -> pd.Series:  # fmt: skip
    """Route every row of a log as ``router.route`` would route all its prompts at once.

    Parameters
    ----------
    router : fitted on prompts alone, without vectors of their own
    source : a Parquet file or a folder of them, read in the order of their names; a row group must fit in memory
    target : the folder to write; it appears when all is done, or not at all
    cost_weight : as in ``Router.route``
    prompt_column, model_column : the column to read, and the one to add
    overwrite : replace a target that exists
    cluster : address or client of a Dask cluster; ``scale.on`` and SAVEROUTER_CLUSTER count as well

    Returns the number of queries per model. Nothing computed from a log's prompts is kept in the cache.
    """
    dask, frames = imported("dask"), imported("dask.dataframe").dataframe
    source, target = Path(source), Path(target)
    files = _parts(source)
    _refuse_columns(files, prompt_column, model_column)
    _refuse_target(source, target, overwrite)
    _refuse_router(router, cost_weight)
    where = chosen(cluster)
    with connected(where) if where else nullcontext("synchronous") as scheduler:
        if where:
            wait_for_workers(scheduler)
        log = frames.read_parquet([str(file) for file in files], index=False, dtype_backend="pyarrow", blocksize=PART)
        prompts = log[[prompt_column]]
        if cost_weight and _scales_by_batch(router):
            sums = prompts.map_partitions(_costs, dask.delayed(router), meta=_no_costs(router)).compute(
                scheduler=scheduler
            )
            router = _scaled(router, sums)
        added = log._meta.assign(**{model_column: pd.Series([], dtype=pd.ArrowDtype(pa.string()))})
        routed = log.map_partitions(
            _routed, dask.delayed(router), cost_weight, prompt_column, model_column, meta=added, enforce_metadata=False
        )
        with _appearing(target) as folder:
            schema = pq.read_schema(files[0]).remove_metadata().append(pa.field(model_column, pa.string()))
            routed.to_parquet(str(folder), write_index=False, schema=schema, compute_kwargs={"scheduler": scheduler})
            return _counted(folder, files, model_column, router.models_)


def _routed(
    log: pd.DataFrame, router: Router, cost_weight: float, prompt_column: str, model_column: str
) -> pd.DataFrame:
    models = [router.route(prompts, cost_weight) for prompts in _batches(log[prompt_column], prompt_column)]
    models = pd.Series(np.concatenate([*models, np.empty(0, object)]), log.index, pd.ArrowDtype(pa.string()))
    return log.assign(**{model_column: models})


def _batches(column: pd.Series, name: str) -> Iterator[list[str]]:
    """Prompts, a few at a time; nothing computed from them in between is kept."""
    for start in range(0, len(column), BATCH):
        prompts = column.iloc[start : start + BATCH].tolist()
        for row, prompt in enumerate(prompts, start):
            if not isinstance(prompt, str) or not prompt.strip():
                raise SaveRouterError(
                    f"{name} of row {row} in a part of the log is {prompt!r}; expected a non-empty string: fill it or drop "
                    "the row"
                )
        with unkept():
            yield prompts


def _scales_by_batch(router: Router) -> bool:
    """Whether the cost weight is relative to the costs of the queries at hand, which are then those of the whole log."""
    kind = type(router)
    return kind._dearest is Router._dearest and kind._choose is Router._choose


def _costs(log: pd.DataFrame, router: Router) -> pd.DataFrame:
    """The sum of each model's predicted costs in one part, and its number of rows."""
    sums = np.zeros(len(router.models_))
    for prompts in _batches(log.iloc[:, 0], log.columns[0]):
        sums += router.predict_cost(prompts).sum(axis=0)
    return pd.DataFrame([[*sums, float(len(log))]])


def _no_costs(router: Router) -> pd.DataFrame:
    return pd.DataFrame([[0.0] * (len(router.models_) + 1)]).iloc[:0]


def _scaled(router: Router, sums: pd.DataFrame) -> Router:
    *costs, rows = sums.sum()
    router = copy.copy(router)
    router._dearest = partial(_constant, max(costs) / rows)
    return router


def _constant(value: float, cost) -> float:
    return value


def _parts(source: Path) -> list[Path]:
    natural = imported("dask.utils").utils.natural_sort_key  # part 2 before part 10
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise SaveRouterError(f"no log at {str(source)!r}; expected a Parquet file or a folder of them")
    files = [file for file in source.glob("*.parquet") if file.is_file() and not file.name.startswith((".", "_"))]
    if not files:
        raise SaveRouterError(f"no *.parquet file in {str(source)!r}; expected a folder of Parquet parts")
    return sorted(files, key=lambda file: natural(file.name))


def _refuse_columns(files: list[Path], prompt_column: str, model_column: str) -> None:
    for file in files:
        try:
            names = pq.read_schema(file).names
        except (OSError, pa.ArrowInvalid) as error:
            raise SaveRouterError(f"{str(file)!r} cannot be read as Parquet ({error}); replace or remove it") from error
        if prompt_column not in names:
            raise SaveRouterError(
                f"{str(file)!r} has no column {prompt_column!r}; {did_you_mean(prompt_column, names)}it has "
                f"{', '.join(names)}: name the one with the prompts in prompt_column"
            )
        if model_column in names:
            raise SaveRouterError(
                f"{str(file)!r} has a column {model_column!r} already; name the new one otherwise in model_column"
            )


def _refuse_target(source: Path, target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise SaveRouterError(f"target {str(target)!r} is a file; name a folder")
    if target.exists() and not overwrite:
        raise SaveRouterError(
            f"target {str(target)!r} exists; name another folder, or pass overwrite=True to replace it"
        )
    if source.resolve() in (target.resolve(), *target.resolve().parents):
        raise SaveRouterError(f"target {str(target)!r} lies in the log itself; name a folder outside {str(source)!r}")


def _refuse_router(router: Router, cost_weight: float) -> None:
    """Route one prompt, so that what cannot work fails before anything is read."""
    if getattr(router, "own_vectors_", 0):
        raise SaveRouterError(
            f"{type(router).__name__} cannot route a prompt alone: it was fitted on queries with vectors of their own; "
            "fit it on a workload without vectors"
        )
    with unkept():
        router.route(["Which model would take this?"], cost_weight)


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A temporary folder beside ``target`` that takes its place on success and vanishes on failure."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    os.chmod(place, 0o755)
    try:
        yield place
        if target.exists():  # moved aside first: removing it may take long, and be interrupted
            os.rename(target, place.with_suffix(".old"))
        os.rename(place, target)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(place.with_suffix(".old"), ignore_errors=True)


def _counted(folder: Path, files: list[Path], column: str, models: tuple[str, ...]) -> pd.Series:
    """Queries per model in what was written. Fewer than were read means that workers wrote to another disk."""
    counts = pd.Series(0, index=pd.Index(models, name=column), name="queries")
    for file in folder.glob("*.parquet"):
        counts = counts.add(pq.read_table(file, columns=[column])[column].to_pandas().value_counts(), fill_value=0)
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    if counts.sum() != rows:
        raise SaveRouterError(
            f"{counts.sum():,.0f} of {rows:,} rows arrived in {str(folder.parent)!r}; the cluster's workers must see that folder"
        )
    return counts.astype(np.int64).rename("queries").reindex(pd.Index(models, name=column))
