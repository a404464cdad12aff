"""The ledger as it is written: the intent before a call, the result after it, nothing ever changed.

SQLite with a journal that is deleted and everything synced: what was acknowledged survives a killed process, and one file can
be copied whenever nobody writes. One writer at a time holds a lock beside it for as long as it lives.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from filelock import FileLock, Timeout

from ..errors import SaveRouterError
from ..workloads.ledger import APPLICATION, SCHEMA, VERSION, check, refusal
from .answers import Answer
from .model import Model

KNOWN = """
SELECT i.intent, i.run, q.name, i.model, i.role, i.request, i.attempt, i.worst, r.status, r.served, r.cost,
    r.priced, r.answer, r.error
FROM intent i JOIN query q USING (query) LEFT JOIN result r USING (intent) ORDER BY i.intent
"""
INTEND = """
INSERT INTO intent (run, query, model, role, asked, request, attempt, at, worst)
SELECT ?, query, ?, ?, ?, ?, ?, ?, ? FROM query WHERE name = ? AND hash = ?
"""
SETTLE = "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
JUDGE = "INSERT INTO verdict (intent, judge, at, quality, error) VALUES (?, ?, ?, ?, ?)"


@dataclass
class Call:
    """One call: its intent, and its result once there is one (status None: it may have been billed)."""

    intent: int
    run: int
    attempt: int
    worst: float
    status: str | None = None
    served: str | None = None
    cost: float | None = None
    priced: str | None = None
    answer: str | None = None
    error: str | None = None

    @property
    def money(self) -> float:
        """What it cost, or may have."""
        return self.worst if self.cost is None else self.cost

    def usable(self, model: Model) -> bool:
        """Whether it brought an answer; one that was refused for its name is taken once the name is declared."""
        renamed = self.status == "refused" and self.priced == "usage" and self.answer is not None
        return self.status == "ok" or (renamed and self.served in model.names)


@dataclass
class Entry:
    """Commands that are written together, and whether they were."""

    commands: tuple
    row: int = 0
    done: bool = False
    error: SaveRouterError | None = None


@dataclass(frozen=True)
class Request:
    """A call to be made about a query and a model of the pool; what tells it apart is ``hash``."""

    name: str
    prompt: str
    prompt_hash: str
    task: str | None
    model: str
    role: str
    asked: Model
    messages: list
    hash: str

    @property
    def key(self) -> tuple:
        return self.name, self.model, self.role, self.hash


class Ledger:
    """The one writer of a ledger, safe between threads."""

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser().resolve()
        if self.path.suffix != ".sqlite":
            raise SaveRouterError(f"the ledger is called {self.path.name!r}; give it a name that ends in .sqlite")
        if not self.path.parent.is_dir():
            raise SaveRouterError(f"the folder of ledger {self.path.name!r} does not exist; make it first")
        self.run, self.mark, self._connection = 0, "", None
        self._guard, self._queue = Lock(), deque()
        self._lock = self._locked()
        self.calls: dict[tuple, list[Call]] = defaultdict(list)
        self.verdicts: dict[tuple[int, str], tuple[float | None, str | None]] = {}
        self.pairs: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._queries: set[tuple[str, str]] = set()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _locked(self) -> FileLock:
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=0, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise SaveRouterError(
                f"another run writes to ledger {self.path.name}; wait for it, or close it (feedback.close()). Further queries "
                "share a ledger through feedback.also(queries), and read_ledger reads it at any time"
            ) from None
        except (OSError, NotImplementedError) as error:
            raise SaveRouterError(
                f"ledger {self.path.name} cannot be locked here ({type(error).__name__}); put it into a folder on a local disk"
            ) from None
        return lock

    def _open(self) -> None:
        import sqlite3

        try:
            self._connection = sqlite3.connect(self.path, timeout=5, isolation_level=None, check_same_thread=False)
            if self.path.stat().st_size == 0:
                self._connection.executescript(
                    f"PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; "
                    f"PRAGMA user_version = {VERSION}; {SCHEMA} COMMIT;"
                )
            check(self._connection, self.path)
            for setting in ("journal_mode = DELETE", "synchronous = FULL", "foreign_keys = ON"):
                self._connection.execute(f"PRAGMA {setting}")
            self._read()
        except sqlite3.Error as error:
            raise refusal(self.path, error) from None

    def _read(self) -> None:
        """Everything that was bought before."""
        ask = self._connection.execute
        self._queries = set(ask("SELECT name, hash FROM query").fetchall())
        for intent, run, name, model, role, request, attempt, worst, *result in ask(KNOWN).fetchall():
            self._note((name, model, role, request), Call(intent, run, attempt, worst, *result))
        for intent, judge, quality, error in ask(
            "SELECT intent, judge, quality, error FROM verdict ORDER BY verdict"
        ).fetchall():
            self.verdicts[intent, judge] = quality, error
        (self.run,) = ask("SELECT coalesce(max(run), 0) FROM run").fetchone()

    def _note(self, key: tuple, call: Call) -> None:
        self.calls[key].append(call)
        name, model, role, request = key
        if role == "answer":
            self.pairs[name, model].add(request)

    def _write(self, *commands: tuple[str, tuple], wait: bool = True) -> int:
        """All of the commands or none, on the disk when it returns; the number of the last row.

        Who waits for the disk takes along what others wrote meanwhile: one sync serves all workers.
        """
        entry = Entry(commands)
        self._queue.append(entry)
        if wait:
            self.flush(entry)
        return entry.row

    def flush(self, entry: Entry | None = None) -> None:
        """Everything written so far is on the disk when it returns."""
        with self._guard:
            if entry is None or not entry.done:
                self._commit()
        if entry is not None and entry.error is not None:
            raise entry.error

    def _commit(self) -> None:
        import sqlite3

        entries = [self._queue.popleft() for _ in range(len(self._queue))]
        if not entries:
            return
        error = None
        try:
            if self._connection is None:
                raise SaveRouterError(
                    f"ledger {self.path.name} was closed; make LiveFeedback anew with the same ledger"
                )
            self._connection.execute("BEGIN IMMEDIATE")
            for entry in entries:
                for command, values in entry.commands:
                    entry.row = self._connection.execute(command, values).lastrowid
            self._connection.execute("COMMIT")
        except SaveRouterError as closed:
            error = closed
        except Exception as failed:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            error = refusal(self.path, failed)
        for entry in entries:
            entry.error, entry.done = error, True

    def begin(self, limit: float, terms: str) -> None:
        """A run: its cap, its pool and its prices."""
        self.mark = f"{self.path.name} {time.time_ns()}"
        self.run = self._write(("INSERT INTO run (at, max_spend, terms) VALUES (?, ?, ?)", (time.time(), limit, terms)))

    def intend(self, request: Request, worst: float) -> Call:
        """On the disk before the call is made."""
        known = self.calls[request.key]
        attempt = 1 + max((call.attempt for call in known), default=0)
        place, commands = (request.name, request.prompt_hash), []
        if place not in self._queries:
            values = (*place, request.prompt, request.task)
            commands.append(("INSERT OR IGNORE INTO query (name, hash, prompt, task) VALUES (?, ?, ?, ?)", values))
        asked = (request.model, request.role, request.asked.sent, request.hash)
        commands.append((INTEND, (self.run, *asked, attempt, time.time(), worst, *place)))
        call = Call(self._write(*commands), self.run, attempt, worst)
        self._queries.add(place)
        self._note(request.key, call)
        return call

    def settle(
        self, call: Call, status: str, cost: float, priced: str, answer: Answer | None = None, error: str | None = None,
        seconds: float | None = None,
    ) -> None:  # fmt: skip
        """The result of a call."""
        found = answer or Answer()
        told = (found.served, found.reply, found.input_tokens, found.output_tokens, cost, priced, found.text, error)
        self._write((SETTLE, (call.intent, time.time(), seconds, status, *told)))
        call.status, call.served, call.cost, call.priced = status, found.served, cost, priced
        call.answer, call.error = found.text, error

    def judge(self, call: Call, judge: str, quality: float | None, error: str | None) -> None:
        """What a judge said of an answer; it goes to the disk with what is written next, as it could be asked again."""
        self._write((JUDGE, (call.intent, judge, time.time(), quality, error)), wait=False)
        self.verdicts[call.intent, judge] = quality, error

    @property
    def spent(self) -> float:
        """The sum of all known costs."""
        return sum(call.cost for calls in self.calls.values() for call in calls if call.cost is not None)

    @property
    def doubt(self) -> float:
        """The worst cases of all calls without a result."""
        return sum(call.worst for calls in self.calls.values() for call in calls if call.cost is None)

    def close(self) -> None:
        """Let the file go."""
        if self._connection is not None:
            self.flush()
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._lock.release()
