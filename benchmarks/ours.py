"""The stages as this package runs them: python ours.py stage input-folder output.npz"""

from __future__ import annotations

import sys
import time

import inputs
import numpy as np
from recording import record

import saverouter as sr
from saverouter.encoders import ResidualFeatures
from saverouter.judging.operating_points import operating_points, pareto, saverouter_policies
from saverouter.routers.saverouter.acquisition import acquire
from saverouter.routers.saverouter.capability import Observations
from saverouter.routers.saverouter.grouping import Grouper
from saverouter.workloads.queries import Queries


class Recorded:
    """Groups and features that were computed before."""

    kind_, accuracy_ = "labels", 1.0

    def __init__(self, given, train=None):
        self.train_groups_, self.test_groups, self.train = given["groups"], given.get("test_groups"), train
        self.n_groups_ = int(self.train_groups_.max()) + 1

    def predict(self, queries):
        return self.test_groups

    def transform(self, queries):
        return self.train


def workload(given, prefix=""):
    quality, cost = given[f"{prefix}quality"], given[f"{prefix}cost"]
    prompts = given["prompts"] if "prompts" in given else np.full(len(quality), "text")
    return sr.Workload(
        query_ids=np.arange(len(quality)), prompts=prompts,
        models=range(quality.shape[1]), quality=quality, cost=cost,
    )  # fmt: skip


def features(given):
    ResidualFeatures().fit_transform(given["prompts"][:50])
    start = time.perf_counter()
    matrix = ResidualFeatures().fit_transform(given["prompts"])
    seconds = time.perf_counter() - start
    return seconds, {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def bought(given):
    work = workload(given)
    return acquire(work.feedback(), given["groups"], k=int(given["k"]))


def acquisition(given):
    few = slice(40)
    small = {**given, **{name: given[name][few] for name in ("quality", "cost", "groups")}}
    bought(small)
    feedback = workload(given).feedback()
    start = time.perf_counter()
    rows, models, _, _ = acquire(feedback, given["groups"], k=int(given["k"]))
    seconds = time.perf_counter() - start
    mask = np.zeros(given["quality"].shape, dtype=bool)
    mask[rows, models] = True
    return seconds, {"mask": mask}


def learnt(given, outcomes, **options):
    router = sr.SaveRouter(k=int(given["k"]), **options)
    router.models_ = tuple(map(str, range(given["quality"].shape[1])))
    router.grouper_, router.groups_ = Recorded(given), given["groups"]
    router._learn_from(
        given["train"], Observations.of(*outcomes, given["groups"], router.grouper_.n_groups_, len(router.models_))
    )
    return router


def estimates(router, features, groups):
    """Quality and cost of queries whose features and groups are known."""
    return router._with_residual(features, groups), router.group_cost_[groups]


def fit_and_predict(given, **options):
    outcomes = bought(given)
    small = {**given, "train": given["train"][:40]}
    few = outcomes[0] < 40
    learnt(small, tuple(part[few] for part in outcomes), min_observations=2)
    start = time.perf_counter()
    router = learnt(given, outcomes, **options)
    fitted = time.perf_counter()
    quality, cost = estimates(router, given["test"], given["test_groups"])
    return time.perf_counter() - start, {"quality": quality, "cost": cost, "fit": fitted - start}


def fit_and_predict_alike(given):
    """With the tolerance at which the release's solver stops; ours stops later by default."""
    return fit_and_predict(given, residual_tolerance=1e-4)


def fit(given):
    _, made = fit_and_predict(given)
    _, exact = fit_and_predict(given, residual_tolerance=1e-14)
    return float(made["fit"]), {**made, "converged": exact["quality"]}


def frontier(given):
    few = slice(50)
    whole_frontier({name: value if name == "model_cost" else value[few] for name, value in given.items()})
    start = time.perf_counter()
    points = whole_frontier(given)
    return time.perf_counter() - start, summary(points, given)


def whole_frontier(given):
    families = saverouter_policies(given["estimated_quality"], given["estimated_cost"], given["model_cost"])
    return pareto(operating_points(families, given["true_quality"], given["true_cost"]))


def summary(front, given) -> dict:
    best = int(np.argmax(given["true_quality"].mean(axis=0)))
    quality, cost = given["true_quality"][:, best].mean(), given["true_cost"][:, best].mean()
    reached = front[front["quality"] >= quality - 1e-9]
    ratio = reached["cost"].min() / cost if len(reached) else np.inf
    return {"peak": front["quality"].max(), "ratio": ratio, "front": front[["cost", "quality"]].to_numpy()}


def pipeline(given):
    warm_up(given)
    start = time.perf_counter()
    outcomes = bought(given)
    encoder = ResidualFeatures()
    router = learnt({**given, "train": encoder.fit_transform(given["prompts"])}, outcomes)
    quality, cost = estimates(router, encoder.transform(given["test_prompts"]), given["test_groups"])
    families = saverouter_policies(quality, cost, router.model_cost_)
    front = pareto(operating_points(families, given["true_quality"], given["true_cost"]))
    return time.perf_counter() - start, {"quality": quality, **summary(front, given)}


def warm_up(given):
    """Everything once on a few rows, so that no stage pays for compilation."""
    train = sr.Workload(
        query_ids=np.arange(60), prompts=given["prompts"][:60], models=range(given["quality"].shape[1]),
        quality=given["quality"][:60], cost=given["cost"][:60], vectors=np.zeros((60, 2)),
    )  # fmt: skip
    router = sr.SaveRouter(grouping="global", min_observations=1).fit(train.queries, train.feedback())
    sr.evaluate(router, train, supervision_cost=0.0)


def served(given):
    """A fitted router, and vectors that stand for embeddings: groups are recognised from them."""
    vectors, outcomes, work = inputs.vectors(given["groups"]), bought(given), workload(given)
    router = learnt({**given, "train": None}, outcomes, residual_scale=2.0)
    router.grouper_ = Grouper().fit(Queries(work.prompts, tasks=given["groups"].astype(str), vectors=vectors))
    router._learn(work.queries, *outcomes)
    return router, vectors


def one_prompt(given):
    router, vectors = served(given)
    times = []
    for row in range(len(given["test_prompts"])):
        vector = vectors[[row % len(vectors)]]  # any will do
        start = time.perf_counter()
        router.route_features(router.features_.transform(given["test_prompts"][row : row + 1]), vector)
        times.append(time.perf_counter() - start)
    return float(np.median(times)), {"p95": np.quantile(times, 0.95)}


def many_queries(given):
    router, vectors = served(given)
    rows = np.arange(int(given["asked"])) % len(vectors)
    features, vectors = router.features_.transform(given["prompts"])[rows], vectors[rows]
    start = time.perf_counter()
    chosen = router.route_features(features, vectors, cost_weight=0.1)
    return time.perf_counter() - start, {"different": len(set(chosen))}


STAGES = {
    f.__name__: f for f in (
        features, acquisition, fit_and_predict, fit_and_predict_alike, fit, frontier, pipeline, one_prompt, many_queries,
    )
}  # fmt: skip

if __name__ == "__main__":
    record(STAGES, *sys.argv[1:])
