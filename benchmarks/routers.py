"""How long each router takes to learn and to be judged: python benchmarks/routers.py --workload simulated/llmrouterbench

Seconds depend on the machine and on what else it does; the ratio to kNN's, taken in the same run, less so. Query vectors are
computed before the clock starts. Nothing is taken from or put into the cache of results.
"""

from __future__ import annotations

import argparse
import time

import saverouter as sr
from saverouter.studies import experiments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workload", default="simulated/llmrouterbench")
    parser.add_argument("--profile", default="standard", help="smoke, standard or paper (standard)")
    parser.add_argument("--routers", default=",".join(sr.ROUTERS), help="names, separated by commas (all)")
    options = parser.parse_args()

    work = experiments.workload(options.workload, options.profile)
    train, test = work.split()
    for part in (train, test):
        part.queries.embed()
    print(f"{work}: {len(train):,} training queries, {len(test):,} test queries", flush=True)
    print(f"{'router':18} {'learn, s':>9} {'judge, s':>9} {'x kNN':>7} {'P_s':>7} {'CR':>7} {'C_0':>12}")
    usual = measure("knn", train, test)[2]  # once for nothing, so that no router pays for the first use of a library
    for name in ["knn", *(name for name in options.routers.split(",") if name != "knn")]:
        learning, judging, total, result = measure(
            name, train, test, **experiments.published_options(name, work, options.profile)
        )
        usual = total if name == "knn" else usual
        print(f"{name:18} {learning:9.1f} {judging:9.1f} {total / usual:7.1f} {result.peak_score:7.4f} "
              f"{result.cost_ratio:7.4f} {result.supervision_cost:12.2f}", flush=True)  # fmt: skip


def measure(name: str, train: sr.Workload, test: sr.Workload, **options):
    feedback = train.feedback()
    start = time.perf_counter()
    router = sr.make_router(name, **options).fit(train.queries, feedback)
    learnt = time.perf_counter()
    result = sr.evaluate(router, test, supervision_cost=feedback.spent)
    judged = time.perf_counter()
    return learnt - start, judged - learnt, judged - start, result


if __name__ == "__main__":
    main()
