"""Three ways to choose an operating point, on small workloads and on made-up runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

from saverouter.paper.claims import FAILS, HOLDS, UNTOLD
from saverouter.studies import promises

SEEDS = range(3)


@pytest.fixture(scope="module")
def works(cache):
    return [make_workload(n=1_400, seed=2), replace(make_workload(n=1_300, models=3, seed=3), name="recorded/other")]


@pytest.fixture(scope="module")
def table(works):
    return promises.promises(works, SEEDS)


def test_all_ways_are_judged_on_the_same_queries_and_only_a_certificate_costs(table):
    assert len(table) == 2 * 3 * (2 + 2)  # two sizes of certificate: 250 and 500
    free = table["chosen on"] != promises.CERTIFIED
    assert (table.loc[free, "certificate"] == 0).all() and (table["training"] > 0).all()
    assert (table.loc[~free, "certificate"] <= 2 * table.loc[~free, "fresh"]).all()
    on_test = table[table["chosen on"] == promises.ON_TEST]
    assert (on_test["difference"] >= -1 - 1e-6).all()  # by construction
    best = table.pivot_table(index=["workload", "seed"], columns="chosen on", values="saving", aggfunc="min")
    good = table[(table["chosen on"] == promises.CERTIFIED) & (table["difference"] >= -1)]
    assert len(good) and (best[promises.ON_TEST] >= 0).all()


def test_what_was_computed_is_remembered(works, table, monkeypatch):
    monkeypatch.setattr(promises, "SaveRouter", None)  # nothing can be fitted any more
    pd.testing.assert_frame_equal(promises.promises(works, SEEDS), table)


def test_fresh_queries_leave_as_many_for_the_test():
    assert promises.sizes_of(make_workload(n=1_400)) == [250, 500]
    assert promises.sizes_of(make_workload(n=100)) == []


def test_the_bill_holds_training_certificate_and_serving():
    row = pd.DataFrame([{"training": 100.0, "certificate": 200.0, "saving": 0.4}])
    assert promises.bills(row, [1_000])["bill 1000"].iloc[0] == pytest.approx(0.3 + 0.6)


def test_other_mix_and_reference_and_anchored(works):
    mixed = promises.other_mix(works, SEEDS, size=200)
    assert set(mixed) >= {"same mix", "other mix"} and len(mixed) == 6
    named = promises.references(works, SEEDS)
    right = named["guess"] == named["best"]
    assert (named.loc[right, "points lost"] == 0).all() and (named["points lost"] >= 0).all()
    more = promises.anchored(works, SEEDS)
    assert (more["saving anchored"] >= more["saving"] - 1e-12).all()  # points can only be added
    both = promises.anchored(works, SEEDS, routers=("saverouter", "knn"))
    assert both[both["method"] == "SaveRouter"].reset_index(drop=True).equals(more)
    added = promises.anchored_adds(both).set_index(["method", "points below"])
    mine = more[more["points below"] == 1]
    assert added.loc[("SaveRouter", 1.0), "saving added"] == pytest.approx(
        (mine["saving anchored"] - mine["saving"]).mean()
    )
    assert len(added) == 4 and (added["saving from"] <= added["saving added"]).all()


def runs(differences, savings, way, fresh=0, certificate=0.0):
    return pd.DataFrame({"workload": "w", "seed": range(len(differences)), "chosen on": way, "fresh": fresh,
                         "difference": differences, "saving": savings, "training": 10.0, "certificate": certificate})  # fmt: skip


def test_statements_can_hold_fail_and_stay_open():
    many = 60
    good = runs([0.0] * many, [0.3, 0.32] * (many // 2), promises.CERTIFIED, 500, 900.0)
    loose = runs([-5.0, 0.0] * (many // 2), [0.6] * many, promises.PLUG_IN)
    test = runs([-1.0] * many, [0.5] * many, promises.ON_TEST)
    mixed = pd.DataFrame({"same mix": [0.0] * many, "other mix": [-2.0, 0.0] * (many // 2)})
    said = promises.statements(pd.concat([good, loose, test]), mixed, 0.9, 1.0)["here"]
    assert (said.drop("With a certificate the whole bill over 10,000 queries is below the reference's") == HOLDS).all()
    dear = good.assign(certificate=9_000.0)
    said = promises.statements(pd.concat([dear, loose, test]), mixed, 0.9, 1.0)["here"]
    assert said["With a certificate the whole bill over 10,000 queries is below the reference's"] == FAILS
    broken = good.assign(difference=np.where(np.arange(many) < 6, -3.0, 0.0))  # exactly one in ten
    said = promises.statements(pd.concat([broken, loose, test]), mixed, 0.9, 1.0)["here"]
    assert said["A certificate keeps its promise as often as it says"] == UNTOLD


def test_ways_in_words():
    ways = promises.by_way(runs([0.0, -2.0], [0.5, 0.3], promises.PLUG_IN), 1.0)
    assert ways.loc[0, "kept"] == 0.5 and ways.loc[0, "worst"] == -2
    (row,) = promises.ways_in_words(ways).to_dict("records")
    assert row["within the margin"].startswith("50% (") and row["worst run, points"] == "-2.0"


def test_what_the_path_adds_in_words():
    rows = [
        {"workload": name, "seed": seed, "method": method, "points below": margin, "reached": False, "saving": 0.0,
         "reached anchored": True, "saving anchored": 0.2}
        for name in "ab" for seed in range(3) for method in ("SaveRouter", "kNN") for margin in (0.0, 1.0)
    ]  # fmt: skip
    told = promises.added_in_words(promises.anchored_adds(pd.DataFrame(rows)))
    assert list(told.index) == ["SaveRouter", "kNN"] and told.shape == (2, 6)
    assert told.loc["kNN", ("1 points below", "reaches and saves")] == "0% → 100%"
    assert told.loc["kNN", ("0 points below", "added")] == "+0.200 (+0.200 to +0.200)"
