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
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
import papermill
from joblib import cpu_count
from papermill.translators import PythonTranslator

from ..files import atomic_path
from ..progress import duration, say
from . import notebooks, report
from .jobs import Job, plan_jobs

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Outcome:
    """How a job ended: ``done``, ``kept`` (nothing had changed) or ``failed`` with its message."""

    name: str
    status: str
    seconds: float = 0.0
    message: str = ""


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
            executed = papermill.execute_notebook(str(job.notebook), str(temporary), job.passed, **options)
        except Exception:
            os.replace(temporary, job.failed)
            raise
        nbformat.write(_shown(notebooks.tidy(executed), job), temporary)


def _shown(executed: nbformat.NotebookNode, job: Job) -> nbformat.NotebookNode:
    """The notebook with the names of its files, and not where they lie on this machine."""
    text = nbformat.writes(executed)
    for path in map(str, job.files.values()):
        within, name = (json.dumps(words, ensure_ascii=False)[1:-1] for words in (path, Path(path).name))
        text = text.replace(within, name)
    executed = nbformat.reads(text, as_version=4)
    if (cell := notebooks.tagged(executed, "injected-parameters")) is not None:
        cell.source = PythonTranslator.codify(job.parameters, "Parameters")
    return executed


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
    Callable[[Job], float] | None = None, alone: bool = False,
) -> list[Outcome]:  # fmt: skip
    """Run what is not done yet, keep the index up to date, and report each notebook as it ends.

    With ``alone``, their folder is not one of the profiles, and the front page does not know it.

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
        report.write_index(jobs[0].reports, alone)
    if jobs:
        report.write_index(jobs[0].reports, alone)
    return sorted(outcomes, key=lambda outcome: outcome.name)


def run_one(
    notebook: str, parameters: dict, reports: Path, *, force: bool = False, say: Callable[[str], None] = say,
    typed_in: Path | None = None, folder: Path = notebooks.NOTEBOOKS,
) -> tuple[Outcome, Path]:  # fmt: skip
    """Run one notebook into a folder of its own, with an index page beside it: how it ended, and where its page is."""
    selected, size = notebooks.select([notebook], folder), parameters.get("profile", "standard")
    (planned,) = plan_jobs(selected, size, {}, parameters, reports, typed_in)
    job = replace(planned, reports=Path(reports).resolve())
    (outcome,) = run_jobs([job], force=force, say=say, alone=True)
    return outcome, job.page


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
