"""Laws of ``structure``: shares sum to one, planted effects are found, real tables give the recorded numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from saverouter.errors import SaveRouterError
from saverouter.paper.structure import real_ranges, structure
from saverouter.workloads.catalog import load
from saverouter.workloads.workload import Workload

SHARES = ["model", "task", "task x model", "query", "rest"]


def planted(model=0.0, task=0.0, both=0.0, query=0.0, noise=0.0, size=4000, seed=0):
    """A table of 8 models and 5 tasks whose effects have the given standard deviations, exactly known."""
    rng = np.random.default_rng(seed)
    label = np.arange(size) % 5
    quality = 0.5 + model * np.array([-1, 1] * 4) + task * np.array([-1, 1, 0, -1, 1])[label][:, None]
    quality = quality + both * (np.array([-1, 1] * 4) * np.array([-1, 1, 0, -1, 1])[label][:, None])
    quality += query * rng.uniform(-1, 1, (size, 1)) + noise * rng.uniform(-1, 1, (size, 8))
    cost = np.exp(rng.normal(0, 0.3, (size, 1)) + rng.normal(0, 0.3, (size, 8)) + np.arange(8))
    return Workload(
        query_ids=[f"q{row}" for row in range(size)],
        prompts=[f"prompt number {row}" for row in range(size)],
        models=[f"m{column}" for column in range(8)],
        quality=quality,
        cost=cost,
        tasks=[f"t{value}" for value in label],
    )


@pytest.mark.parametrize("part, effect", [*zip(SHARES, ["model", "task", "both", "query", "noise"], strict=True)])
def test_a_lone_effect_takes_the_whole_variance(part, effect):
    table = structure(planted(**{effect: 0.1}), words=False)
    assert table[part] == pytest.approx(1, abs=0.01)
    assert table[SHARES].sum() == pytest.approx(1)


def test_query_share_is_not_inflated_by_noise():
    """Means over 8 models carry an eighth of the noise; that part must not count as shared difficulty."""
    table = structure(planted(query=0.1, noise=0.2), words=False)
    assert table["query"] == pytest.approx(0.2, abs=0.02)


def test_costs_are_described_as_planted():
    table = structure(planted(noise=0.2), words=False)
    assert table["sd of log cost"] == pytest.approx(np.hypot(0.3, 0.3), rel=0.03)
    assert table["correlation of log cost between models"] == pytest.approx(0.5, abs=0.03)
    assert table["dearest / cheapest"] == pytest.approx(np.exp(7), rel=0.05)
    assert table["cost right / wrong"] == pytest.approx(1, abs=0.03)


def test_failures_that_cost_more_are_seen():
    work = planted(noise=0.3)
    dearer = np.where(work.quality < work.quality.mean(axis=0), 2 * work.cost, work.cost)
    assert structure(replace(work, cost=dearer), words=False)["cost right / wrong"] == pytest.approx(0.5, abs=0.02)


def test_scaling_all_costs_changes_nothing():
    work = planted(noise=0.3)
    pd.testing.assert_series_equal(
        structure(work, words=False), structure(replace(work, cost=1000 * work.cost), words=False)
    )


def test_words_explain_difficulty_only_where_they_bear_on_it():
    work = planted(query=0.2, noise=0.05)
    shift = work.quality.mean(axis=1)
    telling = replace(work, prompts=[f"{'easy' if value > 0.5 else 'hard'} prompt" for value in shift])
    assert structure(telling)["R2 of difficulty from words"] > 0.5
    assert abs(structure(work)["R2 of difficulty from words"]) < 0.02
    assert abs(structure(telling)["R2 of the rest from words"]) < 0.02


def test_incomplete_rows_and_small_tasks_are_left_out():
    work = planted(noise=0.2)
    quality, cost, tasks = work.quality.copy(), work.cost.copy(), work.tasks.copy()
    quality[::2, 0], cost[::2, 0] = np.nan, np.nan
    tasks[1] = "lonely"
    kept = np.setdiff1d(np.arange(1, len(work), 2), [1])
    hurt = replace(work, quality=quality, cost=cost, tasks=tasks)
    pd.testing.assert_series_equal(structure(hurt, words=False), structure(work.take(kept), words=False))


def test_too_little_data_is_refused_with_a_remedy():
    with pytest.raises(SaveRouterError, match="20 queries.*use more queries"):
        structure(planted(noise=0.2, size=50), words=False)
    with pytest.raises(SaveRouterError, match="no variance"):
        structure(planted(size=200), words=False)


# Measured on the real tables and rounded: the five shares, sd of log cost, right / wrong; then R2 of difficulty from words.
RECORDED = {
    "routerbench_5shot_3tasks": ((0.044, 0.051, 0.019, 0.195, 0.691, 0.14, 1.05), 0.012),
    "mmlu_pro": ((0.066, 0.038, 0.011, 0.317, 0.568, 0.54, 0.78), 0.053),
    "ulab_llmrouter": ((0.108, 0.142, 0.100, 0.198, 0.453, 0.56, 0.65), -0.005),
    "swebench_bashonly": ((0.115, 0.014, 0.007, 0.412, 0.453, 0.97, 0.51), -0.004),
}


@pytest.mark.real
@pytest.mark.parametrize("name", RECORDED)
def test_real_tables_give_the_recorded_numbers(real_data, name):
    table = structure(load(real_data / f"{name}.parquet"))
    recorded, readable = RECORDED[name]
    np.testing.assert_allclose(table[[*SHARES, "sd of log cost", "cost right / wrong"]], recorded, atol=0.006)
    assert table["R2 of difficulty from words"] == pytest.approx(readable, abs=0.025)  # depends on the regression used
    ranges = real_ranges().loc[SHARES]
    assert table[SHARES].between(ranges["low"] - 0.001, ranges["high"] + 0.001).all()
