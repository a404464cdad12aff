"""Fetching packages as files from an index on this machine: what is said, checked and kept."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from packages import kunko, packed

from saverouter.workloads import registry

ROOT = Path(__file__).resolve().parents[2]
FILES = {source.benchmark: source.file for source in registry.sources(room="recorded")}


def pretended_index(folder: Path, files: dict[str, bytes]) -> str:
    """A folder in the form of a package index, by its address."""
    for source in registry.sources(room="recorded"):
        place = folder / source.repo
        place.mkdir(parents=True)
        if source.benchmark in files:
            (place / source.file).write_bytes(files[source.benchmark])
            (place / "index.html").write_text(f'<a href="{source.file}">{source.file}</a>')
    return folder.as_uri()


@pytest.mark.parametrize("setting", ["environment", "file"])
def test_fetched_from_the_index_that_pip_uses(tmp_path, setting):
    """In a folder with the project's files; what an index does not have, or has with another content, is named."""
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "saverouter", clone / "saverouter", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", clone / "data", ignore=shutil.ignore_patterns("original", "recorded"))
    shutil.copy(ROOT / "pyproject.toml", clone)
    good = packed(tmp_path / FILES["kunko"], kunko()).read_bytes()
    table = pd.read_csv(clone / "data" / "registry.csv", dtype=str, keep_default_na=False)
    row = table["benchmark"] == "kunko"
    table.loc[row, ["bytes", "sha256"]] = [str(len(good)), hashlib.sha256(good).hexdigest()]
    table.to_csv(clone / "data" / "registry.csv", index=False)
    index = pretended_index(tmp_path / "index", {"kunko": good, "yentlbench": b"something else"})
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "SAVEROUTER_"))}
    if setting == "environment":
        kept |= {"PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull}
    else:
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
        kept |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    kept |= {"PYTHONPATH": str(clone), "SAVEROUTER_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "saverouter.workloads.recorded.fetch"]
    for said in ("fetched, its hash is the recorded one", "is here"):
        done = subprocess.run(command, env=kept, cwd=clone, capture_output=True, text=True)
        assert done.returncode == 2 and done.stdout == f"recorded/kunko: {FILES['kunko']} {said}\n", done.stderr
        assert (
            f"recorded/yentlbench is missing: {FILES['yentlbench']} could not be fetched (HashMismatchError"
            in done.stderr
        )
        assert (
            f"no index that could be reached offers {FILES['agentdojo']}; fetch it with 'make install'" in done.stderr
        )
        assert "all else works without recorded/agentdojo, recorded/sensebench, recorded/yentlbench" in done.stderr
    assert [path.name for path in (clone / "data" / "recorded").rglob("*") if path.is_file()] == [FILES["kunko"]]
