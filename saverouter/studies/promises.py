"""How to choose an operating point before deployment: what is promised, what is kept, and what certainty costs.

On every split the router learns from a fifth. Of the rest, the first queries are fresh ones for the certificate, the last are
the test, which is the same for every way to choose. The reference is the best single model of the whole workload: in life it
is the model in use.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ..judging import Always, certify, evaluate
from ..paper import paper_options
from ..routers import SaveRouter
from ..workloads import Workload, model_means
from .runs import kept
from .splits import third_of

SIZES = (250, 500, 1_000, 2_000, 4_000)
HORIZONS = (10_000, 100_000, 1_000_000)
PLUG_IN, ON_TEST, CERTIFIED = "router's own estimates", "test outcomes", "certificate"


def reference_of(work: Workload) -> str:
    """The best single model of the whole workload."""
    return work.models[int(np.argmax(model_means(work.quality)))]


def sizes_of(work: Workload, sizes: Iterable[int] = SIZES, train: float = 0.2) -> list[int]:
    """Numbers of fresh queries that leave at least as many for the test."""
    return [size for size in sizes if 2 * size <= 1.02 * (1 - train) * len(work)]


def promises(
    works: Iterable[Workload],
    seeds: Sequence[int],
    margin: float = 1.0,
    confidence: float = 0.9,
    bound: str = "guarded",
) -> pd.DataFrame:
    """One row per workload, split and way to choose: difference from the reference in points, saving, and what was paid.

    ``training`` and ``certificate`` are costs in calls to the reference; ``fresh`` is the number of fresh queries.
    """
    rows = []
    for work in works:
        for seed in seeds:
            asked = {"seed": int(seed), "margin": margin, "confidence": confidence, "bound": bound}
            rows += kept(_one_split, work, **asked)
    return pd.DataFrame(rows)


def _one_split(work: Workload, seed: int, margin: float, confidence: float, bound: str) -> list[dict]:
    learn, rest = work.split(seed=seed)
    sizes, name = sizes_of(work), reference_of(work)
    test, router, paid = rest.take(slice(max(sizes), None)), *_fitted(work, learn, seed)
    base = _judged(router, test, Always(model=name, models=work.models))
    plug_in, on_test = _plug_in(router, test, base, name, margin), _on_test(router, test, base, margin)
    chosen = [(PLUG_IN, 0, 0.0, plug_in), (ON_TEST, 0, 0.0, on_test)]
    for size in sizes:
        fresh = rest.take(slice(size))
        found = certify(copy.copy(router), fresh.queries, fresh.feedback(), reference=name, margin=margin,
                        confidence=confidence, bound=bound, train=learn.queries)  # fmt: skip
        chosen.append((CERTIFIED, size, found.spent, _judged(router, test, found.policy)))
    return [
        {"workload": work.name, "seed": seed, "chosen on": way, "fresh": size, "difference": 100 * (quality - base[0]),
         "saving": 1 - cost / base[1], "training": paid / base[1], "certificate": spent / base[1]}
        for way, size, spent, (quality, cost) in chosen
    ]  # fmt: skip


def _fitted(work: Workload, learn: Workload, seed: int) -> tuple[SaveRouter, float]:
    feedback = learn.feedback()
    router = SaveRouter(**paper_options(work, k=third_of(work), seed=seed)).fit(learn.queries, feedback)
    return router, feedback.spent


def _judged(router, test: Workload, policy) -> tuple[float, float]:
    """Mean quality and cost of one policy on the test."""
    point = evaluate(router, test, policy=policy, supervision_cost=0.0).frontier.iloc[0]
    return float(point["quality"]), float(point["cost"])


def _on_test(router, test: Workload, base: tuple[float, float], margin: float) -> tuple[float, float]:
    """The cheapest point of the frontier that is good enough on the test itself, or the reference where none is."""
    points = evaluate(router, test, supervision_cost=0.0).frontier
    good = points[points["quality"] >= base[0] - margin / 100 - 1e-9]
    return base if good.empty else (float(good.iloc[0]["quality"]), float(good.iloc[0]["cost"]))


def _plug_in(router, test: Workload, base: tuple[float, float], name: str, margin: float) -> tuple[float, float]:
    """The policy that the router's own estimates call the cheapest of the good enough ones, as it turns out."""
    queries, column, rows = test.queries, test.models.index(name), np.arange(len(test))
    quality, cost = router.predict_quality(queries), router.predict_cost(queries)
    least, cheapest, found = quality[:, column].mean() - margin / 100, cost[:, column].mean(), base
    for family in router.policies(queries):
        guessed, paid = family.realised(quality, cost)
        paid = np.where(guessed >= least, paid, np.inf)
        if paid.min() < cheapest:
            cheapest, chosen = paid.min(), family.choice(int(np.argmin(paid)))
            found = float(test.quality[rows, chosen].mean()), float(test.cost[rows, chosen].mean())
    return found


def other_mix(works: Iterable[Workload], seeds: Sequence[int], size: int = 1_000, margin: float = 1.0) -> pd.DataFrame:
    """Certified on a random half of the tasks and deployed on the other half, beside the mix that was certified on.

    One row per workload and split; differences from the reference in points. Workloads with fewer than four tasks, or with
    too few queries, are left out.
    """
    rows = []
    for work in works:
        for seed in seeds if work.tasks is not None and len(set(work.tasks)) >= 4 else ():
            rows += kept(_one_mix, work, seed=int(seed), size=size, margin=margin)
    return pd.DataFrame(rows)


def _one_mix(work: Workload, seed: int, size: int, margin: float) -> list[dict]:
    learn, rest = work.split(seed=seed)
    tasks = np.random.default_rng(seed).permutation(sorted(set(work.tasks)))
    here = np.isin(rest.tasks.astype(str), tasks[: len(tasks) // 2].astype(str))
    same, other, name = np.flatnonzero(here), np.flatnonzero(~here), reference_of(work)
    if 2 * size > 1.02 * len(same):
        return []
    router, _ = _fitted(work, learn, seed)
    fresh = rest.take(same[:size])
    found = certify(router, fresh.queries, fresh.feedback(), reference=name, margin=margin)
    row = {"workload": work.name, "seed": seed, "margin": margin}
    for mix, test in (("same mix", rest.take(same[size:])), ("other mix", rest.take(other))):
        base, served = (
            _judged(router, test, policy) for policy in (Always(model=name, models=work.models), found.policy)
        )
        row[mix] = 100 * (served[0] - base[0])
    return [row]


def references(works: Iterable[Workload], seeds: Sequence[int]) -> pd.DataFrame:
    """Whether the router's own estimates name the best single model of the test, and how many points it loses by that."""
    return pd.DataFrame([row for work in works for seed in seeds for row in kept(_one_reference, work, seed=int(seed))])


def _one_reference(work: Workload, seed: int) -> list[dict]:
    learn, test = work.split(seed=seed)
    router, _ = _fitted(work, learn, seed)
    guess = int(np.argmax(router.predict_quality(test.queries).mean(axis=0)))
    means = model_means(test.quality)
    return [{"workload": work.name, "seed": seed, "guess": work.models[guess], "best": work.models[int(np.argmax(means))],
             "points lost": 100 * float(means.max() - means[guess])}]  # fmt: skip


def bills(table: pd.DataFrame, horizons: Iterable[int] = HORIZONS) -> pd.DataFrame:
    """The frame of ``promises`` with the whole bill over each horizon, relative to the reference's: training, certificate,
    and serving. Fresh queries are extra calls, not served traffic."""
    upfront = table["training"] + table["certificate"]
    return table.assign(**{f"bill {horizon}": upfront / horizon + 1 - table["saving"] for horizon in horizons})
