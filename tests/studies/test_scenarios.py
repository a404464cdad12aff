"""Questions around a decision: other budgets, prices, volumes and margins, and whether the advice held on other draws."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import EASY_AND_HARD, by_kind

from saverouter.studies import scenarios
from saverouter.studies.decision import decide

PRICES = (0.001, 0.01)
WORSE = ([0.2, 0.9], [0.2, 0.9])


@pytest.fixture(scope="module")
def found():
    return decide(by_kind(EASY_AND_HARD, PRICES, n=4_000), margin=2)


@pytest.fixture(scope="module")
def chosen(found):
    return scenarios.on_test(found)


def test_a_cheaper_reference_saves_less_and_nothing_at_the_break_even(found):
    saved = [scenarios.at_price(found, factor)[0] for factor in (1, 0.5, 0.25)]
    assert saved[0] == pytest.approx(found.saved[0]) and saved == sorted(saved, reverse=True)
    even = scenarios.break_even(found)
    assert scenarios.at_price(found, even)[0] == pytest.approx(0, abs=1e-9 * found.bill)
    assert 0.05 < even < 0.2  # the cheap model costs a tenth


def test_what_if(found, chosen):
    table = scenarios.what_if(found, chosen).set_index("what if")
    asked, tenth = table.loc["as asked"], table.loc["a tenth of the volume"]
    assert tenth["saves a month"] == pytest.approx(asked["saves a month"] / 10)
    assert tenth["back after days"] == pytest.approx(10 * asked["back after days"])
    assert (table["from"] <= table["saves a month"] + 1e-12).all() and (
        table["saves a month"] <= table["to"] + 1e-12
    ).all()
    margins = table[table["basis"] == scenarios.ON_TEST]["saves a month"]
    assert list(margins) == sorted(margins) and list(margins.index)[0] == "0 points may go"


def test_a_price_at_which_all_is_even_saves_exactly_nothing():
    """Ten times as dear for each query: at a tenth of its price a rest of 1e-12 was paid back in 1e12 years."""
    work = by_kind([[0.97, 0.97]] * 2, PRICES, n=3_000)
    found = decide(replace(work, cost=work.cost[:, :1] * [1, 10]), reference="m1", margin=2)
    table = scenarios.what_if(found, scenarios.on_test(found)).set_index("what if")
    row = table.loc["the reference at 0.1 of its price"]
    assert found.action == "replace" and row["saves a month"] == row["from"] == row["to"] == 0
    assert np.isinf(row["back after queries"]) and row["basis"] == "certified; keep the reference"


def test_the_panel_and_the_table_say_the_same(found, chosen):
    asked = scenarios.asked_again(found, chosen, found.monthly, found.margin, 1.0)
    assert asked["saved"] == pytest.approx(found.saved[0]) and asked["basis"] == "certified"
    half = scenarios.asked_again(found, chosen, found.monthly, found.margin, 0.5)
    assert half["saved"] == pytest.approx(scenarios.at_price(found, 0.5)[0]) and half["bill"] == pytest.approx(
        asked["bill"] / 2
    )
    other = scenarios.asked_again(found, chosen, 10 * found.monthly, 5.0, 1.0)
    assert other["basis"] == scenarios.ON_TEST
    assert other["saved"] == pytest.approx(
        10 * found.monthly * (chosen.reference.cost - chosen.at(margin=5.0).serving_cost)
    )


def test_no_router_is_better_than_the_oracle(found, chosen):
    gain, cost = scenarios.ceiling(found)
    assert gain >= 0 and cost <= chosen.at(margin=0).cost_ratio
    quality, price = found.test.quality, found.test.cost
    cheap = np.where(quality[:, 0] >= quality[:, 1], price[:, 0], price[:, 1])
    assert cost == pytest.approx(np.minimum(cheap, price[:, 1]).mean() / price[:, 1].mean())


def test_budgets_charge_more_for_more(found):
    table = scenarios.budgets(found)
    assert list(table["k"]) == [1, 2] and table["supervision"].is_monotonic_increasing
    assert (table["bill"] >= 1 - table["saving"] - 1e-12).all() and (table["from"] <= table["saving"]).all()


def test_the_pool_and_kinds_are_those_of_the_test(found):
    table = scenarios.pool(found)
    assert list(table.index) == ["m0", "m1"] and table.loc["m1", "against the reference"] == 0
    kinds = scenarios.kinds(found)
    hard = found.test.tasks.astype(str) == "kind 1"
    expected = 100 * (found.test.quality[hard, 0] - found.test.quality[hard, 1]).mean()
    assert kinds.loc[f"kind 1 ({hard.sum():,})", "m0"] == pytest.approx(expected) and expected < -40


def test_many_models_and_kinds_are_cut_to_what_can_be_read():
    rng = np.random.default_rng(0)
    wide = by_kind([rng.uniform(0.2, 0.9, 50)] * 2, np.geomspace(1e-4, 1e-2, 50), n=600,
                tasks=[f"task {i % 40}" for i in range(600)])  # fmt: skip
    found = decide(wide, margin=5)
    kinds = scenarios.kinds(found)
    assert kinds.shape == (scenarios.GROUPS, scenarios.COLUMNS) and found.reference in kinds.columns
    means = np.nanmean(found.test.quality, axis=0)
    assert wide.models[int(np.argmax(means))] in kinds.columns
    assert wide.models[int(np.argmin(means))] not in kinds.columns
    assert len(scenarios.pool(found)) == 50


def test_halves_see_nothing_of_the_other_half(cache):
    """Outcomes of the other half change what is looked up, and nothing that was advised."""
    work = by_kind(EASY_AND_HARD, PRICES, n=2_400)
    table = scenarios.halves(work, range(3), margin=2.0, monthly=10_000)
    assert list(table["seed"]) == [0, 1, 2] and (table["action"] == "route").any()
    here, there = work.split(train=0.5, seed=0)
    wrong = np.isin(work.query_ids, there.query_ids)
    quality = np.where(wrong[:, None], 1 - work.quality, work.quality)
    other = scenarios.halves(replace(work, quality=quality), [0], margin=2.0, monthly=10_000).iloc[0]
    same = table.iloc[0]
    assert (other["low"], other["high"], other["action"]) == (same["low"], same["high"], same["action"])
    assert other["difference"] != same["difference"]


def test_advice_holds_as_often_as_it_says(cache):
    """On tables whose truth is known: saving in its 90% interval, and quality within the margin."""
    table = scenarios.halves(by_kind(EASY_AND_HARD, PRICES, n=3_000, seed=3), range(40), margin=3.0, monthly=10_000)
    held = scenarios.held(table, 3.0)
    assert held.loc["saving in its interval", "halves"] >= 30
    assert held["share"].between(0.75, 1).all(), held


def test_nothing_advised_is_nothing_held(cache):
    table = scenarios.halves(by_kind(WORSE, PRICES, n=1_000), range(2))
    held = scenarios.held(table, 1.0)
    assert (table["action"] == "keep").all() and (held["halves"] == 0).all() and held["share"].isna().all()


def test_without_an_answer_there_are_empty_tables():
    found = decide(by_kind(EASY_AND_HARD, PRICES, n=30))
    assert found.action == "no answer" and scenarios.on_test(found) is None
    assert len(scenarios.pool(found)) == 2 and len(scenarios.kinds(found))
    for table in (scenarios.budgets(found), scenarios.what_if(found, None), scenarios.one_model(found, None)):
        assert table.empty and len(table.columns)
    assert scenarios.questions_in_words(scenarios.what_if(found, None), "").empty
