"""Several cores inside one process: as many as NUMBA_NUM_THREADS allows, one where notebooks run two at a time.

For compiled work that lets other threads run. Results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from numba import config


def in_threads(function: Callable, parts: Iterable) -> list:
    """``function`` of every part, in order."""
    parts = list(parts)
    threads = min(config.NUMBA_NUM_THREADS, len(parts))
    if threads < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, parts))
