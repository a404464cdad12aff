"""Policies: pure functions of estimates, the same as the families' choices, plain data that survives JSON."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.judging import Policy, policies_from, policies_to_dict, policy_from
from saverouter.judging.policies import Always, CostLimit, CostWeight, Gate, Switch
from saverouter.studies.runs import RunKey, once, recall

MODELS = ("small", "middle", "large")
PRICES = (0.1, 1.0, 4.0)
EACH = [
    CostWeight(weight=0.3, scale=4.0, models=MODELS),
    CostLimit(threshold=1.0, prices=PRICES, models=MODELS),
    CostLimit(threshold=0.7, fallback="first", models=MODELS),
    Gate(threshold=1.0, prices=PRICES, gate=0.5, scale=4.0, models=MODELS),
    Switch(reference="large", threshold=-0.05, prices=PRICES, models=MODELS),
    Switch(reference="middle", threshold=np.finfo(float).min, prices=PRICES, models=MODELS),
    Always(model="middle", models=MODELS),
]
ROUTERS = ["saverouter", "knn", "embedllm", "wiserouter", "routellm_mf"]


@cache
def fitted(name, missing=0.3):
    train, test = make_workload(n=200, missing=missing).split()
    return sr.make_router(name).fit(train.queries, train.feedback()), test


def deployable(router, test):
    """Every family's policies that are objects, at most 30 of each, with the family's own choices."""
    for family in router.policies(test.queries):
        for index in range(0, len(family), max(1, len(family) // 30)):
            try:
                yield family.policy(index, router.models_), family.choice(index), family.label(index)
            except sr.SaveRouterError as refusal:
                assert "no thresholds describe" in str(refusal)


def switches(router):
    """The other kinds, which no family has."""
    prices = np.linspace(1, 2, len(router.models_))
    of = {"models": router.models_, "prices": prices}
    yield from (Switch(reference="model-3", threshold=t, **of) for t in (-0.3, 0.0, np.finfo(float).min))
    yield Always(model="model-2", models=router.models_)


@pytest.mark.parametrize("name", ROUTERS)
def test_a_policy_chooses_what_its_family_chooses(name):
    router, test = fitted(name)
    found = list(deployable(router, test))
    assert len(found) > 1 or name == "wiserouter"
    estimates = router.estimates(test.queries)
    for policy, chosen, label in found:
        assert policy.label == label
        np.testing.assert_array_equal(policy.choice(*estimates), chosen)
    if name == "saverouter":
        assert {type(policy) for policy, *_ in found} == {CostWeight, CostLimit, Gate}


@pytest.mark.parametrize("name", ROUTERS)
def test_one_prompt_is_served_as_among_a_thousand(name):
    router, test = fitted(name)
    queries = test.queries
    policies = [*(policy for policy, *_ in deployable(router, test)), *switches(router)]
    for policy in policies[:: max(1, len(policies) // 12)]:
        together = router.route(queries, policy=policy)
        some = [router.route(queries.take(slice(row, row + 1)), policy=policy)[0] for row in range(0, len(queries), 7)]
        assert some == together[::7].tolist(), policy.label
        assert test.available[np.arange(len(test)), [test.models.index(model) for model in together]].all()


@pytest.mark.parametrize("policy", EACH, ids=lambda policy: policy.label)
def test_a_policy_survives_json_to_the_last_bit(policy):
    policy = replace(policy, **({"threshold": 1 / 3} if hasattr(policy, "threshold") else {}))
    again = policy_from(json.loads(json.dumps(policy.to_dict())))
    assert again == policy and type(again) is type(policy)
    many = (policy, None, EACH[0], replace(EACH[0], weight=0.1 + 0.2))
    assert policies_from(json.loads(json.dumps(policies_to_dict(many)))) == many


def test_the_kinds_choose_as_they_say():
    quality = np.array([[0.5, 0.6, 0.9], [0.8, 0.6, 0.9], [-np.inf, 0.7, -np.inf], [0.5, 0.6, 0.61]])
    cost = np.tile(PRICES, (4, 1))
    chosen = [policy.choice(quality, cost).tolist() for policy in EACH]
    assert chosen == [[2, 0, 1, 1], [1, 0, 1, 1], [0, 0, 1, 0], [1, 0, 1, 1], [2, 2, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]]
    gain, saved = 0.6 - 0.61, 0.75
    _, bargain = EACH[4].bargains(quality, cost)
    assert bargain[3] == pytest.approx(gain / saved) and bargain[2] == -np.inf
    assert EACH[4].bargains(quality[:, ::1] + [0, 0.5, 0], cost)[1][0] == pytest.approx(0.2 * saved)


@pytest.mark.parametrize("content, message", [
    (None, "a policy is described by None"),
    ({"kind": "cost wait"}, "kind of a policy is 'cost wait'; did you mean 'cost weight'"),
    ({}, "kind of a policy is None"),
    ({"kind": ["gate"]}, "kind of a policy"),
    ({"kind": "cost weight", "weight": 1.0, "scale": 1.0}, "lacks 'models'"),
    ({**EACH[0].to_dict(), "more": 1}, "has an unknown 'more'"),
    ({**EACH[0].to_dict(), "weight": "0.3"}, "weight of a policy is '0.3'"),
    ({**EACH[0].to_dict(), "weight": -1}, "weight of a policy is -1"),
    ({**EACH[0].to_dict(), "scale": float("nan")}, "scale of a policy is nan"),
    ({**EACH[1].to_dict(), "prices": [1, 2]}, "2 prices for a pool of 3 models"),
    ({**EACH[1].to_dict(), "prices": 3}, "prices of a policy are 3"),
    ({**EACH[1].to_dict(), "fallback": "last"}, "fallback of a policy is 'last'"),
    ({**EACH[4].to_dict(), "reference": "huge"}, "model 'huge' of a policy is not in its pool"),
    ({**EACH[4].to_dict(), "prices": None}, "needs one price per model"),
    ({**EACH[4].to_dict(), "models": "small"}, "models of a policy are 'small'"),
    ({**EACH[6].to_dict(), "model": 3}, "model of a policy is 3"),
])  # fmt: skip
def test_what_is_no_policy_is_refused(content, message):
    with pytest.raises(sr.SaveRouterError, match=message):
        policy_from(content)


def test_another_pool_is_refused():
    router, test = fitted("saverouter")
    for policy in EACH:
        with pytest.raises(sr.SaveRouterError, match=r"was made for the pool .*small"):
            router.route(test.queries, policy=policy)
    with pytest.raises(sr.SaveRouterError, match="was made for the pool"):  # positions matter, and nobody says of what
        router.route(test.queries, policy=CostLimit(threshold=1.0, prices=[1, 2, 3, 4, 5]))
    assert len(router.route(test.queries, policy=CostWeight(weight=1.0))) == len(test)


def test_a_policy_or_a_cost_weight():
    router, test = fitted("saverouter")
    with pytest.raises(sr.SaveRouterError, match="give one of the two"):
        router.route(test.queries, 0.3, policy=CostWeight(weight=1.0))
    with pytest.raises(sr.SaveRouterError, match="policy is 'cheap'; expected an operating point"):
        router.route(test.queries, policy="cheap")


@pytest.mark.parametrize("name", ["saverouter", "knn"])
def test_a_results_policy_is_what_was_judged(name):
    router, test = fitted(name)
    result = sr.evaluate(router, test, supervision_cost=1.0, target=0.9)
    assert isinstance(result.policy, Policy) and result.policy.label == result.operating_point["policy"]
    chosen = [test.models.index(model) for model in router.route(test.queries, policy=result.policy)]
    rows = np.arange(len(test))
    assert test.cost[rows, chosen].mean() == pytest.approx(result.serving_cost, rel=1e-12)
    assert test.quality[rows, chosen].mean() == pytest.approx(result.operating_point["quality"], abs=1e-12)
    again = sr.evaluate(router, test, supervision_cost=1.0, target=0.9, policy=result.policy)
    assert again.selection == "given" and len(again.frontier) == again.n_policies == 1 and again.policy == result.policy
    assert again.metrics() == pytest.approx({**result.metrics(), "peak_score": again.peak_score}, rel=1e-9)
    half = result.repriced(0.5, 0.0)
    assert half.policy.label == half.operating_point["policy"] and len(half.policies) == len(half.frontier)
    short = sr.evaluate(router, test, supervision_cost=1.0, target=5, policy=result.policy)  # judged, though it misses
    assert short.serving_cost == pytest.approx(result.serving_cost)


@pytest.mark.parametrize("name, message", [("oracle", "no thresholds describe"), ("cheapest_single", "no thresholds")])
def test_choices_without_thresholds_are_not_deployed(name, message):
    router, test = fitted(name)
    result = sr.evaluate(router, test, supervision_cost=0.0, target=0.1)
    with pytest.raises(sr.SaveRouterError, match=message):
        _ = result.policy
    with pytest.raises(sr.SaveRouterError, match="does not reach the target"):
        _ = result.at(target=9).policy
    if name == "oracle":
        policy = Always(model="model-1", models=test.models)
        with pytest.raises(sr.SaveRouterError, match="chooses in hindsight"):
            sr.evaluate(router, test, supervision_cost=0.0, policy=policy)


def test_a_remembered_run_keeps_its_policies(own_cache):
    work = make_workload(n=200)
    key = RunKey.of(work, "saverouter", k=2)
    done, again = once(work, key, True), recall(key)
    assert again.result.policies == done.result.policies and any(done.result.policies)
    assert again.result.policies == tuple(policy_from(policy.to_dict()) for policy in done.result.policies)
    assert again.result.at(target=0.9).policy == done.result.at(target=0.9).policy
