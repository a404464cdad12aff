"""Rows of a study that are no runs of one router: computed once for their content and code, and remembered, as runs are."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from ..files import atomic_path, cache_folder, digest_of, digest_of_files, only_one
from ..scale import chosen, compute_all
from ..workloads import Workload
from .runs import PACKAGE, code_version, encoder_of

PROCESSES = 2  # calls are many and short


def kept(compute: Callable[..., list[dict]], wanted: Iterable[tuple[Workload, dict]]) -> list[dict]:
    """The rows of ``compute(work, **options)`` for all that is wanted, in that order.

    What is missing is computed on the cluster that was chosen, else by two processes. Rows are dictionaries of plain values.
    """
    wanted = list(wanted)
    places = [_place(compute, work, options) for work, options in wanted]
    left = [number for number, place in enumerate(places) if not place.is_file()]
    calls = [(None, wanted[number][0], (compute, wanted[number][1], places[number])) for number in left]
    found = dict(compute_all(_once, calls, cluster=chosen(), jobs=PROCESSES))
    fresh = {left[position]: rows for position, rows in found.items()}
    each = [fresh[number] if number in fresh else json.loads(place.read_text()) for number, place in enumerate(places)]
    return [row for rows in each for row in rows]


def _once(work: Workload, compute: Callable[..., list[dict]], options: dict, place: Path) -> list[dict]:
    with only_one(place):
        if not place.is_file():
            rows = compute(work, **options)
            with atomic_path(place) as temporary:
                temporary.write_text(json.dumps(rows))
        return json.loads(place.read_text())


def _place(compute: Callable[..., list[dict]], work: Workload, options: dict) -> Path:
    code = digest_of_files(PACKAGE, [Path(inspect.getfile(compute))])
    parts = code_version(), code, compute.__qualname__, encoder_of(work), work.fingerprint, options
    return cache_folder("studies") / f"{digest_of(*parts)}.json"
