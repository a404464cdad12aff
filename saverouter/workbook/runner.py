"""Running notebooks headlessly: one job per notebook, whose files appear whole or not at all.

A notebook that finished is not run again until its source, its parameters, the package or the pinned
versions change, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from joblib import cpu_count

from ..errors import SaveRouterError, one_of
from ..files import atomic_path, digest_of, digest_of_files
from ..progress import duration, say
from ..studies import profile
from ..workloads import recorded
from . import notebooks, report

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("simulated", "original")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# What runs notebooks and makes pages of them cannot change what they compute.
NAMES = ("front", "markup", "measured", "notebooks", "pages", "report", "reproduce", "runner")
NOT_INPUT = {Path(__file__).with_name(f"{name}.py") for name in NAMES}


@dataclass(frozen=True)
class Job:
    """One notebook to run with some parameters, and the files that come of it."""

    notebook: Path
    parameters: dict
    reports: Path

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

    def fingerprint(self) -> str:
        return digest_of(notebooks.source_fingerprint(self.notebook), self.parameters, package_fingerprint())

    def is_done(self) -> bool:
        """Whether the last run finished with the same inputs and its files are still there."""
        try:
            marker = json.loads(self.marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        files = [self.output, self.page, *(self.reports / name for name in marker["files"])]
        return marker["fingerprint"] == self.fingerprint() and all(file.exists() for file in files)


@dataclass(frozen=True)
class Outcome:
    """How a job ended: ``done``, ``kept`` (nothing had changed) or ``failed`` with its message."""

    name: str
    status: str
    seconds: float = 0.0
    message: str = ""


def package_fingerprint() -> str:
    """A hash of everything besides the notebook that can change a result: code, data, pinned versions."""
    code = [path for path in (ROOT / "saverouter").rglob("*.py") if path not in NOT_INPUT]
    fetched = ("original", "recorded", "registry.csv")
    shipped = [path for path in (ROOT / "data").iterdir() if path.name not in fetched]
    data = [path for place in shipped for path in (place, *place.rglob("*")) if path.is_file()]
    return digest_of(digest_of_files(ROOT, [*code, *data, *ROOT.glob("constraints.txt")]), recorded.present())


def plan_jobs(selected: list[Path], profile_name: str, optional: dict, required: dict, reports: Path) -> list[Job]:
    """One job per notebook. ``optional`` goes to those that declare it, ``required`` must be declared by all."""
    one_of("source", optional.get("source", "simulated"), SOURCES)  # it names a folder
    declared = {path: notebooks.declared_parameters(path) for path in selected}
    for name in optional:
        if not any(name in names for names in declared.values()):
            stems = ", ".join(path.stem for path in selected)
            raise SaveRouterError(f"none of the selected notebooks ({stems}) declares the parameter '{name}'")
    folder = (
        f"{profile_name}-{optional['source']}" if optional.get("source", "simulated") != "simulated" else profile_name
    )
    jobs = []
    for path, names in declared.items():
        parameters = {"profile": profile(profile_name).name} | required
        parameters |= {name: value for name, value in optional.items() if name in names}
        refuse_undeclared(path, parameters, names)
        jobs.append(Job(path, parameters, reports.resolve() / folder))
    return jobs


def refuse_undeclared(path: Path, parameters: dict, declared: dict) -> None:
    """papermill only warns of a parameter that the notebook never reads."""
    for name in parameters:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise SaveRouterError(f"{path.name} has no parameter '{name}'; its parameters cell declares: {known}")


def run_job(job: Job, progress: bool = False) -> Outcome:
    """Execute one notebook; its files appear whole or not at all."""
    start, fingerprint = time.monotonic(), job.fingerprint()
    listing = job.marker.with_suffix(".files")
    for stale in (job.marker, job.failed, listing):
        stale.unlink(missing_ok=True)
    listing.parent.mkdir(parents=True, exist_ok=True)
    try:
        places = {"SAVEROUTER_REPORTS": str(job.reports), "SAVEROUTER_REPORTS_LIST": str(listing)}
        with environment(**places, SAVEROUTER_PROGRESS="log"):
            _execute(job, progress)
        report.write_page(job.output, job.page)
    except Exception as error:
        for stale in (job.output, job.page):  # results of an earlier source must not pass for this one's
            stale.unlink(missing_ok=True)
        return Outcome(job.name, "failed", time.monotonic() - start, _explain(job, error))
    seconds = time.monotonic() - start
    files = sorted(set(listing.read_text(encoding="utf-8").split())) if listing.exists() else []
    marker = {"fingerprint": fingerprint, "parameters": job.parameters, "seconds": round(seconds, 1), "files": files}
    with atomic_path(job.marker) as temporary:
        temporary.write_text(json.dumps(marker, indent=1), encoding="utf-8")
    listing.unlink(missing_ok=True)
    return Outcome(job.name, "done", seconds)


def _execute(job: Job, progress: bool) -> None:
    folder = str(job.notebook.parent)  # as JupyterLab and nbval do
    with atomic_path(job.output) as temporary:
        options = {"kernel_name": notebooks.KERNEL["name"], "cwd": folder, "progress_bar": progress}
        options["extra_arguments"] = notebooks.QUIET
        try:
            executed = papermill.execute_notebook(str(job.notebook), str(temporary), job.parameters, **options)
        except Exception:
            os.replace(temporary, job.failed)
            raise
        nbformat.write(notebooks.tidy(executed), temporary)


def _explain(job: Job, error: Exception) -> str:
    """Notebook, cell and error in a few lines; the whole traceback is in the ``.failed.ipynb``."""
    if not hasattr(error, "exec_count"):
        return f"{job.notebook.name}: {type(error).__name__}: {error}"
    value = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue))
    first_line = error.source.strip().splitlines()[0] if error.source.strip() else ""
    return f"{job.notebook.name}, cell In [{error.exec_count}] `{first_line}`: {error.ename}: {value}"


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Environment variables for the kernels started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def run_jobs(
    jobs: list[Job], *, at_a_time: int = 1, force: bool = False, say: Callable[[str], None] = say, minutes:
    Callable[[Job], float] | None = None,
) -> list[Outcome]:  # fmt: skip
    """Run what is not done yet, keep the index up to date, and report each notebook as it ends.

    ``minutes`` tells how long a job may take: of several at a time, the longest start first, so that none is left to the
    end alone.
    """
    outcomes = [Outcome(job.name, "kept") for job in jobs if not force and job.is_done()]
    kept = {outcome.name for outcome in outcomes}
    waiting = [job for job in jobs if job.name not in kept]
    if minutes and at_a_time > 1:
        waiting.sort(key=minutes, reverse=True)
    for name in sorted(kept):
        say(f"{name}: unchanged since it last finished, kept")
    for outcome in _outcomes(waiting, min(at_a_time, len(waiting)), say):
        outcomes.append(outcome)
        say(f"{outcome.name}: {outcome.status} after {duration(outcome.seconds)} {outcome.message}".rstrip())
        report.write_index(jobs[0].reports)
    if jobs:
        report.write_index(jobs[0].reports)
    return sorted(outcomes, key=lambda outcome: outcome.name)


def _outcomes(jobs: list[Job], at_a_time: int, say) -> Iterator[Outcome]:
    if at_a_time < 2:
        for job in jobs:
            say(f"{job.name}: started")
            yield run_job(job, progress=sys.stderr.isatty())
        return
    for job in jobs:
        say(f"{job.name}: queued, {at_a_time} at a time")
    limit = str(max(1, cpu_count() // at_a_time))  # of the cores this process may use, which a container may restrict
    limits = {name: os.environ.get(name, limit) for name in THREADS}
    with environment(**limits), multiprocessing.get_context("spawn").Pool(at_a_time, _worker_signals) as pool:
        yield from pool.imap_unordered(run_job, jobs)
        pool.close()  # all is done: let the workers end by themselves rather than by the signal
        pool.join()


def _worker_signals() -> None:
    """Ctrl-C is the parent's business; its SIGTERM then unwinds the worker, which shuts its kernel down."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
