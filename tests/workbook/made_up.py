"""Small made-up tables, as notebooks leave them for the front page, and the page that is made of them."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from saverouter.judging import Reference, Result
from saverouter.studies import Run
from saverouter.workbook import report, tables

HOSTILE = """<img src=x onerror="document.title='hit'"></script><b>'&"""
SIMULATED = "simulated/llmrouterbench"


def run(workload, router, points, *, best=("big", 0.8, 0.01), supervision=10.0, spent=6.0) -> Run:
    """A run whose frontier is (policy, quality, cost, part of the cost that the best model takes)."""
    frontier = pd.DataFrame(points, columns=["policy", "quality", "cost", "reference_cost"])
    return Run(
        Result(router, workload, frontier, Reference(*best), supervision), 1, 1, 1, supervision, supervision, spent
    )


def runs() -> dict[str, dict[str, Run]]:
    """SaveRouter pays back after 2,000 queries, first, on the one workload, and never on the other, where kNN does."""
    good = [
        ("cost weight 9", 0.7, 0.001, 0.0),
        ("cost weight 2", 0.79, 0.0035, 0.002),
        ("cost weight 1", 0.81, 0.005, 0.004),
    ]
    late = [("lambda 3", 0.75, 0.006, 0.005), ("lambda 1", 0.8, 0.0075, 0.007)]
    poor = [("cost weight 1", 0.5, 0.01, 0.0), ("cost weight 0", 0.55, 0.02, 0.002)]
    mine = [("lambda 1", 0.6, 0.025, 0.02)]
    own = {"best": (HOSTILE, 0.6, 0.03), "supervision": 40.0, "spent": 30.0}
    return {
        SIMULATED: {
            "SaveRouter": run(SIMULATED, "SaveRouter", good),
            "kNN": run(SIMULATED, "kNN", late, supervision=50.0),
        },
        HOSTILE: {"kNN": run(HOSTILE, "kNN", mine, **own), "SaveRouter": run(HOSTILE, "SaveRouter", poor, **own)},
    }


def singles() -> pd.DataFrame:
    rows = [(SIMULATED, "big", 0.8, 0.01), (SIMULATED, "small", 0.79, 0.002), (HOSTILE, HOSTILE, 0.6, 0.03)]
    return pd.DataFrame([*rows, (HOSTILE, "b", 0.56, 0.001)], columns=["workload", "model", "quality", "cost"])


def seeds() -> pd.DataFrame:
    values = {"SaveRouter": (1500.0, 2600.0, float("inf")), "kNN": (15_000.0, 25_000.0, 40_000.0)}
    rows = [(SIMULATED, name, seed, value) for name, found in values.items() for seed, value in enumerate(found)]
    return pd.DataFrame(rows, columns=["workload", "method", "seed", "sa_bep"])


def claims() -> pd.DataFrame:
    rows = {
        "SaveRouter pays back first": ("holds", "holds", "SaveRouter 5.3K; kNN 9K", "SaveRouter 2K; kNN 20K"),
        f"It beats {HOSTILE}": ("holds", "does not hold", "peak 0.81", f"{HOSTILE} 0.79"),
        "It needs 12 models": ("not in the table", "not testable here", "", ""),
    }
    columns = ["published table", "here", "published numbers", "measured numbers"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("the paper says")


ALL = ("frontiers", "singles", "seeds", "claims")


def write(reports: Path, kinds: tuple[str, ...] = ALL, profile: str = "standard") -> Path:
    """Leave what a finished notebook 02 does, with these tables; gives the profile's folder."""
    folder = reports / profile
    for name in ("notebooks", ".done", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    made = {"frontiers": tables.frontiers(runs()), "singles": singles(), "seeds": seeds(), "claims": claims()}
    for kind in kinds:
        made[kind].to_csv(folder / "tables" / f"02_{kind}.csv", index=kind == "claims")
    cells = [
        new_markdown_cell(f"# Main {HOSTILE}\n\n> Who pays {HOSTILE}?"),
        new_code_cell(f'profile = "{profile}"', metadata={"tags": ["parameters"]}),
        new_code_cell("verdict", outputs=[new_output("stream", text=HOSTILE)], metadata={"tags": ["verdict"]}),
        new_code_cell("judged", outputs=[new_output("stream", text="judged")], metadata={"tags": ["claims"]}),
    ]
    path = folder / "notebooks" / "02_main.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    report.write_page(path, path.with_suffix(".html"))
    marker = {"parameters": {"profile": profile}, "files": [f"tables/02_{kind}.csv" for kind in kinds]}
    (folder / ".done" / "02_main.json").write_text(json.dumps(marker))
    report.write_index(folder)
    return folder
