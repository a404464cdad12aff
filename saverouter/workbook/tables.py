"""The tables: measured beside published, the paper's columns in the paper's order, the best value marked."""

from __future__ import annotations

import numpy as np
import pandas as pd
from IPython.display import HTML

from ..paper import main_results, published
from ..paper.claims import FAILS
from ..studies import Run
from .figures import short

COLUMNS = {"peak_score": "P_s", "cost_ratio": "CR", "sa_bep": "SA-BEP", "sa_cr": "SA-CR@1M"}
RISING = {"P_s"}
CHOSEN = "chosen on test outcomes"  # said by every table of operating points


def measured(runs: dict[str, Run]) -> pd.DataFrame:
    """One row per router: the paper's four metrics, C_0, how much was bought, and what differs from the publication."""
    rows = {
        name: {**{title: done.result.metrics()[key] for key, title in COLUMNS.items()},
               "C_0": done.result.supervision_cost, "bought": done.supervision_share, "notes": done.note}
        for name, done in runs.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"router ({CHOSEN})")


def beside(
    measured: pd.DataFrame, paper: pd.DataFrame, keys: list[str], columns: dict[str, str] = COLUMNS
) -> pd.DataFrame:
    """Two frames of one study, matched by their keys: each metric measured here and published, in the paper's order.

    ``columns`` names the metrics and their titles; a metric that only one of the frames has stands alone.
    """
    frames = {"measured": measured, "published": paper}
    shared = measured[keys].drop_duplicates()
    parts = {}
    for metric, title in columns.items():
        for kind, frame in frames.items():
            if metric in frame:
                values = shared.merge(frame[[*keys, metric]], on=keys, how="left")[metric]
                parts[title, kind] = values.to_numpy()
    return pd.DataFrame(parts, index=pd.MultiIndex.from_frame(shared) if len(keys) > 1 else pd.Index(shared[keys[0]]))


def beside_published(benchmark: str, runs: dict[str, Run]) -> pd.DataFrame:
    """Table 1 for one benchmark: each metric measured and published, and notes."""
    return with_notes(runs, main_results(benchmark).reset_index())


def with_notes(runs: dict[str, Run], paper: pd.DataFrame) -> pd.DataFrame:
    """A published table of methods, the measured metrics beside it, and what differs from the publication."""
    here = measured(runs).rename(columns={title: key for key, title in COLUMNS.items()}).rename_axis("method")
    here = here.reindex(paper["method"])
    both = beside(here.reset_index(), paper, ["method"])
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
    """What the routers with sparse supervision were charged, as a share of dense supervision, beside the paper's charge."""
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


def by_target(table: pd.DataFrame) -> pd.DataFrame:
    """One row per method, one column per quality target, with entries "CR / SA-BEP / SA-CR@1M" as the paper prints them."""
    entries = table.assign(entry=[
        f"{_fixed(cost)} / {short(volume)} / {_fixed(bill)}"
        for cost, volume, bill in zip(table["cost_ratio"], table["sa_bep"], table["sa_cr"], strict=True)
    ])  # fmt: skip
    wide = entries.pivot(index="method", columns="target", values="entry").reindex(table["method"].unique())
    return wide.rename(columns=lambda target: f"{target:g} Q_b").rename_axis(columns=None, index=f"method ({CHOSEN})")


def leaders(table: pd.DataFrame, metric: str) -> pd.Series:
    """The method with the lowest finite value of a metric, by benchmark and target; "nobody" where there is none."""
    groups = table.groupby(["benchmark", "target"], sort=False)
    return groups.apply(
        lambda rows: rows.loc[rows[metric].idxmin(), "method"] if np.isfinite(rows[metric]).any() else "nobody"
    )


def pretty(table: pd.DataFrame, caption: str = "", key: str = "table", mark: bool = True) -> HTML:
    """A table as the paper prints it: four decimals, 5.3K, inf, and with ``mark`` the best of each column in bold.

    ``key`` makes the table's HTML the same every time; two tables of a page need two keys.
    """
    metric_of = {column: (column[0] if isinstance(column, tuple) else column) for column in table.columns}
    written = {c: _writer(metric) for c, metric in metric_of.items()}
    styled = table.style.format(written, na_rep="").set_caption(caption).set_uuid(key)
    styled = styled.set_table_styles([{"selector": "th.row_heading", "props": "text-align: left; font-weight: normal"}])
    styled = styled.format_index(lambda label: f"{label:g}" if isinstance(label, float) else str(label))
    for column, metric in metric_of.items():
        if mark and metric in COLUMNS.values():
            styled = styled.apply(_bold_best, subset=[column], rising=metric in RISING)
    return HTML(styled.to_html())


def judged(table: pd.DataFrame) -> HTML:
    """The paper's statements and whether they hold (``claims.judge``), those that do not hold here in bold."""
    styled = table.style.set_uuid("claims").set_table_styles([
        {"selector": "th.row_heading", "props": "text-align: left; font-weight: normal; white-space: normal"},
        {"selector": "td", "props": "white-space: nowrap"},
    ])  # fmt: skip
    return HTML(styled.map(lambda found: "font-weight: bold" if found == FAILS else "", subset=["here"]).to_html())


def _writer(metric: str):
    if metric in ("SA-BEP", "earliest payback", "latest payback"):
        return short
    if metric in ("points above", "mean lead", "from", "to"):
        return lambda points: f"{points:.1f}"
    if metric == "observations":
        return lambda number: f"{number:,.0f}"
    if metric == "notes":
        return lambda note: note if isinstance(note, str) else ""
    if metric in ("bought", "supervision", "cost share"):
        return lambda share: f"{share:.0%}"
    if metric == "C_0":
        return lambda cost: f"{cost:,.2f}"
    return _fixed


def _fixed(value) -> str:
    """0.2320 as the paper prints it, 22,000 and 58,642.25 from 10 on; anything that is not finite as it is."""
    if not isinstance(value, float) or not np.isfinite(value):
        return str(value)
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}".removesuffix(".00")


def _bold_best(column: pd.Series, rising: bool) -> list[str]:
    finite = column[np.isfinite(column)]
    best = np.nan if finite.empty else finite.max() if rising else finite.min()
    return ["font-weight: bold" if value == best else "" for value in column]
