"""The gateway's hook without a gateway: a stub stands in for litellm. ``make gateway-test`` asks a real proxy."""

import asyncio
import importlib.util
import json
import logging
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml
from conftest import EASY_AND_HARD, by_kind

import saverouter as sr

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "gateway"
VIRTUAL, HEADER = "saverouter/auto", "x-saverouter-model"
PROMPTS = [f"{('add', 'prove')[number % 2]} the {('sum', 'lemma')[number % 2]} number {number}" for number in range(12)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, cache) -> Path:
    """A saved router that leaves its reference, m1, where a query is easy."""
    train, fresh = by_kind(EASY_AND_HARD, prices=[1e-3, 1e-2], n=500, vectors=None).split(train=0.4, seed=1)
    router = sr.SaveRouter(k=2).fit(train.queries, train.feedback())
    certificate = sr.certify(router, fresh.queries, fresh.feedback(), reference="m1", margin=10.0)
    return router.save(tmp_path_factory.mktemp("saved") / "router", certificate=certificate)


@pytest.fixture
def load(folder, monkeypatch):
    """Imports the hook, as litellm does from its config, in an environment."""
    stub = ModuleType("litellm.integrations.custom_logger")
    stub.CustomLogger = type("CustomLogger", (), {})
    for name in ("litellm", "litellm.integrations"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, stub.__name__, stub)

    def loaded(router=folder, names=None):
        for name, value in (("SAVEROUTER_ROUTER", router), ("SAVEROUTER_NAMES", names)):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, str(value))
        spec = importlib.util.spec_from_file_location("saverouter_hook", FOLDER / "saverouter_hook.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


def asked(handler, call_type="acompletion", **data) -> dict:
    return asyncio.run(handler.async_pre_call_hook(None, None, {"model": VIRTUAL, **data}, call_type))


def said(prompt) -> list:
    return [{"role": "user", "content": prompt}]


def header(handler, data):
    return asyncio.run(handler.async_post_call_response_headers_hook(data, None, None, request_headers={}))


def test_the_virtual_name_becomes_what_the_certified_policy_says(load, folder):
    handler, router = load(names='{"m0": "our-cheap"}').handler, sr.load_router(folder)
    expected = router.route(PROMPTS, policy=router.policy_)
    assert set(expected) == {"m0", "m1"}
    for prompt, model in zip(PROMPTS, expected, strict=True):
        data = asked(handler, messages=said(prompt))
        assert data["model"] == {"m0": "our-cheap"}.get(model, model)
        assert header(handler, data) == {HEADER: data["model"]}


@pytest.mark.parametrize(("call_type", "data"), [
    ("acompletion", {"model": "m0", "messages": said("add the sum")}), ("aembedding", {"model": VIRTUAL, "input": "x"}),
    ("aembedding", {"model": "embedder", "input": ["x"]}), ("amoderation", {"input": "x"}), ("aimage_generation", {}),
])  # fmt: skip
def test_what_is_not_ours_passes_untouched(load, call_type, data):
    handler, before = load().handler, json.dumps(data)
    assert asyncio.run(handler.async_pre_call_hook(None, None, data, call_type)) is data
    assert json.dumps(data) == before and header(handler, data) is None


@pytest.mark.parametrize(("given", "text"), [
    ("hello", "hello"), (said("one") + said("two"), "two"), (said("one") + [{"role": "assistant", "content": "no"}], "one"),
    (said([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]), "a\nb"),
    (said([{"type": "input_text", "text": "a"}]), "a"), (said([{"type": "image_url"}]), ""), (said(None), ""), (said("  "), ""),
    (said([{"type": "text"}, {"type": "text", "text": 3}, "x", None]), ""), ([{"role": "system", "content": "x"}], ""),
    ([None, "x", {}], ""), ([], ""), (None, ""), (3, ""), ({"role": "user", "content": "x"}, ""), ([1, 2, 3], ""),
])  # fmt: skip
def test_the_text_is_that_of_the_last_user_message(load, given, text):
    assert load().text_of(given) == text


@pytest.mark.parametrize("data", [
    {}, {"messages": said([{"type": "image_url", "image_url": {"url": "x"}}])}, {"messages": None}, {"prompt": [1, 2]},
])  # fmt: skip
def test_the_reference_serves_what_has_no_text(load, data, caplog):
    handler = load().handler
    with caplog.at_level(logging.WARNING):
        assert asked(handler, **data)["model"] == "m1"
    (line,) = caplog.messages
    assert line.startswith("there is no text to route by: m1, the reference")


def test_the_reference_serves_where_the_router_fails_and_no_prompt_is_logged(load, caplog):
    handler = load(names='{"m1": "ours"}').handler

    def route(prompts, policy):
        raise ValueError(f"cannot route {prompts[0]}")

    handler.router = SimpleNamespace(route=route, policy_=None)
    with caplog.at_level(logging.DEBUG):
        data = asked(handler, messages=said("add a secret"))
    assert data["model"] == "ours" and header(handler, data) == {HEADER: "ours"}
    logged = [record for record in caplog.records if record.name.startswith("saverouter")]
    assert [record.getMessage() for record in logged] == [
        "the router failed with ValueError: ours, the reference, serves this request (acompletion)"
    ]
    assert "secret" not in caplog.text


def test_the_choice_is_noted_where_litellm_keeps_its_own(load):
    handler = load().handler
    for own in ("metadata", "litellm_metadata"):
        data = asked(handler, messages=said(PROMPTS[0]), **{own: {"user": "x"}})
        assert data[own] == {"user": "x", HEADER: data["model"]} and header(handler, data) == {HEADER: data["model"]}
    assert header(handler, {"model": "m0", "metadata": {HEADER: "forged"}}) is None
    for broken in (None, "x", []):
        assert header(handler, asked(handler, messages=said(PROMPTS[0]), metadata=broken)) is not None
    data = asked(handler, messages=said(PROMPTS[0]), metadata={"sent": "on"}, litellm_metadata={})
    assert data["metadata"] == {"sent": "on"}  # it is the caller's, and goes upstream


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"router": None}, "SAVEROUTER_ROUTER is not set"), ({"router": "/nowhere"}, "no saved router in nowhere/"),
    ({"names": "{x"}, "SAVEROUTER_NAMES is no JSON"), ({"names": "[1]"}, "SAVEROUTER_NAMES is no JSON"),
    ({"names": '{"gpt": "x"}'}, "SAVEROUTER_NAMES has 'gpt'; the pool is"),
])  # fmt: skip
def test_without_a_router_the_proxy_does_not_start(load, changes, sentence):
    with pytest.raises(sr.SaveRouterError, match=re.escape(sentence)):
        load(**changes)


def test_a_router_without_a_certificate_is_refused(load, folder, tmp_path):
    router = sr.load_router(folder)
    router.certificate_ = None
    router.save(tmp_path / "router", policy=router.policy_)
    with pytest.raises(sr.SaveRouterError, match="saved without a certificate"):
        load(router=tmp_path / "router")


def test_an_encoder_that_cannot_run_is_noticed_at_the_start(load, monkeypatch):
    def fails(*_):
        raise RuntimeError("no weights")

    monkeypatch.setattr("saverouter.encoders.minilm._encode", fails)
    with pytest.raises(RuntimeError, match="no weights"):
        load()


def test_the_config_serves_by_the_hook_and_retries_nothing():
    config = yaml.safe_load((FOLDER / "config.yaml").read_text(encoding="utf-8"))
    assert config["litellm_settings"]["callbacks"] == "saverouter_hook.handler"
    retries = [config["litellm_settings"]["num_retries"], config["router_settings"]["num_retries"]]
    retries += [model["litellm_params"]["max_retries"] for model in config["model_list"]]
    assert not np.any(retries)
    assert VIRTUAL not in {model["model_name"] for model in config["model_list"]}


def test_versions_are_those_of_the_project():
    def pins(path):
        lines = [line.partition("#")[0].replace(" ", "").replace("'", '"') for line in path.read_text().splitlines()]
        return {line for line in lines if line}

    proxy, *serving = sorted(pins(FOLDER / "requirements.txt"), key=lambda line: not line.startswith("litellm"))
    assert re.fullmatch(r"litellm\[proxy\]==[\d.]+", proxy) and proxy.partition("==")[2] not in ("1.82.7", "1.82.8")
    known = {line.partition(";")[0] for line in pins(ROOT / "constraints.txt")}
    assert {line.partition(";")[0] for line in serving} <= known
