"""An operating point that can be chosen before deployment, with a promise: no more than a margin below the model in use.

After ``fit``, a second and smaller purchase on fresh queries: the outcome of the reference and of the model the router would
take instead, where they differ. A fixed path of policies leads from "always the reference" to "never"; the last one whose
lower bound stays above the margin is kept. What it costs belongs on the bill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pandas as pd

from ..errors import SaveRouterError, did_you_mean, number, one_of, share, whole
from ..workloads import Asked, Feedback, Queries
from .asking import estimates, mean_costs, training_queries
from .operating_points import masked
from .path import PATH, Walk, thresholds
from .policies import Always, Policy, Switch, policy_from
from .verdict import in_points

BOUNDS = {
    "guarded": "checked by enumeration, not proved",
    "betting": "proved, and stoppable at any time",
}


@dataclass(frozen=True)
class Certificate:
    """A policy that was shown, on fresh queries, to stay within a margin of the reference model.

    policy : for ``router.route(prompts, policy=...)``; always the reference where nothing could be shown
    margin, confidence : the promise: quality at most ``margin`` points (hundredths) below the reference's
    method : "guarded" or "betting", which bound it rests on
    bound, estimate : quality minus the reference's, in points: at least, and as measured
    share : of the fresh queries, how many leave the reference
    queries : fresh queries that count; those that cannot have the reference do not
    bought : of these, how many were bought on, two outcomes each
    spent : what they cost; it belongs on the bill, beside the training's supervision
    path : a row per policy of the path: threshold, share, estimate, bound (NaN where no more was bought) and what was decided
    """

    policy: Policy
    reference: str
    margin: float
    confidence: float
    method: str
    bound: float
    estimate: float
    share: float
    queries: int
    bought: int
    spent: float
    path: pd.DataFrame = field(compare=False)

    def __repr__(self) -> str:
        return (
            f"<Certificate: within {in_points(self.margin)} of {self.reference}, {self.confidence:.0%}; leaves it on "
            f"{self.share:.1%}, bound {self.bound:+.2f}, {self.bought:,} of {self.queries:,} queries bought>"
        )

    def verdict(self) -> str:
        """What was shown, in a sentence or two."""
        paid = f"on {self.bought:,} of {self.queries:,} fresh queries, for {self.spent:.4g}"
        if isinstance(self.policy, Always):
            return (
                f"Nothing cheaper than {self.reference} could be shown to stay within {in_points(self.margin)} of it with "
                f"{self.confidence:.0%} confidence; it was tried {paid}. Keep {self.reference}."
            )
        return (
            f"Leave {self.reference} on {self.share:.0%} of the queries: quality then is {self.estimate:+.2f} points as "
            f"measured and at least {self.bound:+.2f} with {self.confidence:.0%} confidence ({self.method}: "
            f"{BOUNDS[self.method]}), within the margin of {self.margin:g}. Measured {paid}."
        )

    def at(self, *_, **question) -> Certificate:
        """Refuses, as ``extend`` does: the same queries answer one question only."""
        raise SaveRouterError(
            f"this certificate answers one question ({in_points(self.margin)}, {self.confidence:.0%}, {self.queries:,} queries); "
            f"asking its queries again{' about ' + ', '.join(question) if question else ''}, after seeing the answer, would "
            "void the confidence: certify anew on fresh queries"
        )

    extend = at

    def to_dict(self) -> dict:
        """Plain data for JSON; ``certificate_from`` takes it back."""
        plain = {name: getattr(self, name) for name in _plain()}
        columns = self.path.to_dict("list").items()
        path = {name: [None if value != value else value for value in column] for name, column in columns}
        return {**plain, "policy": self.policy.to_dict(), "path": path}


def _plain() -> list[str]:
    return [one.name for one in fields(Certificate) if one.name not in ("policy", "path")]


def certificate_from(content: Mapping) -> Certificate:
    """The certificate that ``to_dict`` described; anything unknown, missing or damaged is refused."""
    known = {one.name for one in fields(Certificate)}
    if not isinstance(content, Mapping) or set(content) != known:
        raise SaveRouterError(f"a certificate has {', '.join(sorted(known))}; this is {content!r:.60}")
    for name in ("margin", "spent"):
        number(f"{name} of a certificate", content[name])
    for name in ("queries", "bought"):
        whole(f"{name} of a certificate", content[name])
    for name in ("bound", "estimate"):
        number(f"{name} of a certificate", content[name], "points between -100 and 100", least=-100.0)
    share("confidence of a certificate", content["confidence"], below_one=True)
    number("share of a certificate", content["share"])
    one_of("method of a certificate", content["method"], BOUNDS)
    policy = policy_from(content["policy"])
    if content["reference"] not in policy.models:
        raise SaveRouterError(f"the reference {content['reference']!r} of a certificate is not in its policy's pool")
    try:
        path = pd.DataFrame(content["path"], columns=list(PATH)).astype(PATH)
    except (ValueError, TypeError) as error:
        raise SaveRouterError(f"the path of a certificate cannot be read: {error}") from None
    return Certificate(**{**content, "policy": policy, "path": path})


def certify(
    router, queries: Asked, feedback: Feedback, *, reference: str, margin: float = 1.0, confidence: float = 0.9,
    bound: str = "guarded", train: Asked | None = None,
) -> Certificate:  # fmt: skip
    """The cheapest policy that is shown to stay within a margin of the model in use.

    Parameters
    ----------
    queries, feedback : fresh queries from the stream to be served, in random order and never used before, and the door to
        their outcomes. One feedback answers one question; a router refuses queries that certified it before (a study
        that replays many streams gives each its own ``copy.copy(router)``).
    reference : the model in use today, by name
    margin : points (hundredths of quality) that may be lost at most
    confidence : with which the promise holds
    bound : "guarded", or "betting", which is proved and stops buying as soon as all is decided, but needs about twice the
        queries
    train : queries whose prompts set the steps of the path; no outcome of them is used. By default those that ``fit`` saw,
        which a router keeps in memory only: after loading or copying one, give them.

    A query of which an outcome is missing counts as the worst case: the candidate failed and the reference did not. So the
    promise holds whatever is missing; but where more outcomes are missing than the margin allows, little can be shown.
    """
    _refuse_question(router, reference, margin, confidence, bound)
    queries, train = Queries.of(queries), training_queries(router, train, "certify")
    _refuse_used(router, queries, feedback, train)
    known = estimates(router, train)
    switch = Switch(reference=reference, prices=mean_costs(router, known[1]), models=router.models_)
    steps = thresholds(switch.bargains(*known)[1], margin)
    quality, cost = estimates(router, queries)
    walk = Walk.of(switch, steps, masked(quality, feedback.available(queries)), cost, margin / 100)
    if not len(walk.rows):
        raise SaveRouterError(f"no fresh query can have {reference!r}; give queries for which it is available")
    before = feedback.spent
    _mark_used(router, queries, feedback)
    last = getattr(walk, bound)(feedback, confidence)
    policy, found = Always(model=reference, models=router.models_), {"bound": 0.0, "estimate": 0.0, "share": 0.0}
    if last >= 0:
        policy = replace(switch, threshold=float(steps[last]))
        found = {name: float(walk.frame[name][last]) for name in found}
    return Certificate(
        policy, reference, float(margin), float(confidence), bound, queries=len(walk.rows), bought=walk.bought,
        spent=float(feedback.spent - before), path=walk.frame, **found,
    )  # fmt: skip


def certify_single(
    model: str, queries: Asked, feedback: Feedback, *, reference: str, margin: float = 1.0, confidence: float = 0.9,
    bound: str = "guarded",
) -> Certificate:  # fmt: skip
    """Whether one model alone stays within a margin of the model in use: a certificate whose path has one step.

    Queries are fresh ones, as in ``certify``; those that cannot have both models do not count, and those of which an outcome
    is missing count as lost. Whoever asks this and
    ``certify`` on the same queries shares the confidence out: for 90% of both together, 95% each.
    """
    models = tuple(feedback.models)
    _refuse_name(models, "model", model)
    _refuse_name(models, "reference", reference)
    _refuse_level(margin, confidence, bound)
    queries = Queries.of(queries)
    _refuse_bought(queries, feedback)
    one, other = models.index(model), models.index(reference)
    rows = np.flatnonzero(feedback.available(queries)[:, [one, other]].all(axis=1))
    if not len(rows):
        raise SaveRouterError(f"no fresh query can have both {model!r} and {reference!r}; give queries that can")
    walk = Walk.to_one(rows, one, other, margin / 100)
    feedback.certified = True
    before, held = feedback.spent, getattr(walk, bound)(feedback, confidence) >= 0
    found = {name: float(walk.frame[name][0]) if held else 0.0 for name in ("bound", "estimate", "share")}
    return Certificate(
        Always(model=model if held else reference, models=models), reference, float(margin), float(confidence), bound,
        queries=len(rows), bought=walk.bought, spent=float(feedback.spent - before), path=walk.frame, **found,
    )  # fmt: skip


def _refuse_name(models: tuple[str, ...], what: str, name: str) -> None:
    if name not in models:
        raise SaveRouterError(
            f"the {what} {name!r} is not in the pool; {did_you_mean(name, models)}it has {', '.join(models)}"
        )


def _refuse_question(router, reference: str, margin: float, confidence: float, bound: str) -> None:
    if not hasattr(router, "models_"):
        raise SaveRouterError(
            f"{type(router).__name__} has not been fitted; call fit(train.queries, train.feedback()) first"
        )
    if getattr(router, "needs_answers", False):
        raise SaveRouterError(
            f"{router.label} serves by the answers it gets, and a certificate is of choices made before any answer; certify the "
            "router before its first stage, or judge the cascade with evaluate(router, test, ...)"
        )
    _refuse_name(router.models_, "reference", reference)
    _refuse_level(margin, confidence, bound)


def _refuse_level(margin: float, confidence: float, bound: str) -> None:
    number("margin", margin, "points of quality that may be lost, e.g. 1")
    share("confidence", confidence, below_one=True)
    one_of("bound", bound, BOUNDS)


def _refuse_used(router, queries: Queries, feedback: Feedback, train: Queries) -> None:
    """A promise rests on outcomes that nobody has seen."""
    _refuse_bought(queries, feedback)
    mine = names_of(queries)
    for used, what in (
        (set(names_of(train)), "taught the router"),
        (router_memory(router), "certified this router before"),
    ):
        again = [name or prompt for name, prompt in mine if (name, prompt) in used]
        if len(again) > (0 if queries.ids is not None else len(mine) / 2):  # prompts alone may repeat by chance
            raise SaveRouterError(
                f"query {again[0]!r:.60} {what}, as did {len(again) - 1} others; a certificate needs fresh queries, since "
                "asking again after seeing an answer voids the confidence (a study that replays streams gives each its own "
                "copy.copy(router))"
            )


def _refuse_bought(queries: Queries, feedback: Feedback) -> None:
    size = len(feedback) if hasattr(feedback, "__len__") else len(feedback.available(queries))
    if len(queries) != size:
        raise SaveRouterError(
            f"{len(queries)} queries but feedback for {size}; take both from the same workload: "
            "certify(router, fresh.queries, fresh.feedback(), ...)"
        )
    if getattr(feedback, "certified", False) or len(getattr(feedback, "observations", ())):
        raise SaveRouterError(
            "outcomes were bought through this feedback already; a certificate needs fresh queries that nothing was bought "
            "of, since asking again after seeing an answer voids the confidence"
        )


def names_of(queries: Queries) -> list[tuple]:
    """What tells queries apart: prompt and name; tables of different days may number their rows alike."""
    ids = [None] * len(queries) if queries.ids is None else queries.ids
    return list(zip(ids, queries.prompts, strict=True))


def router_memory(router) -> set[tuple]:
    """The queries that certified this router before; kept in memory only, as ``train_queries_`` is."""
    return vars(router).setdefault("certified_queries_", set())


def _mark_used(router, queries: Queries, feedback: Feedback) -> None:
    feedback.certified = True
    router_memory(router).update(names_of(queries))
