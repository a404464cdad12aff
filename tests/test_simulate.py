"""The simulated benchmarks keep what they promise: sizes, pools, published aggregates, structure, readable prompts."""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from saverouter.errors import SaveRouterError
from saverouter.simulate import benchmarks, calibration, simulate, specification
from saverouter.structure import real_ranges, structure

NAMES = ["llmrouterbench", "mixinstruct", "mmrbench", "routerbench"]
PUBLISHED = {  # queries, models, tasks
    "llmrouterbench": (12_446, 12, 10),
    "mixinstruct": (110_000, 12, 4),
    "mmrbench": (10_370, 10, 7),
    "routerbench": (36_497, 11, 86),
}
CONSTANT_PRICES = {  # statistics that a published fact of the benchmark puts outside the range of real tables
    "mixinstruct": ["dearest / cheapest", "sd of log cost", "correlation of log cost between models"],
}
full = cache(simulate)


def test_the_four_benchmarks_are_listed():
    assert benchmarks() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sizes_pools_and_labels_are_the_published_ones(name):
    work = full(name)
    assert (len(work), len(work.models), len(set(work.tasks))) == PUBLISHED[name]
    assert work.name == f"simulated/{name}"
    assert work.simulated
    assert work.grouping == ("global" if name == "mixinstruct" else "auto")
    assert any("generated" in sentence for sentence in work.provenance)
    assert len(set(work.split()[0].tasks)) >= PUBLISHED[name][2] - 1


@pytest.mark.parametrize("name", NAMES)
def test_published_aggregates_are_met(name):
    table = calibration(name, full(name)).set_index("aggregate")
    required = [row for row in table.index if "acquisition" not in row or row.endswith(("K=1", "K=4"))]
    assert len(required) >= 7
    assert table.loc[required, "within 5%"].all(), table.to_string()
    assert table["relative difference"].abs().max() < 0.10, table.to_string()


def test_only_facts_of_the_data_are_published_for_calibration():
    """A benchmark tuned until a router does well would prove nothing."""
    facts = (
        "queries",
        "missing",
        "best single quality",
        "best single cost",
        "best single share",
        "dense",
        "acquisition cost",
    )
    for name in NAMES:
        assert all(row.startswith(facts) for row in calibration(name, full(name))["aggregate"])


def test_an_aggregate_outside_its_interval_is_reported():
    """5% would forgive any quality; the published interval must not."""
    work = full("mmrbench")
    other = calibration("mmrbench", work.take(np.arange(len(work) // 2, len(work)))).set_index("aggregate")
    assert not other.loc["best single quality", "within 5%"]
    assert not other.loc["queries", "within 5%"]


@pytest.mark.parametrize("name", NAMES)
def test_structure_lies_where_real_tables_have_it(name):
    """Words are read in smaller versions: all 110,000 prompts would take most of the time of all tests."""
    table, ranges = structure(full(name), words=False), real_ranges()
    words = structure(simulate(name, size=10_000))
    table = {**words, **table}
    assert "R2 of difficulty from words" in table
    stated = set(ranges.index) & set(table) - set(CONSTANT_PRICES.get(name, []))
    outside = {row: table[row] for row in stated if not ranges.low[row] <= table[row] <= ranges.high[row]}
    assert not outside


def test_mixinstruct_has_its_published_constant_prices():
    work = full("mixinstruct")
    assert (work.cost * 16 == [13, 6, 12, 11, 7, 7, 16, 7, 7, 12, 7, 13]).all()
    assert 0.5 < np.median(work.quality) < 0.8
    assert len(np.unique(work.quality)) > 100_000


@pytest.mark.parametrize("name", ["llmrouterbench", "mmrbench", "routerbench"])
def test_other_qualities_are_binary(name):
    quality = full(name).quality
    assert set(np.unique(quality[np.isfinite(quality)])) == {0.0, 1.0}


def test_llmrouterbench_costs_are_in_units_of_the_largest():
    cost = full("llmrouterbench").cost
    assert cost.max() == 1
    assert (cost == 1).sum() < 20  # the limit bends the tail, not the distribution


def test_mmrbench_misses_the_published_number_of_pairs():
    work = full("mmrbench")
    train, test = work.split()
    assert [(~part.available).sum() for part in (train, test)] == [591, 2449]
    assert work.available.sum(axis=1).min() == 9
    assert all(full(name).available.all() for name in NAMES if name != "mmrbench")


def test_mmrbench_vectors_look_like_clip_and_tell_the_task():
    work = full("mmrbench")
    assert work.vectors.shape == (len(work), 1024)
    assert work.vectors.dtype == np.float32
    for half in (work.vectors[:, :512], work.vectors[:, 512:]):
        np.testing.assert_allclose(np.linalg.norm(half, axis=1), np.sqrt(0.5), rtol=1e-5)
    train, test = work.split()
    classifier = LogisticRegression(C=10, max_iter=1000, class_weight="balanced").fit(train.vectors, train.tasks)
    assert classifier.score(train.vectors, train.tasks) >= 0.8
    assert classifier.score(test.vectors, test.tasks) >= 0.8
    assert all(full(name).vectors is None for name in NAMES if name != "mmrbench")


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_short_readable_and_distinct(name):
    prompts = full(name).prompts
    assert 20 <= np.mean([len(prompt.split()) for prompt in prompts]) <= 30
    assert len(set(prompts)) > 0.99 * len(prompts)
    assert all(prompt[0].isupper() and prompt[-1] in ".?" for prompt in prompts)
    assert not any("{" in prompt or "  " in prompt for prompt in prompts)


def test_minilm_recognises_the_86_tasks_of_routerbench():
    """As many prompts of each task, so that small tasks count as much as large ones."""
    from saverouter.encoders import _minilm_model

    work = full("routerbench")
    rng, rows = np.random.default_rng(0), []
    for task in dict.fromkeys(work.tasks):
        own = np.flatnonzero(work.tasks == task)
        rows += rng.choice(own, min(8, len(own)), replace=False).tolist() if len(own) > 20 else []
    rows = rng.permutation(rows)
    vectors = _minilm_model().encode(work.prompts[rows].tolist(), normalize_embeddings=True, show_progress_bar=False)
    half = len(rows) // 2
    classifier = LogisticRegression(C=10, max_iter=1000, class_weight="balanced")
    classifier.fit(vectors[:half], work.tasks[rows[:half]])
    assert classifier.score(vectors[:half], work.tasks[rows[:half]]) >= 0.8
    assert classifier.score(vectors[half:], work.tasks[rows[half:]]) >= 0.8


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_workload_and_another_seed_another(name):
    one, same, other = (simulate(name, size=500, seed=seed) for seed in (3, 3, 4))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 37, 300, 2_001])
def test_smaller_versions_have_the_size_and_as_many_tasks_as_fit(name, size):
    work = simulate(name, size=size)
    assert len(work) == size
    assert len(set(work.tasks)) == min(size, len(specification(name)["tasks"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_smaller_version_keeps_the_structure(name):
    small, large = (structure(work, words=False) for work in (simulate(name, size=3_000), full(name)))
    shares = ["model", "task", "task x model", "query", "rest"]
    np.testing.assert_allclose(small[shares], large[shares], atol=0.03)
    assert small["best single"] == pytest.approx(large["best single"], abs=0.02)
    assert small["gain of per-query best"] == pytest.approx(large["gain of per-query best"], abs=0.02)


@pytest.mark.parametrize("size", [0, -5, 10_371, 3.5, "many", True])
def test_a_bad_size_names_the_benchmark_and_the_limits(size):
    with pytest.raises(SaveRouterError, match=r"'mmrbench' is .*from 1 to 10,370"):
        simulate("mmrbench", size=size)


@pytest.mark.parametrize("name", ["routerbanch", "../published/structure", ""])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(
        SaveRouterError, match="no simulated benchmark .*llmrouterbench, mixinstruct, mmrbench, routerbench"
    ):
        simulate(name)
