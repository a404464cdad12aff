"""What is bought, what it costs, and what an answer must be to count."""

import math
import re
import time

import numpy as np
import pandas as pd
import pytest
from conftest import make_workload
from shop import FAST, PROMPTS, Desk, Status, buying, pool, reply, score

import saverouter as sr
from saverouter.live import (
    Contains,
    ExactMatch,
    Matches,
    Model,
    Numeric,
    PriceTable,
    Question,
    judge_model,
    read_ledger,
)
from saverouter.live.client import OutOfTime
from saverouter.live.judges import ChoiceLetter, name_of_judge
from saverouter.workloads import one_by_one

COST = 40 * 1e-6 + 10 * 2e-6


def from_table(work):
    rows = {prompt: row for row, prompt in enumerate(work.prompts)}

    def say(model, prompt, number):
        row, column = rows[prompt], work.models.index(model.name)
        return reply(model, repr(float(work.quality[row, column])), (1, 1 + int(work.cost[row, column] / 2e-6)))

    return Desk(say)


def recorded(n=60, **options):
    work = make_workload(n=n, **options)
    return work, [Model(name, max_tokens=20_000, key=None) for name in work.models]


def bought(feedback):
    return feedback.observations[["row", "model", "quality"]]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_live_buys_the_pairs_that_a_replay_buys(ledger, missing, monkeypatch):
    work, models = recorded(missing=missing)
    monkeypatch.setattr("saverouter.live.feedback.LiveFeedback.batch", 1)
    feedback = buying(ledger, from_table(work), work.queries, models, available=work.available)
    router = sr.SaveRouter(k=2).fit(work.queries, feedback)
    replay = work.feedback()
    other = sr.SaveRouter(k=2).fit(work.queries, replay)
    pd.testing.assert_frame_equal(bought(feedback), bought(replay))
    np.testing.assert_array_equal(router.predict_quality(work.queries), other.predict_quality(work.queries))
    assert one_by_one is not None and feedback.spent == pytest.approx(feedback.observations["cost"].sum())


def test_a_resumed_run_equals_an_uninterrupted_one(ledger):
    work, models = recorded()
    runs = []
    for name, stops in (("whole", ()), ("parts", (0.06, 0.08))):
        path, desk = ledger.with_name(f"{name}.sqlite"), from_table(work)
        for cap in stops:
            with buying(path, desk, work.queries, models, max_spend=cap) as feedback:
                with pytest.raises(
                    sr.SaveRouterError, match="the cap is reached.*make LiveFeedback anew with the same ledger"
                ):
                    sr.SaveRouter(k=2).fit(work.queries, feedback)
                assert 0 < feedback.spent <= cap and feedback.spent == pytest.approx(read_ledger(path).spent)
        with buying(path, desk, work.queries, models) as feedback:
            router = sr.SaveRouter(k=2).fit(work.queries, feedback)
            runs.append(
                (feedback.observations, feedback.spent, router.predict_quality(work.queries), sorted(desk.asked))
            )
    (whole, spent, quality, asked), (parts, again, same, in_parts) = runs
    pd.testing.assert_frame_equal(whole, parts)
    assert spent == again and asked == in_parts
    np.testing.assert_array_equal(quality, same)


@pytest.mark.parametrize("name", ["knn", "uniroute", "avengerspro", "wiserouter", "carrot"])
def test_dense_routers_learn_the_same_live(ledger, name):
    work, models = recorded()
    with buying(ledger, from_table(work), work.queries, models, max_spend=10) as feedback:
        router = sr.make_router(name).fit(work.queries, feedback)
    replay = work.feedback()
    other = sr.make_router(name).fit(work.queries, replay)
    assert len(feedback.observations) == len(replay.observations)
    np.testing.assert_array_equal(router.predict_quality(work.queries), other.predict_quality(work.queries))


def test_the_order_of_answers_changes_no_purchase(ledger):
    work, models = recorded()
    bought, said = [], []
    for workers in (1, 8):
        desk, naps = from_table(work), iter(np.random.default_rng(workers).uniform(0, 0.004, 1_000).tolist())
        answer = desk.say

        def late(model, prompt, number, answer=answer, naps=naps):
            time.sleep(next(naps))
            said.append(prompt)
            return answer(model, prompt, number)

        desk.say = late
        with buying(ledger.with_name(f"{workers}.sqlite"), desk, work.queries, models, workers=workers) as feedback:
            sr.SaveRouter(k=2, seed=1, batch=12).fit(work.queries, feedback)
            bought.append(feedback.observations)
    pd.testing.assert_frame_equal(*bought)
    half = len(said) // 2
    assert said[:half] != said[half:] and sorted(said[:half]) == sorted(said[half:])


def test_a_dense_router_and_the_certificate_buy_through_it(ledger):
    work, models = recorded(n=200)
    train, fresh = work.split(0.4)
    with buying(ledger, from_table(work), train.queries, models, max_spend=10) as feedback:
        router = sr.make_router("knn", k=5, fraction=0.3).fit(train.queries, feedback)
        other = feedback.also(fresh.queries)
        certificate = sr.certify(router, fresh.queries, other, reference=work.models[-1], margin=5)
        assert certificate.spent == other.spent > 0
        assert read_ledger(ledger).spent == pytest.approx(feedback.spent + other.spent)


def test_a_pair_is_paid_once_however_often_it_is_asked_for(ledger):
    desk = Desk()
    feedback = buying(ledger, desk)
    feedback.reveal([0, 0, 1, 0], [0, 0, 1, 0])
    feedback.reveal([0, 1], "a")
    assert len(desk.asked) == 3 and feedback.spent == pytest.approx(3 * COST) and len(feedback.observations) == 3
    assert feedback.spent == pytest.approx(feedback.spent_distinct)


def test_two_meters_share_a_cap_and_a_ledger(ledger):
    feedback = buying(ledger, max_spend=0.0006)
    other = feedback.also(["Another question?", "And another?"])
    feedback.reveal([0, 1], 0)
    other.reveal([0, 1], 0)
    assert feedback.spent == other.spent == pytest.approx(2 * COST)
    with pytest.raises(sr.SaveRouterError, match="the cap is reached"):
        other.reveal([0, 1], 1)
        feedback.reveal(np.arange(12), 1)
    assert other.remaining == feedback.remaining == pytest.approx(0.0006 - read_ledger(ledger).spent)


WRONG = {
    "html": "<html>",
    "a list": [reply(pool("a")[0])],
    "nothing": None,
    "a number": 7,
    "no usage": {**reply(pool("a")[0]), "usage": None},
    "usage in words": reply(pool("a")[0], usage=("many", 3)),
    "usage true": reply(pool("a")[0], usage=(True, 3)),
    "usage negative": reply(pool("a")[0], usage=(-4, 3)),
    "usage endless": reply(pool("a")[0], usage=(10**400, 3)),
}


@pytest.mark.parametrize("raw", WRONG.values(), ids=WRONG)
def test_what_is_no_answer_is_refused_and_kept_at_its_worst_case(ledger, raw):
    with buying(ledger, Desk(lambda *_: raw), models=pool("a")) as feedback:
        quality, cost = feedback.reveal([0], 0)
        found = read_ledger(ledger)
        assert np.isnan(quality[0]) and cost[0] == found.calls["worst"][0] == found.spent == feedback.spent
        assert feedback.quarantined["query_id"].tolist() == found.quarantined["query_id"].tolist()
        assert found.calls["priced"].tolist() == ["worst case"]


@pytest.mark.parametrize("raw, reason", [
    ({**reply(pool("a")[0]), "choices": None}, "holds no text"),
    ({**reply(pool("a")[0]), "choices": [{"message": {"content": None}}]}, "holds no text"),
    (reply(pool("a")[0], served="a-turbo"), "served by 'a-turbo', asked for 'a': declare it among aliases"),
])  # fmt: skip
def test_what_was_counted_keeps_its_cost(ledger, raw, reason):
    feedback = buying(ledger, Desk(lambda *_: raw), models=pool("a"))
    quality, cost = feedback.reveal([0], 0)
    assert np.isnan(quality[0]) and cost[0] == pytest.approx(COST)
    assert re.search(reason, feedback.quarantined["reason"][0])


def test_an_alias_that_is_declared_later_saves_what_was_paid(ledger):
    desk = Desk(lambda model, *_: reply(model, served="a-2026-01-31"))
    with buying(ledger, desk, models=pool("a")) as feedback:
        with pytest.raises(sr.SaveRouterError, match="10 outcomes in a row cannot be used.*served by 'a-2026-01-31'"):
            feedback.reveal(np.arange(12), 0)
    with buying(ledger, desk, models=pool("a", aliases="a-2026-01-31")) as feedback:
        quality, _ = feedback.reveal(np.arange(12), 0)
        assert (quality == 1).all() and len(desk.asked) == 12 and feedback.quarantined.empty


@pytest.mark.parametrize("judge, reason", [
    (lambda question, answer: float("nan"), "the judge said nan; expected 0..1"),
    (lambda question, answer: 87, "the judge said 87; expected 0..1"),
    (lambda question, answer: -0.1, "the judge said -0.1"),
    (lambda question, answer: "good", "ValueError: could not convert"),
    (lambda question, answer: None, "TypeError"),
    (lambda question, answer: 1 / 0, "ZeroDivisionError"),
])  # fmt: skip
def test_a_judge_that_fails_quarantines_the_outcome(ledger, judge, reason):
    def sometimes(question, answer):
        return judge(question, answer) if question.prompt == PROMPTS[2] else 1.0

    with buying(ledger, judge=sometimes) as feedback:
        quality, cost = feedback.reveal(np.arange(12), 0)
        assert np.flatnonzero(np.isnan(quality)).tolist() == [2] and cost[2] == pytest.approx(COST)
        assert feedback.spent == pytest.approx(12 * COST) and reason in feedback.quarantined["reason"][0]
        assert reason in read_ledger(ledger).quarantined["reason"][0]


def test_a_judge_that_was_mended_judges_what_was_paid(ledger):
    desk = Desk(lambda model, *_: reply(model, "7 of 10"))
    with buying(ledger, desk, judge=lambda question, answer: float(answer)) as feedback:
        feedback.reveal([0, 1], 0)
        assert len(feedback.quarantined) == 2
    with buying(ledger, desk, judge=lambda question, answer: float(answer.split()[0]) / 10) as feedback:
        assert feedback.reveal([0, 1], 0)[0].tolist() == [0.7, 0.7]
        assert len(desk.asked) == 2 and feedback.spent == pytest.approx(2 * COST)
    assert read_ledger(ledger).observations["quality"].tolist() == [0.7, 0.7]


def test_the_fit_goes_on_without_what_is_quarantined(ledger):
    work, models = recorded()
    good = from_table(work)

    def say(model, prompt, number):
        return "<html>" if number % 7 == 3 else good.say(model, prompt, number)

    feedback = buying(ledger, Desk(say), work.queries, models)
    feedback.reveal(np.repeat(np.arange(60), 2), np.tile([0, 1], 60))
    assert 10 < len(feedback.quarantined) < 30 and feedback.observations["quality"].isna().sum() == len(
        feedback.quarantined
    )
    made = sr.load(ledger)
    assert np.isfinite(made.quality).sum() == 120 - len(feedback.quarantined)


def test_a_model_judges_and_is_on_the_bill(ledger):
    def say(model, prompt, number):
        return reply(model, "8" if model.name == "judge" else "an answer")

    judge = judge_model(Model("judge", max_tokens=5, key=None))
    prices = {"a": (1e-6, 2e-6), "b": (1e-6, 2e-6), "judge": (1e-5, 1e-5)}
    desk = Desk(say)
    for _ in range(2):
        with buying(ledger, desk, judge=judge, prices=prices) as feedback:
            quality, cost = feedback.reveal([0, 1, 2], 0)
            assert quality.tolist() == [0.8] * 3 and cost == pytest.approx([COST] * 3)
            assert feedback.spent == pytest.approx(3 * (COST + 50e-5)) and len(desk.asked) == 6
            assert feedback.observations["extra"].to_numpy() == pytest.approx([50e-5] * 3)
            assert read_ledger(ledger).spent == pytest.approx(feedback.spent)
            estimate = feedback.estimate(2)
            assert estimate.calls == 48 and estimate.worst > 24 * 50e-5
    assert "Question:\nWhat is 0 plus 0?" in judge.messages(Question("q", PROMPTS[0]), "x")[0]["content"]
    assert len(judge.messages(Question("q", "p"), "ä" * 10**5)[-1]["content"].encode()) < 9_000


def test_a_judge_model_that_says_nothing_quarantines(ledger):
    def say(model, prompt, number):
        return reply(model, "no idea" if model.name == "judge" else "an answer")

    judge = judge_model(Model("judge", max_tokens=5, key=None, free=True))
    feedback = buying(ledger, Desk(say), judge=judge)
    assert np.isnan(feedback.reveal([0], 0)[0][0]) and "holds no number" in feedback.quarantined["reason"][0]


def test_prices_and_bounds_are_needed_before_anything(ledger):
    for options, message in (
        ({"max_spend": None}, "max_spend is missing: say how much"),
        ({"max_spend": math.inf}, "max_spend is inf"),
        ({"prices": {"a": (1e-6, 2e-6)}}, r"model 'b' has no price; .*add it: prices=\{'b'.*Model\('b', free=True\)"),
        ({"prices": {"a": 3, "b": (1, 1)}}, "the price of model 'a' is 3; expected"),
        ({"prices": {"a": (-1, 1), "b": (1, 1)}}, "the input price of model 'a' is -1"),
        ({"models": pool("ab", free=True)}, "declared free and has a price"),
        ({"models": pool("aa")}, "two models are called 'a'"),
        ({"models": ["gpt"]}, r"a model is 'gpt'; expected a Model"),
        ({"judge": "exactly"}, "judge is 'exactly'; did you mean 'exact'"),
        ({"judge": "exact"}, "has no reference to compare with; give references"),
        ({"judge": "exact", "references": ["1"]}, "references are 1 for 12 queries"),
        ({"resolve": "again"}, "resolve is 'again'; expected one of retry, write off"),
        ({"workers": 0}, "workers is 0"),
        ({"prompts": []}, "there are no queries"),
        ({"prompts": sr.Queries(np.array(["p", "q"]), ids=np.array(["1", "1"]))}, "two queries are called '1'"),
    ):
        with pytest.raises(sr.SaveRouterError, match=message):
            models = (
                options.pop("models", None) if not isinstance(options.get("models"), list) else options.pop("models")
            )
            if models == ["gpt"]:
                sr.live.LiveFeedback(PROMPTS, models, judge=score, max_spend=1.0)
            buying(ledger, models=models, **options)
        assert not ledger.exists()
    with pytest.raises(sr.SaveRouterError, match="model 'a' has no max_tokens"):
        Model("a")


def test_a_free_model_costs_nothing(ledger):
    feedback = buying(ledger, models=pool("ab", free=True), prices=None, max_spend=0)
    feedback.reveal(np.arange(12), 1)
    assert feedback.spent == 0 and not feedback.estimate(2).worst and not feedback.prices.any()


def test_the_estimate_is_said_before_the_first_call(ledger, caplog):
    caplog.set_level("INFO", "saverouter")
    prices = PriceTable({"a": (1e-6, 2e-6), "b": (2e-6, 4e-6)}, currency="USD", date="2026-11-01", source="the list")
    feedback = buying(ledger, prices=prices)
    estimate = feedback.estimate(1)
    assert estimate.calls == 12 and 0 < estimate.expected < estimate.worst and "USD" in str(estimate)
    assert feedback.prices.shape == (2,) and feedback.prices[1] == pytest.approx(2 * feedback.prices[0])
    assert not caplog.records and (feedback.estimate(5).calls, feedback.batch) == (24, 1)
    feedback.reveal([0], 0)
    assert str(estimate) in caplog.text and "cap 1 USD, of which 0 are spent (ledger bought.sqlite)" in caplog.text
    feedback.close()
    caplog.clear()
    with buying(ledger, prices=prices, models=pool("ab", options={"temperature": 0})) as feedback:
        feedback.reveal([0], 0)
        assert "1 pairs were bought before with another prompt or other options" in caplog.text
        assert len(read_ledger(ledger).calls) == 2


def test_a_server_that_bills_more_than_it_may_stops_all(ledger):
    feedback = buying(ledger, Desk(lambda model, *_: reply(model, usage=(40, 5000))), workers=1)
    with pytest.raises(sr.SaveRouterError, match="billed 0.01004 .* more than the .* does not keep to max_tokens"):
        feedback.reveal(np.arange(12), 0)
    assert feedback.spent == pytest.approx(40e-6 + 5000 * 2e-6) == read_ledger(ledger).spent


def test_retries_wait_as_asked_and_end(ledger):
    waits = []
    errors = [Status(429, headers={"Retry-After": "0.25"}), Status(503), Status(500), None]

    def say(model, prompt, number):
        if errors[number % 4] is not None:
            raise errors[number % 4]
        return reply(model)

    desk = Desk(say)
    with buying(ledger, desk, sleep=waits.append) as feedback:
        assert feedback.reveal([0], 0)[0] == [1.0] and feedback.spent == pytest.approx(COST)
        assert waits[0] == 0.25 and 0 < waits[1] <= 0.002 and waits[1] < waits[2] * 2 and len(waits) == 3
        assert read_ledger(ledger).calls["status"].tolist() == ["failed"] * 3 + ["ok"]
    errors[:] = [Status(500)] * 4
    with buying(ledger, desk, sleep=waits.append) as feedback:
        assert np.isnan(feedback.reveal([1], 0)[0][0]) and feedback.spent == pytest.approx(0)
        assert len(desk.asked) == 8 and "500: no" in feedback.quarantined["reason"][0]
    with buying(ledger, desk) as feedback:
        feedback.reveal([1], 0)
        assert len(desk.asked) == 8  # given up, and so it stays
    errors[:] = [None] * 4
    with buying(ledger, desk, resolve="retry") as feedback:
        assert feedback.reveal([1], 0)[0] == [1.0]


@pytest.mark.parametrize("error, message", [
    (Status(429, "no more", "insufficient_quota"), "quota of the key is exhausted.*then resume"),
    (Status(400), "400: no: the request is refused: check the options"),
    (Status(401), "the key is refused: check the environment variable"),
    (Status(403), "may not use this model"),
    (Status(404), "no such model or address"),
    (Status(429, headers={"retry-after": "7200"}), "asks to wait 7200 s"),
])  # fmt: skip
def test_what_no_retry_cures_stops_at_once(ledger, error, message):
    desk = Desk(lambda *_: (_ for _ in ()).throw(error))
    feedback = buying(ledger, desk, workers=1)
    with pytest.raises(sr.SaveRouterError, match=message):
        feedback.reveal(np.arange(12), 0)
    assert len(desk.asked) == 1 and feedback.spent == 0 == read_ledger(ledger).possibly


def test_a_query_that_no_model_takes_does_not_stop_the_others(ledger):
    def say(model, prompt, number):
        if prompt == PROMPTS[1]:
            raise Status(400, "too many tokens", "context_length_exceeded")
        return reply(model)

    feedback = buying(ledger, Desk(say))
    quality, cost = feedback.reveal(np.arange(4), 0)
    assert np.isnan(quality).tolist() == [False, True, False, False] and cost[1] == 0


@pytest.mark.parametrize("error", [
    OutOfTime("slow"), TimeoutError(), ConnectionResetError(), Status(502), Status(504), Status(408), RuntimeError("odd"),
])  # fmt: skip
def test_what_may_have_been_billed_is_never_sent_again_unasked(ledger, error):
    def say(model, prompt, number):
        if number == 0:
            raise error
        return reply(model)

    desk = Desk(say)
    with buying(ledger, desk, models=pool("a")) as feedback:
        quality, cost = feedback.reveal([0], 0)
        worst = read_ledger(ledger).possibly
        assert np.isnan(quality[0]) and cost[0] == worst > COST and feedback.remaining == 1 - worst
        assert "may have been billed" in feedback.quarantined["reason"][0]
        feedback.also(PROMPTS).reveal([0], 0)
    with buying(ledger, desk, models=pool("a")) as feedback:
        feedback.reveal([1, 2], 0)  # others go on
        with pytest.raises(sr.SaveRouterError, match="may have been billed, up to .*'retry' .*'write off' .*lists all"):
            feedback.reveal([0], 0)
    assert len(desk.asked) == 3
    copy = ledger.with_name("copy.sqlite")
    copy.write_bytes(ledger.read_bytes())
    with buying(ledger, desk, models=pool("a"), resolve="write off") as feedback:
        assert np.isnan(feedback.reveal([0], 0)[0][0]) and feedback.spent == worst and len(desk.asked) == 3
        assert read_ledger(ledger).possibly == 0 and read_ledger(ledger).spent == pytest.approx(worst + 2 * COST)
    with buying(copy, desk, models=pool("a"), resolve="retry") as feedback:
        quality, cost = feedback.reveal([0], 0)
        assert quality[0] == 1 and cost[0] == pytest.approx(COST) and feedback.spent == pytest.approx(worst + COST)
        assert feedback.observations["extra"][0] == pytest.approx(worst) and len(desk.asked) == 4
        assert read_ledger(copy).ambiguous.empty


def test_a_refused_connection_costs_nothing(ledger):
    def say(model, prompt, number):
        if number == 0:
            raise ConnectionRefusedError("nobody there")
        return reply(model)

    feedback = buying(ledger, Desk(say), models=pool("a"))
    assert feedback.reveal([0], 0)[0] == [1.0] and feedback.spent == pytest.approx(COST)


def test_an_interrupted_run_keeps_what_was_under_way(ledger, monkeypatch):
    def interrupted(self, *_):
        raise KeyboardInterrupt

    feedback = buying(ledger, workers=2)
    with monkeypatch.context() as patch:
        patch.setattr("concurrent.futures.Future.result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            feedback.reveal(np.arange(12), 0)
    found = read_ledger(ledger)
    assert found.ambiguous.empty and feedback.spent == pytest.approx(found.spent)
    assert feedback.reveal(np.arange(12), 0)[0].tolist() == [1.0] * 12 and len(read_ledger(ledger).calls) == 12


QUESTION = Question("q", "What?", reference="Paris")
LETTER = Question("q", "Which?", reference="B")


@pytest.mark.parametrize("judge, question, answer, quality", [
    (ExactMatch(), QUESTION, " paris\n", 1), (ExactMatch(), QUESTION, "Paris.", 0),
    (Contains(), QUESTION, "It is PARIS, of course", 1), (Contains(), QUESTION, "Rome", 0),
    (Matches(r"^\d+$"), QUESTION, "42", 1), (Matches(), QUESTION, "Paris?", 1), (Matches(), QUESTION, "paris", 0),
    (Numeric(), Question("q", "", reference=1234.5), "So it is $1,234.50", 1),
    (Numeric(0.01), Question("q", "", reference="100"), "First 7, then 100.5", 1),
    (Numeric(), Question("q", "", reference="-3"), "3", 0), (Numeric(), Question("q", "", reference="3"), "three", 0),
    (ChoiceLetter(), LETTER, "B", 1), (ChoiceLetter(), LETTER, "(B) since A is wrong", 1), (ChoiceLetter(), LETTER, "B.", 1),
    (ChoiceLetter(), LETTER, "The answer is **B**.", 1), (ChoiceLetter(), LETTER, "A or B? Answer: A", 0),
    (ChoiceLetter(), LETTER, "None of them", 0),
])  # fmt: skip
def test_ready_judges(judge, question, answer, quality):
    assert judge(question, answer) == quality


def test_judges_are_told_apart_by_what_they_do():
    names = {
        name_of_judge(judge)
        for judge in (Numeric(), Numeric(0.1), score, lambda q, a: 1.0, lambda q, a: 0.5, Contains())
    }
    assert len(names) == 6 and name_of_judge(Numeric(0.1)) == name_of_judge(Numeric(0.1))


def test_references_may_be_given_by_name(ledger):
    queries = sr.Queries(np.array(PROMPTS[:2], dtype=object), ids=np.array(["x", "y"], dtype=object))
    feedback = buying(ledger, Desk(), queries, judge="exact", references={"x": "1", "y": 2})
    assert feedback.reveal([0, 1], 0)[0].tolist() == [1.0, 0.0]
    assert FAST.attempts == 4
