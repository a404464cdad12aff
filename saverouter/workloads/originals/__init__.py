"""The paper's real benchmarks: fetched by the user from their publishers, verified by hash, converted once.

    python -m saverouter.workloads.originals.fetch routerbench      (make data BENCHMARK=routerbench)
    saverouter.load("original/routerbench")

Only ``fetch`` reaches a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...encoders import clip_vectors
from ...errors import SaveRouterError, did_you_mean
from ...files import cache_folder, contents_of, only_one
from .. import store
from ..archives import extract
from ..registry import checked, download_folder, located, sources
from ..workload import Workload
from . import llmrouterbench, mixinstruct, mmrbench, routerbench, routereval

LOADERS: dict[str, Callable[[dict[str, Path]], Workload]] = {
    "llmrouterbench": llmrouterbench.convert,
    "mixinstruct": mixinstruct.convert,
    "mmrbench": mmrbench.convert,
    "routerbench": routerbench.convert,
    "routereval": routereval.convert,
}
# What is unpacked of an archive, by its name; converters are then given the folder.
UNPACKED = {"bench-release.tar.gz": ("*.json",), "router_dataset.zip": ("*.pkl",)}
PICTURES = "images.tar.gz"


def load_original(name: str, *, vectors: bool = True) -> Workload:
    """An original benchmark from files that are on this machine.

    Without ``vectors``, MMRBench comes without its CLIP vectors, which need the pictures and the encoder's weights.
    """
    if name not in LOADERS:
        raise SaveRouterError(
            f"no original benchmark {name!r}; {did_you_mean(name, LOADERS)}there are {', '.join(LOADERS)}"
        )
    path = cache_folder("original") / f"{name}.parquet"
    work = store.kept_or_made(path, sources(name), store.readers_digest(Path(__file__).parent), partial(_convert, name))
    return with_pictures(work) if vectors and name == "mmrbench" else work


def _convert(name: str) -> tuple[Workload, dict[str, Path]]:
    files = located(name, without=PICTURES)
    wanted = {source.file: source for source in sources(name)}
    known = {file: checked(wanted[file], place) for file, place in files.items()}
    ready = {
        file: unpacked(name, place, known[file].sha256) if file in UNPACKED else place for file, place in files.items()
    }
    work = LOADERS[name](ready)
    told = tuple(
        f"{source.file} of {source.repo} at revision {source.revision[:12]}, sha256 {source.sha256[:16]}"
        + (
            ""
            if wanted[file].is_trusted
            else f" (not recorded yet: 'make data BENCHMARK={name}' records and enforces it)"
        )
        for file, source in known.items()
    )
    return replace(work, provenance=(*told, *work.provenance)), files


def unpacked(name: str, archive: Path, sha256: str) -> Path:
    """The folder with the wanted files of an archive; unpacked once."""
    target = download_folder(name) / f"{archive.name.partition('.')[0]}-{sha256[:12]}"
    with only_one(target):
        if not target.is_dir():
            extract(archive, target, UNPACKED.get(archive.name, tuple(f"*{suffix}" for suffix in mmrbench.SUFFIXES)))
    return target


def with_pictures(work: Workload) -> Workload:
    """MMRBench with the CLIP vectors of its questions and pictures."""
    archive = located("mmrbench")[PICTURES]
    (source,) = [source for source in sources("mmrbench") if source.file == PICTURES]
    folder = unpacked("mmrbench", archive, source.sha256 or contents_of([archive])[0])
    images = mmrbench.image_paths(work, folder)
    told = "query vectors are CLIP ViT-B/16 text and image vectors, each of unit length, side by side"
    weights = os.environ.get("SAVEROUTER_CLIP") or download_folder("clip")
    vectors = clip_vectors(work.prompts, images, weights=weights)
    return replace(work, vectors=vectors, provenance=(*work.provenance, told))
