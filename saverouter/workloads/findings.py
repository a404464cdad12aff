"""What a look at a table found: findings, worst first, each with what it means and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

SEVERITIES = ("blocks", "weakens", "notice")  # a verdict would be wrong; it would be weak; good to know


@dataclass(frozen=True)
class Finding:
    """One thing: how bad it is, a word for its kind, what was seen, and what to do."""

    severity: str
    kind: str
    says: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.says} {self.remedy}"


class Findings(tuple):
    """Findings, worst first; empty, and so false, where there is nothing to say."""

    __slots__ = ()

    def __new__(cls, found: Iterable[Finding] = ()) -> Findings:
        return super().__new__(cls, sorted(found, key=lambda one: SEVERITIES.index(one.severity)))

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "Nothing found that speaks against a verdict."

    __repr__ = __str__

    @property
    def blocking(self) -> Finding | None:
        """The first finding with which a verdict would be wrong."""
        return self[0] if self and self[0].severity == SEVERITIES[0] else None

    @property
    def frame(self) -> pd.DataFrame:
        """The findings as a table."""
        columns = ["severity", "what", "what to do"]
        return pd.DataFrame([(one.severity, one.says, one.remedy) for one in self], columns=columns)


def named(names: Sequence[str], most: int = 3) -> str:
    """a, b, c and 5 more."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
