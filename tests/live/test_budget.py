"""The cap holds: for any prices, failures and answers, in any order, whatever is resumed."""

import tempfile
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shop import PROMPTS, Desk, Status, buying, pool, reply, score

import saverouter as sr
from saverouter.live import Model, Patience, judge_model, read_ledger
from saverouter.live.budget import Budget
from saverouter.live.client import OutOfTime

FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None
ENDINGS = st.sampled_from([
    "ok", "ok", "ok", "full", "thought", "zeros", "refused", "no usage", "429", "500", "401", "quota", "late", "dropped", "unfit",
    "judge fails",
])  # fmt: skip


def play(ending, model):
    if ending in ("429", "500", "401"):
        raise Status(int(ending))
    if ending == "quota":
        raise Status(429, code="insufficient_quota")
    if ending == "unfit":
        raise Status(400, code="content_filter")
    if ending in ("late", "dropped"):
        raise OutOfTime("late") if ending == "late" else ConnectionResetError()
    if ending == "refused":
        return ["nonsense"]
    if ending == "no usage":
        return {**reply(model), "usage": {}}
    if ending == "thought":
        return {**reply(model), "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 50}}
    usage = {"full": (60, model.longest), "zeros": (0, 0)}.get(ending, (7, 3))
    return reply(model, {"judge fails": "nonsense", "full": "1" + " " * 300}.get(ending, "1"), usage)


PRICES = st.floats(0, 1e-3, allow_subnormal=False)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    prices=st.tuples(PRICES, PRICES, PRICES, PRICES),
    caps=st.lists(st.floats(0, 2.0), min_size=1, max_size=3),
    endings=st.lists(ENDINGS, min_size=1, max_size=60),
    workers=st.integers(1, 6),
    resolve=st.sampled_from([None, "retry", "write off"]),
    graded=st.booleans(),
    naps=st.lists(st.sampled_from([0.0, 0.0, 0.001]), min_size=1, max_size=5),
)
def test_no_sequence_of_prices_failures_and_answers_exceeds_the_cap(
    prices, caps, endings, workers, resolve, graded, naps
):
    models = [Model("a", max_tokens=200, key=None), Model("b", max_tokens=50, key=None)]
    table = {"a": prices[:2], "b": prices[2:]}
    billed = []  # what the provider would bill at most

    def say(model, prompt, number):
        time.sleep(naps[number % len(naps)])
        ending = endings[number % len(endings)]
        if ending in ("ok", "full", "thought", "judge fails"):
            usage = {"full": (60, model.longest), "thought": (7, 43)}.get(ending, (7, 3))
            billed.append(usage[0] * table[model.name][0] + usage[1] * table[model.name][1])
        elif ending in ("zeros", "refused", "no usage", "late", "dropped"):
            billed.append(60 * table[model.name][0] + model.longest * table[model.name][1])
        return play(ending, model)

    twice = "{prompt} {answer} {answer}"
    judge = judge_model(models[1], instruction=twice, highest=1, sees=100) if graded else score
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path, highest = Path(folder) / "bought.sqlite", 0.0
        for cap in caps:
            highest = max(highest, cap)
            with buying(
                path, Desk(say), PROMPTS[:5], models, judge=judge, prices=table, max_spend=cap, workers=workers,
                resolve=resolve, patience=Patience(20.0, 3, 60.0, 6, 0.0),
            ) as feedback:  # fmt: skip
                for rows in (np.arange(5), np.arange(3)):
                    try:
                        feedback.reveal(np.repeat(rows, 2), np.tile([0, 1], len(rows)))
                    except sr.SaveRouterError:
                        pass
                budget = feedback._account.budget
                found = read_ledger(path)
                assert budget.reserved == 0
                assert budget.spent == pytest.approx(found.spent) and budget.doubt == pytest.approx(found.possibly)
                assert found.spent + found.possibly <= highest * (1 + 1e-12)
                assert sum(billed) <= found.spent + found.possibly + 1e-12


def test_what_does_not_fit_waits_for_what_is_under_way():
    budget = Budget(1.0, 0.0, 0.0)
    assert budget.reserve(0.8)
    got = []
    waiting = Thread(target=lambda: got.append(budget.reserve(0.7)))
    waiting.start()
    time.sleep(0.05)
    assert not got
    budget.settle(0.8, 0.1)
    waiting.join(5)
    assert got == [True] and budget.reserved == pytest.approx(0.7)
    budget.done(0.0), budget.done(0.7)
    assert budget.reserved == 0 and not budget.reserve(0.95) and budget.reserve(0.9)


def test_a_cap_that_was_lowered_buys_nothing(ledger):
    with buying(ledger) as feedback:
        feedback.reveal([0, 1], 0)
    with buying(ledger, max_spend=1e-5) as feedback:
        feedback.reveal([0, 1], 0)  # replayed
        with pytest.raises(sr.SaveRouterError, match="the cap is reached.* of max_spend=1e-05 are spent"):
            feedback.reveal([2], 0)
    assert len(pool()) == 2
