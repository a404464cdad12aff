"""The paper's studies: many experiments each, as a long frame with the columns of the published table.

``experiments`` remembers every run, so a study that was run once is read in a second.
Every frame has ``benchmark``, keys of its own and the four metrics, like its counterpart in ``data/published``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..errors import SaveRouterError, did_you_mean
from ..paper import SPARSE, paper_options, published
from ..routers import make_router
from ..workloads import Workload, benchmarks, model_means
from .experiments import published_options, run_many, workload
from .runs import Run

SOURCES = ("simulated", "original")
TARGETS = (0.90, 0.925, 0.95, 0.975, 1.0)
FRACTIONS = (0.2, 0.4, 0.6, 0.8)
DENSE = ("embedllm", "knn", "omnirouter", "trouter", "inferencedynamics")  # of the training-size table
ARRIVALS = ("cheap", "median", "expensive")

# Table 2. The last row is the published configuration itself.
ABLATIONS = {
    "without query residual": ("estimator", {"residual_scale": 0.0}),
    "embedding groups": ("estimator", {"grouping": "latent"}),
    "global group": ("estimator", {"grouping": "global"}),
    "Random-K": ("acquisition", {"acquisition": "random"}),
    "Capability-only": ("acquisition", {"acquisition": "capability"}),
    "Uncertainty-only": ("acquisition", {"acquisition": "uncertainty"}),
    "SaveRouter": ("complete", {}),
}


def benchmark_of(work: Workload) -> str:
    """The name in published tables: ``routerbench`` of "simulated/routerbench"."""
    return work.name.rpartition("/")[2]


def workloads(benchmark: str, profile: str, source: str = "simulated") -> dict[str, Workload]:
    """The paper's four benchmarks ("all") or one of them at a profile's size, by name: simulated, or the original ones."""
    if source not in SOURCES:
        raise SaveRouterError(f"source is {source!r}; {did_you_mean(source, SOURCES)}expected {' or '.join(SOURCES)}")
    if benchmark not in ("all", *benchmarks()):
        raise SaveRouterError(
            f"benchmark is {benchmark!r}; expected all, {', '.join(benchmarks())} (the pool of 289 models has a notebook of "
            "its own: NOTEBOOK=08)"
        )
    names = benchmarks() if benchmark == "all" else [benchmark]
    return {name: workload(f"{source}/{name}", profile) for name in names}


def row(done: Run, target: float = 1.0, *, margin: float | None = None, **keys) -> dict:
    """One row of a frame: keys, the four metrics at a target or margin, what supervision cost, its share of all pairs."""
    result = done.result.at(target=target) if margin is None else done.result.at(margin=margin)
    return {**keys, **result.metrics(), "supervision": done.supervision_share, "best_single": result.reference.quality}


def table_of(runs: dict[str, dict[str, Run]], targets: Iterable[float] = (1.0,)) -> pd.DataFrame:
    """Runs by benchmark and method, judged at every target."""
    rows = [
        row(done, target, benchmark=benchmark, method=method) | {"target": target}
        for benchmark, by_method in runs.items()
        for method, done in by_method.items()
        for target in targets
    ]
    return pd.DataFrame(rows)


def saturation(
    work: Workload, fractions: Iterable[float], seeds: Iterable[int] = (42,), split_seed: int = 42
) -> pd.DataFrame:
    """Peak score against the share of supervision: two conventional routers on random pairs, SaveRouter with K per query."""
    wanted = []
    for seed in seeds:
        same = {"seed": seed, "split_seed": split_seed}
        for fraction in map(float, fractions):
            wanted += [(work, name, {"fraction": fraction, **same}) for name in ("embedllm", "knn")]
        budgets = sorted({max(1, round(fraction * len(work.models))) for fraction in fractions})
        wanted += [(work, "saverouter", paper_options(work, k=k, **same)) for k in budgets]
    rows = [
        (done.result.router, options["seed"], options.get("fraction", done.supervision_share), done.result.peak_score)
        for (_, _, options), done in zip(wanted, run_many(wanted), strict=True)
    ]
    return pd.DataFrame(rows, columns=["router", "seed", "supervision", "peak_score"])


def recovery(curve: pd.DataFrame, share: float = 0.99) -> pd.Series:
    """The least supervision from which on each router keeps ``share`` of its peak score under full supervision."""

    def first(points: pd.DataFrame) -> float:
        points = points.groupby("supervision")["peak_score"].mean().sort_index()
        short = np.flatnonzero(points.to_numpy() < share * points.iloc[-1])
        return float(points.index[short[-1] + 1] if len(short) else points.index[0])

    return pd.Series({name: first(points) for name, points in curve.groupby("router")}, name="supervision")


def ablations(work: Workload, seeds: Iterable[int] = (42,), split_seed: int = 42) -> pd.DataFrame:
    """Table 2, one row per variant; the variant that buys at random is drawn once per seed."""
    keys, wanted = [], []
    for variant, (part, options) in ABLATIONS.items():
        for seed in seeds if variant == "Random-K" else (42,):
            wanted.append(_ours(work, seed=seed, split_seed=split_seed, **options))
            keys.append(
                {"benchmark": benchmark_of(work), "part": part, "variant": variant, "seed": seed, "split": split_seed}
            )
    return _frame(keys, wanted)


def _ours(work: Workload, **options) -> tuple[Workload, str, dict]:
    """SaveRouter as published, with changes, for ``run_many``."""
    return work, "saverouter", paper_options(work, **options)


def _frame(keys: list[dict], wanted: list[tuple[Workload, str, dict]]) -> pd.DataFrame:
    """One row per run."""
    done = run_many(wanted)
    return pd.DataFrame([row(run, **key) for run, key in zip(done, keys, strict=True)])


def hyperparameters(work: Workload, **split) -> pd.DataFrame:
    """The robustness table: residual scale, shrinkage and residual ridge, as published."""
    grid = published("hyperparameters")[["residual_scale", "shrinkage", "residual_ridge"]].to_dict("records")
    wanted = [_ours(work, **{name: float(value) for name, value in point.items()}, **split) for point in grid]
    return _frame([{"benchmark": benchmark_of(work), **point} for point in grid], wanted)


def k_scaling(works: Iterable[Workload], seeds: Iterable[int], **split) -> pd.DataFrame:
    """The budget table: SaveRouter at the paper's values of K, and as many outcomes bought at random, once per seed."""
    keys, wanted, paper = [], [], published("k_scaling")
    for work in works:
        name = benchmark_of(work)
        for k in map(int, paper.loc[paper["benchmark"] == name, "k"]):
            for rule, seed in [("ucb", 42), *(("random", seed) for seed in seeds)]:
                wanted.append(_ours(work, k=k, acquisition=rule, seed=seed, **split))
                keys.append({"benchmark": name, "k": k, "acquisition": rule, "seed": seed})
    return _frame(keys, wanted)


def arrivals(work: Workload, **split) -> dict[str, str]:
    """The cheapest, the median and the dearest model by mean training cost: those that arrive in the expansion study."""
    order = np.argsort(model_means(_train(work, **split).cost), kind="stable")
    places = (0, len(order) // 2, len(order) - 1)
    return {arrival: work.models[order[place]] for arrival, place in zip(ARRIVALS, places, strict=True)}


def _train(work: Workload, train: float = 0.2, split_seed: int = 42) -> Workload:
    return work.split(train, split_seed)[0]


def expansion(work: Workload, dense: dict[str, Run], **split) -> pd.DataFrame:
    """A model joins the pool: a tenth of its feedback against all of it, and against dense routers over the whole pool.

    ``dense`` are the fully supervised routers; their best peak score and best cost ratio may come from two routers.
    """
    learn, rows = _train(work, **split), []
    rivals = [done.result for method, done in dense.items() if method not in SPARSE]
    joining = arrivals(work, **split)
    wanted = [
        _ours(work, newcomer=model, newcomer_share=share, **split) for model in joining.values() for share in (0.1, 1.0)
    ]
    done = iter(run_many(wanted))
    for arrival, model in joining.items():
        few, all_of_it = next(done), next(done)
        column = work.models.index(model)
        # Both bought the same of the old pool, so the difference is the rest of the newcomer's feedback.
        rest = all_of_it.result.supervision_cost - few.result.supervision_cost
        rows.append({
            "benchmark": benchmark_of(work),
            "arrival": arrival,
            "model": model,
            "observations": int(learn.available[:, column].sum()) - (all_of_it.pairs_bought - few.pairs_bought),
            "cost_share": 1 - rest / float(np.nansum(learn.cost[:, column])),
            "peak_score_10": few.result.peak_score,
            "peak_score_100": all_of_it.result.peak_score,
            "peak_score_dense": max(rival.peak_score for rival in rivals),
            "cost_ratio_10": few.result.cost_ratio,
            "cost_ratio_100": all_of_it.result.cost_ratio,
            "cost_ratio_dense": min(rival.cost_ratio for rival in rivals),
            "sa_bep_10": few.result.sa_bep,
            "sa_cr_10": few.result.sa_cr,
        })  # fmt: skip
    return pd.DataFrame(rows)


def training_size(
    work: Workload, profile: str, fractions: Iterable[float] = FRACTIONS, split_seed: int = 42
) -> pd.DataFrame:
    """SaveRouter against the best of five dense routers, metric by metric, with more and more training queries."""
    rows, wanted = [], []
    for train in fractions:
        split = {"train": train, "split_seed": split_seed}
        wanted.append(_ours(work, **split))
        wanted += [(work, name, published_options(name, work, profile) | split) for name in DENSE]
    done = iter(run_many(wanted))
    for train in fractions:
        ours, *rivals = (next(done) for _ in ("saverouter", *DENSE))
        rows.append(row(ours, benchmark=benchmark_of(work), train=train) | {
            "dense_peak_score": max(rival.result.peak_score for rival in rivals),
            "dense_cost_ratio": min(rival.result.cost_ratio for rival in rivals),
        })  # fmt: skip
    return pd.DataFrame(rows)


def caching(runs: dict[str, dict[str, Run]]) -> pd.DataFrame:
    """BaRP charged for every request (fresh) and once per pair (cached); its routing is the same."""
    rows = []
    for benchmark, by_method in runs.items():
        done = by_method["BaRP"]
        for accounting, result in (("cached", done.cached), ("fresh", done.result)):
            rows.append({"benchmark": benchmark, "accounting": accounting, **result.metrics()})
    return pd.DataFrame(rows)


MARGINS = (0.0, 0.5, 1.0, 2.0)


def singles(works: dict[str, Workload], split_seed: int = 42, **split) -> pd.DataFrame:
    """Mean quality and cost of every model on the test part, over the queries that it can answer."""
    parts = []
    for name, work in works.items():
        test = work.split(seed=split_seed, **split)[1]
        means = {"quality": model_means(test.quality), "cost": model_means(test.cost)}
        parts.append(pd.DataFrame({"workload": name, "model": work.models, **means}))
    return pd.concat(parts, ignore_index=True)


def without_router(runs: dict[str, Run], alone: pd.DataFrame, margins: Iterable[float] = MARGINS) -> pd.DataFrame:
    """A router beside the cheapest single model that is as good, by workload and points below the best single model.

    ``runs`` are one router's by workload, ``alone`` the frame of ``singles``. Ratios to a best model that is free are NaN;
    where no single model is as good, its ratio is inf.
    """
    rows = []
    for name, done in runs.items():
        models = alone[alone["workload"] == name]
        for margin in margins:
            result = done.result.at(margin=margin)
            good = models[models["quality"] >= result.target_quality - 1e-9]
            model, cost = min(
                zip(good["model"], good["cost"], strict=True), key=lambda one: one[1], default=("none", np.inf)
            )
            best = result.reference.cost
            rows.append({"workload": name, "points below the best": margin, "cost_ratio": result.cost_ratio if best else np.nan,
                         "sa_bep": result.sa_bep, "cheapest single model": model,
                         "its cost ratio": cost / best if best else np.nan})  # fmt: skip
    return pd.DataFrame(rows)


def over_seeds(
    works: Iterable[Workload], seeds: Iterable[int],
    routers: Iterable[str] = ("saverouter", "knn", "inferencedynamics"), **changes,
) -> pd.DataFrame:  # fmt: skip
    """The main row once per seed: every seed shuffles the queries anew into a training and a test part.

    ``changes`` are SaveRouter's options where they are not the published ones, such as ``k``.
    """
    keys, wanted = [], []
    for work in works:
        for seed in seeds:
            for name in routers:
                router = make_router(name)
                own = {"seed": seed} if "seed" in router.get_params() else {}
                own |= changes if name == "saverouter" else {}
                wanted.append((work, name, published_options(name, work) | own | {"split_seed": seed}))
                keys.append(
                    {"workload": work.name, "benchmark": benchmark_of(work), "method": router.label, "seed": seed}
                )
    return _frame(keys, wanted)
