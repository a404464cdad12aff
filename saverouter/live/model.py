"""A model that can be called: its name, where it is served, how it is asked, and which variable holds its key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ..errors import SaveRouterError, whole

BOUNDS = ("max_tokens", "max_completion_tokens")  # what bounds an answer, and so its price
NOT_OPTIONS = ("model", "messages", "stream", "extra_headers", "headers", "extra_query", "api_key", "authorization")
FEES = ("web_search_options", "plugins", "models", "fallbacks", "best_of")  # cost beside the tokens, or at other prices
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class Model:
    """One model of the pool.

    Parameters
    ----------
    name : what it is called here, in tables and in the price list
    max_tokens : the longest answer it may give; without a bound no call has a worst case. ``options`` may hold
        ``max_completion_tokens`` instead, where an endpoint wants that
    endpoint : base address of an OpenAI-compatible server; None for the client's default
    asked : what the server calls it, where that is not ``name``
    aliases : further names under which the server may answer, e.g. "gpt-4o-2024-08-06"
    options : of every request, e.g. {"temperature": 0}
    key : the environment variable that holds its key, never the key itself; None where the server wants none
    free : True where calls cost nothing; else the price list must know it
    system : a message that stands before every prompt, or None
    """

    name: str
    max_tokens: int | None = None
    endpoint: str | None = None
    asked: str | None = None
    aliases: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    key: str | None = "OPENAI_API_KEY"
    free: bool = False
    system: str | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.strip():
            raise SaveRouterError(f"a model is named {self.name!r}; expected a non-empty name")
        if self.key is not None and not (isinstance(self.key, str) and VARIABLE.fullmatch(self.key)):
            raise SaveRouterError(
                f"the key of model {self.name!r} is no name of an environment variable, e.g. OPENAI_API_KEY; put the key into "
                "the environment and give the variable's name, or key=None for a server that wants none"
            )
        object.__setattr__(self, "aliases", (self.aliases,) if isinstance(self.aliases, str) else tuple(self.aliases))
        object.__setattr__(self, "options", self._checked_options())
        where = urlsplit(self.endpoint or "")
        if where.username or where.password or where.query:
            raise SaveRouterError(
                f"the endpoint of model {self.name!r} holds a user, a password or a query; give the plain address, and the key "
                "in an environment variable"
            )

    def _checked_options(self) -> dict:
        options = dict(self.options)
        if self.max_tokens is not None and not any(bound in options for bound in BOUNDS):
            options["max_tokens"] = self.max_tokens
        for name in options:
            if str(name).lower() in NOT_OPTIONS:
                raise SaveRouterError(f"option {name!r} of model {self.name!r} is not for here; leave it out")
            if str(name).lower() in FEES:
                raise SaveRouterError(
                    f"option {name!r} of model {self.name!r} costs what prices per token do not tell; leave it out"
                )
        given = [bound for bound in BOUNDS if bound in options]
        if not given:
            raise SaveRouterError(
                f"model {self.name!r} has no max_tokens; without a bound on the answer no call has a worst case: "
                f"Model({self.name!r}, max_tokens=500)"
            )
        for bound in given:
            whole(f"{bound} of model {self.name!r}", options[bound], 1)
        if options.get("n", 1) != 1:
            raise SaveRouterError(
                f"option 'n' of model {self.name!r} is {options['n']!r}; one answer is bought at a time"
            )
        try:
            json.dumps(options, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SaveRouterError(f"options of model {self.name!r} cannot be sent as JSON: {error}") from None
        return options

    @property
    def longest(self) -> int:
        """Tokens of the longest answer."""
        return max(int(self.options[bound]) for bound in BOUNDS if bound in self.options)

    @property
    def sent(self) -> str:
        """The name that is asked for."""
        return self.asked or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which it may answer."""
        return (self.sent, *self.aliases)

    def to_dict(self) -> dict:
        """What the ledger keeps of it."""
        return {"asked": self.sent, "endpoint": self.endpoint, "options": self.options, "aliases": list(self.aliases)}

    def messages(self, prompt: str) -> list[dict]:
        """What is sent for a prompt."""
        before = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*before, {"role": "user", "content": prompt}]
