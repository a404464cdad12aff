"""From a table of outcomes to a decision: keep the model in use, replace it by one cheaper model, or put a router before it.

All is decided before the test is looked at. A fifth of the queries teaches the router. On fresh ones it is shown, with the
confidence that was asked for, what stays within the margin: the router's policies and, where it looks possible, one cheaper
model alone. The rest says what the choice saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import SaveRouterError, did_you_mean, number, share
from ..judging import Certificate, Plan, Result, best_single, certify, certify_single, evaluate, in_points, plan
from ..judging.policies import Always, Policy
from ..paper import paper_options
from ..routers import SaveRouter
from ..workloads import Feedback, Findings, Workload, model_means
from .advice import MONTHS, days, sentences
from .splits import third_of

AFFORDABLE = 0.01  # of a year's bill for the reference: supervision up to that much is worth its price
TRAIN = 0.2  # of the queries teach
FRESH = 0.6  # of the others certify at most; the rest are the test
ENOUGH = 300  # training queries from which on anchored buying gains by its interval: `purchase`
SMALLEST = 60  # different queries with which anything is tried at all
WORTH = 0.02  # of the reference's cost: a change that saves less is not worth making
NEARLY = 0.05  # of the reference's cost: what a router must save beyond one model to be worth running
THERE = 0.95  # of the queries that must be able to have a model, for it to serve all
ACTIONS = ("route", "replace", "keep", "no answer")


@dataclass(frozen=True)
class Decision:
    """What to do on Monday, what it saves, and on what that rests.

    action : "route" (the certified policy), "replace" (one cheaper model for all), "keep" the reference, or "no answer"
    reason : why, where nothing is changed
    reference, named : the model in use, and whether it was named; the best single model otherwise
    monthly, margin, confidence, currency : the question. ``month`` is the volume that ``saved`` speaks of.
    queries : of the table that can have the reference; of these ``learnt`` teach, ``fresh`` certify and ``tested`` test
    router : fitted on ``outcomes`` for ``learnt`` queries, bought for ``supervision``: K each, or what K each would cost
        (``purchase``)
    certificate : of the policy; what it and the tried alternatives cost is in ``certificate.spent``
    tried : a row per alternative: what was shown on fresh queries, and what it saves as far as the router knows
    result : the policy on the test queries, with evaluation (supervision and certificate) as its supervision cost
    saved : money a month, and ``quality`` points against the reference: estimate, low and high
    """

    action: str
    reason: str
    workload: str
    reference: str
    named: bool
    monthly: float
    month: float
    margin: float
    confidence: float
    currency: str
    findings: Findings
    plan: Plan
    queries: int = 0
    k: int = 0
    learnt: int = 0
    outcomes: int = 0
    fresh: int = 0
    tested: int = 0
    supervision: float = 0.0
    saved: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quality: tuple[float, float, float] = (0.0, 0.0, 0.0)
    router: SaveRouter | None = field(default=None, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    tried: pd.DataFrame | None = field(default=None, repr=False)
    result: Result | None = field(default=None, repr=False)
    test: Workload | None = field(default=None, repr=False)
    learn: Workload | None = field(default=None, repr=False)

    @property
    def policy(self) -> Policy | None:
        """What serves from Monday on; None where there is no answer."""
        return None if self.certificate is None else self.certificate.policy

    @property
    def evaluation(self) -> float:
        """What supervision and certificate cost together."""
        return 0.0 if self.result is None else self.result.supervision_cost

    @property
    def payback(self) -> float:
        """Queries until the evaluation is earned back; inf where nothing is saved."""
        return np.inf if self.result is None or self.action == "keep" else self.result.sa_bep

    @property
    def bill(self) -> float:
        """What the reference alone would cost in a month."""
        return np.nan if self.result is None else self.monthly * self.result.reference.cost

    def save(self, folder: str | Path) -> Path:
        """The fitted router with its certified policy, for ``saverouter.load_router``."""
        if self.router is None:
            raise SaveRouterError(f"there is no router to save: {self.reason}")
        return self.router.save(folder, certificate=self.certificate)

    def to_dict(self) -> dict:
        """Plain data for JSON; what is infinite or unknown is None."""
        certified = self.certificate is not None
        told = {
            "action": self.action, "says": self.says(), "reason": self.reason, "workload": self.workload,
            "reference": {"model": self.reference, "named": self.named,
                          "monthly bill": self.bill},
            "asked": {"monthly": self.monthly, "margin": self.margin, "confidence": self.confidence, "currency": self.currency},
            "policy": self.policy.to_dict() if certified else None,
            "saved a month": _named(self.saved), "quality in points": _named(self.quality),
            "certified": {"bound in points": self.certificate.bound, "share leaving the reference": self.certificate.share}
            if certified else None,
            "evaluation": {"k": self.k, "training queries": self.learnt, "outcomes": self.outcomes, "fresh queries": self.fresh,
                           "supervision": self.supervision, "certificate": self.certificate.spent if certified else None,
                           "cost": self.evaluation, "back after queries": self.payback,
                           "back after days": days(self.payback, self.monthly)},
            "test queries": self.tested,
            "warnings": [str(finding) for finding in self.findings],
        }  # fmt: skip
        return _plain(told)

    def says(self) -> str:
        """The decision in a few sentences."""
        return sentences(self)

    __str__ = says


def _named(found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("estimate", "low", "high"), found, strict=True))


def _plain(value):
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value


def decide(
    work: Workload, *, reference: str | None = None, monthly: float = 100_000, margin: float = 1.0,
    confidence: float = 0.9, currency: str | None = None, k: int | None = None, seed: int = 42, month: float | None = None,
) -> Decision:  # fmt: skip
    """What to do with a pool of models, from recorded outcomes.

    Parameters
    ----------
    reference : the model in use today, by name; where none is named, the best single model of the whole table
    monthly : queries a month
    margin : points (hundredths of quality) that may be lost against the reference
    confidence : with which quality is within the margin, and saving within its interval
    currency : what a cost of 1 is; from the workload's provenance where it says so
    k : outcomes bought per training query; ``affordable`` says how many unless given
    month : the volume of which the saving is stated, ``monthly`` unless given
    """
    refuse_question(work, reference, monthly, margin, confidence)
    findings = work.check()
    if currency is None:
        currency = "USD" if "USD" in " ".join(work.provenance) else ""
    name = best_of(work) if reference is None else reference
    asked = Decision(
        "no answer", "", work.name, name, reference is not None, monthly, monthly if month is None else month, margin,
        confidence, currency, findings, plan(MONTHS * monthly, margin, confidence), 0 if k is None else k,
    )  # fmt: skip
    if findings.blocking is not None:
        return replace(asked, reason=f"{findings.blocking.says} {findings.blocking.remedy}".rstrip("."), test=work)
    return _decided(asked, work.take(np.isfinite(work.quality[:, work.models.index(name)])), seed)


def refuse_question(work: Workload, reference: str | None, monthly: float, margin: float, confidence: float) -> None:
    """Refuse what cannot be asked of a table, before anything is computed."""
    number("monthly", monthly, "queries a month, at least 1", least=1)
    number("margin", margin, "points of quality that may be lost, e.g. 1")
    share("confidence", confidence, below_one=True)
    if reference is not None and reference not in work.models:
        raise SaveRouterError(
            f"the reference {reference!r} is not in the pool; {did_you_mean(reference, work.models)}it has "
            f"{', '.join(work.models)}"
        )


def best_of(work: Workload) -> str:
    """The model of the highest mean quality, where all that are mostly there can be compared."""
    return best_single(work).model


def _decided(asked: Decision, work: Workload, seed: int) -> Decision:
    """The decision on queries that can all have the reference."""
    distinct = len(work) if work.clusters is None else len(set(work.clusters))
    if distinct < SMALLEST:
        return replace(asked, reason=_too_few(distinct), test=work)
    work.queries.embed()  # all at once, so that progress has one end
    learn, rest = work.split(train=TRAIN, seed=seed)
    wanted = min(asked.plan.recommended, int(FRESH * len(rest)))
    fresh, test = rest.split(train=wanted / len(rest), seed=seed)
    fresh = _one_per_cluster(fresh)
    feedback = learn.feedback()
    if not asked.k:
        asked = replace(asked, k=affordable(learn, asked.reference, MONTHS * asked.monthly))
    buying = purchase(feedback, asked.k, asked.reference if asked.named else None)
    router = SaveRouter(**paper_options(work, seed=seed) | buying).fit(learn.queries, feedback)
    certificate, tried = _certified(asked, router, learn, fresh)
    result = evaluate(
        router, test, certificate=certificate, supervision_cost=feedback.spent, horizon=MONTHS * asked.monthly
    )
    found = replace(
        asked, queries=len(work), learnt=len(learn), outcomes=len(feedback.observations), fresh=len(fresh),
        tested=len(test), supervision=feedback.spent, router=router, certificate=certificate, tried=tried,
        result=result, test=test, learn=learn,
    )  # fmt: skip
    if certificate.policy == Always(model=asked.reference, models=work.models):
        return replace(found, action="keep", reason=_why_kept(found))
    points = result.interval(asked.confidence).loc["quality difference"]
    return replace(
        found,
        action="replace" if isinstance(certificate.policy, Always) else "route",
        saved=result.saved_over(asked.month, asked.confidence),
        quality=tuple(float(points[name]) for name in ("estimate", "low", "high")),
    )


def affordable(learn: Workload, reference: str, horizon: float) -> int:
    """K: as many models per training query as cost little beside the bill to come, and a third of the pool at least.

    More supervision makes better certificates (on three recorded workloads all of the pool saves 3 to 11% of the bill more
    than a third of it), so that it is worth a hundredth of a long bill, and not of a short one. Prices are public.
    """
    prices = learn.feedback().prices
    bill = horizon * prices[learn.models.index(reference)]
    each = len(learn) * prices.mean()
    most = len(learn.models) if each == 0 else int(min(len(learn.models), AFFORDABLE * bill / each))
    return max(third_of(learn), most)


def purchase(feedback: Feedback, k: int, reference: str | None = None) -> dict:
    """Options of ``SaveRouter``: what to buy for about the price of K outcomes per query.

    Where the model in use is named, and ``ENOUGH`` queries teach, the purchase is anchored on it; else it is the paper's.
    On seven workloads and 20 splits (``purchases.enough_queries``), anchored buying certified .032 [.014, .050] of saving more
    with 300 training queries and .045 [.024, .066] with 400; with 150 and 200 the interval holds zero.
    """
    if reference is None or len(feedback) < ENOUGH:
        return {"k": k}
    money = k * len(feedback) * float(feedback.prices.mean())
    return {"k": k, "acquisition": "anchored", "reference": reference, "budget": money}


def _too_few(queries: int) -> str:
    return (
        f"{queries:,} different queries are too few to learn from, to certify on and to test on; {SMALLEST} are the fewest that "
        "are tried, and a few thousand can say something"
    )


def _one_per_cluster(fresh: Workload) -> Workload:
    """Queries that belong together say the same twice, and a certificate counts on their not doing so."""
    if fresh.clusters is None:
        return fresh
    _, first = np.unique(fresh.clusters.astype(str), return_index=True)
    return fresh.take(np.sort(first))


def _certified(
    asked: Decision, router: SaveRouter, learn: Workload, fresh: Workload
) -> tuple[Certificate, pd.DataFrame]:
    """The best of what was shown on the fresh queries, and all that was tried; together they keep the confidence."""
    model = _promising(asked, router, learn)
    each = 1 - (1 - asked.confidence) / (1 if model is None else 2)
    question = {"reference": asked.reference, "margin": asked.margin, "confidence": each}
    meters = [fresh.feedback()]
    shown = [certify(router, fresh.queries, meters[0], **question)]
    if model is not None:
        meters.append(fresh.feedback())
        shown.append(certify_single(model, fresh.queries, meters[1], **question))
    saving = [_expected(asked, router, fresh, found.policy) for found in shown]
    bought = pd.concat([meter.observations for meter in meters]).drop_duplicates(["row", "model"])
    tried = pd.DataFrame({
        "tried": ["SaveRouter", *([model] if model else [])], "queries": [found.queries for found in shown],
        "leaves the reference": [found.share for found in shown], "measured": [found.estimate for found in shown],
        "at least": [found.bound for found in shown], "expected saving": saving,
        "certified": [found.share > 0 for found in shown],
    })  # fmt: skip
    best = 1 if model is not None and saving[1] >= max(WORTH, saving[0] - NEARLY) else 0
    chosen = replace(shown[best], confidence=asked.confidence, spent=float(bought["cost"].sum()))
    if saving[best] < WORTH:
        chosen = replace(
            chosen, policy=Always(model=asked.reference, models=learn.models), bound=0.0, estimate=0.0, share=0.0
        )
    return chosen, tried.assign(chosen=[place == best and saving[best] >= WORTH for place in range(len(shown))])


def _promising(asked: Decision, router: SaveRouter, learn: Workload) -> str | None:
    """The cheapest model that may do alone, as far as the training outcomes tell; None where none is likely to."""
    quality, cost = router.predict_quality(learn.queries).mean(axis=0), router.mean_costs
    column = learn.models.index(asked.reference)
    there = learn.available.mean(axis=0) >= THERE
    good = there & (cost < cost[column]) & (quality >= quality[column] - asked.margin / 100)
    return learn.models[int(np.argmin(np.where(good, cost, np.inf)))] if good.any() else None


def _expected(asked: Decision, router: SaveRouter, fresh: Workload, policy: Policy) -> float:
    """The share of the reference's cost that a policy saves on the fresh prompts, by the router's own estimates."""
    quality, cost = router.estimates(fresh.queries)
    chosen = cost[np.arange(len(cost)), policy.choice(quality, cost)].mean()
    price = cost[:, fresh.models.index(asked.reference)].mean()
    return float(1 - chosen / price) if price > 0 else 0.0


def _why_kept(found: Decision) -> str:
    """Why nothing was shown to be good enough, and which data would change that."""
    means = model_means(found.learn.cost)
    price = means[found.learn.models.index(found.reference)]
    if not (means < price).any():
        return f"no model of the pool costs less than {found.reference}, so that nothing can be saved"
    if found.certificate.queries < found.plan.fewest:
        return (
            f"{found.certificate.queries:,} fresh queries cannot show that no more than {in_points(found.margin)} is lost: at "
            f"least {found.plan.fewest:,.0f} are needed"
        )
    if found.tried["certified"].any():
        best = found.tried["expected saving"].max()
        return f"what could be shown to stay within the margin saves {best:.1%} of the bill, too little to change anything for"
    return f"no cheaper choice could be shown to stay within the margin on {found.certificate.queries:,} fresh queries"
