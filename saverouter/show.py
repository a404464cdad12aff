"""The tables: measured beside published, the paper's columns in the paper's order, the best value marked."""

from __future__ import annotations

import numpy as np
import pandas as pd
from IPython.display import HTML

from .experiments import Run
from .plots import short
from .published import main_results, published

COLUMNS = {"peak_score": "P_s", "cost_ratio": "CR", "sa_bep": "SA-BEP", "sa_cr": "SA-CR@1M"}
RISING = {"P_s"}
CHOSEN = "chosen on test outcomes"  # said by every table of operating points


def measured(runs: dict[str, Run]) -> pd.DataFrame:
    """A row a router: the paper's four metrics, C_0, how much was bought, and what differs from the publication."""
    rows = {
        name: {**{title: done.result.metrics()[key] for key, title in COLUMNS.items()},
               "C_0": done.result.supervision_cost, "bought": done.supervision_share, "notes": done.note}
        for name, done in runs.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"router ({CHOSEN})")


def beside_published(benchmark: str, runs: dict[str, Run]) -> pd.DataFrame:
    """Table 1 for one benchmark: each metric measured (simulated data) and published, and notes."""
    paper = main_results(benchmark)[list(COLUMNS)].rename(columns=COLUMNS)
    here = measured(runs).reindex(paper.index)
    both = pd.concat({"measured": here[list(COLUMNS.values())], "published": paper}, axis=1).swaplevel(axis=1)
    both = both[[(metric, kind) for metric in COLUMNS.values() for kind in ("measured", "published")]]
    both[("notes", "")] = here["notes"]
    return both.rename_axis(f"method ({CHOSEN})")


def synthetic_point(benchmark: str, runs: dict[str, Run]) -> pd.DataFrame:
    """Cost ratios without and with the point that no policy realises, beside the published ones."""
    paper = main_results(benchmark)["cost_ratio"]
    rows = {
        name: {"CR": done.result.cost_ratio, "CR with the synthetic point": done.result.at(synthetic_best_point=True).cost_ratio,
               "CR published": paper.get(name, np.nan)}
        for name, done in runs.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"router ({CHOSEN})")


def supervision(benchmark: str, runs: dict[str, Run]) -> pd.DataFrame:
    """What the routers with partial feedback were charged, as a share of dense supervision, beside the paper's charge."""
    paper = (
        published("supervision")
        .query("benchmark == @benchmark")
        .set_index(["method", "accounting"])["supervision_cost"]
    )
    facts = published("aggregates").query("benchmark == @benchmark").set_index("aggregate")
    dense = facts.loc["dense supervision cost", "value"]
    rows = {}
    for name, accounting in paper.index:
        if name in runs:
            done = runs[name]
            charged = done.cached if accounting == "cached" else done.result
            rows[name, accounting] = {
                "charged here": charged.supervision_cost / done.dense_cost,
                "charged in the paper": paper[name, accounting] / dense,
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["router", "accounting"])


def pretty(table: pd.DataFrame, caption: str = "", key: str = "table") -> HTML:
    """A table as the paper prints it: four decimals, 5.3K, inf, and the best of each column in bold.

    ``key`` makes the table's HTML the same every time; two tables of a page need two keys.
    """
    metric_of = {column: (column[0] if isinstance(column, tuple) else column) for column in table.columns}
    written = {c: _writer(metric) for c, metric in metric_of.items()}
    styled = table.style.format(written, na_rep="").set_caption(caption).set_uuid(key)
    for column, metric in metric_of.items():
        if metric in COLUMNS.values():
            styled = styled.apply(_bold_best, subset=[column], rising=metric in RISING)
    return HTML(styled.to_html())


def _writer(metric: str):
    if metric == "SA-BEP":
        return short
    if metric == "notes":
        return str
    if metric == "bought":
        return lambda share: f"{share:.0%}"
    if metric == "C_0":
        return lambda cost: f"{cost:,.2f}"
    return lambda value: f"{value:.4f}" if isinstance(value, float) and np.isfinite(value) else str(value)


def _bold_best(column: pd.Series, rising: bool) -> list[str]:
    finite = column[np.isfinite(column)]
    best = np.nan if finite.empty else finite.max() if rising else finite.min()
    return ["font-weight: bold" if value == best else "" for value in column]


def claims(statements: dict[str, bool | None]) -> pd.DataFrame:
    """Statements of the paper and whether they hold on the data at hand; None is for what cannot be tested here."""
    words = {True: "holds", False: "does not hold", None: "not testable here"}
    found = [words[None if value is None else bool(value)] for value in statements.values()]
    return pd.DataFrame({"claim": list(statements), "here": found}).set_index("claim")
