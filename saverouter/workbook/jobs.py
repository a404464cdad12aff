"""What there is to run: one job per notebook, its parameters, the files that they name, and what would change its result."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SaveRouterError, one_of
from ..files import contents_of, digest_of, digest_of_files
from ..studies import profile
from ..studies.designs import SOURCES
from ..workloads import recorded
from . import inputs, notebooks

ROOT = Path(__file__).resolve().parents[2]
# What runs notebooks and makes pages of them cannot change what they compute.
NAMES = ("front", "inputs", "jobs", "markup", "measured", "notebooks", "pages", "report", "reproduce", "runner")
NOT_INPUT = {Path(__file__).with_name(f"{name}.py") for name in NAMES}


@dataclass(frozen=True)
class Job:
    """One notebook to run with some parameters, and the files that come of it.

    ``files`` are those that parameters name, by parameter. Where such a file lies is for the kernel; ``parameters``, which
    are shown, have its name.
    """

    notebook: Path
    parameters: dict
    reports: Path
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.notebook.stem

    @property
    def output(self) -> Path:
        return self.reports / "notebooks" / f"{self.name}.ipynb"

    @property
    def failed(self) -> Path:
        return self.output.with_suffix(".failed.ipynb")

    @property
    def page(self) -> Path:
        return self.output.with_suffix(".html")

    @property
    def marker(self) -> Path:
        return self.reports / ".done" / f"{self.name}.json"

    @property
    def passed(self) -> dict:
        """The parameters as the kernel gets them."""
        return self.parameters | {name: str(path) for name, path in self.files.items() if name in self.parameters}

    def fingerprint(self) -> str:
        read = dict(zip(self.files, contents_of(self.files.values()), strict=True))
        return digest_of(notebooks.source_fingerprint(self.notebook), self.parameters, read, package_fingerprint())

    def is_done(self) -> bool:
        """Whether the last run finished with the same inputs and its files are still there."""
        try:
            marker = json.loads(self.marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        files = [self.output, self.page, *(self.reports / name for name in marker["files"])]
        return marker["fingerprint"] == self.fingerprint() and all(file.exists() for file in files)


def package_fingerprint() -> str:
    """A hash of everything besides the notebook that can change a result: code, data, pinned versions."""
    code = [path for path in (ROOT / "saverouter").rglob("*.py") if path not in NOT_INPUT]
    fetched = ("original", "recorded", "registry.csv")
    shipped = [path for path in (ROOT / "data").iterdir() if path.name not in fetched]
    data = [path for place in shipped for path in (place, *place.rglob("*")) if path.is_file()]
    return digest_of(digest_of_files(ROOT, [*code, *data, *ROOT.glob("constraints.txt")]), recorded.present())


def plan_jobs(
    selected: list[Path], profile_name: str, optional: dict, required: dict, reports: Path,
    typed_in: Path | None = None,
) -> list[Job]:  # fmt: skip
    """One job per notebook. ``optional`` goes to those that declare it, ``required`` must be declared by all.

    A workload (or ``data``, as a notebook may call it) that is a file is looked for in the folder where it was typed.
    """
    one_of("source", optional.get("source", "simulated"), SOURCES)  # it names a folder
    declared = {path: notebooks.declared_parameters(path) for path in selected}
    for name in optional:
        if not any(_own_name(name, names) for names in declared.values()):
            raise SaveRouterError(_none_declares(name, selected))
    folder = (
        f"{profile_name}-{optional['source']}" if optional.get("source", "simulated") != "simulated" else profile_name
    )
    jobs = []
    for path, names in declared.items():
        parameters = {"profile": profile(profile_name).name} | required
        parameters |= {_own_name(name, names): value for name, value in optional.items() if _own_name(name, names)}
        refuse_undeclared(path, parameters, names)
        files = _files(path, parameters, names, typed_in or Path.cwd())
        parameters |= {name: file.name for name, file in files.items() if name in parameters}
        jobs.append(Job(path, parameters, reports.resolve() / folder, files))
    return jobs


def _own_name(name: str, declared: dict) -> str | None:
    """What a notebook calls a parameter: the data have two names."""
    same = notebooks.DATA if name in notebooks.DATA else ()
    return next((known for known in (name, *same) if known in declared), None)


def _none_declares(name: str, selected: list[Path]) -> str:
    stems = ", ".join(path.stem for path in selected)
    others = {folder for path in selected for folder in notebooks.all_notebooks(path.parent)} - set(selected)
    able = [path.stem for path in sorted(others) if _own_name(name, notebooks.declared_parameters(path))]
    told = f"none of the selected notebooks ({stems}) declares the parameter '{name}'"
    if name in notebooks.DATA:
        told = f"none of the selected notebooks ({stems}) can take a table of yours: they have no parameter '{name}'"
    return told + (f"; {', '.join(able)} {'has' if len(able) == 1 else 'have'} it" if able else "")


def _files(path: Path, parameters: dict, declared: dict, typed_in: Path) -> dict[str, Path]:
    """The files that parameters name; a default is relative to its notebook, where the kernel looks for it."""
    found = {}
    for name in notebooks.DATA:
        if name in parameters:
            found[name] = inputs.named_file(parameters[name], typed_in)
        elif name in declared:
            found[name] = inputs.found_file(declared[name], path.parent)
    return {name: file for name, file in found.items() if file is not None}


def refuse_undeclared(path: Path, parameters: dict, declared: dict) -> None:
    """papermill only warns of a parameter that the notebook never reads."""
    for name in parameters:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise SaveRouterError(f"{path.name} has no parameter '{name}'; its parameters cell declares: {known}")
