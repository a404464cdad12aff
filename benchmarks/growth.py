"""How time and memory grow with queries and with models: make bench GROWTH=1

Each size runs in a process of its own. A fifth of the queries teach, the rest are judged. Vectors are given, prompts
have 30 words. The table and a log-log figure go to reports/bench.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import inputs
import matplotlib
import numpy as np
import pandas as pd
from recording import peak_memory

QUERIES = [(10_000, 12), (100_000, 12), (1_000_000, 12), (3_000_000, 12)]
MODELS = [(10_000, 10), (10_000, 100), (10_000, 1_000)]
QUICK = [(500, 6), (1_000, 6), (500, 12)]
STEPS = ["group", "buy", "features", "learn", "predict", "frontier"]
WORDS, TASKS, SHARE, K = 30, 20, 5, 4


def measure(size: int, models: int) -> dict:
    """Seconds of every step at one size, and the peak memory of all."""
    import saverouter as sr
    from saverouter.encoders.features import ResidualFeatures
    from saverouter.judging.operating_points import operating_points, pareto, saverouter_policies
    from saverouter.routers.saverouter.acquisition import acquire
    from saverouter.routers.saverouter.capability import Observations
    from saverouter.routers.saverouter.grouping import Grouper
    from saverouter.workloads.queries import Queries

    seconds, clock = {}, time.perf_counter()

    def took(step):
        nonlocal clock
        seconds[step], clock = time.perf_counter() - clock, time.perf_counter()

    task = np.random.default_rng(0).integers(TASKS, size=size)
    task[:TASKS] = np.arange(TASKS)
    quality, cost = inputs.outcomes(size, models, task)
    vectors = inputs.vectors(task)
    queries, cut = Queries(inputs.texts(size, WORDS, task)), size // SHARE
    train = sr.Workload(
        query_ids=np.arange(cut),
        prompts=queries.prompts[:cut],
        models=range(models),
        quality=quality[:cut],
        cost=cost[:cut],
    )
    feedback = train.feedback()
    clock = time.perf_counter()
    grouper = Grouper().fit(Queries(train.prompts, tasks=task[:cut], vectors=vectors[:cut]))
    recognised = grouper.recognise(vectors[cut:])
    took("group")
    bought = acquire(feedback, grouper.train_groups_, k=K)
    took("buy")
    router = sr.SaveRouter(k=K)
    router.models_, router.features_ = train.models, ResidualFeatures()
    features = router.features_.fit_transform(train.prompts)
    took("features")
    router._learn_from(features, Observations.of(*bought, grouper.train_groups_, grouper.n_groups_, models))
    del features
    took("learn")
    test = queries.take(slice(cut, None))
    estimated = router._quality(test, recognised)
    took("predict")
    families = saverouter_policies(estimated, router.group_cost_[recognised], router.model_cost_)
    pareto(operating_points(families, quality[cut:], cost[cut:]))
    took("frontier")
    return {"queries": size, "models": models, **seconds, "peak, GB": peak_memory()}


def table(sizes: list[tuple[int, int]]) -> pd.DataFrame:
    rows = []
    for size, models in sizes:
        command = [sys.executable, __file__, "--one", str(size), str(models)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{size:,} queries x {models:,} models failed:\n{done.stderr}")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(line(rows[-1]), flush=True)
    return pd.DataFrame(rows)


def line(row: dict) -> str:
    steps = " ".join(f"{row[step]:9.2f}" for step in STEPS)
    return f"{row['queries']:>9,} {row['models']:>6,} {steps} {row['peak, GB']:9.1f}"


def figure(frames: dict[str, pd.DataFrame]):
    """A column of panels an axis of growth: seconds by step, with n log n for the eye, above the peak memory."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from saverouter.workbook.figures import COLOURS

    size = (5.5 * len(frames), 6.2)
    drawing, panels = plt.subplots(
        2, len(frames), figsize=size, height_ratios=(2, 1), sharex="col", layout="constrained"
    )
    for (above, below), (axis, frame) in zip(panels.T, frames.items(), strict=True):
        for step, colour in zip(STEPS, COLOURS.values(), strict=False):
            above.loglog(frame[axis], frame[step], marker="o", color=colour, label=step)
        n, top = frame[axis].to_numpy(float), frame[STEPS].to_numpy().max()
        above.loglog(n, n * np.log(n) / (n * np.log(n))[-1] * top, color="grey", ls=":", label="n log n")
        above.set(ylabel="seconds", title=f"growth with {axis}")
        below.loglog(frame[axis], frame["peak, GB"], marker="o", color="black")
        below.set(xlabel=axis, ylabel="peak memory, GB", ylim=(0.25, 16))
        below.set_yticks([0.5, 1, 2, 4, 8], labels=["0.5", "1", "2", "4", "8"])
        below.set_yticks([], minor=True)
    drawing.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(STEPS) + 1, frameon=False
    )
    return drawing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run")
    parser.add_argument("--one", nargs=2, type=int, metavar=("QUERIES", "MODELS"), help="measure one size, print JSON")
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    options = parser.parse_args()
    if options.one:
        measure(*QUICK[0])  # compiles what is not yet in the cache
        print(json.dumps(measure(*options.one)))
        return
    print(f"{'queries':>9} {'models':>6} " + " ".join(f"{step + ', s':>9}" for step in STEPS) + f" {'peak, GB':>9}")
    by_queries = table(QUICK[:2] if options.quick else QUERIES)
    by_models = table(QUICK[::2] if options.quick else MODELS)
    options.output.mkdir(parents=True, exist_ok=True)
    pd.concat([by_queries, by_models]).to_csv(options.output / "growth.csv", index=False)
    drawing = figure({"queries": by_queries, "models": by_models})
    for suffix in ("png", "svg"):
        drawing.savefig(options.output / f"growth.{suffix}", dpi=150)


if __name__ == "__main__":
    main()
