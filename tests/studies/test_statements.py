"""General statements over splits: each can hold, fail and stay open, and the interval decides."""

import numpy as np
import pandas as pd
import pytest

from saverouter.paper.claims import FAILS, HOLDS, UNTOLD
from saverouter.studies import statements

SEEDS = range(6)


def budgets(ours=0.8, chance=0.7, plain=0.7, one_group=0.7, everything=0.8, noise=0.0, cost=4.0):
    """Peak scores of a made-up workload: K of 1, 2 and 6, of which 2 is a third."""
    rows = []
    for seed in SEEDS:
        shake = noise * (-1) ** seed
        for variant, level in (("SaveRouter", ours), ("Random-K", chance)):
            for k in (1, 2, 6):
                score = everything if k == 6 else level
                rows.append(
                    (
                        variant,
                        k,
                        seed,
                        score + shake * (variant == "SaveRouter"),
                        cost * k if variant == "SaveRouter" else 3.0 * k,
                    )
                )
        rows += [("without query residual", 2, seed, plain, 8.0), ("global group", 2, seed, one_group, 8.0)]
    frame = pd.DataFrame(rows, columns=["variant", "k", "seed", "peak_score", "supervision_cost"])
    return frame.assign(workload="w", is_third=frame["k"] == 2)


def routers(ours, dense, margin=0.0):
    rows = []
    for seed, (mine, theirs) in enumerate(zip(ours, dense, strict=True)):
        rows += [
            ("SaveRouter", seed, mine),
            ("kNN", seed, theirs),
            ("WISERouter", seed, 1.0),
        ]  # sparse ones do not count
    frame = pd.DataFrame(rows, columns=["method", "seed", "sa_bep"]).assign(workload="w")
    return pd.concat([frame.assign(margin=value) for value in (0.0, 1.0)])


def asked(table, curve, name):
    found = statements.general_statements(table, curve).set_index("statement").loc[name]
    return found["here"], found["value"]


FIRST = "Sparse supervision pays back first, at full quality"
KEEPS, RANDOM = (
    "A third of the outcomes keeps 99% of the score",
    "Its purchases score higher than random ones at equal K",
)
SPEND, MORE = "Its purchases score higher than random ones at equal spend", "More supervision is not always better"


@pytest.mark.parametrize(("ours", "dense", "here", "value"), [
    ([10] * 6, [20] * 6, HOLDS, 1.0), ([20] * 6, [10] * 6, FAILS, 0.0), ([10, 20] * 3, [20, 10] * 3, UNTOLD, 0.5),
    ([10] * 5 + [np.inf], [20] * 5 + [np.inf], UNTOLD, 1.0),  # five of five leave an even chance within the interval
])  # fmt: skip
def test_who_is_first_is_counted_where_anybody_pays_back(ours, dense, here, value):
    assert asked(routers(ours, dense), budgets(), FIRST) == (here, value)


def test_nobody_pays_back_and_nothing_can_be_told():
    table = routers([np.inf] * 6, [np.inf] * 6)
    here, value = asked(table, budgets(), FIRST)
    assert here == UNTOLD and np.isnan(value)
    row = next(statements.general_statements(table, budgets()).itertuples())
    assert statements.in_digits(row) == "nobody pays back"


@pytest.mark.parametrize(("curve", "name", "here"), [
    (budgets(ours=0.8, everything=0.8), KEEPS, HOLDS), (budgets(ours=0.7, everything=0.8), KEEPS, FAILS),
    (budgets(ours=0.79, everything=0.8, noise=0.05), RANDOM, HOLDS), (budgets(ours=0.6, chance=0.7), RANDOM, FAILS),
    (budgets(ours=0.71, chance=0.7, noise=0.1), RANDOM, UNTOLD),
    (budgets(ours=0.85, everything=0.8), MORE, HOLDS), (budgets(ours=0.7, chance=0.6, everything=0.8), MORE, FAILS),
    (budgets(plain=0.7), "Query residuals help", HOLDS), (budgets(plain=0.9), "Query residuals help", FAILS),
    (budgets(one_group=0.9), "Groups help", FAILS),
])  # fmt: skip
def test_each_statement_can_hold_fail_and_stay_open(curve, name, here):
    assert asked(routers([1.0] * 6, [2.0] * 6), curve, name)[0] == here


def test_equal_spend_compares_with_what_chance_scores_for_the_same_money():
    """Two outcomes of ours cost 8, which buys chance 2.67 of its own: a third of the way from .70 to .80 further."""
    curve = budgets(ours=0.8, chance=0.7, everything=0.8)
    _, lead = asked(routers([1.0] * 6, [2.0] * 6), curve, SPEND)
    assert lead == pytest.approx(100 * (0.8 - (0.7 + 0.1 * (8 - 6) / (18 - 6))))


def test_one_workload_refutes_a_general_statement_and_one_is_enough_for_not_always():
    table = routers([1.0] * 6, [2.0] * 6)
    good, bad = budgets(ours=0.85, everything=0.8, plain=0.7), budgets(ours=0.7, chance=0.6, everything=0.8, plain=0.9)
    both = pd.concat([good, bad.assign(workload="other/v")])
    judged = statements.together(
        statements.general_statements(pd.concat([table, table.assign(workload="other/v")]), both)
    )
    assert judged.loc["Query residuals help", "here"] == FAILS
    assert judged.loc[MORE, "here"] == HOLDS
    assert "v does not hold: -20.0 points (-20.0 to -20.0)" in judged.loc["Query residuals help", "measured numbers"]
