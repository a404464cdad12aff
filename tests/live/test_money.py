"""What a bill may hide: tokens that are counted elsewhere, other prices, fees, and calls that are made again."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from shop import Desk, Status, buying, pool, reply

import saverouter as sr
from saverouter.live import Model, Patience, judge_model, read_ledger
from saverouter.live.failures import failure_of


def hidden(model, text="1"):
    """As servers answer that count what a model thought in the total only."""
    body = reply(model, text, (40, 10))
    body["usage"] |= {"total_tokens": 40 + 10 + 8}
    return body


def test_what_a_model_thought_is_billed_where_only_the_total_counts_it(ledger):
    with buying(ledger, Desk(lambda model, *_: hidden(model)), models=pool("a")) as feedback:
        quality, cost = feedback.reveal([0], 0)
        assert quality == [1] and cost == pytest.approx([40 * 1e-6 + 18 * 2e-6])
        assert read_ledger(ledger).calls["output_tokens"].tolist() == [18] and feedback.spent == cost[0]


@pytest.mark.parametrize("usage", [(0, 0), (40, 0)])
def test_a_text_of_no_tokens_is_not_free(ledger, usage):
    """A server that reports zeros would never reach the cap."""
    with buying(ledger, Desk(lambda model, *_: reply(model, usage=usage)), models=pool("a")) as feedback:
        quality, cost = feedback.reveal([0], 0)
        assert np.isnan(quality[0]) and cost[0] == read_ledger(ledger).calls["worst"][0]


def test_an_answer_that_a_judge_is_shown_twice_is_reserved_twice(ledger):
    twice = judge_model(
        Model("judge", max_tokens=5, key=None), instruction="{answer} or {answer}: {prompt}", highest=1, sees=4_000
    )
    prices = {"a": (1e-6, 2e-6), "judge": (1e-5, 1e-5)}

    def say(model, prompt, number):
        return reply(model, "1" if model.name == "judge" else "x" * 5_000)

    with buying(ledger, Desk(say), judge=twice, prices=prices, models=pool("a")) as feedback:
        feedback.reveal([0], 0)
        worst = read_ledger(ledger).calls.groupby("role")["worst"].sum()
        held = feedback._appraiser.judging(feedback._questions[0])
        assert worst["judge"] > 8_000 * 1e-5 and held >= worst["judge"]
    for wrong in ("{answer!r}", "{answer:>9000}", "{answer.__doc__} {answer}", "{answer[0]} {answer}", "{} {answer}"):
        with pytest.raises(sr.SaveRouterError, match="instruction of the judge"):
            judge_model(Model("judge", max_tokens=5), instruction=wrong)


def test_another_model_is_billed_at_its_own_price_where_that_is_known(ledger):
    prices = {"a": (1e-6, 2e-6), "b": (1e-4, 2e-4)}
    desk = Desk(lambda model, *_: reply(model, served="b"))
    with buying(ledger, desk, models=pool("a"), prices=prices, workers=1) as feedback:
        with pytest.raises(sr.SaveRouterError, match="billed 0.006 .*another model"):
            feedback.reveal([0, 1], 0)
        assert feedback.spent == pytest.approx(40 * 1e-4 + 10 * 2e-4) and len(desk.asked) == 1


@pytest.mark.parametrize("workers", [1, 8])
def test_a_server_that_overbills_is_called_once_by_each_worker_at_most(ledger, workers):
    desk = Desk(lambda model, *_: reply(model, usage=(40, 5_000)))
    for run in (1, 2):
        with buying(ledger, desk, workers=workers, max_spend=0.01 * workers) as feedback:
            with pytest.raises(sr.SaveRouterError, match="more than the .* the request allows|the cap is reached"):
                feedback.reveal(np.repeat(np.arange(12), 2), np.tile([0, 1], 12))
            assert len(desk.asked) <= run * workers and feedback.remaining >= 0
            assert read_ledger(ledger).spent == pytest.approx(len(desk.asked) * (40e-6 + 5_000 * 2e-6))


@pytest.mark.parametrize("option", ["web_search_options", "plugins", "models", "fallbacks", "best_of", "Stream"])
def test_options_that_cost_beside_the_tokens_are_refused(option):
    with pytest.raises(sr.SaveRouterError, match=f"option '{option}' of model 'a'"):
        Model("a", max_tokens=5, options={option: 3})


def test_no_attempt_is_made_with_less_time_than_a_call_needs(ledger):
    given = []

    class Watch(Desk):
        def __call__(self, model, messages, timeout):
            given.append(timeout)
            time.sleep(0.05)
            return super().__call__(model, messages, timeout)

    def say(model, prompt, number):
        if number == 0:
            raise Status(429, headers={"retry-after": "0.1"})
        return reply(model)

    patience = Patience(timeout=0.5, attempts=4, total=0.3, in_row=10, first_wait=0.001)
    with buying(ledger, Watch(say), patience=patience, sleep=None) as feedback:
        assert feedback.reveal([0], 0)[0] == [1.0]
    assert given == [0.5, 0.5]


def test_an_interruption_while_work_is_handed_out_buys_no_more(ledger, monkeypatch):
    desk, handed = Desk(), []
    real = ThreadPoolExecutor.submit

    def submit(self, *task):
        if len(handed) == 3:
            raise KeyboardInterrupt
        handed.append(real(self, *task))
        return handed[-1]

    with buying(ledger, desk, workers=1) as feedback:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(ThreadPoolExecutor, "submit", submit)
            feedback.reveal(np.arange(12), 0)
        assert feedback._account.stopped == "interrupted" and len(desk.asked) <= 3


def test_a_call_that_followed_a_refused_connection_may_have_been_billed():
    """A client of one's own that tries again by itself: its last attempt was sent."""
    late, nobody = TimeoutError("the second attempt"), RuntimeError("no connection")
    late.__context__ = nobody.__cause__ = ConnectionRefusedError("the first attempt")
    assert failure_of(late).kind == "unsure" and failure_of(nobody).kind == "again"


@pytest.mark.parametrize("error, kind, said", [
    (Status(402, "Insufficient Balance"), "stop", "nothing left to spend"),
    (Status(429, "no", "billing_hard_limit_reached"), "stop", "quota of the key is exhausted"),
    (Status(400, "no", "billing_not_active"), "stop", "quota of the key is exhausted"),
    (Status(400, "This model's maximum context length is 4096 tokens"), "unfit", "context length"),
    (Status(400, "prompt is too long: 9 tokens > 5 maximum"), "unfit", "too long"),
    (Status(400, "unknown option"), "stop", "check the options"),
])  # fmt: skip
def test_what_other_servers_say(error, kind, said):
    failure = failure_of(error)
    assert failure.kind == kind and said in failure.text
