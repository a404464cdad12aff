"""What calls cost: the user's own price list, a bound for every call, and a guess of what it will be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import SaveRouterError, did_you_mean, number
from .model import Model

AROUND, PER_MESSAGE = 64, 16  # tokens that a server's template may add to a request, and to each message
BYTES_PER_TOKEN = 4  # of ordinary text, for guesses only


@dataclass(frozen=True)
class PriceTable:
    """(input, output) prices per token of every model, in one currency.

    ``date`` and ``source`` say when and where they were read; they are kept in the ledger.
    """

    prices: Mapping[str, tuple[float, float]]
    currency: str = ""
    date: str = ""
    source: str = ""

    def __post_init__(self):
        for name, pair in self.prices.items():
            if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise SaveRouterError(f"the price of model {name!r} is {pair!r}; expected (input, output) per token")
            for side, price in zip(("input", "output"), pair, strict=True):
                number(f"the {side} price of model {name!r}", price, "money per token, at least 0")

    def of(self, model: Model) -> tuple[float, float]:
        """(input, output) per token; free only where the model says so."""
        given = self.prices.get(model.name)
        if model.free:
            if given is not None and any(given):
                raise SaveRouterError(f"model {model.name!r} is declared free and has a price; leave out one of them")
            return 0.0, 0.0
        if given is None:
            raise SaveRouterError(
                f"model {model.name!r} has no price; {did_you_mean(model.name, self.prices)}add it: "
                f"prices={{{model.name!r}: (input, output) per token}}, or declare it: Model({model.name!r}, free=True)"
            )
        return float(given[0]), float(given[1])

    def cost(self, model: Model, input_tokens: int, output_tokens: int) -> float:
        """Of so many tokens."""
        price = self.of(model)
        return input_tokens * price[0] + output_tokens * price[1]

    def billed(self, model: Model, served: str | None, input_tokens: int, output_tokens: int) -> float:
        """The same, of an answer: what another model served has that one's price, if it is known and dearer."""
        price, other = self.of(model), self.prices.get(served, (0.0, 0.0))
        if served not in model.names:
            price = [max(pair) for pair in zip(price, other, strict=True)]
        return input_tokens * price[0] + output_tokens * price[1]

    def worst(self, model: Model, messages: list[dict]) -> float:
        """More than a call can cost: a token is at least a byte of the request, and an answer is bounded."""
        return self.worst_of(model, size_of(messages), len(messages))

    def worst_of(self, model: Model, content: int, messages: int) -> float:
        """The same of so many bytes in so many messages."""
        around = AROUND + PER_MESSAGE * messages + bytes_of(json.dumps(model.options))
        return math.nextafter(self.cost(model, content + around, model.longest), math.inf) if not model.free else 0.0

    def expected(self, model: Model, content: float) -> float:
        """A guess for so many bytes: ordinary text, and an answer half as long as it may be."""
        return self.cost(model, content / BYTES_PER_TOKEN + PER_MESSAGE, model.longest / 2)

    def to_dict(self, models: list[Model]) -> dict:
        """What the ledger keeps of it."""
        prices = {model.name: self.of(model) for model in models}
        return {"prices": prices, "currency": self.currency, "date": self.date, "source": self.source}


def price_table(prices: PriceTable | Mapping | None) -> PriceTable:
    """The table itself, or one made of a dict."""
    if isinstance(prices, PriceTable):
        return prices
    if prices is not None and not isinstance(prices, Mapping):
        raise SaveRouterError(
            f"prices are {prices!r:.60}; expected {{model: (input, output) per token}} or a PriceTable"
        )
    return PriceTable(dict(prices or {}))


def bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def size_of(messages: list[dict]) -> int:
    """Bytes of what messages say."""
    return sum(bytes_of(message["content"]) for message in messages)
