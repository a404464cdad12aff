"""The command ``python -m saverouter decide my.csv``: the decision on a table as text, as JSON or as a report.

It says first what it will take. Prompts that were encoded stay encoded: interrupted, the same command goes on.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from pathlib import Path

from ..encoders import foreseen
from ..progress import duration, exit_status, listening, say
from ..studies.decision import decide, refuse_question
from ..workloads import Workload, load
from .inputs import safe_name
from .runner import run_one

REPORTS = Path(__file__).resolve().parents[2] / "reports" / "decide"
NOTEBOOK = "11"
WHOLE = "paper"  # the profile that samples nothing, so that a page and a text decide alike
READING = ("columns", "scale", "prices")
ASKED = ("reference", "monthly", "margin", "confidence", "currency", "k")


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 all fine, 1 the report failed, 2 unusable input, 130 interrupted."""
    options = with_table(commands().parse_args(arguments))
    work = answered if options.report is None else reported
    with listening(sys.stderr):
        return exit_status(lambda: work(options), "what was encoded is kept; the same command goes on from there")


def commands() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        "python -m saverouter", description="Does LLM routing pay for itself?", allow_abbrev=False
    )
    known = whole.add_subparsers(dest="command", required=True)
    one = known.add_parser("decide", help="from a table of outcomes to a decision", allow_abbrev=False,
                              description=__doc__.split("\n\n")[1].replace("\n", " "))  # fmt: skip
    one.add_argument("data", nargs="?", help="a table (CSV, TSV, JSON, JSONL, Parquet) or the name of a workload, e.g. "
                     "recorded/sensebench")  # fmt: skip
    one.add_argument("--reference", help="the model in use today (the best single model)")
    one.add_argument("--monthly", type=_amount, default=100_000, help="queries a month (100,000)")
    one.add_argument("--margin", type=float, default=1.0, help="points of quality that may be lost (1)")
    one.add_argument("--confidence", type=float, default=0.9, help="of the promise and of the intervals (0.9)")
    one.add_argument("--currency", help="what a cost of 1 is, e.g. USD")
    one.add_argument("--k", type=int, help="outcomes bought per training query (as many as the volume is worth)")
    one.add_argument("--columns", type=literal, metavar="DICT", help="""other headers: '{"query_id": "id"}'""")
    one.add_argument("--scale", type=literal, metavar="LOW,HIGH", help="of the quality column: 1,5")
    one.add_argument(
        "--prices", type=literal, metavar="DICT", help="""of input and output tokens: '{"gpt": (2.5e-6, 1e-5)}'"""
    )
    one.add_argument("--json", action="store_true", help="print the decision as JSON")
    one.add_argument("--save", type=Path, metavar="FOLDER", help="write the fitted router with its certified policy")
    one.add_argument("--report", type=Path, nargs="?", const=REPORTS, metavar="FOLDER",
                     help="run the notebook as well, and write its page and the router (reports/decide)")  # fmt: skip
    one.set_defaults(refuse=one.error)
    return whole


def with_table(options: argparse.Namespace) -> argparse.Namespace:
    """``--report my.csv`` takes the table for the folder: where no table is left, that word was it."""
    if options.data is None and options.report not in (None, REPORTS):
        options.data, options.report = str(options.report), REPORTS
    if options.data is None:
        options.refuse("name your table, e.g. outcomes.csv")
    return options


def _amount(text: str) -> float:
    """A number, without a decimal point where it is whole: 2e6 as 2000000."""
    value = float(text)
    return int(value) if value.is_integer() else value


def literal(text: str):
    """A dictionary or a pair as Python writes them."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise argparse.ArgumentTypeError(f"{text!r} is no dictionary or pair, e.g. 1,5") from None


def answered(options: argparse.Namespace) -> int:
    """Print the decision."""
    work = foreseen_table(options)
    found = decide(work, **{name: getattr(options, name) for name in ASKED})
    if options.save is not None:
        say(f"router: {found.save(options.save)}")
    print(printed(found.to_dict(), options))
    return 0


def printed(decision: dict, options: argparse.Namespace) -> str:
    """The decision and what a careful person would warn of, or all of it as JSON."""
    if options.json:
        return json.dumps(decision, indent=1)
    reason = decision["reason"]
    untold = [warning for warning in decision["warnings"] if not reason or reason not in warning]
    return "\n".join([decision["says"], *([""] if untold else []), *untold])


def foreseen_table(options: argparse.Namespace) -> Workload:
    """The table; what is about to be done with it, and how long that takes, is said before it starts."""
    work = load(options.data, **given(options, READING))
    refuse_question(work, options.reference, options.monthly, options.margin, options.confidence)
    new, seconds = (0, 0.0) if work.vectors is not None else foreseen(work.prompts)
    size = f"{len(work):,} queries x {len(work.models)} models"
    say(f"{size}; {new:,} prompts are to be encoded first, about {duration(seconds)}" if new else size)
    return work


def given(options: argparse.Namespace, names: tuple[str, ...]) -> dict:
    """The options that were given, by name."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def reported(options: argparse.Namespace) -> int:
    """Run the notebook into a folder of its own; print the decision and where the page is."""
    foreseen_table(options)
    folder = options.report / safe_name(Path(options.data).stem)
    asked = {"data": options.data, "profile": WHOLE, **given(options, (*ASKED, *READING))}
    outcome, _ = run_one(NOTEBOOK, asked, folder)
    if outcome.status == "failed":
        print(f"error: {outcome.message}", file=sys.stderr)
        return 1
    decision = json.loads((folder / "decision.json").read_text(encoding="utf-8"))
    print(printed(decision, options))
    say(f"report: {folder / 'index.html'}")
    if decision["policy"] is not None:
        say(f"router: {folder / 'router'}")
    return 0
