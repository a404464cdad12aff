"""Tables kept from whole runs, which README and notebooks quote: ``python -m saverouter.workbook.measured``.

They are read from a finished report (``make reproduce`` first) and written to ``data/measured``; the first line of each says by
which command it was made. ``--full-size`` computes the one table that a report at ``standard`` cannot give: SaveRouter, kNN and
InferenceDynamics on whole benchmarks, over five seeds.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ..errors import SaveRouterError
from ..files import atomic_path, data_folder
from ..paper import published
from ..progress import exit_status
from ..studies import designs, scenarios, splits
from . import figures, front, jobs, notebooks
from .outputs import as_text

SEEDS = range(42, 47)
HALVES = 50


def main(arguments: list[str] | None = None) -> int:
    """Write the tables; exit status 0, or 2 where there is no finished report."""
    parser = argparse.ArgumentParser("python -m saverouter.workbook.measured", description=__doc__.split("\n\n")[1])
    parser.add_argument(
        "--full-size", action="store_true", help="compute and keep the full-size table: 20 minutes, 2 GB"
    )
    parser.add_argument("--halves", action="store_true", help="ask whether advice held on random halves: 4 minutes")
    parser.add_argument(
        "--report", type=Path, default=jobs.ROOT / "reports" / "standard", help="folder of a finished report"
    )
    parser.add_argument("--to", type=Path, default=data_folder() / "measured", help="folder to write to")
    options = parser.parse_args(arguments)
    if options.full_size or options.halves:
        work = full_size if options.full_size else advice_on_halves
        return exit_status(lambda: work(options.to))
    return exit_status(lambda: from_report(options.report, options.to))


def full_size(to: Path) -> None:
    """``full_size.csv``: the main row on whole benchmarks, once per seed."""
    table = designs.over_seeds(designs.workloads("all", "paper").values(), SEEDS)
    keep_table(table.drop(columns="benchmark"), to / "full_size.csv", "make measured FULL_SIZE=1")


def advice_on_halves(to: Path) -> None:
    """``halves.csv``: decided on a random half of a recorded workload, looked up on the other, as notebook 11 does."""
    tables = {work.name: scenarios.halves(work, range(HALVES)) for work in splits.recorded_workloads("paper")[0]}
    rows = []
    for name, table in (tables | {"all": pd.concat(tables.values())}).items():
        saving, quality = scenarios.held(table, 1.0)["held"]
        changed = table[table["action"].isin(["route", "replace"])]
        rows.append({"workload": name, "halves": len(table), "change advised": len(changed),
                     "saving in its interval": saving, "quality within 1 point": quality,
                     "saved": (changed["saved"] / changed["reference bill"]).mean(),
                     "worst difference": changed["difference"].min()})  # fmt: skip
    keep_table(pd.DataFrame(rows), to / "halves.csv", "make measured HALVES=1")


def from_report(report: Path, to: Path) -> None:
    """What the front page shows, as tables, and its first figure as a picture for the README."""
    paths = {path.stem[:2]: path for path in notebooks.all_notebooks(report / "notebooks")}
    entries = {number: {"name": path.stem, "card": notebooks.card(path)} for number, path in paths.items()}
    places, groups = front.read_places(report, entries), front.read_claims(report, entries)
    if not places or not groups:
        raise SaveRouterError(f"no finished report in {report}; run 'make reproduce' first")
    command = f"make reproduce PROFILE={report.name} && make measured"
    rows = front.payback_rows(places)
    table = payback_table(places, rows)
    keep_table(table, to / "payback.csv", command)
    pairs = [front.need_rows(place) for place in places]
    answers = [
        front.payback_answer(rows),
        front.router_answer([found for found in pairs if found]),
        front.claims_answer(groups),
    ]
    keep_table(pd.DataFrame([told for told in answers if told]), to / "answers.csv", command)
    singles = pd.DataFrame([row for found in pairs for row in found])
    shown = singles.drop(columns=["needless", "cheaper"])
    keep_table(
        shown.rename(columns={"label": "workload", "margin": "points below the best"}),
        to / "without_router.csv",
        command,
    )
    keep_table(claims_table(groups), to / "claims.csv", command)
    recorded = report / "tables" / "09_workloads.csv"
    if recorded.is_file():
        about = pd.read_csv(recorded, dtype=str).replace("–", "")
        keep_table(about.assign(queries=about["queries"].str.replace(",", "")), to / "recorded.csv", command)
    figures.style()
    title = front.payback_answer(rows)["title"]
    drawn = figures.hero(table, title, f"queries until the supervision is paid back, log scale; profile {report.name}; "
                         "hollow: published; bars: range over seeds")  # fmt: skip
    with atomic_path(to / "payback.png") as temporary:
        drawn.savefig(temporary, dpi=130, format="png")
    plt.close(drawn)


def payback_table(places: list[front.Place], rows: list[dict]) -> pd.DataFrame:
    """The rows of the front page's first figure, as a table."""
    found = []
    paper = pd.concat([published("main_results"), published("large_pool")]).set_index(["benchmark", "method"])[
        "cost_ratio"
    ]
    for place, row in zip(places, rows, strict=True):
        drawn = place.seeds.get(front.OURS, [])
        never = sum(map(math.isinf, drawn))
        ours, rival = row["marks"][0], (row["marks"][1:] or [{}])[0]
        found.append({
            "workload": row["label"], "source": row["source"], "saverouter": ours["payback"],
            "cost_ratio": place.results[front.OURS].cost_ratio,
            "next_router": rival.get("router", ""), "next": rival.get("payback"), "published_saverouter": ours["published"],
            "published_cost_ratio": paper.get((row["label"], front.OURS)), "published_next": rival.get("published"),
            "low": min(ours["seeds"], default=None), "high": max(ours["seeds"], default=None),
            "never": f"{never} of {len(drawn)}" if never else "",
        })  # fmt: skip
    return pd.DataFrame(found).astype(
        {name: float for name in ("next", "published_saverouter", "published_next", "low", "high")}
    )


def claims_table(groups: list[dict]) -> pd.DataFrame:
    """Every statement of the paper, and how many of each notebook hold."""
    rows = [{"notebook": group["name"], "statement": claim["statement"], "published": claim["there"], "here": claim["here"],
             "published numbers": claim["published"], "measured numbers": claim["numbers"]}
            for group in groups for claim in group["claims"]]  # fmt: skip
    return pd.DataFrame(rows)


def _digits(number: float) -> str:
    """Eight digits, without an exponent."""
    return np.format_float_positional(number, precision=8, fractional=False, trim="-")


def keep_table(table: pd.DataFrame, path: Path, command: str) -> None:
    """Write a table with its command in the first line."""
    with atomic_path(path) as temporary:
        rows = as_text(table.to_csv(index=False, float_format=_digits, lineterminator="\r\n"))
        temporary.write_text(f"# {command}\n{rows}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
