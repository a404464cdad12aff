"""The simulated benchmarks keep what they promise: sizes, pools, published aggregates, structure, readable prompts."""

import numpy as np
import pytest
from conftest import full_benchmark as full
from sklearn.linear_model import LogisticRegression

from saverouter import load, names
from saverouter.encoders import minilm_vectors
from saverouter.errors import SaveRouterError
from saverouter.paper.structure import structure
from saverouter.workloads import recorded
from saverouter.workloads.large_pool import billions, models_by_rule, prices_by_size
from saverouter.workloads.simulate import benchmarks, simulate, specification

MAIN = ["llmrouterbench", "mixinstruct", "mmrbench", "routerbench"]
NAMES = [*MAIN, "routereval"]
PUBLISHED = {  # queries, models, tasks
    "llmrouterbench": (12_446, 12, 10),
    "mixinstruct": (110_000, 12, 4),
    "mmrbench": (10_370, 10, 7),
    "routerbench": (36_497, 11, 86),
    "routereval": (28_659, 289, 6),  # queries: of the six public test sets
}


def test_the_four_main_benchmarks_are_told_from_the_large_pool():
    assert benchmarks() == MAIN
    assert benchmarks(large_pool=True) == NAMES
    others = [f"{source}/{name}" for source in ("simulated", "original") for name in NAMES]
    assert names() == ["paretobandit", *(f"recorded/{name}" for name in recorded.NAMES), *others]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_pools_and_labels_are_the_published_ones(name):
    work = full(name)
    assert (len(work), len(work.models), len(set(work.tasks))) == PUBLISHED[name]
    assert work.name == f"simulated/{name}"
    assert work.simulated
    assert work.grouping == ("global" if name == "mixinstruct" else "auto")
    assert any("generated" in sentence for sentence in work.provenance)
    assert len(set(work.split()[0].tasks)) >= PUBLISHED[name][2] - 1


def test_mixinstruct_has_its_published_constant_prices():
    work = full("mixinstruct")
    assert (work.cost * 16 == [13, 6, 12, 11, 7, 7, 16, 7, 7, 12, 7, 13]).all()
    assert 0.5 < np.median(work.quality) < 0.8
    assert len(np.unique(work.quality)) > 100_000


@pytest.mark.parametrize("name", ["llmrouterbench", "mmrbench", "routerbench", "routereval"])
def test_other_qualities_are_binary(name):
    quality = full(name).quality
    assert set(np.unique(quality[np.isfinite(quality)])) == {0.0, 1.0}


def test_routereval_tasks_have_the_names_and_sizes_of_its_files():
    tasks, counts = np.unique(full("routereval").tasks, return_counts=True)
    assert tasks.tolist() == ["arc", "gsm8k", "harness_truthfulqa_mc_0", "hellaswag", "mmlu", "winogrande"]
    assert counts.tolist() == [1_172, 1_319, 817, 10_042, 14_042, 1_267]
    assert list(dict.fromkeys(full("routereval").tasks)) == tasks.tolist()  # rows in the order of the files


def test_routereval_costs_follow_from_the_sizes_in_the_names():
    work = full("routereval")
    assert list(work.models) == sorted(work.models)
    assert (work.cost == work.cost[0]).all()
    sizes = np.array([billions(name) for name in work.models])
    lowest, highest = np.log1p(sizes.min()), np.log1p(sizes.max())
    margin = 0.1 * (highest - lowest)
    expected = 0.1 + 0.8 * (np.log1p(sizes) - lowest + margin) / (highest - lowest + 2 * margin)
    np.testing.assert_allclose(work.cost[0], expected, rtol=1e-12)
    assert work.cost[0][sizes.argmin()] == pytest.approx(1 / 6)
    assert work.cost[0][sizes.argmax()] == pytest.approx(5 / 6)
    order = np.argsort(sizes)
    assert (np.sign(np.diff(work.cost[0][order]).round(12)) == np.sign(np.diff(sizes[order]))).all()


@pytest.mark.parametrize(
    "name, size",
    [
        ("oak-7b", 7),
        ("oak-1.5b-chat", 1.5),
        ("oak-8x7b-base", 56),
        ("Oak-v2-13B", 13),
        ("oak-7b-8x7b", 56),
        ("oak-4x1.8b", 7),
        ("oak-3b-7b", 3),
        ("oak7b-chat", None),
        ("oak-7bit", None),
        ("oak-70b_v2", None),
    ],
)
def test_a_parameter_size_is_read_after_a_hyphen(name, size):
    assert billions(name) == size


def test_a_name_without_a_size_and_a_pool_of_one_size_are_refused():
    with pytest.raises(SaveRouterError, match="'oak7b-chat' has no parameter size"):
        prices_by_size(["oak-7b", "oak7b-chat"])
    with pytest.raises(SaveRouterError, match="same parameter size"):
        prices_by_size(["oak-7b", "elm-7b"])


def test_a_rule_keeps_its_models_below_the_best_and_needs_names_enough():
    rule = {"sizes": [{"size": "7b", "count": 6, "quality": 0.9}, {"size": "13b", "count": 2, "quality": 0.1}],
            "spread": 0.1, "below_best": 0.05, "lowest": 0.2, "seed": 0,
            "families": ["elm", "oak"], "kinds": ["a", "b", "c"]}  # fmt: skip
    models = models_by_rule(rule, [{"name": "yew-70b", "quality": 0.8}])
    assert len({model["name"] for model in models}) == 9
    assert all(0.2 <= model["quality"] <= 0.75 for model in models if model["name"] != "yew-70b")
    rule["sizes"][0]["count"] = 7
    with pytest.raises(SaveRouterError, match="7 models of size 7b but 6 names"):
        models_by_rule(rule, [{"name": "yew-70b", "quality": 0.8}])


def test_the_large_pool_loads_by_name_and_says_that_its_models_are_placeholders():
    work = load("simulated/routereval", size=600)
    assert (len(work), len(work.models), len(set(work.tasks))) == (600, 289, 6)
    assert any("placeholders" in sentence for sentence in work.provenance)


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
    work = full("routerbench")
    rng, rows = np.random.default_rng(0), []
    for task in dict.fromkeys(work.tasks):
        own = np.flatnonzero(work.tasks == task)
        rows += rng.choice(own, min(8, len(own)), replace=False).tolist() if len(own) > 20 else []
    rows = rng.permutation(rows)
    vectors = minilm_vectors(work.prompts[rows])
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
