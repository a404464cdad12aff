"""The command that reproduces everything: ``python -m saverouter.workbook.reproduce --profile standard``.

It says what a run will take, runs the notebooks, and leaves HTML, tables, figures and an index page in
``reports/<profile>/``. Started again after an interruption, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import ast
import os
import signal
import sys
import time
from pathlib import Path

from ..errors import SaveRouterError
from ..progress import duration, exit_status, listening, say
from ..studies import PROFILES, profile
from . import notebooks, runner
from .jobs import ROOT, Job, plan_jobs

# Minutes of one core that a notebook takes with an empty cache, at each of PROFILES, without the runs of Table 1. One
# without a row was not measured. At paper they are those of one run that followed one at standard, but for 13, which was not
# run there: it has twice the splits.
MINUTES: dict[str, tuple[float, float, float]] = {
    "00": (0.5, 2, 2), "01": (0.3, 1, 1), "02": (0.3, 1, 2), "03": (0.3, 0.5, 0.5), "04": (0.5, 3, 6), "05": (0.2, 0.2, 0.5),
    "06": (0.2, 0.5, 1), "07": (0.5, 3, 30), "08": (1, 7, 47), "09": (1.5, 7, 14), "10": (0.5, 5, 8),
    "11": (0.3, 0.5, 0.5), "12": (0.5, 1.5, 2), "13": (1, 7, 14),
}  # fmt: skip
# Those runs: eleven routers on four benchmarks, computed once for the notebooks that show them.
SHARED, SHARED_BY = (1.5, 10.0, 80.0), ("02", "05", "06", "07")
# Megabytes that the cache and the reports take in the end, at each of PROFILES.
MEGABYTES = (200, 1_300, 4_500)


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 all fine, 1 a notebook failed, 2 unusable arguments, 130 interrupted."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that files and kernels are cleared away
    with listening(sys.stdout):
        return exit_status(lambda: _asked(options), "what had finished is kept; the same command goes on from there")


def _asked(options: argparse.Namespace) -> int:
    selected = notebooks.select(_split(options.notebook), options.notebooks)
    if options.list:
        return list_notebooks(selected)
    if options.refresh:
        return refresh_all(selected, notebooks.TWINS if options.notebooks == notebooks.NOTEBOOKS else None)
    return reproduce(selected, options)


def parser() -> argparse.ArgumentParser:
    description = __doc__.split("\n\n")[1]
    parser = argparse.ArgumentParser(
        "python -m saverouter.workbook.reproduce", description=description, allow_abbrev=False
    )
    parser.add_argument("--profile", default="standard", help=f"size of the run: {', '.join(PROFILES)} (standard)")
    parser.add_argument("--notebook", action="append", metavar="NN", help="only these: 02, or 00,02 (all)")
    parser.add_argument("--benchmark", help="for the notebooks that have this parameter")
    parser.add_argument("--source", help="simulated, or original once 'make data' has fetched them (simulated)")
    parser.add_argument("--settings", help="SaveRouter's in notebook 02: paper, or release (paper)")
    parser.add_argument("--seed", type=int, help="for the notebooks that have this parameter")
    parser.add_argument("--workload", help="a name, or the path of your own table, for the notebooks that take one")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other parameter")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time (1)")
    parser.add_argument("--force", action="store_true", help="run again what is done already")
    parser.add_argument("--list", action="store_true", help="show the notebooks and their parameters, and stop")
    parser.add_argument("--refresh", action="store_true", help="execute the notebooks in place, and write tests/smoke")
    parser.add_argument("--notebooks", type=Path, default=notebooks.NOTEBOOKS, help="folder to read notebooks from")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder to write reports to")
    return parser


def reproduce(selected: list[Path], options: argparse.Namespace) -> int:
    """Plan, say what it takes, run, and say where the results are."""
    given = {name: getattr(options, name) for name in ("benchmark", "source", "settings", "seed", "workload")}
    optional = {name: value for name, value in given.items() if value is not None}
    required = dict(_assignment(text) for text in options.set)
    jobs = plan_jobs(selected, profile(options.profile).name, optional, required, options.reports)
    for name, path, by in read_files(jobs):
        say(f"{name}: {shown(path)}, read by {by}")
    waiting = [job for job in jobs if options.force or not job.is_done()]
    say(f"profile {options.profile}, {len(jobs)} notebook(s), {len(waiting)} to run: {estimate(waiting, options.jobs)}")
    outcomes = runner.run_jobs(jobs, at_a_time=max(1, options.jobs), force=options.force, minutes=minutes)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    own = jobs[0].reports / "index.html"
    say(f"report: {shown(own.parents[1] / own.name)}, for this profile {shown(own)}")
    if failed:
        say(f"{len(failed)} of {len(jobs)} failed: {', '.join(outcome.name for outcome in failed)}")
        say(f"their outputs up to the error: {shown(jobs[0].failed.parent)}/*.failed.ipynb")
    return 1 if failed else 0


def read_files(jobs: list[Job]) -> list[tuple[str, Path, str]]:
    """Parameter, file and notebooks, for every file that the jobs will read."""
    asked = {}
    for job in jobs:
        for name, path in job.files.items():
            asked.setdefault((name, path), []).append(job.name)
    return [(name, path, ", ".join(by)) for (name, path), by in asked.items()]


def refresh_all(selected: list[Path], twins: Path | None) -> int:
    """Regenerate the outputs that are committed, and the small twins that the tests run."""
    for path in selected:
        start = time.monotonic()
        say(f"{path.stem}: started")
        with runner.environment(SAVEROUTER_PROGRESS="log"):
            notebooks.refresh(path, twins)
        say(f"{path.stem}: refreshed after {duration(time.monotonic() - start)}")
    return 0


def list_notebooks(selected: list[Path]) -> int:
    for path in selected:
        declared = notebooks.declared_parameters(path)
        say(f"{path.stem}  {notebooks.card(path).title}")
        say("    " + ", ".join(f"{name}={value!r}" for name, value in declared.items()))
    return 0


def estimate(jobs: list[Job], at_a_time: int = 1) -> str:
    """Time and disk, before a run starts."""
    if not jobs:
        return "nothing has changed since they finished"
    column = PROFILES.index(jobs[0].parameters["profile"])
    known = [MINUTES[job.name[:2]][column] for job in jobs if job.name[:2] in MINUTES and not job.files]
    shared = SHARED[column] if any(job.name[:2] in SHARED_BY for job in jobs) else 0
    together = max(1, min(at_a_time, 2, len(jobs)))
    time_needed = [f"about {duration(60 * (sum(known) + shared) / together)} on two cores"] if known else []
    if len(known) < len(jobs):
        time_needed.append(f"{len(jobs) - len(known)} not timed yet")
    return f"{' and '.join(time_needed)}, up to {MEGABYTES[column]:,} MB of disk"


def minutes(job: Job) -> float:
    """How long a notebook takes at its profile, to start the longest first; one that was never timed may be the longest.

    Shared runs count for the first that needs them: two that begin with the same runs would wait for each other.
    """
    row, column = MINUTES.get(job.name[:2]), PROFILES.index(job.parameters["profile"])
    return row[column] + SHARED[column] * (job.name[:2] == SHARED_BY[0]) if row else float("inf")


def shown(path: Path) -> str:
    """A path as short as it can be written from here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _split(names: list[str] | None) -> list[str]:
    chosen = [name for text in names or [] for name in text.replace(",", " ").split()]
    return [] if "all" in chosen else chosen


def _assignment(text: str) -> tuple[str, object]:
    """``k=4`` as a number, ``policy=random`` as a text."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise SaveRouterError(f"'--set {text}' is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


if __name__ == "__main__":
    sys.exit(main())
