"""Cascades with a stated judge beside SaveRouter: up to which judge error do they save more, and what does a router ahead add?

On every split both learn for about the same money: SaveRouter buys a third of the pool on each query, a cascade the whole pool
on that share of the queries. What was bought is bought once; every judge learns from the same outcomes. Operating points are
chosen on the test outcomes, for all alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ..judging import Result, evaluate
from ..paper import paper_options
from ..routers import SaveRouter, make_router
from ..workloads import Workload
from .intervals import mean_of
from .kept import kept
from .retaught import Once
from .splits import third_of

ERRORS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
SETTINGS = ("evenly", "on hard")
MARGINS = (0.0, 1.0)
OURS, PLAIN, AHEAD, CHANCE = "SaveRouter", "cascade", "cascade, SaveRouter ahead", "cascade, chance ahead"
ALL, NONE = "at every error tried", "at none tried"
ROUND = ["workload", "judge errs", "judge error", "points below"]


def cascades_on_splits(
    works: Iterable[Workload],
    seeds: Sequence[int],
    errors: Sequence[float] = ERRORS,
    settings: Sequence[str] = SETTINGS,
    margins: Sequence[float] = MARGINS,
    judge_share: float = 0.0,
) -> pd.DataFrame:
    """One row per workload, split, router, judge and margin (points below the best single model).

    ``saving`` is the part of the best single model's cost that is saved; a router that does not reach the margin keeps that model
    and saves nothing. ``training`` is in calls of that model; a pair that SaveRouter ahead and the cascade both want is bought
    once. A judgement costs ``judge_share`` of a call of the cheapest model worth asking that is not free. With chance ahead,
    a cascade is entered at random: as many operating points as with SaveRouter ahead, and no knowledge. SaveRouter's own rows
    have no judge.
    """
    options = {"errors": list(map(float, errors)), "settings": list(settings), "margins": list(map(float, margins)),
               "judge_share": float(judge_share)}  # fmt: skip
    rows = kept(_one_split, [(work, {"seed": int(seed), **options}) for work in works for seed in seeds])
    return pd.DataFrame(rows).astype({"judge error": float})


def _one_split(
    work: Workload, seed: int, errors: list[float], settings: list[str], margins: list[float], judge_share: float
) -> list[dict]:
    learn, test = work.split(seed=seed)
    feedback, k = learn.feedback(), third_of(work)
    router = SaveRouter(**paper_options(work, k=k, seed=seed)).fit(learn.queries, feedback)
    paid = feedback.spent
    cascade = make_router("cascade", share=k / len(work.models), seed=seed).fit(learn.queries, feedback)
    alone, together = feedback.spent - paid, feedback.spent_distinct
    known, chance = _Asked(router), make_router("random", seed=seed).fit(learn.queries, learn.feedback())
    variants = {PLAIN: (None, alone), AHEAD: (known, together), CHANCE: (chance, alone)}
    prices = cascade.mean_cost_[cascade.worth_]
    judge_cost = judge_share * float(prices[prices > 0].min()) if (prices > 0).any() else 0.0
    place = {"workload": work.name, "seed": seed}
    found = evaluate(router, test, supervision_cost=paid)
    rows = _rows(found, margins, **place, router=OURS, **{"judge errs": "", "judge error": None})
    for errs in settings:
        for error in errors:
            for name, (ahead, spent) in variants.items():
                judge = {"judge_error": error, "judge_errs": errs, "judge_cost": judge_cost}
                found = evaluate(cascade.relearnt(ahead=ahead, **judge), test, supervision_cost=spent)
                rows += _rows(found, margins, **place, router=name, **{"judge errs": errs, "judge error": error})
    return rows


def _rows(result: Result, margins: list[float], **place) -> list[dict]:
    rows = []
    for margin in margins:
        found = result.at(margin=margin)
        ratio = found.cost_ratio
        rows.append({
            **place, "points below": margin, "cost ratio": ratio, "reached": bool(np.isfinite(ratio)),
            "saving": max(0.0, 1 - ratio), "points above": 100 * (found.peak_score - found.reference.quality),
            "sa_bep": found.sa_bep, "training": found.supervision_cost / found.reference.cost,
            "policies": found.n_policies,
        })  # fmt: skip
    return rows


class _Asked(Once):
    """A fitted router that is asked once for the same prompts: every judge hears the same estimates."""

    def __init__(self, router: SaveRouter):
        super().__init__()
        self.router, self.label = router, router.label

    def estimates(self, queries) -> tuple[np.ndarray, np.ndarray]:
        return self.once(queries.prompts, lambda: self.router.estimates(queries))


def savings(table: pd.DataFrame, value: str = "saving") -> pd.DataFrame:
    """One row per workload, judge, margin and cascade: its mean saving, SaveRouter's, and the paired difference, with 95%
    intervals over splits; and on how many splits the margin is reached."""
    rows = []
    for keys, runs in _beside(table, value).groupby([*ROUND, "router"], sort=False):
        rows.append({
            **dict(zip([*ROUND, "router"], keys, strict=True)), "splits": len(runs), "reached": int(runs["reached"].sum()),
            **dict(zip(("mean", "from", "to"), mean_of(runs[value]), strict=True)), OURS: runs[OURS].mean(),
            **dict(zip(("ahead", "ahead from", "ahead to"), mean_of(runs[value] - runs[OURS]), strict=True)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _beside(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """The rows of cascades, with SaveRouter's value on the same split and margin."""
    place = ["workload", "seed", "points below"]
    ours = table[table["router"] == OURS].set_index(place)[value].rename(OURS)
    return table[table["router"] != OURS].join(ours, on=place)


def where_it_turns(
    table: pd.DataFrame, margin: float = 0.0, router: str = PLAIN, draws: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """For each workload and setting, the judge error from which on a cascade saves less than SaveRouter, in the mean over splits.

    Between the errors tried the difference is taken to be straight, though a saving may end at once: ``ahead at`` and
    ``behind at`` are the errors tried on either side. 0 says that it saves less at every error, inf at none. The 95% interval
    draws splits anew, with replacement.
    """
    cascades, rows = _beside(table, "saving"), []
    cascades = cascades[(cascades["points below"] == margin) & (cascades["router"] == router)]
    for (workload, errs), runs in cascades.groupby(["workload", "judge errs"], sort=False):
        lead = (runs["saving"] - runs[OURS]).to_frame("lead").join(runs[["seed", "judge error"]])
        by_split = lead.pivot(index="seed", columns="judge error", values="lead")
        errors, leads = by_split.columns.to_numpy(), by_split.to_numpy()
        rng = np.random.default_rng(seed)
        drawn = [turn(errors, leads[rng.integers(len(leads), size=len(leads))].mean(axis=0)) for _ in range(draws)]
        low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
        turns = turn(errors, leads.mean(axis=0))
        before, after = errors[errors <= turns] if turns else [], errors[errors > turns] if turns else errors
        rows.append({
            "workload": workload, "judge errs": errs, "turns": turns, "from": low, "to": high, "splits": len(leads),
            "ahead at": max(before, default=np.nan), "behind at": min(after, default=np.nan),
        })  # fmt: skip
    return pd.DataFrame(rows)


def turn(errors: np.ndarray, lead: np.ndarray) -> float:
    """Where a lead over rising errors falls below zero for good: 0 where it never is above, inf where it does not fall."""
    ahead = np.flatnonzero(lead >= 0)
    if not len(ahead):
        return 0.0
    last = ahead[-1]
    if last == len(lead) - 1:
        return np.inf
    return float(errors[last] + (errors[last + 1] - errors[last]) * lead[last] / (lead[last] - lead[last + 1]))


def what_ahead_adds(
    table: pd.DataFrame, router: str = AHEAD, than: str = CHANCE, value: str = "saving"
) -> pd.DataFrame:
    """One row per workload, judge and margin: what SaveRouter before the first stage adds to a value, against a cascade that is
    entered at random, with 95% intervals over splits; and what learning costs more, in calls of the best single model."""
    keys, rows = [*ROUND, "seed"], []
    first, second = (table[table["router"] == name].set_index(keys)[[value, "training"]] for name in (router, than))
    both = (first - second).reset_index()
    for place, runs in both.groupby(ROUND, sort=False):
        rows.append({
            **dict(zip(ROUND, place, strict=True)), **dict(zip(("adds", "from", "to"), mean_of(runs[value]), strict=True)),
            "training": runs["training"].mean(), "splits": len(runs),
        })  # fmt: skip
    return pd.DataFrame(rows)


def savings_in_words(found: pd.DataFrame, margin: float = 0.0, router: str = PLAIN) -> pd.DataFrame:
    """The frame of ``savings`` as it is read: workloads and settings down, judge errors across, SaveRouter last."""
    rows = found[(found["points below"] == margin) & (found["router"] == router)]
    told = rows.assign(told=[
        f"{_share(row['mean'])} ({_share(row['from'])} to {_share(row['to'])})" if row["reached"]
        else f"not reached on any of {row['splits']}" for row in rows.to_dict("records")
    ])  # fmt: skip
    wide = told.pivot(index=["workload", "judge errs"], columns="judge error", values="told")
    wide.columns = [f"error {error:g}" for error in wide.columns]
    ours = rows.drop_duplicates(["workload", "judge errs"]).set_index(["workload", "judge errs"])[OURS]
    return wide.assign(**{OURS: ours.map("{:.0%}".format)}).loc[ours.index]


def _share(value: float) -> str:
    return f"{round(value, 2) + 0.0:.0%}"  # no "-0%"


def turns_in_words(turns: pd.DataFrame) -> pd.DataFrame:
    """The frame of ``where_it_turns`` as it is read: workloads down, settings across."""
    told = turns.assign(told=[
        f"{_error(row['turns'])}" if row["from"] == row["to"]
        else f"{_error(row['turns'])} ({_error(row['from'])} to {_error(row['to'])})" for row in turns.to_dict("records")
    ])  # fmt: skip
    wide = told.pivot(index="workload", columns="judge errs", values="told")
    return wide.loc[turns["workload"].unique(), turns["judge errs"].unique()].rename_axis(columns=None)


def _error(value: float) -> str:
    return ALL if value == 0 else NONE if np.isinf(value) else f"{value:.2f}"


def additions_in_words(added: pd.DataFrame, margin: float = 0.0) -> pd.DataFrame:
    """The frame of ``what_ahead_adds`` as it is read, in points of saving."""
    rows = added[added["points below"] == margin]
    told = rows.assign(told=[
        f"{100 * row['adds']:+.1f} ({100 * row['from']:+.1f} to {100 * row['to']:+.1f})" for row in rows.to_dict("records")
    ])  # fmt: skip
    wide = told.pivot(index=["workload", "judge errs"], columns="judge error", values="told")
    wide.columns = [f"error {error:g}" for error in wide.columns]
    return wide.loc[pd.MultiIndex.from_frame(rows[["workload", "judge errs"]].drop_duplicates())]
