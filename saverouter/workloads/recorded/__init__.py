"""Real outcomes that install as packages. They are read as files; no code of those packages runs."""

from .paretobandit import paretobandit

__all__ = ["paretobandit"]
