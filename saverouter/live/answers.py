"""What a server answered, checked: text, the model that served it, and what it counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_TOKENS = 10**9


@dataclass(frozen=True)
class Answer:
    """One chat completion; ``wrong`` says why it cannot be used, None where it can."""

    text: str | None = None
    served: str | None = None
    reply: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    wrong: str | None = None

    @property
    def counted(self) -> bool:
        """Whether the server said how many tokens it bills."""
        return self.input_tokens is not None and self.output_tokens is not None


def answer_of(raw: object, names: tuple[str, ...]) -> Answer:
    """The answer in a response from a server that was asked for the first of ``names``."""
    body = raw
    if hasattr(raw, "model_dump"):
        try:
            body = raw.model_dump(warnings=False)
        except Exception:
            body = None
    if not isinstance(body, Mapping):
        return Answer(wrong=f"the response is a {type(raw).__name__}, not a chat completion")
    served, text = _text(body.get("model")), _content(body)
    counts = _counts(body.get("usage"), text)
    found = (text, served, _text(body.get("id")), *counts)
    if None in counts:
        return Answer(*found, wrong="the response does not say how many tokens it bills (usage)")
    if served not in names:
        return Answer(
            *found,
            wrong=f"served by {served!r}, asked for {names[0]!r}: declare it among aliases if that is the same",
        )
    if text is None:
        return Answer(*found, wrong="the response holds no text")
    return Answer(*found)


def _counts(usage: object, text: str | None) -> tuple[int | None, int | None]:
    """Tokens of the request and of the answer.

    Some servers count what a model thought in the total only, and bill it all the same. Zeros stand where a server did not
    count: a text has tokens.
    """
    if not isinstance(usage, Mapping):
        return None, None
    asked, said, total = (_count(usage.get(f"{part}_tokens")) for part in ("prompt", "completion", "total"))
    if asked is None or said is None:
        return asked, said
    said = max(said, (total or 0) - asked)
    return asked, said if said or not text else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _text(value: object) -> str | None:
    """A text that can be written: half characters, as a server can send, are replaced."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _content(body: Mapping) -> str | None:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    return _text(message.get("content")) if isinstance(message, Mapping) else None
