"""Who is compared with whom, on which test queries, and when there is no verdict."""

import json
import pickle
from dataclasses import asdict, replace

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.judging import Coverage, Reference, coverage_from
from saverouter.judging.coverage import on_common_queries
from saverouter.studies.runs import RunKey, once, recall

WORK = make_workload(n=1000, seed=3)
FULL = np.ones(WORK.quality.shape, dtype=bool)
SOUND = Coverage(queries=800, models=5, share=1.0, common=800, compared=800, error=1.2)


def cut(there, work=WORK):
    """The workload without the pairs that are not there, and without queries that nobody has."""
    quality, cost = np.where(there, work.quality, np.nan), np.where(there, work.cost, np.nan)
    some = np.flatnonzero(there.any(axis=1))
    return sr.Workload(
        work.query_ids[some], work.prompts[some], work.models, quality[some], cost[some], vectors=work.vectors[some]
    )


def column(number, rows):
    there = FULL.copy()
    there[:, number] = rows
    return there


def judged(work, name="knn", **options):
    train, test = work.split()
    feedback = train.feedback()
    router = sr.make_router(name).fit(train.queries, feedback)
    return sr.evaluate(router, test, supervision_cost=feedback.spent, **options)


def test_a_complete_table_is_judged_as_ever():
    result = judged(WORK)
    assert result.refusal is None and result.comparable == result.singles and result.coverage.warning == ""
    means = WORK.split()[1].quality.mean(axis=0)
    assert result.reference.quality == means.max() and result.coverage.share == 1
    assert [one.quality for one in result.singles] == pytest.approx(list(means), abs=0)


def test_a_log_of_one_model_a_query_gets_no_verdict():
    """User trial: the best single model at 0.76 for a true 0.57."""
    there = np.zeros(FULL.shape, dtype=bool)
    picks = np.where(WORK.quality.mean(axis=1) > 0.5, 4, np.random.default_rng(0).integers(4, size=1000))
    there[np.arange(1000), picks] = True
    said = judged(cut(there)).verdict()
    assert said.startswith("No verdict: 0 of 800 test queries have outcomes of two models or more")
    assert "Run the same 30 queries or more" in said


def test_a_model_recorded_only_where_it_did_well_gives_no_verdict():
    """User trial: a best single model at 1.00."""
    result = judged(cut(column(1, WORK.quality[:, 1] == 1)))
    assert result.verdict() == f"No verdict: {result.refusal}"
    assert result.refusal.startswith("model-1 has outcomes on some queries only") and result.coverage.picked == (
        "model-1",
    )
    dear = judged(cut(column(4, WORK.quality[:, 4] == 1)))
    assert (
        dear.reference == replace(dear.reference, model="model-4", quality=1.0) and "failures were not" in dear.refusal
    )


def test_a_reference_with_too_few_queries_gives_no_verdict():
    half = judged(cut(column(4, np.arange(1000) % 2 == 0)), reference="model-4")
    assert half.refusal.startswith("model-4 has outcomes on 5") and "needs 70%" in half.refusal
    most = judged(cut(column(4, np.arange(1000) % 5 > 0)), reference="model-4")
    assert most.refusal is None and not most.verdict().startswith("No verdict")


def test_a_reference_on_easier_queries_gives_no_verdict():
    level = WORK.quality[:, :4].mean(axis=1)
    rows = (level > np.quantile(level, 0.2)) | (np.random.default_rng(0).random(1000) < 0.3)
    refusal = judged(cut(column(4, rows)), reference="model-4").refusal
    assert refusal.startswith("model-4 lacks 15% of the test queries, and these are harder than those it has")
    assert judged(cut(column(4, rows)), reference="model-3").refusal is None  # nothing is asked of model-4's mean


@pytest.mark.parametrize("size", [5, 10, 20])
def test_a_handful_of_queries_gets_no_verdict_but_is_told_how_little_it_is(size):
    said = judged(WORK.take(np.arange(size)), "saverouter").verdict()
    assert said.startswith(f"No verdict: {size - size // 5} test queries are too few") and "(standard error)" in said
    assert "At least 30 test queries are needed" in said


def test_few_test_queries_are_said_in_a_sentence():
    result = judged(WORK.take(np.arange(120)), "saverouter")
    error = 100 * WORK.take(np.arange(120)).split()[1].quality[:, 4].std() / np.sqrt(96)
    assert result.reference.model == "model-4" and result.verdict().endswith(
        f" Only 96 test queries: a mean quality is known to {error:.1f} points (standard error)."
    )
    assert "test queries: a mean quality" not in judged(WORK.take(np.arange(130)), "saverouter").verdict()


def test_models_that_do_not_contend_are_named():
    result = judged(cut(column(1, np.arange(1000) % 5 == 0)))
    assert result.coverage.apart == ("model-1",) and result.refusal is None
    assert result.verdict().endswith(" Outcomes on less than half of the test queries, so no candidate: model-1.")


def test_models_on_other_queries_are_named():
    level = WORK.quality[:, [0, 2, 3, 4]].mean(axis=1)
    result = judged(cut(column(1, level > np.quantile(level, 0.3))))
    assert result.coverage.elsewhere == ("model-1",) and result.refusal is None
    assert result.verdict().endswith(" Recorded on easier or harder queries than the rest: model-1.")


@pytest.mark.parametrize("change, said", [
    ({"compared": 29}, "29 of 800 test queries have outcomes of two models or more"),
    ({"compared": 30}, None),
    ({"compared": 0, "models": 1}, None),
    ({"queries": 29, "common": 29, "compared": 29}, "29 test queries are too few"),
    ({"queries": 30, "common": 30, "compared": 30}, None),
    ({"picked": ("a", "b")}, "a, b have outcomes on some queries only"),
    ({"share": 0.69}, "gpt has outcomes on 69% of the 800 test queries"),
    ({"share": 0.7}, None),
    ({"share": 0.8, "bias": -1.0, "sure": 3.0}, "gpt lacks 20% of the test queries, and these are easier"),
    ({"share": 0.8, "bias": 0.99, "sure": 9.0}, None),
    ({"share": 0.8, "bias": 5.0, "sure": 2.9}, None),
    ({"common": 239}, "outcomes in common on 239 of 800 test queries only"),
    ({"common": 240}, None),
])  # fmt: skip
def test_the_thresholds_of_a_refusal_are_the_stated_ones(change, said):
    refusal = replace(SOUND, **change).refusal("gpt")
    assert refusal is None if said is None else refusal.startswith(said) or said in refusal


def test_a_named_reference_needs_no_common_queries_of_the_others():
    few = replace(SOUND, common=10)
    assert few.refusal("gpt") and few.refusal("gpt", given=True) is None


def test_a_single_model_does_not_win_by_its_queries():
    """It has the easier half: a mean of 0.83, and no better than the others there."""
    rng = np.random.default_rng(1)
    hard = np.arange(2000) % 2 == 0
    chance = np.where(hard, 0.4, 0.85)[:, None] + [0.1, -0.02]
    quality = (rng.random((2000, 2)) < chance).astype(float)
    cost = np.where(hard, 3.0, 1.0)[:, None] * [1.0, 0.2]
    gone = hard & (rng.random(2000) < 0.8)
    quality[gone, 1] = cost[gone, 1] = np.nan
    ids = [f"q{i}" for i in range(2000)]
    work = sr.Workload(ids, ids, ("dear", "cheap"), quality, cost, vectors=rng.normal(size=(2000, 3)))
    result = judged(work, reference="dear", margin=3)
    assert result.singles[1].quality > result.target_quality  # by its own queries it would be enough
    assert result.comparable[1].quality < result.target_quality and result.single.model == "dear"
    assert "cheap alone" not in result.verdict()
    assert result.comparable[1].cost == pytest.approx(0.2 * result.reference.cost)
    lower = result.at(
        margin=30
    )  # where it is good enough, it stands with its own means, and is priced on shared queries
    assert lower.single == result.singles[1] and lower.single.cost < 0.15 * result.reference.cost
    assert "cheap alone reaches" in lower.verdict() and "at 20% of its cost" in lower.verdict()


def test_models_are_compared_on_the_reference_queries():
    quality = np.array([[1, 0, 1], [1, 1, np.nan], [0, 1, np.nan], [0, np.nan, np.nan]])
    cost = np.where(np.isfinite(quality), [4.0, 2.0, 1.0], np.nan)
    test = sr.Workload("abcd", "abcd", ("r", "s", "t"), quality, cost)
    reference = Reference("r", 0.5, 4.0)
    singles = (reference, Reference("s", 2 / 3, 2.0), Reference("t", 1.0, 1.0))
    found = on_common_queries(test, reference, singles)
    assert found == (reference, Reference("s", 0.5, 2.0))  # equal on the three shared; t has one of four


def test_equal_qualities_are_answered_by_the_cheapest_model():
    """User trial: "Yes: 50%", where one cheaper model does the same."""
    for models in (slice(None), slice(None, None, -1)):
        cost = WORK.cost[:, models]
        same = replace(WORK, quality=np.full_like(WORK.quality, 0.5), cost=cost)
        result = judged(same, "saverouter", reference=same.models[int(np.argmax(cost.mean(axis=0)))])
        cheapest = same.models[int(np.argmin(cost.mean(axis=0)))]
        assert result.verdict().startswith(f"No router needed: {cheapest} alone reaches")
    dear_first = replace(WORK, quality=np.full_like(WORK.quality, 0.5), cost=WORK.cost[:, ::-1])
    assert judged(dear_first, "saverouter").verdict().startswith("No router needed: model-4 alone reaches")


def test_what_is_sent_and_kept_has_its_coverage():
    result = judged(cut(column(1, np.arange(1000) % 5 == 0)))
    sent = pickle.loads(pickle.dumps(result))
    assert sent.coverage == result.coverage and sent.comparable == result.comparable
    assert (
        coverage_from(json.loads(json.dumps(asdict(result.coverage)))) == result.coverage
        and coverage_from(None) is None
    )
    old = result.__getstate__()
    for name in ("coverage", "comparable"):
        old.pop(name)
    before = object.__new__(type(result))
    before.__dict__.update(old)
    assert before.refusal is None and before.single == before.comparable_single and before.verdict()


def test_a_remembered_run_has_its_coverage(own_cache):
    work = cut(column(1, np.arange(1000) % 5 == 0))
    key = RunKey.of(work, "knn")
    done, again = once(work, key, True).result, recall(key).result
    assert again.coverage == done.coverage and again.comparable == done.comparable and done.coverage.apart
    record = json.loads(key.path.read_text())
    key.path.write_text(json.dumps({name: record[name] for name in record if name not in ("coverage", "comparable")}))
    assert recall(key).result.refusal is None  # one that was kept before there was such a thing


def test_another_price_reaches_the_compared_models_too():
    result = judged(cut(column(1, np.arange(1000) % 4 > 0)))
    half = result.repriced(0.5, 0.0)
    place = [one.model for one in result.comparable].index(result.reference.model)
    assert half.comparable[place].cost == pytest.approx(0.5 * result.comparable[place].cost)
    assert half.comparable[1] == result.comparable[1]


@pytest.mark.filterwarnings("error")
def test_no_table_is_too_odd_to_be_covered():
    rng = np.random.default_rng(9)
    for _ in range(200):
        n, m = rng.integers(1, 50), rng.integers(1, 6)
        there = rng.random((n, m)) < rng.random(m)
        there[np.arange(n), rng.integers(m, size=n)] = True
        quality, cost = np.where(there, rng.integers(0, 2, (n, m)), np.nan), np.where(there, rng.random((n, m)), np.nan)
        test = sr.Workload([f"q{i}" for i in range(n)], ["a"] * n, [f"m{i}" for i in range(m)], quality, cost)
        best = sr.best_single(test)
        found = Coverage.of(test, test.models.index(best.model))
        assert 0 < found.share <= 1 and 0 <= found.common <= n and found.compared == (there.sum(axis=1) > 1).sum()
        assert best in on_common_queries(test, best, [best]) and isinstance(found.warning, str)
        if n < 30:
            assert found.refusal(best.model)
