"""The tables: measured beside published, the paper's columns in the paper's order, the best value marked."""

from __future__ import annotations

import numpy as np
import pandas as pd
from IPython.display import HTML

from .experiments import Run
from .plots import short
from .published import main_results

COLUMNS = {"peak_score": "P_s", "cost_ratio": "CR", "sa_bep": "SA-BEP", "sa_cr": "SA-CR@1M"}
RISING = {"P_s"}
CHOSEN = "chosen on test outcomes"  # said by every table of operating points


def measured(runs: dict[str, Run]) -> pd.DataFrame:
    """A row a router: the paper's four metrics, C_0 and the share of training outcomes bought."""
    rows = {
        name: {**{title: done.result.metrics()[key] for key, title in COLUMNS.items()},
               "C_0": done.result.supervision_cost, "bought": done.supervision_share}
        for name, done in runs.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"router ({CHOSEN})")


def beside_published(benchmark: str, runs: dict[str, Run]) -> pd.DataFrame:
    """Table 1 for one benchmark: each metric measured (simulated data) and published, methods without a router here blank."""
    paper = main_results(benchmark)[list(COLUMNS)].rename(columns=COLUMNS)
    here = measured(runs)[list(COLUMNS.values())].reindex(paper.index)
    both = pd.concat({"measured": here, "published": paper}, axis=1).swaplevel(axis=1)
    return both[[(metric, kind) for metric in COLUMNS.values() for kind in ("measured", "published")]].rename_axis(
        f"method ({CHOSEN})"
    )


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
