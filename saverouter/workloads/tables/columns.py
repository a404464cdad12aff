"""Which column is which: headers without regard to case, spaces and hyphens, or as the user says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import pandas as pd

from ...errors import SaveRouterError, did_you_mean
from ...progress import say
from .sheet import Sheet

TOKENS = ("input_tokens", "output_tokens")
PLAIN = ("query_id", "prompt", "task", "model", "quality", "cost", *TOKENS)
OF_A_MODEL = ("quality", "cost", *TOKENS)  # in a wide table, before a colon and the model's name
SAME = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
# What others call them: offered in an error, never taken.
OTHERS = {
    "query_id": "id qid uid query_no question_id prompt_id request_id sample_id example_id item_id run_id trace_id",
    "prompt": "question query input inputs text instruction request user_prompt input_text message messages",
    "model": "llm model_name model_id engine deployment candidate",
    "quality": "score rating correct accuracy grade reward label performance stars is_correct judge_score feedback_score",
    "cost": "price usd dollars cost_usd total_cost spend amount cost_in_usd",
    "task": "category dataset benchmark domain subject",
}
SHOWN = 5  # names in a sentence


def plain(header: str) -> str:
    """A header without what does not matter."""
    return re.sub(r"[\s_-]+", "_", header.strip()).casefold()


def our_name(header: str) -> str | None:
    """What we call a column with this header, or None where it is none of ours."""
    kind, colon, model = header.partition(":")
    name = SAME.get(plain(kind), plain(kind))
    if not colon:
        return name if name in PLAIN else None
    return f"{name}:{model.strip()}" if name in OF_A_MODEL and model.strip() else None


class Columns:
    """The columns of a sheet by our names; it knows which were used."""

    def __init__(self, sheet: Sheet, given: Mapping[str, str] | None = None):
        self.sheet, self.used = sheet, set()
        self.places = defaultdict(list)
        for place, header in enumerate(sheet.headers):
            if (name := our_name(header)) is not None:
                self.places[name].append(place)
        for name, header in _checked(given, sheet).items():
            self.places[name] = self._called(name, header)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def of_models(self, kinds: Iterable[str]) -> list[str]:
        """The models of a wide table that have a column of one of these kinds, in their order."""
        parts = (name.partition(":") for name in self.places)
        return list(dict.fromkeys(model for kind, _, model in parts if model and kind in kinds))

    def take(self, name: str) -> pd.Series:
        """A column by our name."""
        places = self.places[name]
        if len(places) > 1:
            first, second = (self.sheet.headers[place] for place in places[:2])
            raise SaveRouterError(
                f"{self.sheet.name}: column {name!r} appears twice ({first!r} and {second!r}); rename one, or say which it is: "
                + self.sheet.with_option(f'columns={{"{name}": "{first}"}}')
            )
        self.used.add(places[0])
        return self.sheet.frame[places[0]]

    def header(self, name: str) -> str:
        """What the table calls a column."""
        return self.sheet.headers[self.places[name][0]]

    def need(self, *names: str) -> None:
        """Refuse a table without one of these columns, with what the missing ones may be called in it."""
        lacking = [name for name in names if name not in self]
        if not lacking:
            return
        guesses = {name: guess for name in lacking if (guess := self.guess(name))}
        which = "is it the one" if len(guesses) == 1 else "are they those"
        hint = f" ({which} called {', '.join(map(repr, guesses.values()))}?)" if guesses else ""
        pairs = ", ".join(f'"{name}": "{guesses.get(name, "...")}"' for name in lacking)
        raise SaveRouterError(
            f"{self.sheet.name} lacks column{'s' if len(lacking) > 1 else ''} {', '.join(map(repr, lacking))}{hint}; "
            f"it has {_few(self.sheet.headers, 20)}. If another header means it: "
            + self.sheet.with_option(f"columns={{{pairs}}}")
        )

    def guess(self, name: str) -> str | None:
        """The header of none of ours that probably means this column."""
        ours = {place for places in self.places.values() for place in places}
        free = {plain(header): header for place, header in self.left_out().items() if place not in ours}
        known = [other for other in OTHERS.get(name, "").split() if other in free]
        close = known or get_close_matches(plain(name), list(free), n=1, cutoff=0.8)
        return free[close[0]] if close else None

    def left_out(self) -> dict[int, str]:
        """Places and headers of the columns that were not used."""
        return {p: h.strip() for p, h in enumerate(self.sheet.headers) if p not in self.used}

    def _called(self, name: str, header: str) -> list[int]:
        exact = [place for place, found in enumerate(self.sheet.headers) if found.strip() == header.strip()]
        found = exact or [p for p, found in enumerate(self.sheet.headers) if plain(found) == plain(header)]
        if not found:
            swapped = " (our name comes first, the table's second)" if our_name(header) else ""
            raise SaveRouterError(
                f"columns says {name!r} is called {header!r}{swapped}; {did_you_mean(header, self.sheet.headers)}"
                f"{self.sheet.name} has {_few(self.sheet.headers, 20)}"
            )
        return found


def notice(left_out: list[str], in_time: list[str], name: str) -> list[str]:
    """Say once which columns were not used; the same sentence for the provenance."""
    if not left_out:
        return []
    count = f"{len(left_out)} columns are" if len(left_out) > 1 else "1 column is"
    order = f"; split(by='time', column=...) can use {_few(in_time)}" if in_time else ""
    sentence = f"{count} not used: {_few([header or 'one without a header' for header in left_out])}{order}"
    say(f"{name}: {sentence}")
    return [sentence]


def _few(names: list[str], most: int = SHOWN) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"{' '.join(name.split()):.40}" for name in names[:most]) + more


def _checked(given: Mapping[str, str] | None, sheet: Sheet) -> Mapping[str, str]:
    example = sheet.with_option('columns={"query_id": "id"}')
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise SaveRouterError(f"columns is {given!r:.60}; expected our names and the table's headers, as in {example}")
    for name in given:
        if our_name(name) != name:
            raise SaveRouterError(
                f"columns has {name!r}; {did_you_mean(name, PLAIN)}expected one of {', '.join(PLAIN)}, or quality:<model> "
                f"and cost:<model>, each with the table's header, as in {example}"
            )
    return given
