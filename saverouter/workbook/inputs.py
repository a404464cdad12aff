"""Files that a run reads because its parameters name them: where they lie, and names under which they can be shown."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from ..errors import SaveRouterError, did_you_mean
from ..files import digest_of
from ..workloads import names

LONGEST = 60  # characters of a name; with a hash behind it, it is a file name everywhere


def named_file(asked: object, typed_in: Path) -> Path | None:
    """The file that a name stands for, None for a workload that comes with the project; refused where there is neither.

    A relative path starts from the folder where it was typed, or else from ``$SAVEROUTER_DATA``.
    """
    if not isinstance(asked, (str, os.PathLike)):
        raise SaveRouterError(f"a workload is named {asked!r:.60}; expected a name or the path of a table")
    text = os.fspath(asked)
    if text in names():
        return None
    if (found := found_file(text, typed_in)) is not None:
        return found
    if text and os.path.isdir(Path(typed_in, text)):
        raise SaveRouterError(f"{text!r} is a folder; name a table in it")
    hint = did_you_mean(text, [*names(), *_beside(text, typed_in)], cutoff=0.5)
    raise SaveRouterError(
        f"no workload or file is called {text!r}; {hint}expected the path of a table (one that is relative starts where it "
        f"was typed), or one of {', '.join(names())}"
    )


def found_file(asked: object, typed_in: Path) -> Path | None:
    """The file of that path, None where it is none; a workload of the project goes before a file of its name."""
    if not isinstance(asked, (str, os.PathLike)) or asked in names():
        return None
    places = [typed_in, *filter(None, [os.environ.get("SAVEROUTER_DATA")])]
    with suppress(OSError, ValueError, RuntimeError):  # a name that no file can have, or nobody's home
        for place in places:
            path = Path(place, Path(asked).expanduser())
            if path.is_file():
                return path.resolve()
    return None


def _beside(text: str, typed_in: Path) -> list[str]:
    """Files of the folder that a path names, as it would name them."""
    folder = Path(text).parent
    with suppress(OSError, ValueError):
        return [str(folder / name) for name in sorted(os.listdir(Path(typed_in, folder)))]
    return []


def safe_name(text: str | os.PathLike) -> str:
    """A name for a folder or file that leads nowhere else: letters, digits, ``.``, ``_`` and ``-`` of a path's last part.

    Where other characters had to go, a hash keeps two names apart.
    """
    last = Path(os.fspath(text)).name
    plain = re.sub(r"[^\w.-]+", "-", last)[:LONGEST].strip(".-")
    return plain if plain and plain == last else f"{plain or 'table'}-{digest_of(last)[:8]}"
