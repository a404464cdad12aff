"""Calls over the loopback with the openai client: one request each, faults of every kind, and no key anywhere."""

import logging
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import make_workload
from provider import BILL, PRICE, Provider, serving
from shop import PROMPTS, score

import saverouter as sr
from saverouter.live import LiveFeedback, Model, Patience, read_ledger
from saverouter.live.failures import wait_asked

pytest.importorskip("openai")
KEY = "sk-proj-SECRETsecret0123456789"
KEYS = (KEY, "Zx81QplainKEY0123456789abcdef", "AIza-SECRETsecret_0123456789")
CALM = Patience(timeout=20.0, attempts=4, total=60.0, in_row=10, first_wait=0.01)
HASTE = replace(CALM, timeout=0.6)  # where a fault takes its time


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setenv("LIVE_TEST_KEY", KEY)
    made = Provider(lambda model, prompt: "0.5")
    with serving(made) as made.address:
        yield made


def models(provider, **options):
    return [
        Model(name, **{"max_tokens": 20, "endpoint": provider.address, "key": "LIVE_TEST_KEY", **options})
        for name in "ab"
    ]


def buying(provider, ledger, **options):
    pool = options.pop("models", None) or models(provider)
    given = dict(judge=score, prices=dict.fromkeys("ab", PRICE), max_spend=1.0, patience=CALM, workers=4)
    return LiveFeedback(PROMPTS, pool, ledger=ledger, **(given | options))


def test_what_is_sent_and_what_is_kept(provider, ledger):
    pool = models(provider, asked="served-as", options={"temperature": 0, "top_k": 3}, system="Be brief.")
    with buying(provider, ledger, models=pool) as feedback:
        quality, cost = feedback.reveal(np.arange(12), 0)
        assert (quality == 0.5).all() and cost == pytest.approx(np.full(12, BILL))
        assert len(provider.requests) == 12 and set(provider.keys) == {f"Bearer {KEY}"}
        assert {model for model, _, _ in provider.requests} == {"served-as"}
        assert feedback.spent == pytest.approx(provider.money) == pytest.approx(read_ledger(ledger).spent)
        assert read_ledger(ledger).calls["output_tokens"].tolist() == [10] * 12


@pytest.mark.parametrize("fault", ["500", "503", "wait seconds", "wait date", "wait ms", "wait nonsense"])
def test_what_was_not_billed_is_tried_again(provider, ledger, fault):
    provider.script = [fault, fault, "ok"]
    with buying(provider, ledger) as feedback:
        assert feedback.reveal([0], 0)[0] == [0.5]
        assert [done for _, _, done in provider.requests] == [fault, fault, "ok"]
        assert feedback.spent == pytest.approx(BILL) and read_ledger(ledger).calls["status"].tolist() == [
            "failed",
            "failed",
            "ok",
        ]


@pytest.mark.parametrize(
    "fault", ["other model", "garbage", "html", "cut", "no usage", "usage text", "list", "no choices"]
)
def test_what_was_billed_is_kept_and_never_sent_again(provider, ledger, fault):
    provider.script = [fault]
    for _ in range(2):
        with buying(provider, ledger) as feedback:
            quality, cost = feedback.reveal([0, 1], 0)
            assert np.isnan(quality).sum() == 1 and len(provider.requests) == 2
            known = fault in ("other model", "no choices")
            assert cost.max() == pytest.approx(BILL) if known else cost.max() > BILL
            assert feedback.spent == pytest.approx(cost.sum()) == pytest.approx(read_ledger(ledger).spent)
            assert len(feedback.quarantined) == 1


@pytest.mark.parametrize("fault", ["late", "drip", "drop", "502"])
def test_what_may_have_been_billed_stays_in_doubt(provider, ledger, fault):
    provider.script = [fault]
    start = time.monotonic()
    patience = HASTE if fault in ("late", "drip") else CALM
    with buying(provider, ledger, patience=patience) as feedback:
        assert np.isnan(feedback.reveal([0], 0)[0][0])
        assert time.monotonic() - start < 10 and len(provider.requests) == 1
        found = read_ledger(ledger)
        assert found.spent == 0 and found.possibly == feedback.spent > BILL and len(found.ambiguous) == 1
    with buying(provider, ledger) as feedback, pytest.raises(sr.SaveRouterError, match="resolve='retry'"):
        feedback.reveal([0], 0)
    with buying(provider, ledger, resolve="retry") as feedback:
        assert feedback.reveal([0], 0)[0] == [0.5] and len(provider.requests) == 2


@pytest.mark.parametrize("fault, message", [
    ("400", "the request is refused"), ("401", "the key is refused"), ("403", "may not use this model"),
    ("404", "no such model or address"), ("quota", "the quota of the key is exhausted"), ("wait hour", "asks to wait 3600 s"),
])  # fmt: skip
def test_what_no_retry_cures_stops_at_once(provider, ledger, fault, message):
    provider.script = [fault]
    with buying(provider, ledger, workers=1) as feedback, pytest.raises(sr.SaveRouterError, match=message) as told:
        feedback.reveal(np.arange(12), 0)
    assert len(provider.requests) == 1 and KEY not in str(told.value) and "make LiveFeedback anew" in str(told.value)
    with buying(provider, ledger) as feedback:
        assert feedback.reveal(np.arange(12), 0)[0].tolist() == [0.5] * 12


def test_a_query_that_is_too_long_is_set_aside(provider, ledger):
    provider.script = ["too long"]
    with buying(provider, ledger) as feedback:
        quality, _ = feedback.reveal([0, 1, 2], 0)
        assert np.isnan(quality).sum() == 1 and feedback.spent == pytest.approx(2 * BILL)


def test_nobody_there(ledger, monkeypatch):
    monkeypatch.setenv("LIVE_TEST_KEY", KEY)
    with serving(Provider()) as address:
        pass
    nobody = [Model("a", max_tokens=5, endpoint=address, key="LIVE_TEST_KEY")]
    with LiveFeedback(
        PROMPTS, nobody, judge=score, prices={"a": PRICE}, max_spend=1, patience=CALM, ledger=ledger
    ) as feedback:
        with pytest.raises(sr.SaveRouterError, match="10 outcomes in a row cannot be used.*no connection"):
            feedback.reveal(np.arange(12), 0)
        assert feedback.spent == 0 == read_ledger(ledger).possibly


NOW = 1_800_000_000


@pytest.mark.parametrize("headers, seconds", [
    ({"retry-after": "3"}, 3), ({"retry-after": "0.5"}, 0.5), ({"retry-after": "-2"}, 0), ({"retry-after-ms": "250"}, 0.25),
    ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({"retry-after-ms": "x", "retry-after": "9"}, 9),
    ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30), ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0),
    ({"retry-after": "soon"}, None), ({"retry-after": "nan"}, None), ({"retry-after": "inf"}, None), ({}, None),
])  # fmt: skip
def test_every_form_of_retry_after(headers, seconds):
    assert wait_asked(headers, NOW) == seconds


def test_a_key_comes_from_the_environment_only(provider, ledger, monkeypatch):
    with pytest.raises(sr.SaveRouterError, match="is no name of an environment variable") as told:
        models(provider, key=KEY)
    assert KEY not in str(told.value)
    monkeypatch.delenv("LIVE_TEST_KEY")
    with pytest.raises(sr.SaveRouterError, match="the environment variable LIVE_TEST_KEY is not set.*key=None"):
        buying(provider, ledger)
    for endpoint in (f"http://user:{KEY}@127.0.0.1/v1", f"http://127.0.0.1/v1?key={KEY}"):
        with pytest.raises(sr.SaveRouterError, match="holds a user, a password or a query") as told:
            models(provider, endpoint=endpoint)
        assert KEY not in str(told.value)
    with pytest.raises(sr.SaveRouterError, match="option 'extra_headers'") as told:
        models(provider, options={"extra_headers": {"Authorization": KEY}})
    assert KEY not in str(told.value) and not provider.requests and not ledger.exists()


@pytest.mark.parametrize("key", KEYS)
def test_no_key_is_written_or_shown(provider, ledger, caplog, capfd, monkeypatch, key):
    """The server echoes the key in errors, pages, answers and its name; the client logs all it does."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("LIVE_TEST_KEY", key)
    provider.answer = lambda model, prompt: f"0.5 says {key}" if prompt == PROMPTS[5] else "0.5"
    provider.script = ["html", "500", "503", "other model", "502", "ok", "garbage", "drop"]
    said = []
    with buying(provider, ledger, workers=1) as feedback:
        feedback.reveal(np.arange(8), 0)
        said += [repr(feedback), str(feedback.quarantined.to_dict()), str(feedback.observations), repr(feedback.pool)]
        for fault in ("401", "400", "quota"):
            provider.script = [fault]
            with pytest.raises(sr.SaveRouterError) as told:
                feedback.reveal([8, 9, 10], 1)
            said += [str(told.value), repr(told.getrepr(chain=True))]
    found = read_ledger(ledger)
    said += [repr(found), str(found.calls.to_dict()), str(found.runs.to_dict()), caplog.text, *capfd.readouterr()]
    secrets = (key, key[:12], key[-12:], "SECRETsecret", "Bearer sk", "0123456789")
    for text in (*said, *(path.read_bytes().decode("latin-1") for path in ledger.parent.iterdir())):
        assert not [text[max(text.index(secret) - 80, 0) :][:160] for secret in secrets if secret in text]
    assert any("[key]" in text for text in said)
    assert caplog.text and len(provider.requests) >= 12


def test_the_example_of_the_readme_runs(provider, ledger, monkeypatch):
    page = (Path(sr.live.__file__).parent / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    work = make_workload(n=120)
    monkeypatch.chdir(ledger.parent)
    provider.answer = lambda model, prompt: "yes" if model == "large" or prompt.endswith(("1", "2", "3")) else "no"
    names = {"train": list(work.prompts[:60]), "fresh": list(work.prompts[60:])}
    names |= {"references": ["yes"] * 60, "fresh_references": ["yes"] * 60}
    exec(code.replace("http://localhost:8000/v1", provider.address), names)
    assert names["certificate"].reference == "large" and len(names["work"]) > 60
    assert names["feedback"].spent + names["other"].spent == pytest.approx(read_ledger(ledger).spent)
