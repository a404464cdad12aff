"""Can feedback be bought better? Ways to choose what to buy, compared at equal money on many splits.

The money is that of the paper's rule with K outcomes per query. Two runs that differ only in their random numbers differ too, so
that each split is bought on several times with each rule, and draws are averaged within a split.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ..judging import evaluate
from ..workloads import Workload, model_means, sample
from .experiments import workload
from .intervals import answer, mean_of, resampled
from .kept import kept
from .promises import HORIZONS, reference_of
from .retaught import FAR, Retaught
from .splits import recorded_workloads

PAPER, ANCHORED = "the paper's rule", "anchored"
RULES = {  # in words: the ``acquisition`` of SaveRouter
    PAPER: "ucb", "random": "random", "capability alone": "capability", "uncertainty alone": "uncertainty", ANCHORED: "anchored",
}  # fmt: skip
MONEY = (1, 2)  # K of the paper's rule; all rules are compared at the first, anchored buying at each
DRAWS = 2
MOST = {"smoke": 1_000, "standard": 3_000, "paper": 12_500}  # queries of a workload, by profile
CERTIFIED, AT_BEST, BELOW = "certified saving", "saving at full quality", "saving one point below"
MEASURES = (CERTIFIED, AT_BEST, BELOW)
EVERYWHERE = "all workloads"
LEAST = 200  # training queries of a workload whose rest can certify anything


def purchase_workloads(profile: str) -> tuple[list[Workload], list[str]]:
    """The recorded workloads that are here and the four simulated benchmarks, and a sentence for each that is missing.

    Hundreds of routers are taught on each, so that they are no larger than ``MOST``.
    """
    works, missing = recorded_workloads(profile)
    works += [
        workload(f"simulated/{name}", profile) for name in ("llmrouterbench", "mixinstruct", "mmrbench", "routerbench")
    ]
    return [sample(work, min(len(work), MOST[profile])) for work in works], missing


def purchases_on_splits(
    works: Iterable[Workload], seeds: Sequence[int], draws: int = DRAWS, money: Sequence[int] = MONEY,
    rules: Sequence[str] = tuple(RULES)[1:], train: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """One row per workload, split, draw, money (``k``) and rule: the three ``MEASURES``, and what was paid.

    The reference is the best single model of the whole workload. ``certified saving`` is that of ``Retaught.certified``, the
    others are chosen on test outcomes, 0 where the reference's quality is not reached. ``training`` and ``certificate`` are in
    calls to the reference, ``on dear models`` is the part of the training's money that bought models priced above it.
    ``rules`` are compared with the paper's, anchored buying alone beyond the first money. ``train`` keeps so many of the
    training queries, in random order.
    """
    options = {"draws": draws, "money": list(money), "rules": list(rules), "train": train}
    wanted = [(work, {"seed": int(seed), **options}) for work in works for seed in seeds]
    return pd.DataFrame(kept(_one_split, wanted)).astype({CERTIFIED: float, "certificate": float})


def _one_split(
    work: Workload, seed: int, draws: int, money: list[int], rules: list[str], train: int | None
) -> list[dict]:
    split, rows = Retaught(work, seed, train), []
    for draw in range(draws):
        for k in money:
            one = {"seed": seed + FAR * draw, "k": k}
            router, feedback = split.taught(**one)
            key = {"workload": work.name, "seed": seed, "draw": draw, "k": k}
            rows.append({**key, "rule": PAPER, **_measured(split, router, feedback)})
            for name in rules if k == money[0] else [ANCHORED]:
                spending = {"seed": one["seed"], "rule": RULES[name], "budget": feedback.spent}
                spending |= {"reference": split.reference} if name == ANCHORED else {}
                rows.append({**key, "rule": name, **_measured(split, *split.taught(**spending))})
    return rows


def _measured(split: Retaught, router, feedback) -> dict:
    result = evaluate(router, split.rest, supervision_cost=feedback.spent, reference=split.reference)
    bought, prices = feedback.observations, dict(zip(feedback.models, feedback.prices, strict=True))
    dear = bought["model"].map(prices) > prices[split.reference]
    return {
        "queries": len(split.learn), "training": feedback.spent / result.reference.cost,
        "on dear models": float(bought.loc[dear, "cost"].sum()) / feedback.spent,
        AT_BEST: max(0.0, 1 - result.cost_ratio), BELOW: max(0.0, 1 - result.at(margin=1.0).cost_ratio),
        **split.certified(router),
    }  # fmt: skip


def with_bills(table: pd.DataFrame, horizons: Iterable[int] = HORIZONS) -> pd.DataFrame:
    """The frame with the whole bill of a certified router over each horizon, relative to the reference's."""
    upfront = table["training"] + table["certificate"]
    return table.assign(**{bill_over(horizon): upfront / horizon + 1 - table[CERTIFIED] for horizon in horizons})


def bill_over(horizon: int) -> str:
    """The column of a bill."""
    return f"bill {horizon}"


def against_the_paper(
    table: pd.DataFrame, measures: Iterable[str] = MEASURES, keys: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per workload, money, rule and measure: the mean, and the paired difference from the paper's rule.

    ``from`` and ``to`` are a 95% interval over splits; for ``EVERYWHERE``, the mean of the workloads, each counting alike,
    ``tables from`` and ``tables to`` resample the workloads too. ``keys`` are more columns that tell runs apart.
    """
    keys = ["k", *keys]
    runs = table.melt(["workload", "seed", "rule", *keys], list(measures), "measure").dropna(subset="value")
    runs = runs.groupby(["workload", "seed", "rule", "measure", *keys], sort=False)["value"].mean().unstack("rule")
    rows = []
    for place, found in runs.groupby(["measure", *keys], sort=False):
        key = dict(zip(["measure", *keys], place, strict=True))
        for rule in [name for name in RULES if name != PAPER and name in found and found[name].notna().any()]:
            ahead = found[rule] - found[PAPER]
            each = {name: values.to_numpy() for name, values in ahead.groupby("workload", sort=False)}
            means = found.groupby("workload", sort=False)[[PAPER, rule]].mean()
            for name, values in each.items():
                rows.append(_row(key, rule, name, values, *means.loc[name]))
            overall = ahead.groupby("seed").mean().to_numpy()
            low, high = resampled(each.values())
            rows.append(_row(key, rule, EVERYWHERE, overall, *means.mean()) | {"tables from": low, "tables to": high})
    return pd.DataFrame(rows)


def _row(key: dict, rule: str, name: str, ahead: np.ndarray, paper: float, mean: float) -> dict:
    found = dict(zip(("difference", "from", "to"), mean_of(ahead), strict=True))
    return {"workload": name, "rule": rule, **key, "splits": len(ahead), PAPER: paper, "mean": mean, **found}


def draws_apart(table: pd.DataFrame, measure: str = CERTIFIED) -> pd.DataFrame:
    """What a single draw would have said: anchored buying against the paper's rule by one draw alone, and the paper's rule
    against itself with other random numbers. Mean difference, its 95% interval over splits, by workload and over all."""
    runs = table[table["k"] == table["k"].min()].pivot(
        index=["workload", "seed"], columns=["rule", "draw"], values=measure
    )
    wanted = {f"{ANCHORED}, draw {draw + 1} alone": runs[ANCHORED, draw] - runs[PAPER, draw] for draw in range(2)}
    wanted["the paper's rule against itself"] = runs[PAPER, 1] - runs[PAPER, 0]
    rows = []
    for name, ahead in wanted.items():
        ahead = ahead.dropna()
        parts = {one: values.to_numpy() for one, values in ahead.groupby("workload", sort=False)}
        for one, values in {**parts, EVERYWHERE: ahead.groupby("seed").mean().to_numpy()}.items():
            rows.append(
                {"compared": name, "workload": one, **dict(zip(("mean", "from", "to"), mean_of(values), strict=True))}
            )
    return pd.DataFrame(rows)


def why(table: pd.DataFrame, works: Iterable[Workload]) -> pd.DataFrame:
    """By workload, what may explain where anchored buying helps: queries that teach, how far prices lie apart below the
    reference, how much of the paper's money bought models priced above it; and the gain in certified saving."""
    first = table[table["k"] == table["k"].min()]
    gains = against_the_paper(first, [CERTIFIED]).query("rule == @ANCHORED").set_index("workload")
    rows = []
    for work in works:
        prices, name = model_means(work.cost), reference_of(work)
        price = prices[work.models.index(name)]
        runs = first[(first["workload"] == work.name) & (first["rule"] == PAPER)]
        gain = gains.loc[work.name] if work.name in gains.index else None
        rows.append({
            "workload": work.name, "training queries": int(runs["queries"].iloc[0]), "models": len(work.models),
            "cheaper than the reference": int((prices < price).sum()),
            "reference / cheapest price": price / prices[prices > 0].min(),
            "paper's money on dearer models": runs["on dear models"].mean(),
            **{column: np.nan if gain is None else gain[column] for column in ("difference", "from", "to")},
        })  # fmt: skip
    return pd.DataFrame(rows).set_index("workload").sort_values("difference", ascending=False)


def _with_interval(values: Iterable[float], lows: Iterable[float], highs: Iterable[float]) -> list[str]:
    return [
        f"{value:+.3f} ({low:+.3f} to {high:+.3f})" if np.isfinite(value) else "too few queries"
        for value, low, high in zip(values, lows, highs, strict=True)
    ]  # fmt: skip


def draws_in_words(apart: pd.DataFrame) -> pd.DataFrame:
    """The frame of ``draws_apart`` as it is read: workloads down, comparisons across."""
    told = apart.assign(told=_with_interval(apart["mean"], apart["from"], apart["to"]))
    wide = told.pivot(index="workload", columns="compared", values="told")
    return wide.loc[apart["workload"].unique(), apart["compared"].unique()].rename_axis(columns=None)


def why_in_words(traits: pd.DataFrame) -> pd.DataFrame:
    """The frame of ``why`` as it is read."""
    gain = _with_interval(traits["difference"], traits["from"], traits["to"])
    dear = traits["paper's money on dearer models"].map("{:.0%}".format)
    told = traits.assign(**{"paper's money on dearer models": dear, "gain in certified saving": gain})
    return told.drop(columns=["difference", "from", "to"])


def enough_queries(works: Iterable[Workload], seeds: Sequence[int], sizes: Iterable[int]) -> pd.DataFrame:
    """``against_the_paper`` for anchored buying where only the first so many training queries of a split teach (``queries``).

    A workload that has not as many, or none to certify on, is left out.
    """
    fit = {size: [work for work in works if len(work) >= 5 * max(size, LEAST)] for size in sizes}
    tables = [
        purchases_on_splits(some, seeds, money=MONEY[:1], rules=[ANCHORED], train=size).assign(queries=size)
        for size, some in fit.items() if some
    ]  # fmt: skip
    return against_the_paper(pd.concat(tables), [CERTIFIED], ["queries"]).query("rule == @ANCHORED")


def rules_in_words(compared: pd.DataFrame, k: int, workload_name: str = EVERYWHERE) -> pd.DataFrame:
    """Rules down, measures across: the mean, and the difference from the paper's rule with its interval."""
    rows = compared[(compared["workload"] == workload_name) & (compared["k"] == k)]
    told = rows.assign(told=[
        f"{row['mean']:.3f} ({row['difference']:+.3f}, {row['from']:+.3f} to {row['to']:+.3f})"
        for row in rows.to_dict("records")
    ])  # fmt: skip
    wide = told.pivot(index="rule", columns="measure", values="told").loc[
        rows["rule"].unique(), rows["measure"].unique()
    ]
    plain = rows.groupby("measure")[PAPER].first().map("{:.3f}".format)
    return (
        pd.concat([plain.to_frame(PAPER).T, wide])[list(wide.columns)]
        .rename_axis("bought by")
        .rename_axis(columns=None)
    )


def about_buying(compared: pd.DataFrame) -> pd.DataFrame:
    """What is said of the rules over all workloads, each with its 95% interval over splits, and with the tables resampled."""
    mean = compared[compared["workload"] == EVERYWHERE].set_index(["k", "rule", "measure"])
    asked = {}
    for k in MONEY:
        asked[f"Anchored buying raises the certified saving, at the money of K={k}"] = (
            mean.loc[k, ANCHORED, CERTIFIED],
            1,
        )
        asked[f"It raises the saving chosen on test, one point below, at the money of K={k}"] = (
            mean.loc[k, ANCHORED, BELOW],
            1,
        )
        asked[f"It raises the saving chosen on test, at full quality, at the money of K={k}"] = (
            mean.loc[k, ANCHORED, AT_BEST],
            1,
        )
    for rule in ("random", "capability alone", "uncertainty alone"):
        asked[f"The paper's rule certifies more saving than {rule}, at equal money"] = (
            mean.loc[MONEY[0], rule, CERTIFIED],
            -1,
        )
    for horizon in HORIZONS:
        asked[f"Anchored buying lowers the whole bill over {horizon:,} queries, certificate included"] = (
            mean.loc[MONEY[0], ANCHORED, bill_over(horizon)], -1,
        )  # fmt: skip
    rows = {}
    for name, (row, sign) in asked.items():
        low, high = sorted((sign * row["from"], sign * row["to"]))
        wide = sorted((sign * row["tables from"], sign * row["tables to"]))
        rows[name] = {"here": answer(low, high, 0.0), "on other tables": answer(*wide, 0.0),
                      "measured": f"{sign * row['difference']:+.3f}", "95% interval": f"{low:+.3f} to {high:+.3f}",
                      "tables resampled": f"{wide[0]:+.3f} to {wide[1]:+.3f}"}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("statement")
