"""The one exception users meet: it names the thing, the place and the remedy."""

from difflib import get_close_matches


class SaveRouterError(ValueError):
    """Input that cannot be used, with the place and the remedy in its message."""


def did_you_mean(name: str, known, cutoff: float = 0.6) -> str:
    """ "did you mean 'x'? " where a known name is close, else nothing."""
    close = get_close_matches(str(name), list(known), n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}? " if close else ""
