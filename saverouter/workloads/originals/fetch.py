"""Fetches the original benchmarks from their publishers' hub. The only module here that reaches a network, and only when asked.

    python -m saverouter.workloads.originals.fetch routerbench        (or: make data BENCHMARK=routerbench)

An interrupted download goes on where it stopped. Its size and the free disk are shown before it starts.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import SaveRouterError
from ...progress import exit_status, listening, say
from ..registry import Source, checked, download_folder, find, sources, trust

ALSO = {"mmrbench": ("clip",)}  # pictures need an encoder
ROOM = 3  # free disk needed, as a multiple of the download: archives are unpacked beside it


def main(arguments: list[str] | None = None) -> int:
    """Fetch the benchmarks named on the command line, and return the exit status."""
    known = list(dict.fromkeys(source.benchmark for source in sources()))
    parser = argparse.ArgumentParser(
        "python -m saverouter.workloads.originals.fetch", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("benchmark", nargs="*", help=f"one or more of {', '.join(known)}; all where none is named")
    chosen = [name for entry in parser.parse_args(arguments).benchmark for name in entry.replace(",", " ").split()]
    if not chosen or "all" in chosen:
        chosen = [name for name in known if name != "clip"]
    with listening(sys.stdout):
        return exit_status(lambda: _fetch_all(chosen), "what was fetched is kept; the same command goes on from there")


def _fetch_all(chosen: list[str]) -> None:
    for part in dict.fromkeys(part for name in chosen for part in (name, *ALSO.get(name, ()))):
        fetch(part)


def fetch(benchmark: str, say: Callable[[str], None] = say) -> list[Path]:
    """All files of a benchmark. Those already here are checked, the others are fetched, and new hashes are recorded."""
    wanted = sources(benchmark)
    have = {source: path for source in wanted if (path := find(source))}
    missing = [source for source in wanted if source not in have]
    for source, path in have.items():
        known = checked(source, path)
        if not source.is_trusted:
            trust([known])
        say(
            f"{benchmark}: {source.file} is here, {'its hash is the recorded one' if source.is_trusted else 'hash recorded'}"
        )
    if missing:
        have |= _download(missing, say)
    return [have[source] for source in wanted]


def _download(missing: list[Source], say) -> dict[Source, Path]:
    from huggingface_hub import HfApi, constants, hf_hub_download

    repo, kind, benchmark = missing[0].repo, missing[0].kind, missing[0].benchmark
    if constants.HF_HUB_OFFLINE:
        raise SaveRouterError(
            f"HF_HUB_OFFLINE is set, so {repo} cannot be asked; use 'make data BENCHMARK={benchmark}', or unset it"
        )
    try:
        hub = HfApi()
        revision = whole_revision(hub, missing[0])
        files = [source.file for source in missing]
        offered = {entry.path: entry for entry in hub.get_paths_info(repo, files, revision=revision, repo_type=kind)}
        _announce(missing, offered, revision, say)
        found = {}
        for source in missing:
            target = download_folder(benchmark)
            path = Path(hf_hub_download(repo, source.file, repo_type=kind, revision=revision, local_dir=target))
            found[source] = _accepted(replace(source, revision=revision), path, offered[source.file])
            say(
                f"{benchmark}: {source.file} fetched, {'its hash is the recorded one' if source.is_trusted else 'hash recorded'}"
            )
        return found
    except SaveRouterError:
        raise
    except Exception as error:  # the hub's client has many ways to say that it could not be reached
        raise SaveRouterError(
            f"{repo} could not be fetched ({type(error).__name__}: {str(error).strip().splitlines()[0]}); check the connection "
            "and run the same command again: it goes on where it stopped"
        ) from error


def whole_revision(hub: Any, source: Source) -> str:
    """The one commit that begins with the recorded revision. Where none is recorded, the newest is taken and pinned."""
    if len(source.revision) == 40:
        return source.revision
    commits = [commit.commit_id for commit in hub.list_repo_commits(source.repo, repo_type=source.kind)]
    found = [commit for commit in commits if commit.startswith(source.revision)]
    if not found or (source.revision and len(found) > 1):
        raise SaveRouterError(
            f"{len(found)} commits of {source.repo} begin with {source.revision!r}, as data/registry.csv wants it; expected one"
        )
    return found[0]


def _announce(missing: list[Source], offered: dict, revision: str, say) -> None:
    """What will be fetched and how much it is; refuse what is not offered or does not fit."""
    for source in missing:
        if source.file not in offered:
            raise SaveRouterError(f"{source.repo} has no file {source.file!r} at revision {revision[:12]}")
        if source.bytes and int(source.bytes) != offered[source.file].size:
            raise SaveRouterError(
                f"{source.repo} offers {source.file} with {offered[source.file].size:,} bytes, data/registry.csv records "
                f"{int(source.bytes):,}; nothing was fetched"
            )
    total = sum(offered[source.file].size for source in missing)
    folder = download_folder(missing[0].benchmark)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    say(
        f"{missing[0].benchmark}: {len(missing)} file(s), {size(total)}, from {missing[0].repo} at {revision[:12]}; "
        f"{size(free)} of disk are free"
    )
    if free < ROOM * total:
        raise SaveRouterError(f"{size(ROOM * total)} of disk are needed to fetch and convert it, {size(free)} are free")


def _accepted(source: Source, path: Path, offered) -> Path:
    """Record a file that holds what its publisher announced and what was recorded; put any other one aside."""
    try:
        known = checked(source, path)
        announced = offered.lfs.sha256 if offered.lfs else known.sha256
        if known.sha256 != announced or int(known.bytes) != offered.size:
            raise SaveRouterError(
                f"{source.file} arrived with sha256 {known.sha256[:16]}..., its publisher announces {announced[:16]}..."
            )
    except SaveRouterError as error:
        aside = path.with_name(path.name + ".rejected")
        path.replace(aside)
        raise SaveRouterError(f"{error} (kept as {aside.name})") from error
    trust([known])
    return path


def size(count: float) -> str:
    """A number of bytes in a readable unit."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


if __name__ == "__main__":
    sys.exit(main())
