"""Cascades: every call charged, a judge that errs as stated, and nothing drawn."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from conftest import corrupted, make_workload
from hypothesis import given
from hypothesis import strategies as st

import saverouter as sr
from saverouter.judging.interval import bootstrap
from saverouter.judging.policies import Always, Switch
from saverouter.routers.cascade import (
    COMBINATIONS,
    WORTH,
    Cascade,
    CascadePolicies,
    Stages,
    StatedJudge,
    _Served,
    chains,
    threshold_quantiles,
    thresholds_of,
    worth_asking,
)

NAN = np.nan
NAMES = ("mini", "mid", "big")


def family(*cascades, error=0.0, cost=0.0, errs="evenly", models=NAMES, estimates=None):
    judge = StatedJudge(error, cost, errs)
    return CascadePolicies(cascades, models, judge, np.arange(len(models)), estimates)


def fitted(work=None, **options):
    train, test = (make_workload(n=600, seed=4) if work is None else work).split()
    feedback = train.feedback()
    return Cascade(**options).fit(train.queries, feedback), train, test, feedback


# What is served


def test_a_perfect_judge_on_two_models_by_hand():
    quality, cost = np.array([[1, 1], [0, 1], [0, 0], [1, 0]], float), np.tile([1.0, 10.0], (4, 1))
    scored, paid, to_big = family(Stages((0, 1), (1.0,)), models=NAMES[:2]).served(0, quality, cost, 1)
    assert scored.tolist() == [1, 1, 0, 1] and paid.tolist() == [1, 11, 11, 1] and to_big.tolist() == [0, 10, 10, 0]


def test_three_stages_that_err_by_hand():
    """Right, wrong, right at 1, 10 and 100; half a unit per judgement, which errs once in ten."""
    quality, cost = np.array([[1.0, 0.0, 1.0]]), np.array([[1.0, 10.0, 100.0]])
    cascades = family(Stages((0, 1, 2), (1.0, 1.0)), error=0.1, cost=0.5)
    scored, paid, to_mid = cascades.served(0, quality, cost, 1)
    second, third = 0.1, 0.1 * 0.9  # the right one is rejected, then the wrong one
    assert scored[0] == pytest.approx(0.9 * 1 + second * 0.1 * 0 + third * 1)
    assert paid[0] == pytest.approx(1.5 + second * 10.5 + third * 100)
    assert to_mid[0] == pytest.approx(second * 10)
    assert cascades.realised(quality, cost) == (pytest.approx([scored[0]]), pytest.approx([paid[0]]))


def test_a_judge_that_is_a_coin_knows_nothing():
    work = make_workload(n=200, models=2)
    for errs in ("evenly", "on hard"):
        cascades = family(Stages((0, 1), (1.0,)), error=0.5, errs=errs, models=work.models)
        scored, paid, _ = cascades.served(0, work.quality, work.cost, 0)
        np.testing.assert_allclose(scored, work.quality.mean(axis=1))
        np.testing.assert_allclose(paid, work.cost[:, 0] + 0.5 * work.cost[:, 1])


def test_one_stage_is_that_model_alone():
    router, _, test, feedback = fitted()
    router.cascades_ = [Stages((column,)) for column in range(5)]
    scored, paid = router.policies(test.queries)[0].realised(test.quality, test.cost)
    np.testing.assert_allclose(scored, test.quality.mean(axis=0))
    np.testing.assert_allclose(paid, test.cost.mean(axis=0))
    found = sr.evaluate(router, test, supervision_cost=feedback.spent)
    for point in found.frontier.itertuples():
        own = point.policy == found.reference.model
        assert point.reference_cost == pytest.approx(point.cost if own else 0.0)


def draws(columns, least, gate, quality, cost, errors, judge_cost, expected, rng):
    """One query served once, as it would be: a call, a judgement, another call."""
    there = [column for column in columns if np.isfinite(quality[column])]
    if not there:
        first = next(column for column in range(len(quality)) if np.isfinite(quality[column]))
        return quality[first], cost[first]
    if expected is not None:
        start = next(
            i for i, column in enumerate(there) if column == there[-1] or expected[column] - expected[there[-1]] >= gate
        )
        there = there[start:]
    paid = 0.0
    for column in there[:-1]:
        said = 1 - quality[column] if rng.random() < errors else quality[column]
        paid += cost[column] + judge_cost
        if said >= least[columns.index(column)]:
            return quality[column], paid
    return quality[there[-1]], paid + cost[there[-1]]


@pytest.mark.parametrize("errs", ["evenly", "on hard"])
@pytest.mark.parametrize("gate", [None, -0.2, 0.1])
def test_expectations_are_the_means_of_draws(errs, gate):
    rng = np.random.default_rng(3)
    quality, cost = rng.random((30, 4)).round(1), rng.random((30, 4))
    gone = rng.random((30, 4)) < 0.3
    gone[np.arange(30), rng.integers(4, size=30)] = False
    quality[gone] = cost[gone] = NAN
    expected = None if gate is None else rng.random((30, 4))
    stages = Stages((0, 1, 3), (0.6, 0.4), -np.inf if gate is None else gate)
    cascades = family(stages, error=0.2, cost=0.05, errs=errs, models=("a", "b", "c", "d"), estimates=expected)
    scored, paid, _ = cascades.served(0, quality, cost, 0)
    errors = cascades.judge.errors(quality)
    for row in range(30):
        each = [draws((0, 1, 3), (0.6, 0.4), gate, quality[row], cost[row], errors[row], 0.05,
                      None if expected is None else expected[row], rng) for _ in range(2_000)]  # fmt: skip
        values = np.array(each)
        noise = 4.5 * values.std(axis=0) / np.sqrt(len(values)) + 1e-9
        assert (np.abs(values.mean(axis=0) - [scored[row], paid[row]]) <= noise).all()


def test_a_stage_that_is_unavailable_is_passed_by():
    quality = np.array([[NAN, 0, 1], [0, 1, NAN], [NAN, NAN, 0], [0, NAN, 1]], float)
    cost = np.where(np.isnan(quality), NAN, [1.0, 10.0, 100.0])
    cascades = family(Stages((0, 1, 2), (1.0, 1.0)), Stages((0, 1), (1.0,)), cost=0.5)
    scored, paid, _ = cascades.served(0, quality, cost, 0)
    assert scored.tolist() == [1, 1, 0, 1]
    assert paid.tolist() == [10.5 + 100, 1.5 + 10, 100, 1.5 + 100]  # the last that a query can have is not judged
    scored, paid, to_big = cascades.served(1, quality, cost, 2)
    assert scored.tolist() == [0, 1, 0, 0] and paid.tolist() == [
        10,
        11.5,
        100,
        1,
    ]  # the third has no stage of this chain
    assert to_big.tolist() == [0, 0, 100, 0]


def test_models_outside_the_chain_do_not_matter_to_an_even_judge():
    work = make_workload(n=100)
    cascades = family(Stages((0, 3), (1.0,)), error=0.2, models=work.models)
    keep = np.isin(np.arange(5), (0, 3)) & work.available
    other = corrupted(work, keep)
    for one, same in zip(cascades.served(0, work.quality, work.cost, 3),
                         cascades.served(0, other.quality, other.cost, 3), strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, same)


@given(
    st.floats(0, 0.5),
    st.lists(st.lists(st.sampled_from([0, 0.3, 1, NAN]), min_size=3, max_size=3), min_size=2, max_size=30),
)
def test_errors_on_hard_queries_keep_their_mean(error, rows):
    quality = np.array(rows)
    errors = StatedJudge(error, 0.0, "on hard").errors(quality)
    assert errors.mean() == pytest.approx(error) and (errors >= 0).all() and (errors <= 0.5 + 1e-12).all()
    known = np.isfinite(quality)
    mean = np.where(known, quality, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    assert (np.diff(errors[np.argsort(-mean, kind="stable")]) >= -1e-12).all()  # the harder, the more


def test_a_worse_judge_of_right_and_wrong_serves_no_better():
    work = make_workload(n=300, models=2)
    work = replace(work, quality=np.maximum(work.quality, work.quality[:, [0, 0]]))  # the dear model is never worse
    scores = [family(Stages((0, 1), (1.0,)), error=error, models=work.models).realised(work.quality, work.cost)[0][0]
              for error in (0, 0.1, 0.3, 0.5)]  # fmt: skip
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]


# What is learnt


def test_thresholds_are_quantiles_above_the_lowest_quality():
    assert threshold_quantiles(np.array([0, 1, 1, 0, NAN]), 20).tolist() == [1]
    assert threshold_quantiles(np.array([0.0] * 99 + [1.0]), 2).tolist() == [1]
    assert threshold_quantiles(np.array([0.4, 0.4]), 5).tolist() == [0.4]
    assert threshold_quantiles(np.arange(101) / 100, 4).tolist() == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("models, stages", [(2, 3), (5, 3), (12, 3), (12, 2), (12, 5)])
def test_what_is_scored_is_bounded(models, stages):
    most = thresholds_of(models, stages)
    assert most >= 1 and len(chains(np.arange(models), stages)) <= COMBINATIONS
    assert most == 1 or sum(most ** (len(chain) - 1) for chain in chains(np.arange(models), stages)) <= COMBINATIONS


def test_models_worth_asking_are_beaten_by_none():
    quality = np.ones((3, 5))
    quality[:, 4] = NAN  # never tried
    mean = np.array([0.5, 0.4, 0.8, 0.8, 0.9]), np.array([1.0, 2.0, 5.0, 3.0, 0.1])
    assert worth_asking(quality, *mean).tolist() == [0, 3]
    many = np.arange(289.0)
    found = worth_asking(np.ones((3, 289)), many / 289, many)
    assert len(found) == WORTH and found[0] == 0 and found[-1] == 288 and (np.diff(found) > 0).all()


@pytest.mark.parametrize("ahead", [None, sr.SaveRouter(k=2)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_what_is_learnt_is_the_frontier_of_all_cascades_as_they_serve(ahead, missing, monkeypatch):
    monkeypatch.setattr("saverouter.routers.cascade.ROWS", 50)  # in parts, as many queries are
    router, train, _, _ = fitted(make_workload(n=600, seed=4, missing=missing), ahead=ahead, judge_cost=1e-5)
    cascades, points = router._scored(train.queries)
    quality, cost = router.bought_
    known = None if ahead is None else router.ahead_.estimates(train.queries)[0]
    sample = np.random.default_rng(0).choice(len(cascades), min(40, len(cascades)), replace=False)
    few = replace(router.policies(train.queries)[0], cascades=[cascades[place] for place in sample], estimates=known)
    scored, paid = few.realised(quality, cost)
    np.testing.assert_allclose(scored, points["quality"].to_numpy()[sample])
    np.testing.assert_allclose(paid, points["cost"].to_numpy()[sample])
    assert points["plain"].all() == (ahead is None)
    kept = [cascades.index(stages) for stages in router.cascades_]
    for point in points.itertuples():
        better = points.loc[kept]
        better = better[better["plain"]] if point.plain else better
        assert ((better["quality"] >= point.quality - 1e-9) & (better["cost"] <= point.cost + 1e-12)).any()


def test_only_what_was_bought_is_learnt_from():
    router, train, test, feedback = fitted(share=0.3)
    assert len(router.bought_rows_) == round(0.3 * len(train))
    assert len(feedback.observations) == 5 * len(router.bought_rows_)
    keep = np.zeros_like(train.available)
    keep[router.bought_rows_] = True
    other = corrupted(train, keep)
    again = Cascade(share=0.3).fit(other.queries, other.feedback())
    assert again.cascades_ == router.cascades_
    np.testing.assert_array_equal(again.predict_quality(test), router.predict_quality(test))
    elsewhere = Cascade(share=0.3, seed=1).fit(train.queries, train.feedback())
    assert (elsewhere.bought_rows_ != router.bought_rows_).any()


def test_nothing_is_asked_of_test_outcomes_before_they_judge():
    router, _, test, _ = fitted(ahead=sr.SaveRouter(k=2))
    nonsense = corrupted(test, np.zeros_like(test.available))
    one, other = router.policies(test)[0], router.policies(nonsense)[0]
    assert one.cascades == other.cascades and [*map(one.label, range(len(one)))] == [*map(other.label, range(len(one)))]
    np.testing.assert_array_equal(one.estimates, other.estimates)


def test_a_judge_can_be_changed_without_buying_anew():
    router, train, test, _ = fitted(make_workload(n=900, seed=7))
    changes = {"judge_error": 0.35, "judge_errs": "on hard", "judge_cost": 1e-4, "stages": 2}
    new, direct = router.relearnt(**changes), Cascade(**changes).fit(train.queries, train.feedback())
    assert new.cascades_ == direct.cascades_ and new.get_params() == direct.get_params()
    assert router.judge_error == 0.1 and new.cascades_ != router.cascades_
    ahead = sr.SaveRouter(k=2).fit(train.queries, train.feedback())
    with_ahead = Cascade(ahead=sr.SaveRouter(k=2)).fit(train.queries, train.feedback())
    assert router.relearnt(ahead=ahead).cascades_ == with_ahead.cascades_
    with pytest.raises(sr.SaveRouterError, match="what a cascade can learn anew is 'share'"):
        router.relearnt(share=0.5)


# A router ahead


def test_a_router_ahead_says_where_a_query_enters():
    quality, cost = np.array([[0.0, 1, 1], [1, 1, 1], [0, 0, 1]]), np.tile([1.0, 10.0, 100.0], (3, 1))
    estimates = np.array([[0.2, 0.8, 0.9], [0.9, 0.9, 0.9], [0.1, 0.2, 0.9]])
    cascades = family(Stages((0, 1, 2), (1.0, 1.0), -0.15), estimates=estimates)
    scored, paid, _ = cascades.served(0, quality, cost, 0)
    assert scored.tolist() == [1, 1, 1] and paid.tolist() == [10, 1, 100]
    assert (
        cascades.label(0) == "mini at 1, then mid at 1, then big, entered at the first expected within 0.15 of the last"
    )
    assert (
        family(Stages((0, 2), (0.5,), 0.1)).label(0)
        == "mini at 0.5, then big, entered at the first expected 0.1 better than the last"
    )


def test_a_router_ahead_is_bought_for_and_adds_to_the_choice():
    plain, train, test, alone = fitted()
    router, _, _, feedback = fitted(ahead=sr.SaveRouter(k=2))
    assert router.label == "Cascade, SaveRouter ahead" and plain.label == "Cascade"
    assert feedback.spent > feedback.spent_distinct == pytest.approx(alone.spent)
    assert set(plain.cascades_) <= set(router.cascades_) and any(np.isfinite(one.gate) for one in router.cascades_)
    np.testing.assert_array_equal(router.predict_quality(test), router.ahead_.predict_quality(test))
    np.testing.assert_array_equal(router.predict_cost(test), router.ahead_.predict_cost(test))
    assert router.ahead is not router.ahead_ and not hasattr(router.ahead, "models_")


# Judging


@pytest.fixture(scope="module")
def judged():
    work = make_workload(n=900, seed=4)
    router, train, test, feedback = fitted(work, judge_cost=2e-5, judge_error=0.15)
    return router, test, sr.evaluate(router, test, supervision_cost=feedback.spent), feedback


def test_intervals_are_those_of_what_was_served(judged):
    router, test, result, feedback = judged
    point = result.operating_point
    (policies,) = router.policies(test.queries)
    index = [policies.label(place) for place in range(len(policies))].index(point["policy"])
    column = test.models.index(result.reference.model)
    scored, paid, _ = policies.served(index, test.quality, test.cost, column)
    ones = np.ones(len(test))
    sums = np.column_stack([scored, paid, ones, test.quality[:, column], test.cost[:, column], ones])
    assert result.interval().equals(bootstrap(sums, feedback.spent, 0.9))
    assert result.interval().loc["saving", "estimate"] == pytest.approx(1 - result.cost_ratio)
    assert result.saved_over(1_000)[0] == pytest.approx(1_000 * (result.reference.cost - point["cost"]))
    assert result.sample.chosen.dtype == np.int16 and (result.sample.chosen == -1).all()
    assert result.reference.model in result.verdict()


def test_another_price_of_the_reference_changes_its_calls_at_whatever_stage(judged):
    router, test, result, feedback = judged
    column, half = test.models.index(result.reference.model), result.repriced(0.5, 0.0)
    cheaper = test.cost.copy()
    cheaper[:, column] *= 0.5
    again = sr.evaluate(router, replace(test, cost=cheaper), supervision_cost=feedback.spent)
    merged = half.frontier.merge(again.frontier, on="policy")
    assert len(merged) == len(half.frontier)
    np.testing.assert_allclose(merged["cost_x"], merged["cost_y"])
    np.testing.assert_allclose(merged["reference_cost_x"], merged["reference_cost_y"])
    assert (result.frontier["reference_cost"] > 0).any() and (
        result.frontier["reference_cost"] <= result.frontier["cost"]
    ).all()


@pytest.mark.parametrize("ahead", [None, sr.SaveRouter(k=2)])
def test_anchored_policies_join_cascades(ahead):
    router, _, test, feedback = fitted(make_workload(n=800, seed=4), ahead=ahead, judge_error=0.45)
    plain = sr.evaluate(router, test, supervision_cost=feedback.spent)
    more = sr.evaluate(router, test, supervision_cost=feedback.spent, anchored="model-3")
    assert more.n_policies == plain.n_policies + 100
    kinds = [isinstance(policy, Switch) for policy in more.policies]
    assert any(kinds) and not all(kinds)
    rows, column = np.arange(len(test)), test.models.index(more.reference.model)
    for number, point in enumerate(more.frontier.itertuples()):
        sums = more.sample.sums(number)
        assert sums[:, :2].mean(axis=0) == pytest.approx([point.quality, point.cost])
        if kinds[number]:
            chosen = [test.models.index(model) for model in router.route(test.queries, policy=more.policies[number])]
            assert sums[:, 1] == pytest.approx(test.cost[rows, chosen])
            own = np.array(chosen) == column
            assert point.reference_cost == pytest.approx(np.where(own, test.cost[:, column], 0).mean())


def test_scaling_all_costs_changes_no_ratio():
    work = make_workload(n=600, seed=4)
    ratios = []
    for factor in (1.0, 1e6):
        router, _, test, feedback = fitted(replace(work, cost=work.cost * factor), judge_cost=1e-4 * factor)
        result = sr.evaluate(router, test, supervision_cost=feedback.spent, target=0.9)
        ratios.append((result.cost_ratio, result.sa_bep, result.peak_score, len(result.frontier)))
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-9)


# Refusals


def test_no_model_can_be_named_before_an_answer(judged):
    router, test, result, feedback = judged
    for call in (router.route, router.explain):
        with pytest.raises(
            sr.SaveRouterError, match=r"cannot route: .* hangs on the answers .* evaluate\(router, test"
        ):
            call(test.queries.take([0]))
    (policies,) = router.policies(test.queries)
    for call in (policies.choice, policies.policy):
        with pytest.raises(sr.SaveRouterError, match="chooses by the answers it gets"):
            call(0)
    with pytest.raises(sr.SaveRouterError, match="cannot be deployed: .* hangs on the answers themselves"):
        _ = result.policy
    with pytest.raises(sr.SaveRouterError, match="Cascade cannot be saved"):
        router.save("nowhere")
    fresh = test.feedback()
    with pytest.raises(sr.SaveRouterError, match="Cascade serves by the answers it gets, and a certificate"):
        sr.certify(router, test.queries, fresh, reference="model-4")
    assert fresh.spent == 0
    sent = pickle.loads(pickle.dumps(result))
    assert sent.metrics() == result.metrics() and sent.sample is None
    with pytest.raises(sr.SaveRouterError, match="no outcomes by query in memory"):
        sent.interval()


def test_a_given_policy_is_judged_as_it_would_be_served(judged):
    """By the estimates of single models, as for every router: it is no cascade, and says so by its name."""
    router, test, *_ = judged
    policy = Always(model="model-1", models=test.models)
    result = sr.evaluate(router, test, supervision_cost=0.0, policy=policy)
    assert result.frontier["policy"].tolist() == ["always model-1"] and result.n_policies == 1
    assert result.serving_cost == pytest.approx(test.cost[:, 1].mean())
    assert set(router.route(test.queries, policy=policy)) == {"model-1"}


@pytest.mark.parametrize("options, message", [
    ({"judge_error": 0.6}, "judge_error is 0.6; expected at most 0.5, which is a coin"),
    ({"judge_error": -0.1}, "judge_error is -0.1"),
    ({"judge_cost": -1.0}, "judge_cost is -1"),
    ({"judge_errs": "hard"}, "judge_errs is 'hard'.*expected one of evenly, on hard"),
    ({"stages": 0}, "stages is 0; expected a whole number, at least 1"),
    ({"share": 0.0}, "share is 0"),
    ({"share": 30}, "share is 30; .*write 0.3 for 30%"),
    ({"ahead": "saverouter"}, "ahead is 'saverouter'; expected a router"),
    ({"ahead": sr.make_router("oracle")}, "Oracle expects nothing before an answer"),
    ({"ahead": Cascade()}, "Cascade expects nothing before an answer"),
])  # fmt: skip
def test_nonsense_is_refused_before_anything_is_bought(options, message):
    train, _ = make_workload().split()
    feedback = train.feedback()
    with pytest.raises(sr.SaveRouterError, match=message):
        Cascade(**options).fit(train.queries, feedback)
    assert feedback.spent == 0


def test_labels_name_chain_and_thresholds():
    stages = Stages((0, 2), (0.5,)), Stages((2,)), Stages((0, 1, 2), (1.0, 0.25))
    assert [family(*stages).label(place) for place in range(3)] == [
        "mini at 0.5, then big", "big", "mini at 1, then mid at 0.25, then big",
    ]  # fmt: skip


def test_entering_is_bounded_by_what_a_query_can_have():
    served = _Served(np.array([[1.0, NAN, NAN], [NAN, NAN, 1.0]]), np.ones((2, 3)), StatedJudge(0, 0, "evenly"),
                     np.arange(3), np.zeros((2, 3)))  # fmt: skip
    assert served.entries((0, 1, 2), np.array([-np.inf, 0.0, 5.0])).tolist() == [[0, 0, 0], [0, 2, 2]]
