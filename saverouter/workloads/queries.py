"""What a router may see of a workload before it buys anything: the inputs, never an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd

from ..encoders import minilm_vectors
from ..errors import SaveRouterError


class HasQueries(Protocol):
    """A workload, or anything else that knows its queries."""

    @property
    def queries(self) -> Queries: ...


Asked: TypeAlias = "Queries | HasQueries | str | Iterable[str]"  # what a router may be asked about


@dataclass(frozen=True, eq=False)
class Queries:
    """Prompts, and what is known of them: task labels, vectors, names, the pool, and which of its models can be asked."""

    prompts: np.ndarray
    tasks: np.ndarray | None = None
    vectors: np.ndarray | None = None
    ids: np.ndarray | None = None
    models: tuple[str, ...] = ()
    available: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.prompts)

    def __repr__(self) -> str:
        return f"<Queries: {len(self):,}{' with vectors' if self.vectors is not None else ''}>"

    @classmethod
    def of(cls, source: Asked) -> Queries:
        """Accept ``Queries``, a ``Workload``, one prompt, or a sequence of prompts."""
        source = getattr(source, "queries", source)
        if isinstance(source, Queries):
            return source
        if isinstance(source, (pd.DataFrame, Mapping)):
            raise SaveRouterError(
                f"queries are a {type(source).__name__}; give the prompts alone, e.g. table['prompt'], or a workload: "
                "saverouter.from_frame(table)"
            )
        try:
            prompts = [source] if isinstance(source, str) else list(source)
        except TypeError:
            raise SaveRouterError(
                f"queries are {source!r}; expected a prompt, a list of prompts, or work.queries"
            ) from None
        for row, prompt in enumerate(prompts):
            if not isinstance(prompt, str) or not prompt.strip():
                raise SaveRouterError(f"prompt {row} is {prompt!r}; expected a non-empty string")
        return cls(prompts=as_texts(prompts))

    def take(self, rows: np.ndarray | slice) -> Queries:
        """Some of the queries, in the given order."""
        parts = {name: getattr(self, name) for name in ("prompts", "tasks", "vectors", "ids", "available")}
        return replace(self, **{name: part[rows] for name, part in parts.items() if part is not None})

    def embed(self) -> np.ndarray:
        """(n, D) unit vectors: the workload's own where it brings some, else MiniLM of the prompts."""
        return self.vectors if self.vectors is not None else minilm_vectors(self.prompts)


def as_texts(values: Sequence) -> np.ndarray:
    """An array of strings; what is missing stays None, to be refused where it matters."""
    out = np.empty(len(values), dtype=object)
    out[:] = [v if isinstance(v, str) else v if v is None else str(v) for v in values]
    return out
