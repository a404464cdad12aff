"""How to choose an operating point before deployment: what is promised, what is kept, and what certainty costs.

On every split the router learns from a fifth. Of the rest, the first queries are fresh ones for the certificate, the last are
the test, which is the same for every way to choose. The reference is the best single model of the whole workload: in life it
is the model in use.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from ..judging import Policy, certify, evaluate, operating_points, pareto
from ..judging.policies import Always
from ..paper import paper_options
from ..routers import SaveRouter, make_router
from ..workloads import Workload, model_means
from .intervals import answer, mean_of, resampled, share_of
from .kept import kept
from .splits import options_on_split, third_of

SIZES = (250, 500, 1_000, 2_000, 4_000)
HORIZONS = (10_000, 100_000, 1_000_000)
NOTHING = 1e-9
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
    asked = {"margin": margin, "confidence": confidence, "bound": bound}
    return pd.DataFrame(kept(_one_split, _each(works, seeds, **asked)))


def _each(works: Iterable[Workload], seeds: Sequence[int], **options) -> list[tuple[Workload, dict]]:
    return [(work, {"seed": int(seed), **options}) for work in works for seed in seeds]


def _one_split(work: Workload, seed: int, margin: float, confidence: float, bound: str) -> list[dict]:
    learn, rest = work.split(seed=seed)
    sizes, name = sizes_of(work), reference_of(work)
    router, paid = _fitted(work, learn, seed)
    served = _Served(router, rest.take(slice(max(sizes), None)))
    base = served.by(Always(model=name, models=work.models))
    chosen = [(PLUG_IN, 0, 0.0, served.plug_in(base, name, margin)), (ON_TEST, 0, 0.0, served.on_test(base, margin))]
    for size in sizes:
        fresh = rest.take(slice(size))
        found = certify(copy.copy(router), fresh.queries, fresh.feedback(), reference=name, margin=margin,
                        confidence=confidence, bound=bound, train=learn.queries)  # fmt: skip
        chosen.append((CERTIFIED, size, found.spent, served.by(found.policy)))
    return [
        {"workload": work.name, "seed": seed, "chosen on": way, "fresh": size, "difference": 100 * (quality - base[0]),
         "saving": 1 - cost / base[1], "training": paid / base[1], "certificate": spent / base[1]}
        for way, size, spent, (quality, cost) in chosen
    ]  # fmt: skip


def _fitted(work: Workload, learn: Workload, seed: int) -> tuple[SaveRouter, float]:
    feedback = learn.feedback()
    router = SaveRouter(**paper_options(work, k=third_of(work), seed=seed)).fit(learn.queries, feedback)
    return router, feedback.spent


class _Served:
    """Test queries as policies serve them: mean quality and cost. The router is asked once for all policies."""

    def __init__(self, router, test: Workload):
        self.router, self.test, self.rows = router, test, np.arange(len(test))
        self.estimates = router.estimates(test.queries)

    def by(self, policy: Policy) -> tuple[float, float]:
        """A policy that was fixed beforehand."""
        return self._of(policy.choice(*self.estimates))

    @cached_property
    def families(self) -> list:
        """All of the router's operating points."""
        return self.router.policies(self.test.queries)

    def on_test(self, base: tuple[float, float], margin: float) -> tuple[float, float]:
        """The cheapest policy that is good enough on the test itself, or the reference where none is."""
        points = pareto(operating_points(self.families, self.test.quality, self.test.cost))
        good = points[points["quality"] >= base[0] - margin / 100 - NOTHING]
        return base if good.empty else (float(good.iloc[0]["quality"]), float(good.iloc[0]["cost"]))

    def plug_in(self, base: tuple[float, float], name: str, margin: float) -> tuple[float, float]:
        """The policy that the router's own estimates call the cheapest of the good enough ones, as it turns out."""
        (quality, cost), column = self.estimates, self.test.models.index(name)
        there = ~np.isneginf(quality[:, column])
        least, cheapest, found = quality[there, column].mean() - margin / 100, cost[there, column].mean(), base
        for family in self.families:
            guessed, paid = family.realised(quality, cost)
            paid = np.where(guessed >= least, paid, np.inf)
            if paid.min() < cheapest:
                cheapest, found = paid.min(), self._of(family.choice(int(np.argmin(paid))))
        return found

    def _of(self, chosen: np.ndarray) -> tuple[float, float]:
        return float(self.test.quality[self.rows, chosen].mean()), float(self.test.cost[self.rows, chosen].mean())


def other_mix(works: Iterable[Workload], seeds: Sequence[int], size: int = 500, margin: float = 1.0) -> pd.DataFrame:
    """Certified on a random half of the tasks and deployed on the other half, beside the mix that was certified on.

    One row per workload and split; differences from the reference in points. Workloads with fewer than four tasks are left
    out, and splits whose half leaves too few queries for a test.
    """
    fit = [work for work in works if work.tasks is not None and len(set(work.tasks)) >= 4]
    rows = kept(_one_mix, _each(fit, seeds, size=size, margin=margin))
    return pd.DataFrame(rows, columns=["workload", "seed", "same mix", "other mix"])


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
    row = {"workload": work.name, "seed": seed}
    for mix, test in (("same mix", rest.take(same[size:])), ("other mix", rest.take(other))):
        served, reference = _Served(router, test), Always(model=name, models=work.models)
        row[mix] = 100 * (served.by(found.policy)[0] - served.by(reference)[0])
    return [row]


def references(works: Iterable[Workload], seeds: Sequence[int]) -> pd.DataFrame:
    """Whether the router's own estimates name the best single model of the test, and how many points it loses by that."""
    return pd.DataFrame(kept(_one_reference, _each(works, seeds)))


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


def anchored(
    works: Iterable[Workload], seeds: Sequence[int], margins: Sequence[float] = (0.0, 1.0),
    routers: Iterable[str] = ("saverouter",), profile: str = "paper",
) -> pd.DataFrame:  # fmt: skip
    """Whether a run reaches a target and saves, and what, without and with the path's policies among the operating points.

    Routers have their published options; SaveRouter buys a third of the pool. The path starts from the best single model of the
    test, and all is chosen on test outcomes.
    """
    wanted = [
        (work, {"seed": int(seed), "name": name, "options": options_on_split(name, work, int(seed), profile),
                "margins": [float(margin) for margin in margins]})
        for name in routers for work in works for seed in seeds
    ]  # fmt: skip
    return pd.DataFrame(kept(_one_anchored, wanted))


def _one_anchored(work: Workload, seed: int, name: str, options: dict, margins: list[float]) -> list[dict]:
    learn, test = work.split(seed=seed)
    feedback = learn.feedback()
    router = make_router(name, **options).fit(learn.queries, feedback)
    plain = evaluate(router, test, supervision_cost=feedback.spent)
    more = evaluate(router, test, supervision_cost=feedback.spent, anchored=plain.reference.model)
    rows = []
    for margin in margins:
        row = {"workload": work.name, "seed": seed, "method": router.label, "points below": margin}
        for which, result in (("", plain), (" anchored", more)):
            saving = max(0.0, 1 - result.at(margin=margin).cost_ratio)
            row |= {f"reached{which}": saving > NOTHING, f"saving{which}": saving}
        rows.append(row)
    return rows


def anchored_adds(table: pd.DataFrame) -> pd.DataFrame:
    """By router and margin, means over all runs: the share that reaches the target and saves, and the saving, without and with
    the path's policies, and how much is added, with a 95% interval over workloads and splits drawn anew."""
    rows = []
    for (method, margin), runs in table.groupby(["method", "points below"], sort=False):
        row = {"method": method, "points below": margin, "runs": len(runs)}
        for what in ("reached", "saving"):
            before, after = runs[what].astype(float), runs[f"{what} anchored"].astype(float)
            parts = [values.to_numpy() for _, values in (after - before).groupby(runs["workload"], sort=False)]
            low, high = resampled(parts)
            row |= {what: before.mean(), f"{what} anchored": after.mean(), f"{what} added": (after - before).mean(),
                    f"{what} from": low, f"{what} to": high}  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def added_in_words(added: pd.DataFrame) -> pd.DataFrame:
    """The frame of ``anchored_adds`` as it is read: routers down, points below the best single model across."""
    rows = added.to_dict("records")
    told = pd.DataFrame({
        "router": added["method"], "below": [f"{margin:g} points below" for margin in added["points below"]],
        "reaches and saves": [f"{row['reached']:.0%} → {row['reached anchored']:.0%}" for row in rows],
        "saving": [f"{row['saving']:.2f} → {row['saving anchored']:.2f}" for row in rows],
        "added": [f"{row['saving added']:+.3f} ({row['saving from']:+.3f} to {row['saving to']:+.3f})" for row in rows],
    })  # fmt: skip
    wide = told.pivot(index="router", columns="below").swaplevel(axis=1)
    order = [(below, name) for below in told["below"].unique() for name in ("reaches and saves", "saving", "added")]
    return wide.loc[told["router"].unique(), order].rename_axis(columns=[None, None])


def by_way(table: pd.DataFrame, margin: float) -> pd.DataFrame:
    """One row per workload and way to choose: share of runs within the margin and mean saving, with 95% intervals."""
    rows = []
    for (workload, way), runs in table.groupby(["workload", "chosen on"], sort=False):
        within = int((runs["difference"] >= -margin - NOTHING).sum())
        rows.append({
            "workload": workload, "chosen on": way, "fresh": int(runs["fresh"].max()), "runs": len(runs),
            **dict(zip(("kept", "kept from", "kept to"), share_of(within, len(runs)), strict=True)),
            **dict(zip(("saving", "saving from", "saving to"), mean_of(runs["saving"]), strict=True)),
            "worst": runs["difference"].min(),
        })  # fmt: skip
    return pd.DataFrame(rows)


def ways_in_words(ways: pd.DataFrame) -> pd.DataFrame:
    """The frame of ``by_way`` as it is read."""
    rows = [
        {"workload": row["workload"], "chosen on": row["chosen on"], "fresh queries": f"{row['fresh']:,}",
         "within the margin": f"{row['kept']:.0%} ({row['kept from']:.0%} to {row['kept to']:.0%})",
         "worst run, points": f"{row['worst']:+.1f}",
         "saving": f"{row['saving']:.0%} ({row['saving from']:.0%} to {row['saving to']:.0%})"}
        for row in ways.to_dict("records")
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index(["workload", "chosen on"])


def statements(same: pd.DataFrame, mixed: pd.DataFrame, confidence: float, margin: float) -> pd.DataFrame:
    """What is said of the ways to choose, over all workloads: the measured value, its 95% interval, and whether it holds.

    ``same`` holds the runs of ``promises`` with one number of fresh queries per workload, ``mixed`` is that of ``other_mix``.
    """
    way = {name: runs.set_index(["workload", "seed"]) for name, runs in same.groupby("chosen on")}
    within = {name: int((runs["difference"] >= -margin - NOTHING).sum()) for name, runs in way.items()}
    certified, size = way[CERTIFIED], len(way[CERTIFIED])
    lead = way[ON_TEST]["saving"] - certified["saving"]
    bill = bills(certified)
    asked = {
        "A certificate keeps its promise as often as it says": (share_of(within[CERTIFIED], size), confidence),
        "The router's own estimates break it more often": (_less(share_of(within[PLUG_IN], size)), 1 - confidence),
        "A certified policy saves": (mean_of(certified["saving"]), 0.0),
        "Choosing on test outcomes would save more": (mean_of(lead), 0.0),
        **{f"With a certificate the whole bill over {horizon:,} queries is below the reference's":
           (mean_of(1 - bill[f"bill {horizon}"]), 0.0) for horizon in HORIZONS},
    }  # fmt: skip
    if len(mixed):
        held = int((mixed["other mix"] >= -margin - NOTHING).sum())
        asked["A promise certified on other tasks is broken more often"] = (
            _less(share_of(held, len(mixed))),
            1 - confidence,
        )
    rows = {
        name: {"here": answer(low, high, wanted), "measured": f"{value:.2f}",
               "95% interval": f"{low:.2f} to {high:.2f}", "to be above": f"{wanted:.2f}"}
        for name, ((value, low, high), wanted) in asked.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("statement")


def _less(found: tuple[float, float, float]) -> tuple[float, float, float]:
    """Of what is left to 1."""
    value, low, high = found
    return 1 - value, 1 - high, 1 - low
