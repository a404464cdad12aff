"""Equal inputs, equal outputs: our pipeline beside the authors' release, run as a black box in its own process."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import saverouter as sr
from saverouter.encoders.features import ResidualFeatures
from saverouter.paper import published_settings
from saverouter.routers.saverouter.acquisition import acquire

RUNNER = Path(__file__).parents[1] / "release_runner.py"
CASES = [(name, k) for name in ("routerbench_5shot_3tasks.parquet", "simulated/routerbench", "simulated/llmrouterbench")
         for k in (1, 2, 4)]  # fmt: skip


class GivenGroups:
    """Groups as handed to both sides: the labels, known for test queries too."""

    kind_, accuracy_ = "labels", 1.0

    def __init__(self, train, test):
        names = np.unique(train.tasks.astype(str))
        self.train_groups_ = np.searchsorted(names, train.tasks.astype(str))
        self.test_groups = np.minimum(np.searchsorted(names, test.tasks.astype(str)), len(names) - 1)
        self.n_groups_ = len(names)

    def predict(self, queries):
        return self.test_groups


@cache
def inputs(name):
    work = sr.load(name, size=3000 if name.startswith("simulated") else None)
    train, test = work.split(together=False)  # as the release splits: two prompts of the recorded part repeat
    features = ResidualFeatures().fit(train.prompts)
    return train, test, GivenGroups(train, test), features.transform(train.prompts), features.transform(test.prompts)


def ours(name, k, tolerance):
    train, test, groups, _, _ = inputs(name)
    feedback = train.feedback()
    router = sr.SaveRouter(k=k, residual_ridge=200, residual_tolerance=tolerance)
    router.models_, router.grouper_, router.groups_ = train.models, groups, groups.train_groups_
    bought = acquire(feedback, groups.train_groups_, k=k)
    router._learn(train.queries, *bought)
    mask = np.zeros(train.quality.shape, dtype=bool)
    mask[bought[0], bought[1]] = True
    return router, mask, sr.evaluate(router, test, supervision_cost=feedback.spent)


def theirs(release, folder, name, k):
    train, test, groups, train_features, test_features = inputs(name)
    np.savez(
        folder / "in.npz", k=k, ridge=200.0, train_groups=groups.train_groups_, test_groups=groups.test_groups,
        train_quality=train.quality, train_cost=train.cost, test_quality=test.quality, test_cost=test.cost,
    )  # fmt: skip
    sp.save_npz(folder / "train.npz", train_features)
    sp.save_npz(folder / "test.npz", test_features)
    files = [str(folder / name) for name in ("in.npz", "train.npz", "test.npz", "out.json", "out.npz")]
    environment = {**os.environ, "PYTHONPATH": str(release)}
    subprocess.run([sys.executable, str(RUNNER), *files], env=environment, cwd=folder, check=True)
    report = json.loads((folder / "out.json").read_text())
    assert report["file"].startswith(str(release)), "the black box must be the release, not this package"
    return report, np.load(folder / "out.npz")


@pytest.mark.parametrize("name, k", CASES)
def test_same_pairs_same_estimates_same_economics(release, tmp_path, request, name, k):
    if name.endswith(".parquet"):
        name = str(request.getfixturevalue("real_data") / name)
    report, arrays = theirs(release, tmp_path, name, k)
    router, mask, result = ours(name, k, tolerance=RELEASE)
    test = inputs(name)[1]
    np.testing.assert_array_equal(mask, arrays["mask"])
    assert result.supervision_cost == pytest.approx(report["spent"], rel=1e-9)
    np.testing.assert_allclose(router.predict_quality(test.queries), arrays["quality"], atol=1e-6)
    np.testing.assert_allclose(router.predict_cost(test.queries), arrays["cost"], atol=1e-9)
    box = report["result"]
    assert result.peak_score == pytest.approx(box["maximum_quality"], abs=1e-6)
    if box["target_achieved"]:
        assert result.cost_ratio == pytest.approx(box["target_cost_ratio"], abs=1e-6)
    else:
        assert result.cost_ratio == np.inf


DEFAULT = sr.SaveRouter().residual_tolerance
RELEASE = published_settings("routerbench", "release")["residual_tolerance"]


@pytest.mark.parametrize("name", ["simulated/routerbench", "simulated/llmrouterbench"])
def test_our_default_solver_is_closer_to_the_converged_solution(name):
    """How far the default and the release's tolerance are from 1e-13, and how many decisions differ."""
    test = inputs(name)[1]
    exact, default, loose = (ours(name, 4, t)[0].predict_quality(test.queries) for t in (1e-13, DEFAULT, RELEASE))
    assert np.abs(default - exact).max() < 2e-6 < np.abs(loose - exact).max() < 1e-4
    assert (default.argmax(1) != exact.argmax(1)).sum() == 0
    assert (loose.argmax(1) != exact.argmax(1)).mean() < 0.001


@pytest.mark.real
def test_what_the_tighter_solver_moves(real_data):
    """README and notebook 02 quote these: one query changes sides on the recorded part of RouterBench."""
    name = str(real_data / "routerbench_5shot_3tasks.parquet")
    release, default = (ours(name, 4, tolerance)[2] for tolerance in (RELEASE, DEFAULT))
    assert (release.cost_ratio, default.cost_ratio) == pytest.approx((0.97345, 0.97460), abs=5e-6)
    assert release.peak_score == default.peak_score


@pytest.mark.real
def test_reference_figures_on_recorded_outcomes(real_data):
    """With groups recognised without error, K=2 on the recorded part of RouterBench gives these figures."""
    name = str(real_data / "routerbench_5shot_3tasks.parquet")
    _, _, result = ours(name, 2, tolerance=RELEASE)
    assert result.supervision_cost == pytest.approx(3.634479, abs=1e-6)
    assert result.peak_score == pytest.approx(0.874013, abs=1e-6)
    assert result.cost_ratio == pytest.approx(0.978073, abs=1e-6)
    assert result.sa_bep == 33_093


@pytest.mark.real
def test_missing_pairs_of_a_recorded_table_are_respected(real_data):
    work = sr.load(str(real_data / "mmlu_pro.parquet"), size=3000)
    assert not work.available.all()
    train, test = work.split()
    rows = np.arange(len(test))
    router = sr.SaveRouter(k=4, grouping="global").fit(train.queries, train.feedback())
    for family in router.policies(test.queries):
        for index in range(0, len(family), 20):
            assert test.available[rows, family.choice(index)].all()
