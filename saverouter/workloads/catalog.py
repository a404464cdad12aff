"""``load``: a workload by name or path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..errors import SaveRouterError, did_you_mean, seed_of, whole
from .ledger import ledger_workload
from .originals import LOADERS, load_original
from .recorded import NAMES, load_recorded
from .simulate import benchmarks, simulate
from .tables import Prices, read_table
from .workload import Workload


def names() -> list[str]:
    """The workloads that come with the project, and those it loads once they were fetched (recorded and original)."""
    every = benchmarks(large_pool=True)
    rooms = {"recorded": NAMES, "simulated": every, "original": LOADERS}
    return ["paretobandit", *(f"{room}/{name}" for room, known in rooms.items() for name in known)]


def load(
    name: str | os.PathLike,
    *,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    prices: Prices | None = None,
    size: int | None = None,
    seed: int | None = None,
) -> Workload:
    """A built-in workload by name, or the user's own table by path.

    Parameters
    ----------
    name : "recorded/sensebench" and its like (``saverouter.names()`` lists them; "paretobandit" is short for
        "recorded/paretobandit"), "simulated/routerbench", "original/routerbench" for the real one (fetch it first:
        ``make data``), or the path of a CSV, TSV, JSON, JSONL or Parquet file, or of a ledger of outcomes that were bought
        live (``bought.sqlite``); a file that is not found is looked for in ``$SAVEROUTER_DATA``
    columns, scale, prices : how to read a file, as in ``saverouter.from_frame``, which says what a table must have
    size : number of queries; a simulated benchmark is generated at that size, anything else is sampled
    seed : of the simulation or of the sample; 0 unless given
    """
    if not isinstance(name, (str, os.PathLike)):
        raise SaveRouterError(
            f"a workload is named {name!r:.60}; expected a name or a path, and saverouter.from_frame(table) for a table in memory"
        )
    text = os.fspath(name)
    options = {"columns": columns, "scale": scale, "prices": prices}
    built_in = text == "paretobandit" or text.startswith(("simulated/", "original/", "recorded/"))
    if built_in and (given := [option for option, value in options.items() if value is not None]):
        raise SaveRouterError(f"{given[0]} is for a table of your own; {text} is complete without it, leave it out")
    if text.startswith("simulated/"):
        return simulate(text.removeprefix("simulated/"), size=size, seed=seed or 0)
    if text.startswith("original/"):
        work = load_original(text.removeprefix("original/"))
    elif built_in:
        work = load_recorded(text.removeprefix("recorded/"))
    elif text.endswith(".sqlite"):
        if given := [option for option, value in options.items() if value is not None]:
            raise SaveRouterError(f"{given[0]} is for a table; ledger {text!r} is complete without it, leave it out")
        work = ledger_workload(_find(text))
    else:
        work = read_table(_find(text), **options)
    return work if size is None else sample(work, size, seed or 0)


def sample(work: Workload, size: int, seed: int = 0) -> Workload:
    """Some of the queries of a workload, drawn at random and kept in their order."""
    if whole("size", size, 1, "a whole number of queries") > len(work):
        raise SaveRouterError(f"size is {size}; {work.name} has {len(work):,} queries")
    seed_of(seed)
    return work.take(np.sort(np.random.default_rng(seed).choice(len(work), size, replace=False)))


def _find(text: str) -> Path:
    places = [Path(text).expanduser()]
    if os.environ.get("SAVEROUTER_DATA"):
        places.append(Path(os.environ["SAVEROUTER_DATA"], text))
    with suppress(OSError):  # a name that no file can have
        for place in places:
            if place.is_file():
                return place
            if place.is_dir():
                raise SaveRouterError(f"{text!r} is a folder; name one file in it")
    raise SaveRouterError(
        f"no workload or file is called {text!r:.80}; {did_you_mean(text, names(), cutoff=0.5)}there are {', '.join(names())}, "
        "and the path of any CSV, JSON or Parquet file will do"
    )
