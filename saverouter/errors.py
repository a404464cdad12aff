"""The one exception users meet: it names the thing, the place and the remedy."""


class SaveRouterError(ValueError):
    """Input that cannot be used, with the place and the remedy in its message."""
