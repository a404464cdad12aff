"""Keys: read from the environment, and taken out of every text that is written or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace

from ..errors import SaveRouterError
from .answers import Answer
from .model import Model


def key_of(model: Model) -> str:
    """The key, from the environment and nowhere else."""
    if model.key is None:
        return "none"
    value = os.environ.get(model.key, "").strip()
    if not value:
        raise SaveRouterError(
            f"the environment variable {model.key} is not set; it should hold the key of model {model.name!r} "
            "(key=None for a server that wants none)"
        )
    return value


class Redacted:
    """Takes keys out of texts that others wrote: answers, and error messages that echo a request."""

    LOOKS_LIKE = re.compile(r"\bsk-[\w*.-]{4,}|\S*\*{3,}\S*|(?i:bearer)\s+\S+")

    def __init__(self, models: Iterable[Model]):
        self.variables = sorted({model.key for model in models if model.key})

    def __call__(self, text: str | None) -> str | None:
        """Without the keys themselves."""
        for variable in self.variables:
            value = os.environ.get(variable, "").strip()
            if text and len(value) >= 4:
                text = text.replace(value, "[key]")
        return text

    def error(self, text: object, longest: int = 300) -> str:
        """Without anything that looks like a key, and short."""
        return (
            " ".join(self.LOOKS_LIKE.sub("[key]", self(str(text)) or "").split())[:longest]
            .encode("utf-8", "replace")
            .decode()
        )

    def answer(self, found: Answer) -> Answer:
        """An answer whose texts may echo the request."""
        wrong = None if found.wrong is None else self.error(found.wrong)
        return replace(found, text=self(found.text), served=self(found.served), reply=self(found.reply), wrong=wrong)
