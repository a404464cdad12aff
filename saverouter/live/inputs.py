"""What a meter is given, checked before anything is bought: models, names of queries, references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import SaveRouterError
from ..files import digest_of
from ..workloads import Queries
from .model import Model


def pool_of(models: Sequence[Model]) -> list[Model]:
    pool = [models] if isinstance(models, Model) else list(models)
    for model in pool:
        if not isinstance(model, Model):
            raise SaveRouterError(f"a model is {model!r:.60}; expected a Model, e.g. Model('gpt-4o', max_tokens=500)")
    names = [model.name for model in pool]
    for name in names:
        if names.count(name) > 1:
            raise SaveRouterError(
                f"two models are called {name!r}; give each a name of its own, and asked= what the server calls it"
            )
    if not pool:
        raise SaveRouterError("there are no models; give at least one Model")
    return pool


def ids_of(queries: Queries) -> np.ndarray:
    """Names of the queries; of plain prompts, names made of the prompt, so that they stay the same in another order."""
    for row, prompt in enumerate(queries.prompts):
        if not _writable(prompt):
            raise SaveRouterError(f"prompt {row} holds half a character (a lone surrogate); read it anew, as UTF-8")
    if queries.ids is None:
        seen: dict[str, int] = {}
        ids = np.empty(len(queries), dtype=object)
        for row, prompt in enumerate(queries.prompts):
            name = f"p{digest_of(prompt)[:12]}"
            seen[name] = seen.get(name, 0) + 1
            ids[row] = name if seen[name] == 1 else f"{name}-{seen[name]}"
        return ids
    ids = np.array([*map(str, queries.ids), None], dtype=object)[:-1]
    if len(set(ids)) < len(ids):
        known: set[str] = set()
        again = next(name for name in ids if name in known or known.add(name))
        raise SaveRouterError(f"two queries are called {again!r}; the ledger needs a name for each")
    return ids


def references_of(given: Sequence | Mapping | None, ids: np.ndarray) -> list:
    if given is None:
        return [None] * len(ids)
    if isinstance(given, Mapping):
        return [_plain_value(given.get(name)) for name in ids]
    if isinstance(given, str) or len(given) != len(ids):
        size = "text" if isinstance(given, str) else len(given)
        raise SaveRouterError(
            f"references are {size} for {len(ids)} queries; give one per query, or a dict by query id"
        )
    return [_plain_value(value) for value in given]


def _plain_value(value: object) -> object:
    """Numbers of NumPy as Python's: 1 and 1 are one reference."""
    return value.item() if isinstance(value, np.generic) else value


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
