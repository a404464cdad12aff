"""What the paper says of its tables, as code: each statement is tested on the published table and on a measured one.

A statement is a function of a frame with the columns of ``data/published/<study>.csv`` that returns True or False. It
raises ``NotTestable`` where the frame lacks what it speaks of. ``judge`` tests both frames, so no verdict is typed by hand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from .evidence import collected
from .predicates import (
    OURS,
    NotTestable,
    best,
    bought_at_random,
    everywhere,
    finite,
    first_to_pay,
    fresh_over_cached,
    grid,
    k_of,
    lowest,
    mostly,
    noted,
    one,
    part,
    ratio,
    reaching,
    rises,
    row_of,
    shared,
    steadily,
    target,
    twelve,
    ucb,
    unreached,
    variant,
    wins,
)
from .published import published

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "not testable here"
UNTOLD = "cannot be told"  # of statements over splits: the interval lies on both sides


def judge(study: str, measured: pd.DataFrame) -> pd.DataFrame:
    """Every statement about a study, and whether it holds in the published table and in the measured one."""
    paper = published(study)
    rows = {}
    for statement, test in CLAIMS[study].items():
        (there, published_numbers), (here, numbers) = _answer(test, paper), _answer(test, measured)
        rows[statement] = {"published table": there.replace(UNTESTABLE, "not in the table"), "here": here,
                           "published numbers": published_numbers, "measured numbers": numbers}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("the paper says")


def count(judged: pd.DataFrame) -> str:
    """How many of the statements hold here, in words; those that cannot be tested are left out."""
    here = judged["here"][judged["here"] != UNTESTABLE]
    untold = f", {(here == UNTOLD).sum()} cannot be told" if (here == UNTOLD).any() else ""
    return f"{(here == HOLDS).sum()} of {len(here)} statements of the paper hold here{untold}"


def _answer(test: Callable[[pd.DataFrame], bool], frame: pd.DataFrame) -> tuple[str, str]:
    """Whether a statement holds in a frame, and the numbers that decide it."""
    with collected() as notes:
        try:
            found = HOLDS if test(frame) else FAILS
        except NotTestable:
            found = UNTESTABLE
    return found, "; ".join(notes)


CLAIMS: dict[str, dict[str, Callable[[pd.DataFrame], bool]]] = {
    "saturation": {
        "EmbedLLM keeps 99% of its score with 30% of the supervision":
            lambda t: one(t, "supervision", router="EmbedLLM") <= 0.3 + 1e-9,
        "kNN keeps 99% of its score with 60% of the supervision":
            lambda t: one(t, "supervision", router="kNN") <= 0.6 + 1e-9,
        "SaveRouter with K=4 breaks even before both, which learn from dense supervision":
            lambda t: best(t, "sa_bep", router=OURS),
    },
    "main_results": {
        "SaveRouter has the highest peak score on every benchmark": lambda t: everywhere(t, lambda b: best(b, "peak_score")),
        "SaveRouter has the lowest cost ratio on every benchmark": lambda t: everywhere(t, lambda b: best(b, "cost_ratio")),
        "It pays back before every conventional router, on every benchmark": lambda t: everywhere(t, lambda b: ratio(b) > 1),
        "It needs at most 1/1.9 of the fastest conventional router's queries": lambda t: everywhere(t, lambda b: ratio(b) > 1.85),
        "It pays back before BaRP on every benchmark":
            lambda t: everywhere(part(t, method=["BaRP", OURS]), lambda b: best(b, "sa_bep")),
        "WISERouter and SemiRouter mostly never pay back":
            lambda t: mostly(part(t, method=["WISERouter", "SemiRouter"]), lambda f: np.isinf(f["sa_bep"]), 0.5 + 1e-6),
    },
    "ablations": {
        "Without the query residual the peak score falls and the cost ratio rises":
            lambda t: variant(t, "peak_score", "without query residual") < variant(t, "peak_score", OURS)
            and variant(t, "cost_ratio", "without query residual") > variant(t, "cost_ratio", OURS),
        "Embedding-based groups lower the peak score and raise the cost ratio":
            lambda t: variant(t, "peak_score", "embedding groups") < variant(t, "peak_score", OURS)
            and variant(t, "cost_ratio", "embedding groups") > variant(t, "cost_ratio", OURS),
        "A single group costs the most peak score of the estimator ablations":
            lambda t: lowest(part(t, part="estimator").set_index("variant")["peak_score"]) == "global group"
            and variant(t, "peak_score", "global group") < variant(t, "peak_score", OURS),
        "Each other acquisition rule is worse in peak score or in cost ratio":
            lambda t: everywhere(part(t, part="acquisition"), lambda v:
                           noted("peak_score", v["peak_score"]).iloc[0] < variant(t, "peak_score", OURS)
                           or noted("cost_ratio", v["cost_ratio"]).iloc[0] > variant(t, "cost_ratio", OURS), by="variant"),
        "Random-K breaks even earlier than SaveRouter": lambda t:
            variant(t, "sa_bep", "Random-K") < variant(t, "sa_bep", OURS),
        "Over a million queries SaveRouter's bill is lower than Random-K's": lambda t:
            variant(t, "sa_cr", OURS) < variant(t, "sa_cr", "Random-K"),
        "SaveRouter has the highest peak score of all variants": lambda t: best(t, "peak_score", variant=OURS),
        "SaveRouter has the lowest cost ratio of all variants": lambda t: best(t, "cost_ratio", variant=OURS),
    },
    "hyperparameters": {
        "Peak scores lie within about one point of each other": lambda t: np.ptp(noted("peak_score", t["peak_score"])) < 0.0105,
        "Every setting keeps a finite break-even point": lambda t: bool(np.isfinite(noted("sa_bep", t["sa_bep"])).all()),
        "The main setting has the highest peak score": lambda t:
            grid(t, "peak_score", ridge=200) == noted("peak_score", t["peak_score"]).max(),
        "Shrinkage 20 has the lowest cost ratio and pays back first": lambda t:
            grid(t, "cost_ratio", shrinkage=20) == noted("cost_ratio", finite(t["cost_ratio"])).min()
            and grid(t, "sa_bep", shrinkage=20) == noted("sa_bep", finite(t["sa_bep"])).min(),
        "The setting of highest peak score is not the one of lowest cost": lambda t:
            row_of(t, t["peak_score"].idxmax()) != row_of(t, finite(t["cost_ratio"]).idxmin()),
        "Ridge 100 instead of 200 lowers the peak score and improves the cost ratio": lambda t:
            grid(t, "peak_score") < grid(t, "peak_score", ridge=200)
            and grid(t, "cost_ratio") < grid(t, "cost_ratio", ridge=200),
    },
    "k_scaling": {
        "K=4 buys 33% to 41% of the available outcomes": lambda t:
            bool(noted("supervision", part(ucb(t), k=4)["supervision"]).between(0.33, 0.42).all()),
        "On LLMRouterBench, K=2 reaches 99% of the peak score under full supervision": lambda t:
            one(ucb(t), "peak_score", benchmark="llmrouterbench", k=2)
            >= 0.99 * one(ucb(t), "peak_score", benchmark="llmrouterbench", k=12),
        "There, K=2 scores higher than two outcomes at random": lambda t:
            one(ucb(t), "peak_score", benchmark="llmrouterbench", k=2)
            > one(bought_at_random(t), "peak_score", benchmark="llmrouterbench", k=2),
        "More supervision does not always score higher": lambda t:
            not everywhere(ucb(t), lambda b: steadily(b.sort_values("k")["peak_score"])),
        "On Mixinstruct the payback is later with every step of K": lambda t:
            rises(part(ucb(t), benchmark="mixinstruct").sort_values("k")["sa_bep"]),
        "On MMRBench the K of lowest cost is not the K of earliest payback": lambda t:
            k_of(t, "cost_ratio", "mmrbench") != k_of(t, "sa_bep", "mmrbench"),
        "On RouterBench the K of lowest cost is not the K of earliest payback": lambda t:
            k_of(t, "cost_ratio", "routerbench") != k_of(t, "sa_bep", "routerbench"),
        "Where they differ, the earliest payback has the smaller K": lambda t:
            all(k_of(t, "sa_bep", b) <= k_of(t, "cost_ratio", b) for b in reaching(t)),
    },
    "quality_targets": {
        "LLMRouterBench: SaveRouter has the lowest cost ratio at every target": lambda t:
            wins(target(t, "llmrouterbench"), "cost_ratio"),
        "LLMRouterBench: it has the lowest SA-CR at every target": lambda t: wins(target(t, "llmrouterbench"), "sa_cr"),
        "LLMRouterBench: WISERouter pays back first at 0.90 and 0.925": lambda t:
            first_to_pay(target(t, "llmrouterbench", 0.90, 0.925), "WISERouter"),
        "LLMRouterBench: WISERouter cannot reach 0.95 or more": lambda t:
            unreached(target(t, "llmrouterbench", 0.95, 0.975, 1.0), "WISERouter"),
        "Mixinstruct: most methods share one cheapest point at 0.90 and 0.925": lambda t:
            everywhere(target(t, "mixinstruct", 0.90, 0.925), lambda rows: shared(rows["cost_ratio"].round(4)) > 5,
                 by="target"),
        "Mixinstruct: SaveRouter reaches the full target below the best model's cost": lambda t:
            one(target(t, "mixinstruct", 1.0), "cost_ratio", method=OURS) < 1,
        "MMRBench: SaveRouter has the lowest cost ratio at every target": lambda t:
            wins(target(t, "mmrbench"), "cost_ratio"),
        "MMRBench: it has the lowest SA-CR at every target": lambda t: wins(target(t, "mmrbench"), "sa_cr"),
        "MMRBench: WISERouter pays back first at 0.90 and cannot reach more": lambda t:
            first_to_pay(target(t, "mmrbench", 0.90), "WISERouter")
            and unreached(target(t, "mmrbench", 0.925, 0.95, 0.975, 1.0), "WISERouter"),
        "RouterBench: WISERouter pays back first at relaxed targets": lambda t:
            first_to_pay(target(t, "routerbench", 0.90, 0.925, 0.95, 0.975), "WISERouter"),
        "RouterBench: WISERouter cannot reach the full target": lambda t:
            unreached(target(t, "routerbench", 1.0), "WISERouter"),
        "RouterBench at 0.95: BaRP serves at less than SaveRouter, and its bill is higher": lambda t:
            one(target(t, "routerbench", 0.95), "cost_ratio", method="BaRP")
            < one(target(t, "routerbench", 0.95), "cost_ratio", method=OURS)
            and one(target(t, "routerbench", 0.95), "sa_cr", method="BaRP")
            > one(target(t, "routerbench", 0.95), "sa_cr", method=OURS),
    },
    "expansion": {
        "A tenth of the newcomer's feedback costs about a tenth (9% to 12%) of all of it": lambda t:
            bool(noted("cost_share", t["cost_share"]).between(0.09, 0.12).all()),
        "With a tenth, the peak score beats the best dense router in at least 8 of 12 arrivals": lambda t:
            mostly(twelve(t), lambda f: f["peak_score_10"] > f["peak_score_dense"], 8 / 12),
        "With a tenth, the cost ratio beats the best dense router in at least 10 of 12 arrivals": lambda t:
            mostly(twelve(t), lambda f: f["cost_ratio_10"] < f["cost_ratio_dense"], 10 / 12),
        "On LLMRouterBench and RouterBench it beats both for every arrival": lambda t:
            mostly(part(t, benchmark=["llmrouterbench", "routerbench"]), lambda f:
                   (f["peak_score_10"] > f["peak_score_dense"]) & (f["cost_ratio_10"] < f["cost_ratio_dense"]), 1),
        "On RouterBench all of the feedback gains at most 0.2 points over a tenth": lambda t:
            bool((noted("gain", part(t, benchmark="routerbench").eval("peak_score_100 - peak_score_10")) <= 0.002).all()),
        "On MMRBench a dense router keeps the higher peak score for every arrival": lambda t:
            mostly(part(t, benchmark="mmrbench"), lambda f: f["peak_score_10"] < f["peak_score_dense"], 1),
        "On Mixinstruct a million queries do not pay it back (SA-CR above 1)": lambda t:
            bool((noted("sa_cr", part(t, benchmark="mixinstruct")["sa_cr_10"]) > 1).all()),
    },
    "training_size": {
        "SaveRouter peaks higher than the best dense router at every training size": lambda t:
            mostly(t, lambda f: f["peak_score"] > f["dense_peak_score"], 1),
        "It serves at a lower cost than the best dense router at every training size": lambda t:
            mostly(t, lambda f: f["cost_ratio"] < f["dense_cost_ratio"], 1),
        "Four times the training data raise the peak score by less than a point": lambda t:
            0 <= one(t, "peak_score", train=0.8) - one(t, "peak_score", train=0.2) < 0.01,
        "Four times the training data delay the payback at least fourfold": lambda t:
            finite(part(t, train=0.2)["sa_bep"]).size == 1
            and one(t, "sa_bep", train=0.8) >= 4 * one(t, "sa_bep", train=0.2),
        "More training data do not always lower the cost ratio": lambda t:
            not steadily(-t.sort_values("train")["cost_ratio"]),
    },
    "caching": {
        "A cache lets BaRP pay back at least seven times earlier": lambda t:
            bool((finite(fresh_over_cached(t, "sa_bep")) >= 7).all()),
        "The change in SA-CR is largest on Mixinstruct": lambda t:
            finite(fresh_over_cached(part(t, benchmark="mixinstruct"), "sa_cr")).size > 0
            and finite(fresh_over_cached(t, "sa_cr")).idxmax() == "mixinstruct",
        "On RouterBench the cache moves the break-even to before a million queries": lambda t:
            one(t, "sa_cr", benchmark="routerbench", accounting="cached") < 1
            < one(t, "sa_cr", benchmark="routerbench", accounting="fresh"),
    },
    "large_pool": {
        "SaveRouter has the highest peak score": lambda t: best(t, "peak_score"),
        "It is less than a tenth of a point above InferenceDynamics": lambda t:
            0 < one(t, "peak_score", method=OURS) - one(t, "peak_score", method="InferenceDynamics") < 0.001,
        "SaveRouter has the lowest cost ratio": lambda t: best(t, "cost_ratio"),
        "It pays back in less than half of the fastest dense router's queries": lambda t: ratio(t) > 2,
        "A million queries do not pay it back (SA-CR above 1)": lambda t: one(t, "sa_cr", method=OURS) > 1,
        "WISERouter, BaRP and SemiRouter do not reach the best single model": lambda t:
            mostly(part(t, method=["WISERouter", "BaRP", "SemiRouter"]), lambda f: np.isinf(f["cost_ratio"]), 1),
    },
}  # fmt: skip
