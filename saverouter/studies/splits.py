"""Any workload on many splits of it: routers, budgets, and what lies above and below them.

One split is one draw. The splits share queries, so that an interval speaks of other splits of these queries, not of others.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..errors import SaveRouterError
from ..paper import paper_options, short
from ..routers import MAIN, make_router
from ..scale import chosen
from ..workloads import Workload, model_means
from ..workloads.recorded import NAMES
from .designs import row, singles, without_router
from .experiments import published_options, run_many, workload
from .intervals import interval
from .kept import PROCESSES
from .runs import Run

VARIANTS = {
    "SaveRouter": {},
    "Random-K": {"acquisition": "random"},
    "without query residual": {"residual_scale": 0.0},
    "global group": {"grouping": "global"},
}
FEWEST = 4  # values from which an interval says something
# columns of ``designs.without_router`` and what they are called here
NEEDED = {
    "points below the best": "margin", "cost_ratio": "router", "cheapest single model": "model", "its cost ratio": "single",
}  # fmt: skip


def recorded_workloads(profile: str) -> tuple[list[Workload], list[str]]:
    """The recorded workloads that are here, at a profile's size, and a sentence for each that is missing."""
    works, missing = [], []
    for name in NAMES:
        try:
            works.append(workload("paretobandit" if name == "paretobandit" else f"recorded/{name}", profile))
        except SaveRouterError as error:
            missing.append(str(error))
    return works, missing


def description(work: Workload) -> dict:
    """A workload's row in a table: its sizes, its best single model, and how far prices lie apart."""
    quality, cost = model_means(work.quality), model_means(work.cost)
    best, paid = int(np.argmax(quality)), cost[cost > 0]
    return {
        "workload": work.name, "queries": f"{len(work):,}", "models": len(work.models),
        "groups that stay together": "–" if work.clusters is None else f"{len(set(work.clusters)):,}",
        "best single model": work.models[best], "its quality": quality[best], "its cost, USD": f"{cost[best]:.2g}",
        "dearest / cheapest price": f"{paid.max() / paid.min():,.0f}" + (" (others free)" if len(paid) < len(cost) else ""),
    }  # fmt: skip


def _all(wanted: list[tuple[Workload, str, dict]]) -> list[Run]:
    """Runs on the cluster that was chosen, else by two processes: they are many and short."""
    return run_many(wanted, cluster=chosen(), jobs=PROCESSES)


def third_of(work: Workload) -> int:
    """K for a pool of any size: a third of it, which is the paper's four of eleven or twelve."""
    return max(1, round(len(work.models) / 3))


def options_on_split(name: str, work: Workload, seed: int, profile: str = "paper") -> dict:
    """A router's published options, started from a split's seed; SaveRouter buys a third of the pool per query."""
    options = published_options(name, work, profile)
    options |= {"seed": seed} if "seed" in make_router(name).get_params() else {}
    return options | ({"k": third_of(work)} if name == "saverouter" else {})


def runs_on_splits(
    works: Iterable[Workload], seeds: Iterable[int], profile: str = "paper", routers: Iterable[str] = MAIN
) -> dict[tuple[str, int], dict[str, Run]]:
    """Routers with their published options on every split, by workload and seed, and by the router's label.

    SaveRouter buys a third of the pool per query. ``seed`` shuffles the split and starts the router.
    """
    keys, wanted = [], []
    for work in works:
        for seed in seeds:
            for name in routers:
                wanted.append((work, name, options_on_split(name, work, seed, profile) | {"split_seed": seed}))
                keys.append(((work.name, seed), make_router(name).label))
    found: dict[tuple[str, int], dict[str, Run]] = {}
    for (place, label), done in zip(keys, _all(wanted), strict=True):
        found.setdefault(place, {})[label] = done
    return found


def routers_on_splits(
    runs: dict[tuple[str, int], dict[str, Run]], margins: Iterable[float] = (0.0, 1.0)
) -> pd.DataFrame:
    """``runs_on_splits`` as a frame: a row per workload, split, router and margin (points below the best single model)."""
    return pd.DataFrame([
        {**row(done, margin=margin, workload=name, method=method, seed=seed), "margin": margin, "dense_cost": done.dense_cost}
        for (name, seed), by_method in runs.items() for method, done in by_method.items() for margin in margins
    ])  # fmt: skip


def budgets_on_splits(works: Iterable[Workload], seeds: Iterable[int]) -> pd.DataFrame:
    """SaveRouter and its variants on every split: all budgets for the two ways to buy, a third of the pool for the others."""
    keys, wanted = [], []
    for work in works:
        size, third = len(work.models), third_of(work)
        budgets = sorted({1, 2, 4, third, round(size / 2), size} & set(range(1, size + 1)))
        for seed in seeds:
            for variant, changes in VARIANTS.items():
                for k in budgets if variant in ("SaveRouter", "Random-K") else [third]:
                    wanted.append((work, "saverouter", paper_options(work, k=k, seed=seed, split_seed=seed, **changes)))
                    keys.append({"workload": work.name, "variant": variant, "k": k, "share": k / size, "seed": seed,
                                 "is_third": k == third})  # fmt: skip
    return pd.DataFrame([row(done, **key) for done, key in zip(_all(wanted), keys, strict=True)])


def ceilings_on_splits(
    works: Iterable[Workload], seeds: Iterable[int], margins: Iterable[float] = (0.0, 1.0)
) -> pd.DataFrame:
    """SaveRouter's cost ratio on every split between what needs no router and what no router can beat.

    Below it the cheapest single model that is as good; above it SaveRouter with every outcome bought (dense supervision), and
    an oracle that knows each outcome and takes the cheapest of the best.
    """
    keys, wanted = [], []
    for work in works:
        for seed in seeds:
            keys.append((work, seed))
            for k in (third_of(work), len(work.models)):
                wanted.append((work, "saverouter", paper_options(work, k=k, seed=seed, split_seed=seed)))
            wanted.append((work, "oracle", {"ties": "cheapest", "split_seed": seed}))
    done, rows = iter(_all(wanted)), []
    for work, seed in keys:
        ours, dense, oracle = (next(done) for _ in range(3))
        needed = without_router({work.name: ours}, singles({work.name: work}, split_seed=seed), margins)
        needed["dense"] = [dense.result.at(margin=margin).cost_ratio for margin in margins]
        needed["oracle"] = [oracle.result.at(margin=margin).cost_ratio for margin in margins]
        rows.append(needed.rename(columns=NEEDED).assign(seed=seed))
    return pd.concat(rows, ignore_index=True)


def over_splits(table: pd.DataFrame, value: str, keys: Iterable[str]) -> pd.DataFrame:
    """One row for each combination of the keys: on how many splits a value is finite, its mean over those, with a 95% interval
    where there are four or more, and its quartiles over all splits, infinite ones among them."""
    rows, keys = [], list(keys)
    for names, runs in table.groupby(keys, sort=False):
        reached = runs[value][np.isfinite(runs[value])]
        low, high = interval(reached) if len(reached) >= FEWEST else (np.nan, np.nan)
        early, median, late = np.quantile(runs[value], (0.25, 0.5, 0.75), method="inverted_cdf")
        rows.append(dict(zip(keys, names, strict=True)) | {
            "splits": len(runs), "reached": len(reached), "mean": reached.mean(), "from": low, "to": high,
            "early": early, "median": median, "late": late,
        })  # fmt: skip
    return pd.DataFrame(rows)


def routers_in_words(ratios: pd.DataFrame, paid: pd.DataFrame) -> pd.DataFrame:
    """Routers down, workloads across: mean cost ratio with its interval, median payback, and splits that reach the target.

    Both frames come from ``over_splits`` at one margin, of ``cost_ratio`` and of ``sa_bep``.
    """
    both = ratios.merge(paid[["workload", "method", "median"]], on=["workload", "method"], suffixes=("", "_payback"))
    both["entry"] = [
        f"{_with_interval(row)} / {short(row['median_payback'])} / {row['reached']} of {row['splits']}"
        if row["reached"] else f"not reached on any of {row['splits']}"
        for row in both.to_dict("records")
    ]  # fmt: skip
    wide = both.pivot(index="method", columns="workload", values="entry")
    return wide.loc[both["method"].unique(), both["workload"].unique()].rename_axis(columns=None)


def _with_interval(row: dict) -> str:
    return f"{row['mean']:.3f}" + (f" ({row['from']:.3f} to {row['to']:.3f})" if np.isfinite(row["from"]) else "")


def first_on_each_split(table: pd.DataFrame, margin: float = 0.0) -> pd.DataFrame:
    """How often each router is the first to pay back: routers down, workloads across; "nobody" where none does."""
    paid = table[table["margin"] == margin]
    rows = {}
    for (name, _), runs in paid.groupby(["workload", "seed"], sort=False):
        best = runs.loc[runs["sa_bep"].idxmin()]
        who = best["method"] if np.isfinite(best["sa_bep"]) else "nobody"
        rows.setdefault(name, []).append(who)
    counts = pd.DataFrame({name: pd.Series(found).value_counts() for name, found in rows.items()}).fillna(0).astype(int)
    return counts.loc[counts.sum(axis=1).sort_values(ascending=False).index].rename_axis("router")
