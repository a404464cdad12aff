"""A server on this machine that speaks the API and answers as recorded: to rehearse a purchase before it costs money."""

from __future__ import annotations

import json
import time
from _thread import interrupt_main
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import numpy as np

from ..workloads import Workload
from .judges import Question
from .model import Model
from .prices import PriceTable

LONGEST = 100_000  # tokens of a model's dearest answer; the others are as long as their cost says


class Rehearsal:
    """A pool whose answers and costs are those of a recorded workload; it serves until it is closed.

    An answer is the recorded quality, which ``judge`` reads, and so long that at ``prices`` it costs what was recorded.

    Parameters
    ----------
    work : what was recorded; of equal prompts the first counts
    seconds : how long a call of mean cost takes; a dearer answer is longer and takes longer
    interrupt_after : after so many calls the main thread is interrupted, as by the stop button of a notebook

    ``calls`` and ``billed`` say how often it was asked, and what it charged.
    """

    def __init__(self, work: Workload, *, seconds: float = 0.0, interrupt_after: int | None = None):
        self.work, self.seconds, self.interrupt_after = work, seconds, interrupt_after
        self.calls, self.billed = 0, 0.0
        self._row = {prompt: row for row, prompt in reversed(list(enumerate(work.prompts)))}
        self._unit = np.nanmax(work.cost, axis=0) / LONGEST
        self._mean = np.nanmean(work.cost)
        self._lock = Lock()
        handler = type("Answering", (_Handler,), {"rehearsal": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens: on this machine alone."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def models(self) -> list[Model]:
        """The pool, as ``LiveFeedback`` wants it; no key is needed."""
        return [
            Model(name, LONGEST, self.address, key=None, free=bool(unit == 0))
            for name, unit in zip(self.work.models, self._unit, strict=True)
        ]

    @property
    def prices(self) -> PriceTable:
        """Per token: what is asked is free, and what is answered costs what was recorded."""
        return PriceTable(
            {name: (0.0, float(unit)) for name, unit in zip(self.work.models, self._unit, strict=True)},
            currency="USD" if "USD" in " ".join(self.work.provenance) else "",
            source=self.work.name,
        )

    @staticmethod
    def judge(_: Question, answer: str) -> float:
        """The recorded quality, which is the answer."""
        return float(answer)

    def answer(self, model: str, prompt: str) -> tuple[str, int]:
        """The answer and its length in tokens; KeyError where nothing was recorded."""
        row, column = self._row[prompt], self.work.models.index(model)
        quality, cost = self.work.quality[row, column], self.work.cost[row, column]
        if not np.isfinite(quality):
            raise KeyError(model)
        time.sleep(self.seconds * cost / self._mean)
        tokens = max(round(cost / self._unit[column]), 1) if self._unit[column] else 1
        with self._lock:
            self.calls += 1
            self.billed += tokens * self._unit[column]
            if self.calls == self.interrupt_after:
                interrupt_main()
        return repr(float(quality)), tokens

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(self, *_) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # workers that connect at the same moment; of more than five some would be cut off


class _Handler(BaseHTTPRequestHandler):
    """Chat completions, as the API has them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    rehearsal: Rehearsal

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            text, tokens = self.rehearsal.answer(asked["model"], asked["messages"][-1]["content"])
        except (KeyError, ValueError):
            return self._send(404, {"error": {"message": "nothing was recorded for this model and prompt"}})
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens}
        self._send(200, {"id": "rehearsal", "object": "chat.completion", "created": 0, "model": asked["model"],
                         "choices": [choice], "usage": usage})  # fmt: skip

    def _send(self, status: int, content: dict) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Nothing: a notebook shows no requests."""
