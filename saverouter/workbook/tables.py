"""The tables: measured beside published, the paper's columns in the paper's order, words instead of symbols."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd
from IPython.display import HTML

from ..judging import SELECTIONS
from ..paper import main_results, published
from ..paper.claims import FAILS
from ..studies import Run
from .figures import short

COLUMNS = {"peak_score": "peak score", "cost_ratio": "cost ratio", "sa_bep": "pays back after", "sa_cr": "bill over 1M"}
CHOSEN = SELECTIONS["test"]  # said by every table of the paper's operating points


def measured(runs: dict[str, Run]) -> pd.DataFrame:
    """One row per router: the paper's four metrics, C_0, how much was bought, and what differs from the publication."""
    rows = {
        name: {**{title: done.result.metrics()[key] for key, title in COLUMNS.items()},
               "supervision cost": done.result.supervision_cost, "bought": done.supervision_share, "notes": done.note}
        for name, done in runs.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"router ({selections(runs)})")


def selections(runs: dict[str, Run]) -> str:
    """How the operating points of some runs were chosen, in the results' own words."""
    return ", ".join(dict.fromkeys(SELECTIONS[done.result.selection] for done in runs.values())) or CHOSEN


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
    return both.rename_axis(f"method ({selections(runs)})")


def synthetic_point(benchmark: str, runs: dict[str, Run]) -> pd.DataFrame:
    """Cost ratios without and with the point that no policy realises, beside the published ones."""
    paper = main_results(benchmark)["cost_ratio"]
    rows = {
        name: {"cost ratio": done.result.cost_ratio,
               "with the synthetic point": done.result.at(synthetic_best_point=True).cost_ratio,
               "published": paper.get(name, np.nan)}
        for name, done in runs.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"router ({selections(runs)})")


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
    """One row per method, one column per quality target: "cost ratio / pays back after / bill over 1M", as in the paper."""
    entries = table.assign(entry=[
        _entry(*values) for values in zip(table["cost_ratio"], table["sa_bep"], table["sa_cr"], strict=True)
    ])  # fmt: skip
    wide = entries.pivot(index="method", columns="target", values="entry").reindex(table["method"].unique())
    return wide.rename(columns=lambda target: f"{100 * target:g}%").rename_axis(
        columns=None, index=f"method ({CHOSEN})"
    )


def _entry(cost: float, volume: float, bill: float) -> str:
    if not np.isfinite(cost):
        return "not reached"
    return f"{_ratio(cost)} / {short(volume)} / {_ratio(bill)}" if np.isfinite(volume) else f"{_ratio(cost)} / never"


def frontiers(runs: dict[str, dict[str, Run]]) -> pd.DataFrame:
    """Every operating point on the frontiers of runs by workload and router, with what its bill is made of.

    The report's front page answers its what-if questions from this table.
    """
    parts = []
    for workload, by_router in runs.items():
        for router, done in by_router.items():
            result = done.result
            points = result.frontier.rename(columns={"reference_cost": "reference_part"})
            same = {"workload": workload, "router": router, "reference": result.reference.model,
                    "reference_quality": result.reference.quality, "reference_cost": result.reference.cost,
                    "supervision_cost": result.supervision_cost, "reference_spent": done.reference_spent}  # fmt: skip
            parts.append(points.assign(**same)[[*same, *points.columns]])
    return pd.concat(parts, ignore_index=True)


def leaders(table: pd.DataFrame, metric: str) -> pd.Series:
    """The method with the lowest finite value of a metric, by benchmark and target; "nobody" where there is none."""
    groups = table.groupby(["benchmark", "target"], sort=False)
    return groups.apply(
        lambda rows: rows.loc[rows[metric].idxmin(), "method"] if np.isfinite(rows[metric]).any() else "nobody"
    )


def pretty(table: pd.DataFrame, caption: str = "", key: str = "table", mark: bool = True) -> HTML:
    """A table for reading: three digits, 5.3K, "never", and with ``mark`` a column's best in bold where there is one.

    ``key`` makes the table's HTML the same every time; two tables of a page need two keys. Names are shown as text,
    whatever they hold.
    """
    metric_of = {column: (column[0] if isinstance(column, tuple) else column) for column in table.columns}
    written = {column: _escaped(_writer(metric)) for column, metric in metric_of.items()}
    styled = table.style.format(written).set_caption(escape(caption)).set_uuid(key)
    styled = styled.format_index(_label).format_index(_label, axis=1).set_table_styles([
        {"selector": "th.row_heading", "props": "text-align: left; font-weight: normal"},
        {"selector": "th.col_heading", "props": "text-align: center"},
        {"selector": "caption", "props": "text-align: left"},
    ])  # fmt: skip
    for column, metric in metric_of.items():
        if mark and metric in COLUMNS.values():
            styled = styled.apply(_bold_best, subset=[column], metric=metric)
    return HTML(styled.to_html())


def judged(table: pd.DataFrame) -> HTML:
    """The paper's statements, whether they hold (``claims.judge``) and by which numbers; what fails here in bold."""
    styled = table.style.format(escape).format_index(_label).set_uuid("claims").set_table_styles([
        {"selector": "th, td", "props": "text-align: left; white-space: normal; vertical-align: top"},
        {"selector": "th.row_heading", "props": "font-weight: normal"},
    ])  # fmt: skip
    return HTML(styled.map(lambda found: "font-weight: bold" if found == FAILS else "", subset=["here"]).to_html())


def amount(value: float) -> str:
    """9.89 with two decimals, 12.3K from ten thousand on, 0.00012 where two would show nothing; in any unit."""
    if not np.isfinite(value):
        return "–"
    if abs(value) >= 9_999.5:
        return ("-" if value < 0 else "") + short(abs(value))
    return f"{value:,.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def folded(summary: str, *parts: HTML) -> HTML:
    """Tables behind a line that opens them."""
    return HTML(f"<details><summary>{escape(summary)}</summary>{''.join(part.data for part in parts)}</details>")


def _escaped(write):
    """A Styler leaves what a formatter returns as it is, so that text is escaped here."""
    return lambda value: escape(value if isinstance(value, str) else write(value))


def _label(label) -> str:
    """A row's or column's name: floats without trailing zeros, anything else as text."""
    return f"{label:g}" if isinstance(label, float) else escape(str(label))


QUERIES = {"pays back after", "earliest payback", "latest payback", "queries until it beats k=1"}
POINTS = {"points above", "mean lead", "from", "to"}
SHARES = {"bought", "supervision", "cost share"}


def _writer(metric: str):
    """How a column's values are written, by its name."""
    if metric in QUERIES:
        return short
    if metric in POINTS:
        return lambda points: f"{points + 0.0:.1f}" if np.isfinite(points) else "–"
    if metric == "observations":
        return lambda number: f"{number:,.0f}" if np.isfinite(number) else "–"
    if metric in SHARES:
        return lambda share: f"{share:.0%}" if np.isfinite(share) else "–"
    if metric == "bill over 1M":
        return lambda bill: "–" if np.isinf(bill) else _ratio(bill)
    return _ratio


def _ratio(value) -> str:
    """0.232 with three decimals, 22,000 and 58,642 without, "not reached" for inf, a dash for a gap; text as it is."""
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "not reached"
    return f"{value + 0.0:.3f}" if abs(value) < 10 else f"{value:,.0f}"


def _bold_best(column: pd.Series, metric: str) -> list[str]:
    """Bold for the best, unless several share it as written or it saves nothing."""
    values = pd.to_numeric(column, errors="coerce").where(lambda found: np.isfinite(found))
    if metric in ("cost ratio", "bill over 1M"):
        values = values.where(values.round(3) < 1)
    best = values.max() if metric == "peak score" else values.min()
    written = column.map(_writer(metric))
    first = written[values == best].unique()
    alone = len(first) == 1 and (written == first[0]).sum() == 1
    return ["font-weight: bold" if alone and value == best else "" for value in values]
