"""The paper's studies: many experiments each, as a long frame with the columns of the published table.

Nothing is computed here that ``experiments`` does not remember, so a study that was run once is read in a second.
Every frame has ``benchmark``, keys of its own and the four metrics, as its counterpart in ``data/published``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import stats

from . import experiments
from .errors import SaveRouterError, did_you_mean
from .feedback import model_means
from .published import published
from .runs import Run
from .simulate import benchmarks
from .statements import SPARSE
from .workload import Workload

SOURCES = ("simulated", "original")
METRICS = ["peak_score", "cost_ratio", "sa_bep", "sa_cr"]
TARGETS = (0.90, 0.925, 0.95, 0.975, 1.0)
FRACTIONS = (0.2, 0.4, 0.6, 0.8)
DENSE = ("embedllm", "knn", "omnirouter", "trouter", "inferencedynamics")  # of the training-size table
ARRIVALS = ("cheap", "median", "expensive")

# Table 2. The last row is the published configuration itself.
ABLATIONS = {
    "without query residual": ("estimator", {"residual_scale": 0.0}),
    "embedding groups": ("estimator", {"grouping": "latent"}),
    "global group": ("estimator", {"grouping": "global"}),
    "Random-K": ("acquisition", {"policy": "random"}),
    "Capability-only": ("acquisition", {"policy": "capability"}),
    "Uncertainty-only": ("acquisition", {"policy": "uncertainty"}),
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
    return {name: experiments.workload(f"{source}/{name}", profile) for name in names}


def row(done: Run, target: float = 1.0, **keys) -> dict:
    """One line of a frame: keys, the four metrics at a target, what supervision cost, and its share of all pairs."""
    result = done.result.at(target=target)
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


def ablations(work: Workload, seeds: Iterable[int] = (42,), split_seed: int = 42) -> pd.DataFrame:
    """Table 2, a row a variant; the variant that buys at random is drawn once a seed."""
    keys, wanted = [], []
    for variant, (part, options) in ABLATIONS.items():
        for seed in seeds if variant == "Random-K" else (42,):
            wanted.append(_ours(work, seed=seed, split_seed=split_seed, **options))
            keys.append(
                {"benchmark": benchmark_of(work), "part": part, "variant": variant, "seed": seed, "split": split_seed}
            )
    return _frame(keys, wanted)


def _ours(work: Workload, **options) -> tuple[Workload, str, dict]:
    """SaveRouter as published, with changes, for ``experiments.run_many``."""
    return work, "saverouter", experiments.paper_options(work, **options)


def _frame(keys: list[dict], wanted: list[tuple[Workload, str, dict]]) -> pd.DataFrame:
    """One line for each run."""
    done = experiments.run_many(wanted)
    return pd.DataFrame([row(run, **key) for run, key in zip(done, keys, strict=True)])


def leads(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """SaveRouter against every variant on the same splits: mean difference in a metric, and on how many splits it leads."""
    sign = 1 if metric == "peak_score" else -1
    by_split = frame.pivot(index="split", columns="variant", values=metric)
    rows = {}
    for variant in [name for name in ABLATIONS if name != "SaveRouter"]:
        ahead = sign * (by_split["SaveRouter"] - by_split[variant])
        low, high = interval(ahead)
        rows[variant] = {"mean lead": ahead.mean(), "from": low, "to": high,
                         "splits with a lead": f"{(ahead > 0).sum()} of {len(ahead)}"}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("SaveRouter against")


def hyperparameters(work: Workload, **split) -> pd.DataFrame:
    """The robustness table: residual scale, shrinkage and residual ridge, as published."""
    grid = published("hyperparameters")[["residual_scale", "shrinkage", "residual_ridge"]].to_dict("records")
    wanted = [_ours(work, **{name: float(value) for name, value in point.items()}, **split) for point in grid]
    return _frame([{"benchmark": benchmark_of(work), **point} for point in grid], wanted)


def k_scaling(works: Iterable[Workload], seeds: Iterable[int], **split) -> pd.DataFrame:
    """The budget table: SaveRouter at the paper's values of K, and as many outcomes bought at random, once a seed."""
    keys, wanted, paper = [], [], published("k_scaling")
    for work in works:
        name = benchmark_of(work)
        for k in map(int, paper.loc[paper["benchmark"] == name, "k"]):
            for policy, seed in [("ucb", 42), *(("random", seed) for seed in seeds)]:
                wanted.append(_ours(work, k=k, policy=policy, seed=seed, **split))
                keys.append({"benchmark": name, "k": k, "policy": policy, "seed": seed})
    return _frame(keys, wanted)


def best_k(curve: pd.DataFrame) -> pd.DataFrame:
    """For each benchmark the K of highest quality, lowest serving cost, earliest payback and lowest bill; 0 for none."""
    wanted = {
        "highest P_s": "peak_score",
        "lowest CR": "cost_ratio",
        "earliest payback": "sa_bep",
        "lowest SA-CR": "sa_cr",
    }
    rows = {}
    for name, points in curve.groupby("benchmark", sort=False):
        points = points.set_index("k")
        rows[name] = {title: _first(points[metric], rising=metric == "peak_score") for title, metric in wanted.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("benchmark")


def _first(values: pd.Series, rising: bool = False) -> int:
    if rising:
        return int(values.idxmax())
    return int(values.idxmin()) if np.isfinite(values).any() else 0


def arrivals(work: Workload, **split) -> dict[str, str]:
    """The cheapest, the median and the dearest model by mean training cost: who arrives in the expansion study."""
    order = np.argsort(model_means(_train(work, **split).cost), kind="stable")
    places = (0, len(order) // 2, len(order) - 1)
    return {arrival: work.models[order[place]] for arrival, place in zip(ARRIVALS, places, strict=True)}


def _train(work: Workload, train: float = 0.2, split_seed: int = 42) -> Workload:
    return work.split(train, split_seed)[0]


def expansion(work: Workload, dense: dict[str, Run], **split) -> pd.DataFrame:
    """A model joins the pool: a tenth of its feedback against all of it, and against dense routers over the whole pool.

    ``dense`` are the fully supervised routers; their best peak score and best cost ratio need not be the same router's.
    """
    learn, rows = _train(work, **split), []
    rivals = [done.result for method, done in dense.items() if method not in SPARSE]
    joining = arrivals(work, **split)
    wanted = [
        _ours(work, newcomer=model, newcomer_share=share, **split) for model in joining.values() for share in (0.1, 1.0)
    ]
    done = iter(experiments.run_many(wanted))
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


def training_size(work: Workload, profile: str, fractions=FRACTIONS, split_seed: int = 42) -> pd.DataFrame:
    """SaveRouter against the best of five dense routers, metric by metric, with more and more training queries."""
    rows, wanted = [], []
    for train in fractions:
        split = {"train": train, "split_seed": split_seed}
        wanted.append(_ours(work, **split))
        wanted += [(work, name, experiments.published_options(name, work, profile) | split) for name in DENSE]
    done = iter(experiments.run_many(wanted))
    for train in fractions:
        ours, *rivals = (next(done) for _ in ("saverouter", *DENSE))
        rows.append(row(ours, benchmark=benchmark_of(work), train=train) | {
            "dense_peak_score": max(rival.result.peak_score for rival in rivals),
            "dense_cost_ratio": min(rival.result.cost_ratio for rival in rivals),
        })  # fmt: skip
    return pd.DataFrame(rows)


def caching(runs: dict[str, dict[str, Run]]) -> pd.DataFrame:
    """BaRP charged for every request (fresh) and once a pair (cached); its routing is the same."""
    rows = []
    for benchmark, by_method in runs.items():
        done = by_method["BaRP"]
        for accounting, result in (("cached", done.cached), ("fresh", done.result)):
            rows.append({"benchmark": benchmark, "accounting": accounting, **result.metrics()})
    return pd.DataFrame(rows)


def over_seeds(works: Iterable[Workload], seeds: Iterable[int], routers=("saverouter", "knn", "inferencedynamics")):
    """The main row again and again: every seed shuffles the queries anew into a training and a test part."""
    keys, wanted = [], []
    for work in works:
        for seed in seeds:
            for name in routers:
                router = experiments.make_router(name)
                own = {"seed": seed} if "seed" in router.get_params() else {}
                wanted.append((work, name, experiments.published_options(name, work) | own | {"split_seed": seed}))
                keys.append({"benchmark": benchmark_of(work), "method": router.label, "seed": seed})
    return _frame(keys, wanted)


def main_row(table: pd.DataFrame, method: str = "SaveRouter") -> pd.DataFrame:
    """A method over the seeds of ``over_seeds``: its peak in points above the best single model with a 95% interval for
    the mean, on how many splits it gets there, and the range of its break-even points."""
    rows = {}
    for name, ours in table[table["method"] == method].groupby("benchmark", sort=False):
        above = 100 * (ours["peak_score"] - ours["best_single"])
        low, high = interval(above)
        reached = f"{np.isfinite(ours['cost_ratio']).sum()} of {len(ours)}"
        rows[name] = {"points above": above.mean(), "from": low, "to": high, "reached": reached,
                      "earliest payback": ours["sa_bep"].min(), "latest payback": ours["sa_bep"].max()}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(method)


def summary(frame: pd.DataFrame, keys: list[str], metrics=METRICS) -> pd.DataFrame:
    """One row for each combination of the keys: over its seeds the mean of every metric, ``<metric>_sd`` and ``runs``.

    A metric that is not reached with every seed has no mean; its median stands in, which may be inf, and it has no
    standard deviation. ``reached`` counts the seeds with a finite break-even point.
    """
    rows = []
    for values, group in frame.groupby(keys, sort=False, dropna=False):
        found = dict(zip(keys, values, strict=True))
        for metric in metrics:
            finite = np.isfinite(group[metric]).all()
            found[metric] = group[metric].mean() if finite else group[metric].median()
            found[f"{metric}_sd"] = group[metric].std(ddof=1) if finite and len(group) > 1 else np.nan
        found |= {"runs": len(group), "reached": int(np.isfinite(group["sa_bep"]).sum())}
        others = [c for c in ("supervision", "supervision_cost", "best_single") if c in group]
        rows.append(found | group[others].mean().to_dict())
    return pd.DataFrame(rows)


def interval(values, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean, or the range of the values where one of them is infinite."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all() or len(values) < 2:
        return float(values.min()), float(values.max())
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)
