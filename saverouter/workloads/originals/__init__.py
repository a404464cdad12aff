"""The paper's real benchmarks: fetched by the user from their publishers, verified by hash, converted once.

    python -m saverouter.workloads.originals.fetch routerbench      (make data BENCHMARK=routerbench)
    saverouter.load("original/routerbench")

Only ``fetch`` reaches a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...encoders import clip_vectors
from ...errors import SaveRouterError, did_you_mean
from ...files import cache_folder, contents_of, digest_of, digest_of_files, only_one, stamp_of
from ..workload import Workload
from . import llmrouterbench, mixinstruct, mmrbench, routerbench, routereval, store
from .archives import extract
from .registry import checked, download_folder, find, located, sources

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
    with only_one(path.with_name(f"{name}.conversion")):
        kept = store.made_from(path)
        if kept is None or kept != _inputs(name, kept):
            _convert(name, path)
    work = store.read(path)
    return with_pictures(work) if vectors and name == "mmrbench" else work


def _convert(name: str, path: Path) -> None:
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
    work = replace(work, provenance=(*told, *work.provenance))
    store.write(path, work, {"code": _code(), "files": {file: stamp_of(place) for file, place in files.items()}})


def _inputs(name: str, kept: dict) -> dict:
    """What a workload would be made from now; a file that is gone counts as unchanged."""
    places = {source.file: find(source) for source in sources(name)}
    stamps = {
        file: stamp if places.get(file) is None else stamp_of(places[file]) for file, stamp in kept["files"].items()
    }
    return {"code": _code(), "files": stamps}


def _code() -> str:
    """A hash of the converters: a change in them makes the stored tables stale."""
    folder = Path(__file__).parent
    return digest_of(digest_of_files(folder, [path for path in folder.glob("*.py") if path.name != "fetch.py"]))


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
