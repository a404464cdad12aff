"""Runs the authors' release on given arrays, in a process of its own: its package has the same name as ours.

usage: python release_runner.py input.npz features.npz test_features.npz output.json output.npz
"""

import json
import sys

import numpy as np
import scipy.sparse as sp


def main(inputs, train_features, test_features, report, arrays):
    from saverouter.evaluation import evaluate_predictions

    import saverouter

    given = np.load(inputs)
    train, test = sp.load_npz(train_features), sp.load_npz(test_features)
    bought = saverouter.simulate_fixed_k_supervision(
        given["train_quality"], given["train_groups"], k=int(given["k"]), costs=given["train_cost"], seed=42
    )
    router = saverouter.FixedKSparseRouter(residual_ridge_alpha=float(given["ridge"])).fit(train, bought)
    quality = router.predict_scores(test, group_ids=given["test_groups"])
    cost = router.predict_costs(test, group_ids=given["test_groups"])
    means = np.array([bought.costs[bought.model_indices == m].mean() for m in range(bought.n_models)])
    spent = float(bought.costs.sum(dtype=np.float64))
    result = evaluate_predictions(
        quality, cost, given["test_quality"], given["test_cost"], supervision_cost=spent, global_predicted_cost=means
    )
    np.savez(arrays, mask=bought.observation_mask(), quality=quality, cost=cost)
    with open(report, "w") as file:
        json.dump({"spent": spent, "file": saverouter.__file__, "result": result}, file, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
