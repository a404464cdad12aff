"""The decision: what it advises is what was shown, its bill is what the meters charged, and where it cannot tell it says so."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import EASY_AND_HARD, by_kind, make_workload
from hypothesis import given, settings
from hypothesis import strategies as st

import saverouter as sr
from saverouter.judging import certify_single
from saverouter.judging.policies import Always, Switch
from saverouter.studies import decision as room
from saverouter.studies.advice import days, money, time
from saverouter.studies.decision import ENOUGH, affordable, decide

LIKE_THE_DEAR = ([0.5, 0.97, 0.97], [0.5, 0.97, 0.97])  # one cheaper model is as good everywhere
WORSE = ([0.2, 0.9], [0.2, 0.9])


@pytest.fixture(scope="module")
def routed():
    return decide(by_kind(EASY_AND_HARD, (0.001, 0.01), n=4_000), margin=2, monthly=50_000)


def test_a_router_where_a_cheap_model_is_as_good_on_some_queries(routed):
    assert routed.action == "route" and isinstance(routed.policy, Switch)
    assert 0.15 < routed.saved[0] / routed.bill < 0.5  # at most half of the queries, at a tenth of the price
    assert "Put SaveRouter before m1" in str(routed) and routed.quality[0] > -2


def test_one_model_where_it_is_as_good_everywhere():
    found = decide(by_kind(LIKE_THE_DEAR, (0.0001, 0.001, 0.01), n=4_000), reference="m2", margin=2)
    assert found.action == "replace" and found.policy == Always(model="m1", models=("m0", "m1", "m2"))
    assert 0.85 < found.saved[0] / found.bill < 0.95 and "Replace m2 by m1" in str(found)
    assert list(found.tried["tried"]) == ["SaveRouter", "m1"] and found.tried["certified"].iloc[1]


def test_a_named_reference_anchors_the_purchase_where_enough_queries_teach():
    many, few = (by_kind(EASY_AND_HARD, (0.001, 0.01), n=n) for n in (5 * ENOUGH, 4 * ENOUGH))
    named, unnamed, small = (
        decide(many, reference="m1", margin=2),
        decide(many, margin=2),
        decide(few, reference="m1", margin=2),
    )
    assert named.router.acquisition == "anchored" and named.router.reference == "m1"
    each = many.split(train=0.2, seed=42)[0].feedback()
    assert named.router.budget == pytest.approx(named.k * len(each) * each.prices.mean())
    assert named.supervision <= named.router.budget * (1 + 1e-9)
    assert f"({named.outcomes:,} outcomes on {named.learnt:,} queries to teach" in str(named)
    for found in (unnamed, small):
        assert found.router.acquisition == "ucb" and found.outcomes == found.k * found.learnt
        assert f"({found.k} of 2 models on" in str(found)


def test_nothing_where_every_cheaper_model_is_worse():
    found = decide(by_kind(WORSE, (0.001, 0.01)), margin=1)
    assert found.action == "keep" and found.saved == (0, 0, 0) and np.isinf(found.payback)
    assert found.policy == Always(model="m1", models=("m0", "m1")) and "nothing earns back" in str(found)


def test_a_change_that_saves_next_to_nothing_is_not_advised():
    found = decide(by_kind(WORSE, (0.0098, 0.01), n=4_000), margin=20)
    assert (
        found.action == "keep" and found.tried["certified"].any() and "too little to change anything for" in str(found)
    )


def test_nothing_where_the_reference_is_the_cheapest():
    found = decide(by_kind(EASY_AND_HARD, (0.001, 0.01)), reference="m0")
    assert found.action == "keep" and "no model of the pool costs less than m0" in str(found)


def test_the_bill_is_what_the_meters_charged_and_no_pair_is_paid_twice(routed, monkeypatch):
    """The two certificates ask some pairs both; the evaluation pays for them once."""
    meters = []

    class Watched(sr.Workload):
        def feedback(self):
            meters.append(super().feedback())
            return meters[-1]

    work = by_kind(LIKE_THE_DEAR, (0.0001, 0.001, 0.01), n=1_500)
    fields = {
        name: getattr(work, name) for name in ("query_ids", "prompts", "models", "quality", "cost", "tasks", "vectors")
    }
    found = decide(Watched(**fields), reference="m2", margin=5)
    paid = [meter.spent for meter in meters if meter.spent]
    assert len(paid) == 3 and found.supervision == paid[0]
    assert max(paid[1:]) <= found.certificate.spent < sum(paid[1:])
    assert found.evaluation == pytest.approx(found.supervision + found.certificate.spent)
    assert routed.payback == pytest.approx(routed.evaluation / (routed.saved[0] / routed.month), rel=1e-3)


@pytest.mark.parametrize("n", [1, 5, 20, 60])
def test_few_queries_are_said_to_be_few(n):
    found = decide(by_kind(EASY_AND_HARD, (0.001, 0.01), n=n))
    assert found.action in ("no answer", "keep") and "queries" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_fewer_fresh_queries_than_can_show_anything_are_named_with_those_needed():
    found = decide(by_kind(EASY_AND_HARD, (0.001, 0.01), n=400), margin=1)
    assert found.action == "keep" and found.fresh < 250
    assert "at least 250 are needed" in str(found) and "250 are the fewest, which a table of about" in str(found)
    nearly = str(decide(by_kind(EASY_AND_HARD, (0.001, 0.01), n=515), margin=1))
    assert "can show a loss of at most 1.02 points, not 1" in nearly


def test_queries_that_belong_together_certify_once():
    work = by_kind(EASY_AND_HARD, (0.001, 0.01), n=2_000)
    five = replace(work, clusters=np.repeat(np.arange(400), 5).astype(str))
    assert decide(five, margin=2).fresh <= 0.6 * 400 < decide(work, margin=2).fresh


def test_the_same_question_has_the_same_answer_and_scaling_costs_scales_money(routed):
    again = decide(by_kind(EASY_AND_HARD, (0.001, 0.01), n=4_000), margin=2, monthly=50_000)
    assert again.to_dict() == routed.to_dict()
    work = by_kind(EASY_AND_HARD, (0.001, 0.01), n=4_000)
    cents = decide(replace(work, cost=100 * work.cost), margin=2, monthly=50_000)
    assert np.allclose(cents.saved, 100 * np.array(routed.saved)) and cents.payback == pytest.approx(
        routed.payback, rel=1e-2
    )


@settings(max_examples=8, deadline=None)
@given(models=st.integers(2, 12), missing=st.sampled_from([0.0, 0.2]), tasks=st.booleans(), unit=st.sampled_from([1e-6, 1, 1e5]),
       seed=st.integers(0, 50))  # fmt: skip
def test_any_valid_table_gets_an_answer(models, missing, tasks, unit, seed):
    work = make_workload(n=300, models=models, missing=missing, seed=seed)
    work = replace(work, tasks=work.tasks if tasks else None, cost=unit * work.cost)
    found = decide(work, margin=10, seed=seed)
    assert found.action in room.ACTIONS and str(found)
    assert found.saved[1] <= found.saved[0] <= found.saved[2]
    json.dumps(found.to_dict(), allow_nan=False)


def test_free_models_and_free_references():
    free = decide(by_kind(EASY_AND_HARD, (0.0, 0.01), n=3_000), margin=2)
    assert free.action == "route" and free.saved[0] > 0
    none = decide(by_kind(EASY_AND_HARD, (0.0, 0.0), n=1_000), margin=2)
    assert none.action == "no answer" and "All costs are 0" in str(none)


def test_more_is_bought_where_a_year_is_dear():
    learn, _ = by_kind([[0.5] * 9] * 2, np.geomspace(0.0001, 0.01, 9)).split()
    few, many = (affordable(learn, "m8", horizon) for horizon in (1_000, 1e9))
    assert few == 3 and many == 9


def test_what_is_saved_serves_the_certified_policy(routed, tmp_path):
    folder = routed.save(tmp_path / "router")
    served = sr.load_router(folder)
    asked = sr.Queries(routed.test.prompts, vectors=routed.test.vectors)
    assert served.policy_ == routed.policy
    assert (served.route(asked, policy=served.policy_) == routed.router.route(asked, policy=routed.policy)).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"reference": "m9"}, "'m9' is not in the pool"), ({"monthly": 0}, "monthly is 0"), ({"margin": -1}, "margin is -1"),
        ({"confidence": 90}, "write 0.9 for 90%"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(options, message):
    with pytest.raises(sr.SaveRouterError, match=message):
        decide(by_kind(WORSE, (0.001, 0.01), n=100), **options)


def test_money_and_time_as_people_say_them():
    assert [money(value, "USD") for value in (12_345.6, 0.001234, 0, 99.96, -5)] == [
        "12,300 USD", "0.00123 USD", "0 USD", "100 USD", "-5 USD",
    ]  # fmt: skip
    assert money(float("inf"), "USD") == "never" and money(3, "") == "3"
    assert [time(days(queries, 1e5)) for queries in (1, 5_000, 1e5, 2e6, 1e7, 1e9, np.inf)] == [
        "less than an hour", "37 hours", "30 days", "20 months", "8.3 years", "more than 100 years", "never",
    ]  # fmt: skip


@pytest.mark.parametrize("quality, said", [
    ((-0.9, -1.3, -0.3), ""), ((-2.0, -3.0, -1.0), ""),
    ((-2.4, -3.1, -1.6), "The test measured a larger loss, which on its 1,280 queries may be chance."),
    ((-2.9, -3.4, -2.1), "The test contradicts that: certify on more fresh queries before you deploy."),
])  # fmt: skip
def test_a_test_that_measured_more_than_was_promised_is_not_passed_over(routed, quality, said):
    told = replace(routed, quality=quality, tested=1_280).says()
    assert "to lose at most 2 points (90% confidence). " + (said or "Finding out takes") in told


def test_one_model_is_certified_as_the_promise_says():
    work = by_kind(LIKE_THE_DEAR, (0.0001, 0.001, 0.01), n=1_000)
    asked = {"reference": "m2", "margin": 5.0}
    good = certify_single("m1", work.queries, work.feedback(), **asked)
    assert good.policy.model == "m1" and good.bound >= -5 and good.share == 1 and good.bought == 1_000
    bad = certify_single("m0", work.queries, work.feedback(), **asked)
    assert bad.policy.model == "m2" and bad.bought < 1_000  # given up early
    difference = work.quality[:, 1] - work.quality[:, 2]
    assert good.estimate == pytest.approx(100 * difference.mean())
    feedback = work.feedback()
    certify_single("m1", work.queries, feedback, **asked)
    with pytest.raises(sr.SaveRouterError, match="outcomes were bought through this feedback already"):
        certify_single("m1", work.queries, feedback, **asked)
    with pytest.raises(sr.SaveRouterError, match="'m7' is not in the pool"):
        certify_single("m7", work.queries, work.feedback(), **asked)


def test_one_model_is_certified_no_more_often_than_promised():
    """A model that is exactly as far below as may be lost passes in at most one of ten draws."""
    passed = 0
    for seed in range(200):
        work = by_kind(([0.85, 0.9],) * 2, (0.001, 0.01), n=500, seed=seed)
        found = certify_single("m0", work.queries, work.feedback(), reference="m1", margin=5.0)
        passed += found.policy.model == "m0"
    assert passed <= 30  # 20 expected at most; 31 or more have a chance below 1%


def test_saving_over_a_month_heeds_the_month():
    """The interval for few queries is wider, by the scatter of those to come."""
    work = by_kind(EASY_AND_HARD, (0.001, 0.01), n=2_000)
    learn, test = work.split()
    router = sr.SaveRouter(k=2).fit(learn.queries, learn.feedback())
    result = sr.evaluate(router, test, supervision_cost=1.0, margin=3, reference="m1")
    many, few = (np.array(result.saved_over(volume)) / volume for volume in (1e8, 200))
    assert many[0] == few[0] == pytest.approx(result.reference.cost - result.serving_cost)
    assert few[2] - few[0] > 2 * (many[2] - many[0]) > 0
    with pytest.raises(sr.SaveRouterError, match="volume is 0"):
        result.saved_over(0)
    with pytest.raises(sr.SaveRouterError, match="no outcomes by query in memory"):
        copy.deepcopy(result).saved_over(100)
