"""The stages as the authors' release runs them: python release.py stage input-folder output.npz, with the release importable.

A black box: only its public functions are called.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import scipy.sparse as sp
from recording import record
from saverouter.evaluation import evaluate_predictions

import saverouter


def features(given):
    prompts = given["prompts"].tolist()
    start = time.perf_counter()
    matrix = saverouter.TextFeatureEncoder().fit_transform(texts=prompts)
    seconds = time.perf_counter() - start
    matrix = sp.csr_matrix(matrix)
    matrix.sort_indices()
    return seconds, {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def bought(given):
    return saverouter.simulate_fixed_k_supervision(
        given["quality"], given["groups"], k=int(given["k"]), costs=given["cost"], seed=42
    )


def acquisition(given):
    start = time.perf_counter()
    supervision = bought(given)
    return time.perf_counter() - start, {"mask": supervision.observation_mask()}


def fit_and_predict(given):
    train, test = given["train"], given["test"]
    supervision = bought(given)
    start = time.perf_counter()
    router = saverouter.FixedKSparseRouter().fit(train, supervision)
    fitted = time.perf_counter()
    quality = router.predict_scores(test, group_ids=given["test_groups"])
    cost = router.predict_costs(test, group_ids=given["test_groups"])
    return time.perf_counter() - start, {"quality": quality, "cost": cost, "fit": fitted - start}


def fit(given):
    _, made = fit_and_predict(given)
    return float(made["fit"]), made


def frontier(given):
    start = time.perf_counter()
    result = evaluate_predictions(
        given["estimated_quality"], given["estimated_cost"], given["true_quality"], given["true_cost"],
        supervision_cost=1.0, global_predicted_cost=given["model_cost"],
    )  # fmt: skip
    return time.perf_counter() - start, summary(result)


def pipeline(given):
    train, test = given["prompts"].tolist(), given["test_prompts"].tolist()
    start = time.perf_counter()
    encoder = saverouter.TextFeatureEncoder()
    known = encoder.fit_transform(texts=train)
    asked = encoder.transform(texts=test)
    supervision = bought(given)
    router = saverouter.FixedKSparseRouter().fit(known, supervision)
    quality = router.predict_scores(asked, group_ids=given["test_groups"])
    cost = router.predict_costs(asked, group_ids=given["test_groups"])
    means = np.array([supervision.costs[supervision.model_indices == m].mean() for m in range(supervision.n_models)])
    result = evaluate_predictions(
        quality, cost, given["true_quality"], given["true_cost"], supervision_cost=1.0, global_predicted_cost=means
    )
    return time.perf_counter() - start, {"quality": quality, **summary(result)}


def summary(result) -> dict:
    ratio = result["target_cost_ratio"] if result["target_achieved"] else np.inf
    front = np.array([[point["cost"], point["quality"]] for point in result["frontier"]])
    return {"peak": result["maximum_quality"], "ratio": np.float64(ratio), "front": front}


STAGES = {f.__name__: f for f in (features, acquisition, fit_and_predict, fit, frontier, pipeline)}
STAGES["fit_and_predict_alike"] = fit_and_predict

if __name__ == "__main__":
    record(STAGES, *sys.argv[1:])
