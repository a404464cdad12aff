"""The set-up files name each other correctly, and a stale environment is noticed. Nothing is installed here."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ("requirements.txt", "constraints.txt", "pyproject.toml")
GATEWAY = "examples/gateway/requirements.txt"
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def test_requirements_are_the_project_with_its_extras():
    (line,) = (ROOT / "requirements.txt").read_text().splitlines()
    extras = re.fullmatch(r"-e \.\[(.+)\]", line)[1].split(",")
    assert set(extras) == set(project()["optional-dependencies"])


def test_every_direct_dependency_is_constrained_and_allowed():
    pinned = {canonicalize_name(requirement.name): requirement for requirement in constraints()}
    direct = project()["dependencies"] + sum(project()["optional-dependencies"].values(), [])
    for wanted in map(Requirement, direct):
        (version,) = pinned[canonicalize_name(wanted.name)].specifier
        assert version.operator == "=="
        assert wanted.specifier.contains(version.version), f"{wanted} excludes the pinned {version}"


def test_torch_is_pinned_once():
    assert [str(entry.specifier) for entry in constraints() if entry.name == "torch"] == ["==2.13.0"]
    assert "torch==2.13.0" in project()["dependencies"]


def test_constraints_name_no_place():
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text and " @ " not in text
    assert not re.search(r"^(-|/)", text, re.MULTILINE)


def test_conda_environment_uses_the_same_files():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["name"] == "saverouter"
    assert "python=3.11" in environment["dependencies"]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == ["-r requirements.txt", "-c constraints.txt"]


def test_citation_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (paper,) = citation["references"]
    assert paper["title"].startswith("Routing Should Pay for Itself")
    assert len(paper["authors"]) == 8
    assert citation["version"] == project()["version"]


def test_continuous_integration_runs_make_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text() and "set -euo pipefail" in script.read_text()


@pytest.fixture
def copy(tmp_path):
    """The set-up files in a folder with a space in its name, and an environment whose python only pretends."""
    folder = tmp_path / "a copy"
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", *INPUTS):
        shutil.copy(ROOT / name, folder)
    (folder / GATEWAY).parent.mkdir(parents=True)
    shutil.copy(ROOT / GATEWAY, folder / GATEWAY)
    pretend(folder, "exit 0")
    return folder


def pretend(folder: Path, command: str) -> None:
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{command}\n")
    python.chmod(0o755)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def is_fresh(folder: Path) -> bool:
    return make(folder, "-q", ".venv/.installed").returncode == 0


@needs_make
def test_help_lists_every_target(copy):
    targets = set(re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()) - {
        "moved",
        "missing",
    }
    listed = set(re.findall(r"^  make (\S+) +\S", make(copy).stdout, re.MULTILINE))
    assert listed == targets >= {"install", "reproduce", "test", "smoke", "check", "lab", "lint", "lock", "clean"}


@needs_make
@pytest.mark.parametrize("changed", INPUTS)
def test_a_changed_file_makes_the_environment_stale(copy, changed):
    assert make(copy, "install").returncode == 0
    assert is_fresh(copy)
    stamp = (copy / ".venv" / ".installed").stat().st_mtime
    os.utime(copy / changed, (stamp + 5, stamp + 5))
    assert not is_fresh(copy)


@needs_make
def test_an_interrupted_install_is_not_taken_for_done(copy):
    make(copy, "install")
    os.utime(copy / "constraints.txt", (2e9, 2e9))
    pretend(copy, 'case "$*" in *"pip install"*) exit 1;; esac')
    assert make(copy, "install").returncode != 0
    os.utime(copy / "constraints.txt", (1e9, 1e9))
    assert not is_fresh(copy)


@needs_make
def test_a_moved_environment_is_stale(copy):
    make(copy, "install")
    assert is_fresh(copy)
    assert not is_fresh(copy.rename(copy.with_name("moved")))


@needs_make
def test_an_old_python_is_named(copy):
    run = make(copy, "install", "PYTHON=false")
    assert run.returncode != 0
    assert "older than Python 3.11" in run.stdout + run.stderr


@needs_make
def test_reproduce_passes_only_what_was_given(copy):
    make(copy, "install")
    plain = make(copy, "-n", "reproduce").stdout
    assert "--profile 'standard'" in plain and "--benchmark" not in plain and "--notebook" not in plain
    chosen = make(copy, "-n", "reproduce", "PROFILE=smoke", "NOTEBOOK=02", "BENCHMARK=all").stdout
    assert "--profile 'smoke'" in chosen and "--notebook '02'" in chosen and "--benchmark 'all'" in chosen


@needs_make
def test_only_make_data_asks_the_hub(copy):
    make(copy, "install")
    assert (
        "HF_HUB_OFFLINE=0 .venv/bin/python -m saverouter.workloads.originals.fetch routerbench"
        in make(copy, "-n", "data", "BENCHMARK=routerbench").stdout
    )
    for target in ("reproduce", "smoke", "test", "check", "lab", "refresh"):
        assert "HF_HUB_OFFLINE=0" not in make(copy, "-n", target).stdout
    assert "export HF_HUB_OFFLINE ?= 1" in (ROOT / "Makefile").read_text()


@needs_make
def test_torch_can_be_fetched_first(copy):
    commands = make(copy, "-n", "install", "TORCH_ARGS=--index-url cpu").stdout
    assert commands.index("pip install --index-url cpu") < commands.index("pip install -r requirements.txt")


FETCH = "-m saverouter.workloads.recorded.fetch"


def registered(folder: Path) -> Path:
    """A registry with one package, and the place where its file belongs."""
    (folder / "data").mkdir()
    rows = (
        "benchmark,repo,kind,revision,file,bytes,sha256\nx,x,package,1.0,x-1.0.tar.gz,1,00\ny,y/y,dataset,a,y.csv,,\n"
    )
    (folder / "data" / "registry.csv").write_text(rows)
    return folder / "data" / "recorded" / "x" / "x-1.0.tar.gz"


@needs_make
def test_install_fetches_recorded_workloads_that_are_missing(copy):
    """Also into an environment that was complete before; once, and not again when they are here."""
    file = registered(copy)
    pretend(copy, f'case "$*" in *"{FETCH}"*) echo asked; exit 1;; esac')
    first = make(copy, "install")
    assert first.returncode == 0 and first.stdout.splitlines().count("asked") == 1  # it failed, and install did not
    assert is_fresh(copy)
    assert make(copy, "install").stdout.splitlines() == ["asked"]
    elsewhere = copy / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / file.name).touch()
    assert "asked" not in make(copy, "install", "SAVEROUTER_DATA=elsewhere").stdout
    file.parent.mkdir(parents=True)
    file.touch()
    assert make(copy, "-q", "install").returncode == 0


@needs_make
def test_other_targets_fetch_only_with_a_new_environment(copy):
    registered(copy)
    assert FETCH in make(copy, "-n", "smoke").stdout
    make(copy, "install")
    assert FETCH not in make(copy, "-n", "smoke").stdout


ARGUMENTS = """for word in "$@"; do printf '<%s>' "$word"; done; echo " in $(pwd)\""""
HARD = """it's a "b" $c `d` é.csv"""


@needs_make
def test_what_was_typed_reaches_the_command_as_it_was(copy):
    make(copy, "install")
    pretend(copy, ARGUMENTS)
    told = make(
        copy, "-s", "decide", f"DATA={HARD}", "REFERENCE=openai/gpt 4'o", "CURRENCY=$", "MARGIN=-1", "K=2"
    ).stdout
    options = "<--reference=openai/gpt 4'o><--margin=-1><--currency=$><--k=2>"
    assert f"<-m><saverouter><decide><--report>{options}<--><{HARD}>" in told
    assert "--reference" not in make(copy, "-s", "decide", "DATA=x").stdout
    assert f"<--workload={HARD}>" in make(copy, "-s", "reproduce", f"WORKLOAD={HARD}").stdout


@needs_make
@pytest.mark.parametrize("flags", [[], ["-s"], ["--no-print-directory"]])
@pytest.mark.parametrize("asked", [["decide", "DATA=x.csv"], ["reproduce", "WORKLOAD=x.csv"]])
def test_a_path_is_relative_to_where_it_was_typed(copy, tmp_path, monkeypatch, flags, asked):
    make(copy, "install")
    pretend(copy, ARGUMENTS)
    here = tmp_path / "some where"
    here.mkdir()
    monkeypatch.setenv("PWD", str(here))  # as a shell does
    assert f" in {here}\n" in make(here, *flags, "-C", str(copy), *asked).stdout
    monkeypatch.setenv("PWD", str(copy))
    assert f" in {copy}\n" in make(copy, *flags, *asked).stdout


@needs_make
def test_a_folder_that_the_environment_remembers_is_not_where_it_was_typed(copy, tmp_path, monkeypatch):
    """A program that starts make in another folder leaves PWD as it was."""
    make(copy, "install")
    pretend(copy, ARGUMENTS)
    monkeypatch.setenv("PWD", str(tmp_path))
    assert f" in {copy}\n" in make(copy, "decide", "DATA=x.csv").stdout


@needs_make
@pytest.mark.parametrize(("asked", "named"), [
    (["reproduce", "WORKLOD=x"], "WORKLOD"), (["reproduce", "K=4"], "K"), (["reproduce", "notebook=00"], "notebook"),
    (["smoke", "WORKLOAD=x"], "WORKLOAD"), (["test", "NOTEBOOK=00"], "NOTEBOOK"), (["decide", "DATA=x", "MONTLY=2"], "MONTLY"),
])  # fmt: skip
def test_an_unknown_variable_is_refused(copy, asked, named):
    make(copy, "install")
    run = make(copy, "-n", *asked)
    assert run.returncode != 0 and f"unknown variable {named};" in run.stderr
    assert ("WORKLOAD" in run.stderr.partition("knows")[2]) == (asked[0] == "reproduce")


@needs_make
@pytest.mark.parametrize("asked", [
    "install", "reproduce PROFILE=smoke JOBS=1 WORKERS=1 PYTHON=python3 TORCH_ARGS= VENV=.venv SAVEROUTER_DATA=x FORCE=1",
    "reproduce NOTEBOOK=02 BENCHMARK=sprout SOURCE=original SETTINGS=release SEED=1", "reproduce OMP_NUM_THREADS=1 WORKLOAD=x",
    "decide DATA=x REFERENCE=a MONTHLY=2e6 MARGIN=1 CONFIDENCE=0.9 CURRENCY=EUR K=2", "install reproduce WORKLOAD=x",
    "bench QUICK=1", "bench GROWTH=1", "gateway-test", "gateway-test LATENCY=1",
    "measured FULL_SIZE=1", "lock UPGRADE=1", "refresh NOTEBOOK=00", "data BENCHMARK=x",
    "smoke NOTEBOOK=00 bench QUICK=1", "clean-cache SAVEROUTER_CACHE=x", "help",
])  # fmt: skip
def test_documented_variables_are_taken(copy, asked):
    make(copy, "install")
    assert make(copy, "-n", *asked.split()).returncode == 0


@needs_make
@pytest.mark.parametrize("asked", [["decide"], ["decide", "DATA="], ["decide", "MARGIN=1"]])
def test_a_decision_without_data_is_refused_with_an_example(copy, asked):
    run = make(copy, *asked)
    assert run.returncode != 0 and "e.g. make decide DATA=outcomes.csv" in run.stderr
    assert not is_fresh(copy)  # and nothing was installed before
