"""Cascades beside SaveRouter, on small workloads and on made-up runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import EASY_AND_HARD, by_kind, make_workload

from saverouter.studies import cascades
from saverouter.studies.cascades import AHEAD, ALL, CHANCE, NONE, OURS, PLAIN

SEEDS, ERRORS = range(3), (0.0, 0.2, 0.5)


@pytest.fixture(scope="module")
def works(cache):
    return [make_workload(n=700, seed=2), replace(by_kind(EASY_AND_HARD, (1.0, 10.0), n=600), name="recorded/two")]


@pytest.fixture(scope="module")
def table(works):
    return cascades.cascades_on_splits(works, SEEDS, ERRORS)


def test_every_judge_learns_from_the_same_purchases(table):
    assert len(table) == 2 * 3 * 2 * (
        1 + 2 * 3 * 3
    )  # workloads, splits, margins; SaveRouter, settings, errors, cascades
    paid = table.groupby(["workload", "seed", "router"])["training"]
    assert (paid.max() == paid.min()).all()
    by_router = paid.first().unstack()
    assert (by_router[PLAIN] == by_router[CHANCE]).all() and (by_router[AHEAD] > by_router[PLAIN]).all()
    assert (by_router[AHEAD] < by_router[PLAIN] + by_router[OURS]).all()  # a pair that both want is bought once
    assert (table["saving"] >= 0).all() and (table["saving"] <= 1).all()
    assert (table.loc[~table["reached"], "saving"] == 0).all()


def test_a_perfect_judge_beats_a_coin_and_the_settings_agree_where_they_must(table):
    plain = table[(table["router"] == PLAIN) & (table["points below"] == 0)]
    by_error = plain.groupby(["workload", "judge errs", "judge error"])["points above"].mean().unstack()
    assert (by_error[0.0] > by_error[0.2]).all() and (by_error[0.2] >= by_error[0.5]).all()
    even, hard = (plain[plain["judge errs"] == errs].set_index(["workload", "seed", "judge error"])
                  for errs in cascades.SETTINGS)  # fmt: skip
    for error in (0.0, 0.5):  # nothing to distribute
        np.testing.assert_allclose(even.xs(error, level=2)["points above"], hard.xs(error, level=2)["points above"])
    both = table.pivot_table(index=["workload", "seed", "judge errs", "judge error", "points below"], columns="router",
                             values="saving")  # fmt: skip
    assert (both[AHEAD] >= both[PLAIN] - 1e-12).all()  # the cascades without its help stay on offer


def test_what_was_computed_is_remembered(works, table, monkeypatch):
    monkeypatch.setattr(cascades, "SaveRouter", None)  # nothing can be fitted any more
    pd.testing.assert_frame_equal(cascades.cascades_on_splits(works, SEEDS, ERRORS), table)


def test_a_judgement_that_costs_saves_less(works):
    asked = dict(errors=(0.0,), settings=("evenly",), margins=(1.0,))
    free, dear = (cascades.cascades_on_splits(works[1:], range(2), judge_share=share, **asked) for share in (0, 0.5))
    mean = [runs[runs["router"] == PLAIN]["saving"].mean() for runs in (free, dear)]
    assert mean[0] > mean[1] > 0


@pytest.mark.parametrize("lead, where", [
    ([0.4, 0.2, -0.2], 0.2), ([0.1, -0.1, 0.1], np.inf), ([-0.1, -0.2, -0.3], 0.0), ([0.3, 0.1, 0.0], np.inf),
    ([0.3, 0.0, -0.1], 0.1),
])  # fmt: skip
def test_where_a_lead_ends(lead, where):
    assert cascades.turn(np.array([0.0, 0.1, 0.3]), np.array(lead)) == pytest.approx(where)


def runs(leads, errors=(0.0, 0.1, 0.3), ours=0.3):
    """One workload; leads of a cascade over SaveRouter, (splits, errors)."""
    rows = []
    for seed, row in enumerate(leads):
        place = {"workload": "w", "seed": seed, "points below": 0.0, "reached": True, "training": 10.0}
        rows.append({**place, "router": OURS, "judge errs": "", "judge error": np.nan, "saving": ours})
        for error, lead in zip(errors, row, strict=True):
            judge = {"judge errs": "evenly", "judge error": error}
            rows.append({**place, **judge, "router": PLAIN, "saving": ours + lead})
            rows.append({**place, **judge, "router": CHANCE, "saving": ours + lead})
            rows.append({**place, **judge, "router": AHEAD, "saving": ours + lead + 0.05, "training": 14.0})
    return pd.DataFrame(rows)


def test_a_turn_has_an_interval_and_words():
    made = runs([[0.4, 0.2, -0.2], [0.4, 0.1, -0.3], [0.4, 0.3, -0.1]])
    (found,) = cascades.where_it_turns(made).to_dict("records")
    assert found["turns"] == pytest.approx(0.2) and 0.1 < found["from"] < 0.2 < found["to"] < 0.3
    assert (found["ahead at"], found["behind at"]) == (0.1, 0.3)
    words = cascades.turns_in_words(cascades.where_it_turns(made))
    assert words.loc["w", "evenly"].startswith("0.20 (0.1")
    never, always = ([[lead] * 3] * 3 for lead in (0.1, -0.1))
    for leads, told, beside in ((never, NONE, (0.3, np.nan)), (always, ALL, (np.nan, 0.0))):
        found = cascades.where_it_turns(runs(leads))
        assert cascades.turns_in_words(found).loc["w", "evenly"] == told
        np.testing.assert_equal(found.loc[0, ["ahead at", "behind at"]].astype(float).to_numpy(), beside)


def test_differences_are_paired():
    made = runs([[0.4, 0.2, -0.2], [0.2, 0.2, -0.2]])
    found = cascades.savings(made)
    first = found[(found["router"] == PLAIN) & (found["judge error"] == 0)].iloc[0]
    assert (
        first["ahead"] == pytest.approx(0.3)
        and first["mean"] == pytest.approx(0.6)
        and first[OURS] == pytest.approx(0.3)
    )
    assert first["ahead from"] < 0.3 < first["ahead to"] and first["reached"] == first["splits"] == 2
    added = cascades.what_ahead_adds(made)
    assert added["adds"].to_numpy() == pytest.approx(0.05) and (added["training"] == 4).all()
    words = cascades.savings_in_words(found)
    assert list(words.columns) == ["error 0", "error 0.1", "error 0.3", OURS] and words.iloc[0][OURS] == "30%"
    assert cascades.additions_in_words(added).iloc[0, 0] == "+5.0 (+5.0 to +5.0)"
    lost = made.assign(reached=made["router"] == OURS)
    assert cascades.savings_in_words(cascades.savings(lost)).iloc[0, 0] == "not reached on any of 2"
