"""Is it the benchmark of the paper? Published facts of the data beside those of the workload at hand.

Sizes, the best single model, dense supervision and what SaveRouter's purchases cost are determined by the files, their
order, the split and the order of random numbers. A loader that is wrong in any of these shows here.
"""

from __future__ import annotations

import pandas as pd

from .paths import data_folder
from .simulate import aggregates, calibration
from .workload import Workload

DERIVED = 0.005  # relative; what was computed back from rounded tables is no better known
EXPLAINED = {
    (
        "mixinstruct",
        "acquisition cost K=4",
    ): "the paper mixes two runs here: its own SA-BEP and SA-CR imply about 59,193",
    ("routerbench", "groups"): "86 tasks have names; those with a query in the training part are counted",
}
OPEN = "not explained: compare revision and hash of the files, their order and the pool"


def checklist(work: Workload) -> pd.DataFrame:
    """A row a published fact: its two values, whether they agree as printed, and what is known of a difference."""
    benchmark = work.name.rpartition("/")[2]
    every = pd.read_csv(data_folder() / "published" / "aggregates.csv", dtype=str, keep_default_na=False)
    facts = every[every["benchmark"] == benchmark]
    largest = max((int(row.rpartition("K=")[2]) for row in facts["aggregate"] if "K=" in row), default=1)
    found = aggregates(work, passes=largest)
    rows = {}
    for fact in facts.itertuples():
        agrees = _agrees(fact, found[fact.aggregate])
        known = "" if agrees else EXPLAINED.get((benchmark, fact.aggregate), OPEN)
        rows[fact.aggregate] = {"published": float(fact.value), "loaded": found[fact.aggregate], "agrees": agrees,
                                "explanation": known}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("aggregate")


def _agrees(fact, found: float) -> bool:
    """Inside its interval where there is one; as printed; or within half a percent where it was derived."""
    if fact.low:
        return float(fact.low) <= found <= float(fact.high)
    value = float(fact.value)
    if fact.source.startswith("derived"):
        return bool(abs(found - value) <= DERIVED * abs(value))
    decimals = len(fact.value.partition(".")[2])
    return bool(abs(found - value) <= 0.5 * 10**-decimals * (1 + 1e-9) + 1e-6 * abs(value))


def facts(names: list[str], source: str) -> pd.DataFrame:
    """All benchmarks' facts at full size: of original data whether they agree, of simulated data whether they are close."""
    from .catalog import load

    tables = {
        name: checklist(load(f"original/{name}")) if source == "original" else calibration(name).set_index("aggregate")
        for name in names
    }
    return pd.concat(tables, names=["benchmark"])


def summary(table: pd.DataFrame) -> str:
    """How many of the published facts are met, in words."""
    if "agrees" not in table:
        return "every calibrated fact is within 5% of the published one" if table["within 5%"].all() else (
            f"{int(table['within 5%'].sum())} of {len(table)} calibrated facts are within 5% of the published ones"
        )  # fmt: skip
    odd = table[~table["agrees"].astype(bool)]
    told = [
        f"{why} ({', '.join(' '.join(place) for place in rows.index)})"
        for why, rows in odd.groupby("explanation", sort=False)
    ]
    return "; ".join([f"{len(table) - len(odd)} of {len(table)} published facts agree with the loaded data", *told])
