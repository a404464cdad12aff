"""A server that speaks the API on this machine, makes the mistakes it is told to, and keeps its own account."""

import json
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PRICE = (1e-6, 2e-6)  # what it bills per token, for every model
USAGE = (40, 10)  # tokens it counts for every call
BILL = USAGE[0] * PRICE[0] + USAGE[1] * PRICE[1]
BILLED = ("ok", "late", "other model", "garbage", "html", "cut", "drip", "no usage", "usage text", "list", "no choices")


class Provider:
    """answer(model, prompt) gives the text; ``faults`` are drawn by chance or played in turn.

    billed : how often it billed each (model, prompt); requests : everything it was asked, with what it did
    """

    def __init__(self, answer=lambda model, prompt: "fine", latency=0.0, late=3.0):
        self.answer, self.latency, self.late = answer, latency, late
        self.script, self.chances, self.seed = [], {}, random.Random(0)
        self.billed, self.requests, self.keys = Counter(), [], []
        self.lock = threading.Lock()
        self.headers, self.status_body = {}, None

    def fault(self):
        with self.lock:
            if self.script:
                return self.script.pop(0)
            names, weights = list(self.chances), list(self.chances.values())
            return self.seed.choices(["ok", *names], [1 - sum(weights), *weights])[0]

    def charge(self, model, prompt, fault):
        with self.lock:
            self.requests.append((model, prompt, fault))
            if fault in BILLED:
                self.billed[model, prompt] += 1

    @property
    def money(self):
        return BILL * sum(self.billed.values())


def completion(provider, model, prompt, fault):
    served = f"another {provider.keys[-1]}" if fault == "other model" else model
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": served,
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": provider.answer(model, prompt)}}],
        "usage": {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)},
    }  # fmt: skip
    if fault == "no usage":
        del body["usage"]
    if fault == "usage text":
        body["usage"]["prompt_tokens"] = "many"
    if fault == "no choices":
        body["choices"] = None
    return [body] if fault == "list" else body


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        provider, model, prompt = self.provider, asked["model"], asked["messages"][-1]["content"]
        provider.keys.append(self.headers["Authorization"])
        fault = provider.fault()
        provider.charge(model, prompt, fault)  # before anything is sent, as providers do
        time.sleep(provider.latency)
        try:
            self.reply(fault, model, prompt)
        except OSError:
            self.close_connection = True

    def reply(self, fault, model, prompt):
        if fault.isdigit():
            status, _, _ = fault.partition(" ")
            return self.error(int(status), {"message": f"no: {self.headers['Authorization']}", "code": None})
        if fault == "quota":
            return self.error(429, {"message": "You exceeded your current quota", "code": "insufficient_quota"})
        if fault.startswith("wait "):
            name, value = {
                "seconds": ("Retry-After", "0.01"), "date": ("Retry-After", formatdate(time.time() - 5, usegmt=True)),
                "ms": ("retry-after-ms", "12"), "nonsense": ("Retry-After", "soon"), "hour": ("Retry-After", "3600"),
            }[fault.removeprefix("wait ")]  # fmt: skip
            return self.error(429, {"message": "slow down", "code": "rate_limit_exceeded"}, {name: value})
        if fault == "too long":
            return self.error(400, {"message": "too many tokens", "code": "context_length_exceeded"})
        if fault == "drop":
            self.close_connection = True
            return self.connection.close()
        if fault == "late":
            time.sleep(self.provider.late)
        text = json.dumps(completion(self.provider, model, prompt, fault)).encode()
        if fault == "garbage":
            text = text[: len(text) // 2] + b"}"
        if fault == "html":
            text = b"<html>" + self.headers["Authorization"].encode() + b" is busy</html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if fault == "html" else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(text[:20])
            self.close_connection = True
            return
        if fault == "drip":
            for place in range(len(text)):
                self.wfile.write(text[place : place + 1])
                self.wfile.flush()
                time.sleep(self.provider.late / 10)
            return
        self.wfile.write(text)

    def error(self, status, error, headers=()):
        text = json.dumps({"error": {"type": "error", **error}}).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_):
        pass


@contextmanager
def serving(provider):
    """The provider's address; it serves until the end."""
    server = Quiet(("127.0.0.1", 0), type("Handler", (Handler,), {"provider": provider}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
