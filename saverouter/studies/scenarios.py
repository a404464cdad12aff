"""Questions around a decision: how far routing could go, other budgets, other prices and volumes, and other draws of the table.

What is read off the test queries here is marked as such in its columns or words: it is no promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..judging import Result, evaluate, in_points
from ..paper import paper_options
from ..routers import SaveRouter
from ..workloads import Workload
from .advice import MONTHS, days, money, time
from .decision import Decision, decide, purchase
from .intervals import share_of
from .kept import kept

MARGINS = (0.0, 0.5, 1.0, 2.0, 5.0)
PRICES = (0.5, 0.25, 0.1)  # of the reference, relative to today's
GROUPS, COLUMNS = 12, 10  # of a table of models by kind of query: as many as can be read
NOISE = 1e-9
ON_TEST = "read off the test, not promised"


@dataclass(frozen=True)
class Frontier:
    """A result, and the part of its supervision that bought the reference."""

    result: Result
    reference_spent: float


ALONE = ["workload", "points below the best", "cost_ratio", "cheapest single model", "its cost ratio"]
BUDGETS = ["k", "supervision", "saving", "from", "to", "bill", "pays back after"]
QUESTIONS = ["what if", "saves a month", "from", "to", "back after queries", "back after days", "basis"]


def pool(found: Decision) -> pd.DataFrame:
    """The models on the test queries, the cheapest first: how good, how dear, how many queries can have them."""
    test, column = found.test, found.test.models.index(found.reference)
    rows = []
    for place, model in enumerate(test.models):
        both = test.available[:, place]  # every test query has the reference
        quality, cost = (
            (values[both, place].mean(), values[both, column].mean()) if both.any() else (np.nan, np.nan)
            for values in (test.quality, test.cost)
        )
        rows.append({"model": model, "quality": 100 * quality[0] if both.any() else np.nan,
                     "against the reference": 100 * (quality[0] - quality[1]) if both.any() else np.nan,
                     "cost of 1,000": 1_000 * cost[0] if both.any() else np.nan,
                     "share of its price": cost[0] / cost[1] if both.any() and cost[1] > 0 else np.nan,
                     "queries": both.mean()})  # fmt: skip
    return pd.DataFrame(rows).set_index("model").sort_values("cost of 1,000", kind="stable")


def kinds(found: Decision) -> pd.DataFrame:
    """Points against the reference by kind of query (rows: the largest tasks, else the router's groups) and model.

    Of many models, those that are best for some kind and the best of the others are shown, from cheap to dear.
    """
    test, column = found.test, found.test.models.index(found.reference)
    labels = _labels(found)
    sizes = pd.Series(labels.astype(str)).value_counts()
    rows = {}
    for kind in sizes.index[:GROUPS]:
        mine = labels.astype(str) == kind
        lead = test.quality[mine] - test.quality[mine][:, [column]]
        count = np.isfinite(lead).sum(axis=0)
        rows[f"{kind} ({sizes[kind]:,})"] = np.divide(
            100 * np.nansum(lead, axis=0), count, out=np.full(len(test.models), np.nan), where=count > 0
        )
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(test.models))
    price = np.where(
        np.isfinite(test.cost).any(axis=0),
        np.nansum(test.cost, axis=0) / np.maximum(test.available.sum(axis=0), 1),
        np.inf,
    )
    order = sorted(range(len(test.models)), key=lambda place: price[place])
    wins = table.idxmax(axis=1).value_counts()
    first = [found.reference, *wins.index, *table.mean().sort_values(ascending=False, kind="stable").index]
    shown = set(list(dict.fromkeys(first))[:COLUMNS])
    return table[[test.models[place] for place in order if test.models[place] in shown]]


def _labels(found: Decision) -> np.ndarray:
    """A kind for every test query."""
    if found.test.tasks is not None:
        return found.test.tasks
    if found.router is None:
        return np.full(len(found.test), "all queries", dtype=object)
    return np.array([f"group {group + 1}" for group in found.router.predict_groups(found.test.queries)], dtype=object)


def on_test(found: Decision) -> Result | None:
    """All operating points of the router, and those of the certificate's path, judged against the reference on the test.

    None, and empty tables below, where there is no answer.
    """
    if found.router is None:
        return None
    return evaluate(
        found.router, found.test, supervision_cost=found.supervision, reference=found.reference, anchored=found.reference,
        train=found.learn.queries, margin=found.margin, horizon=MONTHS * found.monthly,
    )  # fmt: skip


def ceiling(found: Decision) -> tuple[float, float]:
    """Points and share of the reference's cost of an oracle: the cheapest model that is at least as good on each query."""
    test, column = found.test, found.test.models.index(found.reference)
    good = test.quality >= test.quality[:, [column]]
    cost = np.where(good, test.cost, np.inf)
    chosen, rows = np.argmin(cost, axis=1), np.arange(len(test))
    price = test.cost[:, column].mean()
    gain = 100 * (test.quality[rows, chosen] - test.quality[:, column]).mean()
    return float(gain), float(cost[rows, chosen].mean() / price) if price > 0 else 1.0


def one_model(found: Decision, chosen: Result, margins: Iterable[float] = MARGINS) -> pd.DataFrame:
    """Beside the router, the cheapest single model within each margin of the reference; both chosen on the test."""
    rows = []
    for margin in margins if chosen else ():
        result = chosen.at(margin=margin)
        alone = result.comparable_single
        price = alone.cost / result.reference.cost if alone is not None and result.reference.cost > 0 else 1.0
        rows.append({"workload": found.workload, "points below the best": margin, "cost_ratio": min(result.cost_ratio, 1.0),
                     "cheapest single model": alone.model if alone else found.reference, "its cost ratio": price})  # fmt: skip
    return pd.DataFrame(rows, columns=ALONE)


def budgets(found: Decision, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """SaveRouter over K on the same training and test queries: what supervision costs and what serving saves at the margin.

    Operating points are chosen on the test. ``saving`` is a share of the reference's cost with its interval; ``bill`` is that
    of a year, supervision included, relative to the reference's. Empty where there is no answer, or no bill to save from.
    """
    if found.router is None or not found.result.reference.cost:
        return pd.DataFrame(columns=BUDGETS)
    size, rows = len(found.test.models), []
    ks = sorted({1, 2, 4, found.k, round(size / 2), size} & set(range(1, size + 1))) if ks is None else ks
    for k in ks:
        meter = found.learn.feedback()
        buying = purchase(meter, k, found.reference if found.named else None)
        router = SaveRouter(**paper_options(found.learn, seed=found.router.seed) | buying).fit(
            found.learn.queries, meter
        )
        result = on_test(replace(found, router=router, supervision=meter.spent))
        reached = result.operating_point is not None
        low, high = result.interval(found.confidence).loc["saving", ["low", "high"]] if reached else (0.0, 0.0)
        rows.append({"k": k, "supervision": meter.spent, "saving": max(0.0, 1 - result.cost_ratio), "from": low, "to": high,
                     "bill": min(result.sa_cr, 1 + meter.spent / (result.horizon * result.reference.cost)),
                     "pays back after": result.sa_bep})  # fmt: skip
    return pd.DataFrame(rows)


def what_if(found: Decision, chosen: Result) -> pd.DataFrame:
    """What changes if the reference gets cheaper, volume falls to a tenth, or another margin is allowed.

    Prices and volumes keep the certified policy, and its promise on quality with it. Margins are read off the test: they
    say what another certificate might allow, and promise nothing.
    """
    if chosen is None:
        return pd.DataFrame(columns=QUESTIONS)
    rows = [_row("as asked", found.saved, found.payback, found.monthly, "certified")]
    if found.action in ("route", "replace"):
        for factor in PRICES:
            none = NOISE * found.month * found.result.reference.cost  # the rest that equal sums of many costs leave
            saved = [0.0 if abs(value) <= none else value for value in at_price(found, factor)]
            gone = saved[0] <= 0
            payback = np.inf if gone else found.evaluation / (saved[0] / found.month)
            rows.append(_row(f"the reference at {factor:g} of its price", saved, payback, found.monthly,
                             "certified; keep the reference" if gone else "certified"))  # fmt: skip
        tenth = tuple(value / 10 for value in found.saved)
        rows.append(_row("a tenth of the volume", tenth, found.payback, found.monthly / 10, "certified"))
    price = chosen.reference.cost
    for margin in sorted({0.0, found.margin, found.margin + 1, found.margin + 4}):
        result = chosen.at(margin=margin)
        saved = found.month * max(0.0, price - result.serving_cost)
        known = result.operating_point is not None and saved > NOISE * price
        low, high = result.saved_over(found.month, found.confidence)[1:] if known else (0.0, 0.0)
        rows.append(_row(f"{in_points(margin)} may go", (saved, low, high),
                         found.evaluation / (saved / found.month) if known else np.inf, found.monthly,
                         ON_TEST))  # fmt: skip
    return pd.DataFrame(rows)


def _row(question: str, saved: Sequence[float], payback: float, monthly: float, basis: str) -> dict:
    return {"what if": question, "saves a month": saved[0], "from": saved[1], "to": saved[2],
            "back after queries": payback, "back after days": days(payback, monthly), "basis": basis}  # fmt: skip


def at_price(found: Decision, factor: float) -> tuple[float, float, float]:
    """What the certified policy saves if the reference costs ``factor`` times as much: it chooses as before."""
    column = found.test.models.index(found.reference)
    cost = found.test.cost.copy()
    cost[:, column] *= factor
    result = evaluate(found.router, replace(found.test, cost=cost), certificate=found.certificate,
                      supervision_cost=found.supervision)  # fmt: skip
    return result.saved_over(found.month, found.confidence)


def asked_again(found: Decision, chosen: Result, monthly: float, margin: float, price: float) -> dict:
    """The month if volume, margin and the reference's price were others: its bill, what is saved, and on what that rests.

    The margin that was asked for is answered by what was certified, any other by the cheapest point on the test.
    """
    certified = margin == found.margin
    result = (found.result if certified else chosen.at(margin=margin)).repriced(price, 0.0)
    saving = max(0.0, result.reference.cost - result.serving_cost) if found.action != "keep" or not certified else 0.0
    back = found.evaluation / saving if saving > NOISE * result.reference.cost else np.inf
    return {"bill": monthly * result.reference.cost, "saved": monthly * saving, "back after queries": back,
            "back after days": days(back, monthly), "basis": "certified" if certified else ON_TEST}  # fmt: skip


def break_even(found: Decision) -> float:
    """The price of the reference, relative to today's, at which the certified policy saves nothing any more; NaN for none."""
    if found.result is None:
        return np.nan
    point, price = found.result.operating_point, found.result.reference.cost
    kept = price - point["reference_cost"]
    return float((point["cost"] - point["reference_cost"]) / kept) if kept > 0 else np.nan


def frontier_on_test(found: Decision, chosen: Result) -> Frontier:
    """What the what-if panel of a report needs: the frontier on the test, and what the reference took of the supervision."""
    bought = found.router.observations_
    mine = bought.models == found.learn.models.index(found.reference)
    return Frontier(chosen.at(margin=0), float(bought.cost[mine].sum()))


def halves(work: Workload, seeds: Sequence[int], **question) -> pd.DataFrame:
    """Would the advice have held? Decided on one random half of the table, looked up on the other.

    One row per half: what was advised, the stated interval of saving for as many queries as the other half has, what was
    saved there, and the points of quality that were lost or won.
    """
    question = {name: value for name, value in question.items() if value is not None}
    rows = kept(_one_half, [(work, {"seed": int(seed), **question}) for seed in seeds])
    return pd.DataFrame(rows)


def _one_half(work: Workload, seed: int, **question) -> list[dict]:
    here, there = work.split(train=0.5, seed=seed)
    found = decide(here, seed=seed, month=len(there), **question)
    row = {"seed": seed, "action": found.action, "low": found.saved[1], "high": found.saved[2], "saved": 0.0, "difference": 0.0,
           "error": 0.0, "reference bill": 0.0}  # fmt: skip
    if found.policy is None:
        return [row]
    column = work.models.index(found.reference)
    other = there.take(there.available[:, column])
    chosen = found.policy.choice(*found.router.estimates(other.queries))
    rows = np.arange(len(other))
    gain = other.quality[rows, chosen] - other.quality[:, column]
    paid, price = other.cost[rows, chosen], other.cost[:, column]
    return [row | {"saved": float((price - paid).mean() * len(there)), "difference": float(100 * gain.mean()),
                   "error": float(100 * gain.std() / np.sqrt(len(gain))),
                   "reference bill": float(price.mean() * len(there))}]  # fmt: skip


def held(table: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Of the halves in which a change was advised: how often the saving lay in its interval and quality within the margin,
    with exact 95% intervals."""
    changed = table[table["action"].isin(["route", "replace"])]
    inside = (changed["saved"] >= changed["low"]) & (changed["saved"] <= changed["high"])
    within = changed["difference"] >= -margin - NOISE
    rows = {}
    for name, good in (("saving in its interval", inside), ("quality within the margin", within)):
        value, low, high = share_of(int(good.sum()), len(good)) if len(good) else (np.nan, np.nan, np.nan)
        rows[name] = {"halves": len(good), "held": int(good.sum()), "share": value, "from": low, "to": high}
    return pd.DataFrame.from_dict(rows, orient="index")


def alone_on_test(found: Decision, chosen: Result) -> pd.DataFrame:
    """Every model alone on the test queries, as the what-if panel of a report reads them."""
    rows = [
        {"workload": found.workload, "model": one.model, "quality": one.quality, "cost": one.cost}
        for one in chosen.singles
    ]
    return pd.DataFrame(rows)


def tried_in_words(tried: pd.DataFrame) -> pd.DataFrame:
    """``Decision.tried`` as it is read."""
    rows = [
        {"tried": row["tried"], "fresh queries": f"{row['queries']:,}",
         "leaves the reference": f"{row['leaves the reference']:.0%}" if row["certified"] else "not shown",
         "measured": f"{row['measured']:+.2f}" if row["certified"] else "–",
         "at least": f"{row['at least']:+.2f}" if row["certified"] else "–",
         "expected saving": f"{row['expected saving']:.0%}", "chosen": "yes" if row["chosen"] else "no"}
        for row in tried.to_dict("records") if "tried" in row
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("tried") if rows else pd.DataFrame(["no"], columns=["certified"])


def questions_in_words(table: pd.DataFrame, currency: str) -> pd.DataFrame:
    """The frame of ``what_if`` as it is read."""
    rows = [
        {"what if": row["what if"], "saves a month": money(row["saves a month"], currency),
         "interval": f"{money(row['from'], '')} to {money(row['to'], '')}",
         "evaluation is back after": time(row["back after days"]), "basis": row["basis"]}
        for row in table.to_dict("records")
    ]  # fmt: skip
    return pd.DataFrame(
        rows, columns=["what if", "saves a month", "interval", "evaluation is back after", "basis"]
    ).set_index("what if")


def held_in_words(held: pd.DataFrame) -> pd.DataFrame:
    """The frame of ``held`` as it is read."""
    rows = {
        name: {"held": f"{row['held']:.0f} of {row['halves']:.0f}",
               "share, 95% interval": f"{row['share']:.0%} ({row['from']:.0%} to {row['to']:.0%})" if row["halves"] else "–"}
        for name, row in held.to_dict("index").items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")
