"""What a careful person would warn of: each thing is found, said with its numbers, and not said of a good table."""

import time
from dataclasses import replace

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.workloads import Finding, Findings, best_available, best_column, common_rows, difference
from saverouter.workloads.checks import plain_name
from saverouter.workloads.coverage import Difference
from saverouter.workloads.units import two_groups

GOOD = make_workload(n=1000, seed=3)


def outcomes(work, quality=None, cost=None, there=None, **changes):
    """The same workload with other outcomes; pairs that are not ``there`` are gone."""
    quality, cost = (
        own.copy() if new is None else new.copy() for own, new in ((work.quality, quality), (work.cost, cost))
    )
    if there is not None:
        quality[~there], cost[~there] = np.nan, np.nan
    return replace(work, quality=quality, cost=cost, **changes)


def only(work, kind):
    """The one finding of a kind."""
    (found,) = [finding for finding in work.check() if finding.kind == kind]
    return found


def kinds(work):
    return [finding.kind for finding in work.check()]


def one_a_query(work, seed=0):
    there = np.zeros(work.quality.shape, dtype=bool)
    there[np.arange(len(work)), np.random.default_rng(seed).integers(there.shape[1], size=len(work))] = True
    return there


def where(work, column, rows):
    """All pairs but those of a model outside some rows."""
    there = np.ones(work.quality.shape, dtype=bool)
    there[:, column] = rows
    return there


def test_a_clean_table_gives_nothing():
    found = GOOD.check()
    assert not found and found.blocking is None and found.frame.empty
    assert isinstance(found, Findings) and str(found) == repr(found) == "Nothing found that speaks against a verdict."
    assert not make_workload(n=1000, missing=0.3, seed=4).check()  # at random: no harm


@pytest.mark.parametrize(
    "name", ["recorded/sensebench", "recorded/paretobandit", "recorded/kunko", "recorded/yentlbench"]
)
def test_good_recorded_tables_are_not_blocked(name):
    try:
        work = sr.load(name)
    except sr.SaveRouterError as error:
        pytest.skip(str(error))
    assert work.check().blocking is None
    assert {finding.kind for finding in work.check()} <= {"free models", "few queries"}


def test_findings_are_worst_first_and_read_as_a_list():
    parts = [Finding(severity, "k", f"{severity}!", "Do it.") for severity in ("notice", "blocks", "weakens", "blocks")]
    found = Findings(parts)
    assert [one.severity for one in found] == ["blocks", "blocks", "weakens", "notice"] and found.blocking is parts[1]
    assert str(found).splitlines()[0] == "blocks: blocks! Do it."
    assert list(found.frame.columns) == ["severity", "what", "what to do"]
    assert found.frame.iloc[-1].tolist() == ["notice", "notice!", "Do it."]


def test_a_log_with_one_model_a_query_blocks():
    found = only(outcomes(GOOD, there=one_a_query(GOOD)), "log")
    assert found.severity == "blocks" and found.says.startswith("Every query has outcomes of one model only")
    mostly = one_a_query(GOOD)
    mostly[:50] = True
    assert "95.0% of the queries have outcomes of one model" in only(outcomes(GOOD, there=mostly), "log").says
    mostly[:200] = True
    assert "log" not in kinds(outcomes(GOOD, there=mostly))


def test_a_model_recorded_only_where_it_did_well_blocks():
    work = outcomes(GOOD, there=where(GOOD, 1, GOOD.quality[:, 1] == 1))
    found = only(work, "recorded where it did well")
    assert found.severity == "blocks" and "model-1 has outcomes on" in found.says and "mean quality 1.00" in found.says
    graded = np.clip(GOOD.quality * 0.5 + np.random.default_rng(1).uniform(0, 0.5, GOOD.quality.shape), 0, 1)
    some = outcomes(GOOD, graded, there=where(GOOD, 2, graded[:, 2] > 0.7))
    assert "model-2" in only(some, "recorded where it did well").says
    perfect = GOOD.quality.copy()  # good everywhere, and recorded by chance on a part
    perfect[:, 0] = np.random.default_rng(0).random(len(GOOD)) < 0.95
    perfect[:, 1] = 1
    rows = np.random.default_rng(2).random(len(GOOD)) < 0.6
    assert "recorded where it did well" not in kinds(outcomes(GOOD, perfect, there=where(GOOD, 1, rows)))


def test_a_success_story_is_told_where_everybody_finds_the_same_queries_hard():
    """The best other model hardly fails where this one succeeds; that its queries are easier gives it away."""
    rng = np.random.default_rng(4)
    quality = (rng.normal(0, 0.15, (1000, 4)) + [-0.6, 0.15, -0.3, 0.6] > rng.normal(0, 1, (1000, 1))).astype(float)
    rows = quality[:, 1] == 1
    assert quality[rows, 3].mean() > 0.95 and quality[rows][:, [0, 2, 3]].mean() < 0.9
    cost = np.tile([1.0, 2.0, 3.0, 4.0], (1000, 1)) * rng.lognormal(0, 0.3, (1000, 4))
    four = sr.Workload(GOOD.query_ids, GOOD.prompts, ("a", "b", "c", "d"), quality, cost)
    assert not four.check()
    assert kinds(outcomes(four, there=where(four, 1, rows))) == ["recorded where it did well"]
    by_chance = rng.random(1000) < rows.mean()
    assert not outcomes(four, there=where(four, 1, by_chance)).check()


@pytest.mark.parametrize("here, rest, error, differs", [
    (60, 50, 2.4, True), (50, 60, 2.4, True), (60, 50, 2.6, False), (56, 50, 0.1, True), (54, 50, 0.1, False), (60, 50, 0, False),
])  # fmt: skip
def test_queries_differ_by_five_points_and_four_standard_errors(here, rest, error, differs):
    assert Difference(here, rest, error, 0.5).differs is differs


def test_models_on_few_queries_are_named_with_their_share():
    there = where(GOOD, 2, np.arange(len(GOOD)) % 5 == 0)
    found = only(outcomes(GOOD, there=there), "few outcomes")
    assert found.severity == "weakens" and "model-2 (20%)" in found.says
    there[:, 2] = np.arange(len(GOOD)) % 5 > 0
    assert "few outcomes" not in kinds(outcomes(GOOD, there=there))


def test_models_that_share_too_few_queries_block():
    there = np.zeros(GOOD.quality.shape, dtype=bool)
    there[:510, 0] = there[490:, 1] = there[:300, 2] = True
    found = only(outcomes(GOOD, there=there), "few common queries")
    assert found.severity == "blocks" and "share 20 of 1,000 queries" in found.says
    there[:600, 1] = True
    assert "few common queries" not in kinds(outcomes(GOOD, there=there))


def test_a_model_on_easier_queries_is_told_by_what_the_others_do_there():
    level = GOOD.quality[:, [0, 2, 3, 4]].mean(axis=1)
    rows = level > np.quantile(level, 0.3)
    work = outcomes(GOOD, there=where(GOOD, 1, rows))
    found = only(work, "other queries")
    assert found.severity == "weakens" and "model-1 (" in found.says and "points easier" in found.says
    apart = difference(work.quality, 1)
    assert apart.here == pytest.approx(100 * level[rows].mean(), abs=2) and apart.sure > 10
    assert apart.bias == pytest.approx((1 - rows.mean()) * (apart.here - apart.rest))
    harder = only(outcomes(GOOD, there=where(GOOD, 1, level <= np.quantile(level, 0.7))), "other queries")
    assert "points harder" in harder.says
    assert difference(GOOD.quality, 1) is None


def test_chance_is_not_taken_for_other_queries():
    for seed in range(40):
        rows = np.random.default_rng(seed).random(len(GOOD)) < 0.7
        assert not outcomes(GOOD, there=where(GOOD, seed % 5, rows)).check()


@pytest.mark.parametrize(
    "size, severity", [(5, "blocks"), (20, "blocks"), (49, "blocks"), (50, "weakens"), (299, "weakens")]
)
def test_few_queries_are_said_with_the_error_of_a_mean(size, severity):
    work = GOOD.take(np.arange(size))
    found = only(work, "few queries")
    best = work.quality[:, work.models.index(sr.best_single(work).model)]
    error = 100 * max(best.std(), 0.05) / np.sqrt(size)
    assert found.severity == severity and found.says.startswith(f"{size} queries for 5 models")
    assert f"known to {error:.1f} points" in found.says and "Collect at least 300" in found.remedy
    assert work.check().blocking == found or severity == "weakens"


def test_no_fewer_queries_are_asked_for_than_the_least():
    """Five of five right: "at least 300 queries; for one point about 25"."""
    five = GOOD.take(np.arange(5))
    assert (
        only(replace(five, quality=np.ones_like(five.quality)), "few queries").remedy == "Collect at least 300 queries."
    )
    assert "for one point of standard error about " in only(GOOD.take(np.arange(50)), "few queries").remedy


def test_a_large_pool_needs_more_queries():
    wide = make_workload(n=400, models=60)
    assert "Collect at least 600" in only(wide, "few queries").remedy
    assert "few queries" not in kinds(make_workload(n=300))


def test_a_model_that_is_never_available_is_named():
    found = only(outcomes(GOOD, there=where(GOOD, 3, False)), "never available")
    assert found.severity == "weakens" and found.says == "No outcome at all: model-3."
    assert "few outcomes" not in kinds(outcomes(GOOD, there=where(GOOD, 3, False)))


def test_repeated_prompts_are_counted_and_two_are_named():
    prompts = GOOD.prompts.copy()
    prompts[500:] = prompts[:500]
    found = only(replace(GOOD, prompts=prompts), "repeated prompts")
    assert found.severity == "weakens" and "1,000 of 1,000 queries (100.0%)" in found.says
    assert "'q0' and 'q500'" in found.says and "500 prompts differ" in found.says and "one side" in found.remedy
    few = GOOD.prompts.copy()
    few[1] = few[0]
    assert only(replace(GOOD, prompts=few), "repeated prompts").severity == "notice"
    assert not replace(GOOD, prompts=prompts, clusters=prompts).check()  # a split keeps them together anyway


@pytest.mark.parametrize("one, other, alike", [
    ("gpt-4o", "GPT 4o ", True), ("gpt-4o", "gpt_4o", True), ("openai/gpt-4o", "OpenAI: GPT-4o", True),
    ("ＧＰＴ-4", "gpt4", True), ("gpt-4", "gpt-4\u200b", True), ("\ufeffgpt-4", "gpt-4", True),
    ("gpt-4", "gpt-4o", False), ("gpt-3.5", "gpt-35", False), ("command-r", "command-r+", False),
    ("qwen1.5-7b", "qwen15-7b", False),
    ("a-1b", "a-11b", False), ("gpt-4o", "gpt-4o-mini", False), ("🙂", "🙃", False), ("llama-3-8b", "llama-38-b", False),
])  # fmt: skip
def test_names_that_differ_in_spelling_only(one, other, alike):
    assert (plain_name(one) == plain_name(other)) is alike
    work = replace(GOOD, models=(one, other, "x", "y", "z"))
    assert ("alike names" in kinds(work)) is alike
    if alike:
        assert f"{one!r} and {other!r}" in only(work, "alike names").says


def test_constant_quality_is_told_of_a_model_and_of_all():
    quality = GOOD.quality.copy()
    quality[:, 2] = 0
    found = only(outcomes(GOOD, quality), "constant quality")
    assert found.severity == "weakens" and "model-2 (always 0)" in found.says
    everywhere = outcomes(GOOD, np.full_like(quality, 0.5))
    assert (
        kinds(everywhere) == ["nothing to route"] and "cheapest, model-0" in only(everywhere, "nothing to route").remedy
    )
    alike = outcomes(GOOD, np.tile(quality[:, :1], 5))  # varies from query to query, never between models
    assert kinds(alike) == ["nothing to route"]


def test_a_price_list_is_noticed_and_free_models_are_asked_about():
    listed = make_workload(n=1000, seed=3, flat_cost=True)
    assert [(one.severity, one.kind) for one in listed.check()] == [("notice", "constant cost")]
    cost = GOOD.cost.copy()
    cost[:, 1] = 0
    found = only(outcomes(GOOD, cost=cost), "free models")
    assert found.severity == "weakens" and "model-1" in found.says
    none = outcomes(GOOD, cost=np.zeros_like(cost))
    assert kinds(none) == ["no costs"] and none.check().blocking.says == "All costs are 0, so nothing can be saved."


def test_costs_that_few_queries_carry_weaken():
    cost = GOOD.cost.copy()
    cost[:5] *= 250
    found = only(outcomes(GOOD, cost=cost), "skewed costs")
    assert found.severity == "weakens" and "of 1,000 queries carry half of the cost of model-4" in found.says
    assert "skewed costs" not in kinds(
        outcomes(GOOD, cost=GOOD.cost * np.random.default_rng(0).lognormal(0, 1, (1000, 1)))
    )


@pytest.mark.parametrize("share, spread", [(0.02, 0.3), (0.5, 0.3), (0.5, 0.8), (0.9, 0.3)])
def test_costs_of_one_model_in_two_units_block(share, spread):
    rng = np.random.default_rng(5)
    cost = GOOD.cost[0] * rng.lognormal(0, spread, GOOD.cost.shape)
    odd = rng.random(len(GOOD)) < share
    cost[odd, 3] *= 1000
    found = only(outcomes(GOOD, cost=cost), "mixed units")
    assert found.severity == "blocks" and "model-3 (about 1,000 times on " in found.says and "model-2" not in found.says
    assert f"{odd.sum():,} of 1,000" in found.says


def test_long_prompts_and_wide_costs_are_not_taken_for_units():
    rng = np.random.default_rng(6)
    length = np.where(np.arange(1000) % 2, 20, 20_000)
    prompts = [f"{i:04d}" + "x" * (size - 4) for i, size in enumerate(length)]
    cost = 1e-7 * length[:, None] * np.linspace(1, 5, 5) * rng.lognormal(0, 0.3, (1000, 5))
    assert "mixed units" not in kinds(replace(outcomes(GOOD, cost=cost), prompts=prompts))
    flat = outcomes(GOOD, cost=np.tile(np.linspace(1, 5, 5), (1000, 1)))
    assert "mixed units" not in kinds(replace(flat, prompts=prompts))
    for spread in (1, 2, 3, 5):
        wide = outcomes(GOOD, cost=1e-3 * rng.lognormal(0, spread, (1000, 5)))
        assert "mixed units" not in kinds(wide)


def test_two_groups_need_a_gap_and_more_than_a_straggler():
    rng = np.random.default_rng(0)
    low = rng.normal(0, 0.2, 400)
    assert two_groups(low) is None and two_groups(np.append(low, 3.0)) is None
    upper = two_groups(np.append(low, rng.normal(3, 0.2, 20)))
    assert upper[400:].all() and not upper[:400].any()
    assert two_groups(np.append(low, rng.uniform(0, 3, 400))) is None


def test_a_pool_with_a_thousandfold_step_is_asked_about():
    cost = GOOD.cost.copy()
    cost[:, 4] *= 1000
    found = only(outcomes(GOOD, cost=cost), "far apart costs")
    assert found.severity == "notice" and found.says.startswith("model-4 costs 3,000 times as much as model-3")


def test_one_model_is_no_choice():
    alone = sr.Workload(GOOD.query_ids, GOOD.prompts, ("only",), GOOD.quality[:, :1], GOOD.cost[:, :1])
    assert kinds(alone) == ["one model"]


def test_no_table_is_too_odd_to_look_at():
    rng = np.random.default_rng(8)
    for _ in range(150):
        n, m = rng.integers(1, 60), rng.integers(1, 6)
        there = rng.random((n, m)) < rng.random(m)
        there[np.arange(n), rng.integers(m, size=n)] = True
        quality, cost = np.where(there, rng.integers(0, 2, (n, m)), np.nan), np.where(there, rng.random((n, m)), np.nan)
        work = sr.Workload([f"q{i}" for i in range(n)], ["a"] * n, [f"m{i}" for i in range(m)], quality, cost)
        assert str(work.check()) and len(work.check().frame) == len(work.check())


def test_a_large_table_takes_well_under_a_second():
    rng = np.random.default_rng(1)
    there = rng.random((12_000, 50)) < 0.9
    quality, cost = ((rng.random(there.shape) < 0.6).astype(float), rng.lognormal(0, 1, there.shape))
    quality[~there] = cost[~there] = np.nan
    names = [f"q{i}" for i in range(12_000)]
    work = sr.Workload(names, names, [f"m{i}a" for i in range(50)], quality, cost)
    start = time.process_time()
    assert not work.check()
    assert time.process_time() - start < 1


def test_complete_tables_have_the_best_mean_as_before():
    for seed in range(30):
        quality = np.random.default_rng(seed).random((200, 6)).round(1)
        assert best_column(quality) == best_available(quality)
        assert common_rows(quality)[1].all()


def test_the_best_model_is_found_on_common_queries():
    """The better model was asked the harder queries: its mean is lower, and on common queries it wins."""
    rng = np.random.default_rng(0)
    hard = np.arange(1000) % 2 == 0
    chance = np.where(hard, 0.3, 0.9)[:, None] + [0.0, 0.08, -0.2]
    quality = (rng.random((1000, 3)) < chance).astype(float)
    quality[hard & (rng.random(1000) < 0.8), 0] = np.nan
    assert best_available(quality) == 0 and best_column(quality) == 1


def test_a_model_with_less_than_half_of_the_queries_does_not_contend():
    quality = np.column_stack([np.full(100, 0.6), np.full(100, 0.5), np.where(np.arange(100) < 49, 1.0, np.nan)])
    assert best_column(quality) == 0 and best_available(quality) == 2
    quality[49, 2] = 1.0
    assert best_column(quality) == 2


def test_in_a_large_pool_with_gaps_the_leading_ones_meet():
    rng = np.random.default_rng(2)
    quality = (rng.random((3000, 50)) < np.linspace(0.3, 0.8, 50)).astype(float)
    quality[rng.random(quality.shape) < 0.1] = np.nan
    columns, shared = common_rows(quality)
    assert shared.mean() >= 0.3 and 8 <= len(columns) < 50 and columns.min() > 30 and best_column(quality) >= 47
