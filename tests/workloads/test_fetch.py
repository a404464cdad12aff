"""Fetching through the real client from a hub on this machine: what is said, checked, recorded and resumed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hub import COMMITS, serving
from publishers import make_mixinstruct, make_routerbench

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path):
    """The package and its data in a folder of their own, as in a clone."""
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copytree(ROOT / "saverouter", folder / "saverouter", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", folder / "data", ignore=shutil.ignore_patterns("original"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def contents(tmp_path, make) -> dict[str, bytes]:
    make(tmp_path / "made")
    return {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir() if path.is_file()}


def python(clone, *arguments, hub=None, **variables):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "SAVEROUTER_"))}
    settings = {"PYTHONPATH": str(clone), "SAVEROUTER_CACHE": str(clone / ".cache"), "HF_HOME": str(clone / ".hf"),
                "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}" if hub else "http://127.0.0.1:9"}  # fmt: skip
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=kept | settings | variables, cwd=clone, capture_output=True, text=True, timeout=120
    )


def fetch(clone, *arguments, **options):
    return python(clone, "-m", "saverouter.workloads.originals.fetch", *arguments, **options)


def registered(clone, benchmark):
    table = pd.read_csv(clone / "data" / "registry.csv", dtype=str, keep_default_na=False)
    return table[table["benchmark"] == benchmark].set_index("file")


def test_fetched_checked_recorded_and_loaded(clone, tmp_path):
    files = contents(tmp_path, make_routerbench)
    with serving(files) as hub:
        done = fetch(clone, "routerbench", hub=hub)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("routerbench: 1 file(s), ") and "withmartian/routerbench at 784021482c3f" in first
    assert last == "routerbench: routerbench_raw.pkl fetched, hash recorded"
    row = registered(clone, "routerbench").loc["routerbench_raw.pkl"]
    assert row["revision"] == COMMITS[1] and row["sha256"] == hashlib.sha256(files["routerbench_raw.pkl"]).hexdigest()
    assert int(row["bytes"]) == len(files["routerbench_raw.pkl"])
    again = fetch(clone, "routerbench", HF_HUB_OFFLINE="1")  # nothing is left to ask for
    assert again.stdout == "routerbench: routerbench_raw.pkl is here, its hash is the recorded one\n", again.stderr
    loaded = python(
        clone, "-c", "import saverouter; print(saverouter.load('original/routerbench'))", HF_HUB_OFFLINE="1"
    )
    assert loaded.stdout == "<Workload 'original/routerbench': 8 queries x 11 models>\n", loaded.stderr


def test_a_download_goes_on_where_it_stopped(clone, tmp_path):
    files = contents(tmp_path, make_mixinstruct)
    files["train_data_prepared.jsonl"] *= 6000  # larger than what the client reads at once
    size = len(files["train_data_prepared.jsonl"])
    with serving(files, cut=size * 3 // 4) as hub:
        done = fetch(clone, "mixinstruct", hub=hub)
        if done.returncode:  # a client that gives up on the first break is told to run again
            assert "goes on where it stopped" in done.stderr
            done = fetch(clone, "mixinstruct", hub=hub)
    assert done.returncode == 0, done.stderr
    starts = [
        int(asked[6:-1] or 0) for method, path, asked in hub.requests if method == "GET" and asked and "train" in path
    ]
    assert any(0 < start < size for start in starts), hub.requests
    assert (clone / "data/original/mixinstruct/train_data_prepared.jsonl").read_bytes() == files[
        "train_data_prepared.jsonl"
    ]
    assert registered(clone, "mixinstruct")["sha256"].str.len().tolist() == [64, 64, 64]


def test_another_content_than_recorded_is_refused(clone, tmp_path):
    files = contents(tmp_path, make_routerbench)
    with serving(files) as hub:
        assert fetch(clone, "routerbench", hub=hub).returncode == 0
    path = clone / "data/original/routerbench/routerbench_raw.pkl"
    path.unlink()
    shutil.rmtree(path.parent / ".cache", ignore_errors=True)
    before = registered(clone, "routerbench")
    same_size = {"routerbench_raw.pkl": files["routerbench_raw.pkl"][::-1]}
    with serving(same_size) as hub:
        done = fetch(clone, "routerbench", hub=hub)
    assert done.returncode == 2 and "data/registry.csv records" in done.stderr and ".rejected" in done.stderr
    assert not path.exists() and registered(clone, "routerbench").equals(before)
    with serving({"routerbench_raw.pkl": b"shorter"}) as hub:
        done = fetch(clone, "routerbench", hub=hub)
    assert done.returncode == 2 and "nothing was fetched" in done.stderr


def test_another_content_than_announced_is_refused(clone, tmp_path):
    with serving(contents(tmp_path, make_routerbench), announced={"routerbench_raw.pkl": "0" * 64}) as hub:
        done = fetch(clone, "routerbench", hub=hub)
    assert done.returncode == 2 and "its publisher announces 0000" in done.stderr
    assert registered(clone, "routerbench")["sha256"].tolist() == [""]


def test_what_the_publisher_does_not_have_is_named(clone):
    with serving({}) as hub:
        done = fetch(clone, "routerbench", hub=hub)
        assert done.returncode == 2 and "has no file 'routerbench_raw.pkl' at revision 784021482c3f" in done.stderr
        done = fetch(clone, "mmrbench", hub=hub)
        assert done.returncode == 2 and "0 commits of gh0stHunter/MMR-Bench begin with 'b2619d838993'" in done.stderr


def test_no_network_unless_asked(clone):
    done = fetch(clone, "routerbench", HF_HUB_OFFLINE="1")
    assert done.returncode == 2 and "HF_HUB_OFFLINE is set" in done.stderr
    done = fetch(clone, "routerbnch")
    assert done.returncode == 2 and "did you mean 'routerbench'" in done.stderr


def test_a_hub_that_refuses_is_said_plainly(clone):
    with serving({}, closed=True) as hub:
        done = fetch(clone, "routerbench", hub=hub)
    assert done.returncode == 2 and done.stderr.startswith("error: withmartian/routerbench could not be fetched"), (
        done.stderr
    )
    assert "run the same command again" in done.stderr and "Traceback" not in done.stderr


def test_files_that_are_there_are_trusted_without_a_network(clone, tmp_path):
    make_routerbench(tmp_path / "given")
    done = fetch(clone, "routerbench", HF_HUB_OFFLINE="1", SAVEROUTER_DATA=str(tmp_path / "given"))
    assert done.stdout == "routerbench: routerbench_raw.pkl is here, hash recorded\n", done.stderr
    assert len(registered(clone, "routerbench")["sha256"].iloc[0]) == 64
