"""Is it the benchmark of the paper? Published facts of the data beside those of the workload at hand.

Sizes, the best single model, dense supervision and what SaveRouter's purchases cost are determined by the files, their
order, the split and the order of random numbers. A loader that is wrong in any of these shows here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..files import data_folder
from ..judging import best_single
from ..routers.saverouter.acquisition import acquire
from ..workloads import Workload, load, simulate
from .published import published

TOLERANCE = 0.05  # relative difference of a calibrated fact from the published one
DERIVED = 0.005  # relative; facts computed back from rounded tables are known no better
EXPLAINED = {
    (
        "mixinstruct",
        "acquisition cost K=4",
    ): "the paper mixes two runs here: its own SA-BEP and SA-CR imply about 59,193",
    ("routerbench", "groups"): "86 tasks have names; those with a query in the training part are counted",
}
OPEN = "not explained: compare revision and hash of the files, their order and the pool"


def checklist(work: Workload) -> pd.DataFrame:
    """One row per published fact: its two values, whether they agree as printed, and what is known of a difference."""
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
    """Whether it lies in its interval where there is one, within half a percent where derived, else equals what is printed."""
    if fact.low:
        return float(fact.low) <= found <= float(fact.high)
    value = float(fact.value)
    if fact.source.startswith("derived"):
        return bool(abs(found - value) <= DERIVED * abs(value))
    decimals = len(fact.value.partition(".")[2])
    return bool(abs(found - value) <= 0.5 * 10**-decimals * (1 + 1e-9) + 1e-6 * abs(value))


def facts_of(names: list[str], source: str) -> pd.DataFrame:
    """The facts of benchmarks at full size: whether original data agree with them, or how close simulated data are."""
    tables = {
        name: checklist(load(f"original/{name}")) if source == "original" else calibration(name).set_index("aggregate")
        for name in names
    }
    return pd.concat(tables, names=["benchmark"])


def in_words(table: pd.DataFrame) -> str:
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


def calibration(name: str, work: Workload | None = None) -> pd.DataFrame:
    """Published aggregates of the data beside the simulated ones: train 20%, seed 42, groups = task labels."""
    printed = published("aggregates").query("benchmark == @name")
    largest = max(int(row.rpartition("K=")[2]) for row in printed["aggregate"] if "K=" in row)
    found = aggregates(simulate(name) if work is None else work, passes=largest)
    table = pd.DataFrame({"aggregate": printed["aggregate"], "published": printed["value"]}).reset_index(drop=True)
    table["simulated"] = table["aggregate"].map(found)
    table["relative difference"] = table["simulated"] / table["published"] - 1
    inside = table["simulated"].between(printed["low"].to_numpy(), printed["high"].to_numpy())
    has_interval = printed["low"].notna().to_numpy()
    table["within 5%"] = (table["relative difference"].abs() <= TOLERANCE) & (inside | ~has_interval)
    return table


def aggregates(work: Workload, *, passes: int | None = None) -> dict[str, float]:
    """Facts of a workload's data that the paper publishes or implies, by the names of the published table.

    ``passes`` is the largest K whose acquisition is wanted, all models unless given.
    """
    train, test = work.split(train=0.2, seed=42)
    by_label = work.grouping != "global"
    groups = np.unique(train.tasks, return_inverse=True)[1] if by_label else np.zeros(len(train), int)
    reference = best_single(test)
    best, dense = work.models.index(reference.model), float(np.nansum(train.cost))
    table = {
        "queries": len(work),
        "train queries": len(train),
        "test queries": len(test),
        "models": len(work.models),
        "groups": int(groups.max()) + 1,
        "available train pairs": int(train.available.sum()),
        "missing train pairs": int((~train.available).sum()),
        "missing test pairs": int((~test.available).sum()),
        "best single quality": reference.quality,
        "best single cost": reference.cost,
        "dense supervision cost": dense,
        "dense supervision cost / best single cost": dense / reference.cost,
        "best single share of dense cost": float(np.nansum(train.cost[:, best]) / dense),
    }
    # K passes are K nested purchases: one run at the largest K holds all smaller ones.
    rows, _, _, cost = acquire(train.feedback(), groups, k=passes or len(work.models))
    turn = pd.Series(rows).groupby(rows).cumcount()
    for k, spent in enumerate(np.cumsum(np.bincount(turn, cost)), 1):
        table |= {f"acquisition cost K={k}": float(spent), f"acquisition share K={k}": float(spent / dense)}
    return table
