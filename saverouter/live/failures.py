"""What a call that failed means for the bill, and for the next try.

The rule is to count too much and never to pay twice. *Not billed* is taken for certain only where the request never left
(refused or failed connection) or where the server answered with an error of its own: 4xx, 429, 500, 503 and 529. That
providers do not bill these is an assumption; it is theirs to keep. A timeout, a dropped connection, 408, 502, 504 and every
other 5xx, behind which a model may have answered, and anything unknown may have been billed.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from json import JSONDecodeError

from .client import BadBody, OutOfTime

UNBILLED = (429, 500, 503, 529)  # an error of the server's own: may be tried again
NEVER_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ConnectionRefusedError", "gaierror")
HOPELESS = ("LocalProtocolError", "InvalidURL", "UnsupportedProtocol", "SaveRouterError")
UNFIT = (
    "context_length_exceeded",
    "string_above_max_length",
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
)
TOO_LONG = re.compile(
    r"context (length|window)|prompt is too long|too many tokens", re.I
)  # where there is no code for it
EMPTY = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
REMEDY = {
    401: "the key is refused: check the environment variable",
    402: "there is nothing left to spend with this key: add credit, then resume",
    403: "the key may not use this model: check its rights, or the region",
    404: "there is no such model or address: check asked= and endpoint= of the model",
}


@dataclass(frozen=True)
class Failure:
    """kind : "again" (not billed, may be tried again), "stop" (not billed, no call can succeed), "unfit" (not billed, this query
    cannot be answered), "refused" (answered, billed at its worst case), "unsure" (may have been billed)
    """

    kind: str
    text: str
    wait: float | None = None


def failure_of(error: BaseException) -> Failure:
    """What to make of an exception, of the ``openai`` package or of a client of one's own."""
    if isinstance(error, OutOfTime):
        return Failure("unsure", str(error))
    if isinstance(error, (BadBody, JSONDecodeError)):
        return Failure("refused", f"{error}")
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _of_status(status, error)
    chain = _names(error)
    if chain.intersection(HOPELESS):
        return Failure("stop", f"the call could not be made: {error}")
    if chain.intersection(NEVER_SENT):
        return Failure("again", f"no connection ({error})")
    return Failure("unsure", f"{type(error).__name__}: {error}")


def _of_status(status: int, error: BaseException) -> Failure:
    text, code = f"{status}: {error}", str(getattr(error, "code", None))
    kind = getattr(error, "type", None)
    if status in (400, 403, 429) and (code in EMPTY or kind in EMPTY or "insufficient_quota" in str(error)):
        return Failure(
            "stop", f"the quota of the key is exhausted ({text}); raise it or wait for the next period, then resume"
        )
    if status == 429:
        return Failure("again", text, wait_asked(_headers(error)))
    if status in UNBILLED:
        return Failure("again", text, wait_asked(_headers(error)))
    if status == 413 or (status in (400, 422) and (code in UNFIT or TOO_LONG.search(text))):
        return Failure("unfit", text)
    if 400 <= status < 500 and status != 408:
        return Failure(
            "stop", f"{text}: {REMEDY.get(status, 'the request is refused: check the options of the model')}"
        )
    return Failure("unsure", text)


def _headers(error: BaseException) -> Mapping:
    headers = getattr(getattr(error, "response", None), "headers", None) or getattr(error, "headers", None) or {}
    return {str(name).lower(): str(value) for name, value in dict(headers).items()}


def _names(error: BaseException | None) -> set[str]:
    """Of the exception and of its causes; what was merely under way when it was raised may be an earlier attempt."""
    found = set()
    while error is not None and len(found) < 20:
        found.update(kind.__name__ for kind in type(error).__mro__)
        error = error.__cause__
    return found


def wait_asked(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a server asks to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as a date; None without sense."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "nan")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        when = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(when - (time.time() if now is None else now), 0.0)
