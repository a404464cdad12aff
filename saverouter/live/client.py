"""Who makes a call: the ``openai`` client, told to try once, with the whole time of a call bounded.

Anything callable as ``(model, messages, timeout) -> response`` can take its place: a response is the decoded JSON of a chat
completion, or an object that has it (``model_dump``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from ..errors import SaveRouterError
from .keys import key_of
from .model import Model

LARGEST = 50_000_000  # bytes of a body


class OutOfTime(Exception):
    """A call did not end in time: it may have been billed."""


class BadBody(Exception):
    """The server answered, so it may bill; what came cannot be read."""


class OpenAIClient:
    """Calls by the ``openai`` package, one client for each endpoint and key."""

    def __init__(self):
        self._clients: dict = {}
        self._lock = Lock()

    def prepare(self, model: Model) -> None:
        """Say now whether a package or a key is missing."""
        self._client(model)

    def _client(self, model: Model):
        try:
            import openai
        except ImportError:
            raise SaveRouterError("the package openai is missing: pip install 'saverouter-workbook[live]'") from None
        with self._lock:
            place = (model.endpoint, model.key)
            if place not in self._clients:
                self._clients[place] = openai.OpenAI(api_key=key_of(model), base_url=model.endpoint, max_retries=0)
            return self._clients[place]

    def __call__(self, model: Model, messages: list[dict], timeout: float, once: str | None = None) -> object:
        """The decoded body. ``once`` goes along as an idempotency key: a server that heeds it bills it once."""
        end = time.monotonic() + timeout
        asked = self._client(model).chat.completions.with_streaming_response.create(
            model=model.sent, messages=messages, timeout=timeout, extra_body=dict(model.options),
            extra_headers={"Idempotency-Key": once} if once else {},
        )  # fmt: skip
        with asked as response:
            body = bytearray()
            try:
                for part in response.iter_bytes():
                    body += part
                    if time.monotonic() > end:
                        raise OutOfTime(f"the body was still coming after {timeout:g} s")
                    if len(body) > LARGEST:
                        raise BadBody(f"a body of more than {LARGEST:,} bytes")
            except (OutOfTime, BadBody):
                raise
            except Exception as error:
                if "Timeout" in type(error).__name__:
                    raise OutOfTime(f"the body stopped coming for {timeout:g} s") from None
                raise BadBody(f"the body was cut off ({type(error).__name__})") from None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise BadBody(f"the body is no JSON ({len(body):,} bytes)") from None

    def close(self) -> None:
        """Let connections go."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


def within(seconds: float, call: Callable[[], object]) -> object:
    """What a call returns or raises, or ``OutOfTime``: a body that drips is left behind, in a thread that ends with it."""
    done, box = Event(), []

    def run():
        try:
            box.append((call(), None))
        except BaseException as error:
            box.append((None, error))
        done.set()

    Thread(target=run, daemon=True, name="saverouter-call").start()
    if not done.wait(seconds):
        raise OutOfTime(f"no answer after {seconds:.3g} s")
    value, error = box[0]
    if error is not None:
        raise error
    return value
