"""What a long calculation tells of itself, through the logger ``saverouter``.

Without any configuration it goes to the process's own standard error: a terminal, a log file, or the log behind a
notebook's kernel. In a notebook that somebody looks at, a line below the cell shows how far it is and vanishes at the
end; ``SAVEROUTER_PROGRESS=log`` keeps it out, as headless runs do. ``logging.getLogger("saverouter").setLevel("WARNING")``
silences both.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from .errors import SaveRouterError

log = logging.getLogger("saverouter")
EVERY = 5.0  # seconds between two reports


def say(message: str) -> None:
    """One line for who listens: the handlers that were configured, else standard error."""
    if log.hasHandlers():
        log.info(message)
    elif log.level <= logging.INFO and (stream := _standard_error()):
        record = log.makeRecord(log.name, logging.INFO, __file__, 0, message, (), None)
        logging.StreamHandler(stream).handle(record)


def _standard_error() -> TextIO | None:
    """The process's own. A notebook's kernel shows all that is written there, but keeps the original aside."""
    if not _in_kernel():
        return sys.__stderr__
    original = getattr(sys.stderr, "_original_stdstream_copy", None)
    return None if original is None else os.fdopen(original, "w", closefd=False)


@contextmanager
def listening(stream: TextIO) -> Iterator[None]:
    """Inside, everything that is said goes to the stream: for a command line."""
    handler, level = logging.StreamHandler(stream), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class Progress:
    """Says every few seconds how far a calculation is, how fast, and how long it will still take."""

    def __init__(self, what: str, units: str, total: int):
        self.what, self.units, self.total = what, units, total
        self.done, self._below = 0, None
        self._start = self._last = time.monotonic()

    def add(self, number: int) -> None:
        """So many more are done; nothing is said of what takes less than a few seconds."""
        self.done += number
        now = time.monotonic()
        if now - self._last < EVERY:
            return
        self._last = now
        rate = self.done / (now - self._start)
        left = duration((self.total - self.done) / rate) if self.done else "an unknown time"
        message = f"{self.what}: {self.done:,} of {self.total:,} {self.units}, {rate:,.3g} per second, {left} left"
        say(message)
        if watched():
            self._show(message)

    def end(self) -> None:
        """Nothing is left of it in a notebook."""
        if self._below is not None:
            self._show("")

    def _show(self, message: str) -> None:
        from IPython.display import Pretty, display

        if self._below is None:
            self._below = display(Pretty(message), display_id=True)
        else:
            self._below.update(Pretty(message))


def exit_status(command: Callable[[], int | None], kept: str = "nothing was kept") -> int:
    """Of a command line: what the command gives, 2 for input that cannot be used, 130 where it was interrupted."""
    try:
        return command() or 0
    except SaveRouterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted: {kept}", file=sys.stderr)
        return 130


def watched() -> bool:
    """Whether somebody may be looking at a notebook; a headless run says that nobody is."""
    return _in_kernel() and log.level <= logging.INFO and os.environ.get("SAVEROUTER_PROGRESS") != "log"


def _in_kernel() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel")


def duration(seconds: float) -> str:
    """90 seconds as "90 s", 120 as "2 min"."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def counted(total: int, what: str, units: str) -> Iterator[int]:
    """0, 1, 2, ... like ``range(total)``, with reports on how far it is."""
    progress = Progress(what, units, total)
    for done in range(total):
        yield done
        progress.add(1)
    progress.end()
