"""Real outcomes that install as packages. They are read as files: no code of those packages is imported, built or run.

    python -m saverouter.workloads.recorded.fetch      (the end of make install)
    saverouter.load("recorded/sensebench")

ParetoBandit is installed with the project; the others are archives, pinned by hash in ``data/registry.csv``. Only
``fetch`` reaches a network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...errors import SaveRouterError, did_you_mean
from ...files import cache_folder, data_folder
from .. import store
from ..registry import Source, checked, download_folder, find, sources
from ..workload import Workload
from . import agentdojo, kunko, sensebench, yentlbench
from . import paretobandit as installed

READERS: dict[str, Callable[[Path], Workload]] = {
    "agentdojo": agentdojo.convert,
    "kunko": kunko.convert,
    "sensebench": sensebench.convert,
    "yentlbench": yentlbench.convert,
}
NAMES = ("paretobandit", *READERS)


def load_recorded(name: str) -> Workload:
    """A recorded workload from the file that is on this machine."""
    if name not in NAMES:
        raise SaveRouterError(f"no recorded workload {name!r}; {did_you_mean(name, NAMES)}there are {', '.join(NAMES)}")
    if name == "paretobandit":
        return installed.paretobandit()
    return store.kept_or_made(_kept(name), [_source(name)], _code(), partial(_convert, name))


def present() -> dict[str, bool]:
    """Which of the recorded workloads can be loaded here; nothing is read or checked."""
    return {name: installed.is_here() if name == "paretobandit" else _can_be_had(name) for name in NAMES}


def remedy(source: Source) -> str:
    """How to get a file that is not here."""
    folder = download_folder(source.benchmark, source.room)
    return (
        f"fetch it with 'make install', or put {source.file} in {'/'.join(folder.parts[-3:])} "
        "or in the folder that SAVEROUTER_DATA names"
    )


def _source(name: str) -> Source:
    (source,) = sources(name, "recorded")
    return source


def _kept(name: str) -> Path:
    return cache_folder("recorded") / f"{name}.parquet"


def _code() -> str:
    return store.readers_digest(Path(__file__).parent, data_folder() / "prices.csv")


def _can_be_had(name: str) -> bool:
    """Its file is here, or was read before by the same code."""
    return find(_source(name)) is not None or (store.made_from(_kept(name)) or {}).get("code") == _code()


def _convert(name: str) -> tuple[Workload, dict[str, Path]]:
    source = _source(name)
    path = find(source)
    if path is None:
        raise SaveRouterError(f"recorded/{name} needs {source.file}, which is not here: {remedy(source)}")
    checked(source, path)
    try:
        work = READERS[name](path)
    except SaveRouterError as error:
        raise SaveRouterError(f"recorded/{name} cannot be read from {source.file}: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SaveRouterError(
            f"recorded/{name} cannot be read from {source.file}: it is not laid out as expected "
            f"({type(error).__name__}: {error}); remove it and run 'make install'"
        ) from error
    told = f"{source.file} of {source.repo} {source.revision}, sha256 {source.sha256[:16]}"
    return replace(work, provenance=(told, *work.provenance)), {source.file: path}
