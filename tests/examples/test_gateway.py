"""The hook in a real litellm proxy with an upstream on this machine. ``make gateway-test`` runs it in its own environment."""

import importlib.util
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import by_kind

import saverouter as sr

if importlib.util.find_spec("litellm") is None:
    pytest.skip("litellm is not installed here: run make gateway-test", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import gateway  # noqa: E402
from gateway import NAMES, VIRTUAL, ask, chat  # noqa: E402

HEADER = "x-saverouter-model"
REFERENCE = NAMES[-1]
PROMPTS = [
    f"{('add', 'prove', 'Could you add', 'Why prove')[number % 4]} the {('sum', 'lemma')[number % 2]} number {number}, please"
    for number in range(40)
] + ["日本語の文章", "x" * 5_000, "two\nlines", "hello"]
# A router that fails, or takes its time, for the test's own prompts.
FAILS = """
import time

def route(prompts, policy):
    time.sleep(3 if "slow" in prompts[0] else 0)
    raise ValueError("cannot route " + prompts[0])

handler.router.route = route
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A router whose pool has other names than the gateway, and whose policy sends hard prompts to the reference."""
    work = by_kind(([0.9, 0.9, 0.9], [0.3, 0.6, 0.95]), [1e-4, 1e-3, 1e-2], n=900, vectors=None)
    train, fresh = work.split(train=0.4, seed=1)
    router = sr.SaveRouter(k=2).fit(train.queries, train.feedback())
    certificate = sr.certify(router, fresh.queries, fresh.feedback(), reference="m2", margin=5.0)
    return router.save(tmp_path_factory.mktemp("saved") / "router", certificate=certificate)


@pytest.fixture(scope="module")
def upstream():
    with gateway.upstream() as server:
        yield server
        assert server.strays == []  # nobody tried to reach anything else


@pytest.fixture(scope="module")
def given(saved, upstream) -> dict[str, str]:
    names = dict(zip(sr.load_router(saved).models_, NAMES, strict=True))
    return gateway.environment(upstream, SAVEROUTER_ROUTER=str(saved), SAVEROUTER_NAMES=json.dumps(names))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("gateway")


@pytest.fixture(scope="module")
def proxy(given, folder):
    with gateway.proxy(gateway.prepared(folder / "works", models=("embedder",)), given) as url:
        yield url


@pytest.fixture(scope="module")
def failing(given, folder):
    with gateway.proxy(gateway.prepared(folder / "fails", more=FAILS), given) as url:
        yield url


@pytest.fixture(scope="module")
def expected(saved) -> dict[str, str]:
    """What the router itself says, in the gateway's names."""
    router = sr.load_router(saved)
    chosen = router.route(PROMPTS, policy=router.policy_)
    return {prompt: NAMES[router.models_.index(model)] for prompt, model in zip(PROMPTS, chosen, strict=True)}


def content(answer) -> str:
    return json.loads(answer)["choices"][0]["message"]["content"]


def test_the_virtual_name_goes_where_the_router_says(proxy, upstream, expected):
    assert len(set(expected.values())) > 1
    for prompt, model in expected.items():
        upstream.asked.clear()
        status, headers, answer = chat(proxy, prompt)
        assert (status, headers[HEADER], content(answer)) == (200, model, f"{model} answers")
        assert upstream.asked == [model]


def test_another_name_passes_through(proxy):
    for model in NAMES:
        status, headers, answer = chat(proxy, "prove the lemma", model)
        assert (status, content(answer)) == (200, f"{model} answers") and HEADER not in headers
    assert chat(proxy, "prove the lemma", "unheard-of")[0] == 400


def test_embeddings_are_not_broken(proxy, upstream):
    status, headers, answer = ask(proxy, "/v1/embeddings", model="embedder", input="hello")
    assert status == 200 and json.loads(answer)["data"][0]["embedding"] == [0.0, 1.0] and HEADER not in headers
    upstream.asked.clear()
    assert ask(proxy, "/v1/embeddings", model=VIRTUAL, input="hello")[0] == 400  # no model of that name
    assert upstream.asked == []


def test_other_ways_to_ask_for_text(proxy, expected):
    for prompt in PROMPTS[:4]:
        messages = [{"role": "user", "content": prompt}]
        for path, body in (
            ("/v1/responses", {"input": prompt}),
            ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]}),
            ("/v1/messages", {"messages": messages, "max_tokens": 9}),
            ("/v1/completions", {"prompt": prompt}),
        ):
            status, headers, answer = ask(proxy, path, model=VIRTUAL, **body)
            assert (status, headers[HEADER]) == (200, expected[prompt]), path
            assert f"{expected[prompt]} answers" in answer


def test_streaming(proxy, expected):
    for prompt in PROMPTS[:4]:
        status, headers, answer = chat(proxy, prompt, stream=True)
        pieces = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
        text = "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces)
        assert (status, headers[HEADER], text) == (200, expected[prompt], f"{expected[prompt]} answers")


def test_content_in_parts(proxy, expected):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    for prompt in PROMPTS[:4]:
        status, headers, _ = chat(proxy, [image, {"type": "text", "text": prompt}])
        assert (status, headers[HEADER]) == (200, expected[prompt])
    status, headers, _ = chat(proxy, [image])
    assert (status, headers[HEADER]) == (200, REFERENCE)


def test_fifty_requests_at_once_over_eight_threads(proxy, expected):
    prompts = (PROMPTS * 2)[:50]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda prompt: chat(proxy, prompt), prompts))
    assert [(status, headers[HEADER], content(answer)) for status, headers, answer in answers] == [
        (200, expected[prompt], f"{expected[prompt]} answers") for prompt in prompts
    ]


def test_what_a_caller_writes_beside_it_changes_nothing(proxy, expected):
    for metadata in ({"a": "b"}, {HEADER: "forged"}):
        status, headers, _ = chat(proxy, PROMPTS[0], metadata=metadata)
        assert (status, headers[HEADER]) == (200, expected[PROMPTS[0]])
        status, headers, _ = chat(proxy, PROMPTS[0], "small", metadata=metadata)
        assert status == 200 and HEADER not in headers
    for metadata in (None, "x", []):
        answers = [chat(proxy, PROMPTS[0], model, metadata=metadata)[0] for model in (VIRTUAL, expected[PROMPTS[0]])]
        assert answers[0] == answers[1]


def test_a_key_is_asked_for_as_before(proxy, upstream):
    upstream.asked.clear()
    messages = [{"role": "user", "content": "add the sum"}]
    refused = [ask(proxy, key="sk-none", model=model, messages=messages)[0] for model in ("small", VIRTUAL)]
    assert refused[0] >= 400 and refused[0] == refused[1]
    assert upstream.asked == []


def test_the_reference_serves_where_the_router_fails(failing, folder):
    for more in ({}, {"stream": True}, {}):
        status, headers, _ = chat(failing, "add a secret to the sum", **more)
        assert (status, headers[HEADER]) == (200, REFERENCE)
    assert chat(failing, "add a secret", "small")[0] == 200
    log = (folder / "fails" / "log").read_text(encoding="utf-8")
    assert log.count("the router failed with ValueError: large, the reference, serves this request (acompletion)") == 3
    assert "secret" not in log


def test_other_requests_do_not_wait_for_a_slow_router(failing):
    done = []
    slow = threading.Thread(target=lambda: done.append(chat(failing, "slow")[0]))
    slow.start()
    assert [chat(failing, "hello", "small")[0] for _ in range(5)] == [200] * 5
    assert not done
    slow.join(30)
    assert done == [200]


def test_the_proxy_does_not_start_without_a_router(given, folder):
    config = gateway.prepared(folder / "none")
    run = subprocess.run(
        gateway.command(config, gateway.free_port()), env=given | {"SAVEROUTER_ROUTER": str(folder / "missing")},
        cwd=config.parent, capture_output=True, text=True, timeout=gateway.STARTED,
    )  # fmt: skip
    assert run.returncode != 0
    assert "no saved router in missing/: it has no router.json" in run.stdout + run.stderr
