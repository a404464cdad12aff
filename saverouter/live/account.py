"""One cap, one ledger and one client, shared by every meter over them: how a call is bought, and when all of it stops."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from threading import Event, Lock, RLock

from ..errors import SaveRouterError, number, whole
from ..files import digest_of
from .answers import Answer, answer_of
from .budget import Budget
from .client import OpenAIClient, within
from .failures import Failure, failure_of
from .judges import Question
from .keys import Redacted
from .ledger import Call, Ledger, Request
from .model import Model
from .prices import PriceTable

ENDINGS = {"refused": "refused", "unfit": "gave_up", "again": "gave_up"}  # of a failure, where no other attempt is made
DECIDED = ("ok", "refused", "gave_up", "written_off")  # results after which a call is not made again
GRACE = 0.5  # seconds that a client may take to notice that its time is over


@dataclass(frozen=True)
class Patience:
    """How long and how often to try.

    timeout : seconds for one call from connecting to the last byte
    attempts : how often a call is made that certainly was not billed
    total : seconds from the first attempt of a call after which no other is made; each is given the whole timeout, since one
        that ends for lack of time may be billed
    in_row : outcomes in a row that cannot be used, after which all stops
    """

    timeout: float = 60.0
    attempts: int = 6
    total: float = 300.0
    in_row: int = 10
    first_wait: float = 0.5
    longest_wait: float = 30.0

    def __post_init__(self):
        for name in ("timeout", "total"):
            number(f"{name} of patience", getattr(self, name), "seconds, above 0", least=1e-6)
        for name in ("attempts", "in_row"):
            whole(f"{name} of patience", getattr(self, name), 1)


@dataclass
class Hold:
    """Money set aside, and what is left of it."""

    left: float


class Account:
    """Buys calls within a cap, and writes down every one of them."""

    def __init__(
        self, ledger: Ledger, budget: Budget, prices: PriceTable, client: Callable, redacted: Redacted, *, workers: int,
        patience: Patience, resolve: str | None, sleep: Callable[[float], object] | None,
    ):  # fmt: skip
        self.ledger, self.budget, self.prices, self.client, self.redacted = ledger, budget, prices, client, redacted
        self.workers, self.patience, self.resolve = workers, patience, resolve
        self.stopped: str | None = None
        self._halt, self._turn, self._guard = Event(), RLock(), Lock()
        self._sleep = self._halt.wait if sleep is None else sleep
        self._in_row = 0

    def run(self, tasks: list[Callable[[], None]]) -> None:
        """All tasks, several at a time; where one of them stops the account, those under way are finished and no other begins."""
        with self._turn:
            self.stopped = None
            self._halt.clear()
            self.budget.go()
            try:
                self._work(tasks)
            finally:
                self.ledger.flush()

    def _work(self, tasks: list[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(max(1, min(self.workers, len(tasks)))) as pool:
            try:
                for future in [pool.submit(self._unless_stopped, task) for task in tasks]:
                    future.result()
            except BaseException as error:  # the pool waits for what is under way
                self.stop("interrupted" if isinstance(error, KeyboardInterrupt) else self.redacted.error(error))
                raise

    def _unless_stopped(self, task: Callable[[], None]) -> None:
        if self.stopped is not None:
            return
        try:
            task()
        except Exception as error:
            self.stop(self.redacted.error(error, 1_000))
            if not isinstance(error, SaveRouterError):
                raise

    def stop(self, reason: str) -> None:
        """No further call; the first reason is the one that is told."""
        with self._guard:
            self.stopped = self.stopped or reason
        self.budget.stop()
        self._halt.set()

    def report(self) -> SaveRouterError:
        """Why it stopped, what was spent, and how to go on."""
        budget, currency, calls = self.budget, f" {self.prices.currency}".rstrip(), list(self.ledger.calls.values())
        unsure = sum(call.cost is None for known in calls for call in known)
        doubt = (
            f", and up to {budget.doubt:.6g} more may be billed for {unsure} calls without a certain result"
            if unsure
            else ""
        )
        return SaveRouterError(
            f"{self.stopped.rstrip('.')}. {budget.spent:.6g} of max_spend={budget.limit:g}{currency} are spent{doubt}. "
            f"Every call stands in ledger {self.ledger.path.name}: close() this, make LiveFeedback anew with the same ledger "
            "and do the same again; what was bought is replayed, not paid again"
        )

    def request(self, question: Question, model: str, role: str, asked: Model, messages: list[dict]) -> Request:
        """What is asked, with the hash that tells it apart: name, address, options and messages."""
        what = digest_of(asked.sent, asked.endpoint, asked.options, messages)
        return Request(
            question.id, question.prompt, digest_of(question.prompt), question.task, model, role, asked, messages, what
        )

    def known(self, request: Request) -> Call | None:
        """The call that was made before and is not made again; None where it can be bought."""
        calls = self.ledger.calls.get(request.key, [])
        for call in reversed(calls):
            again = call.status == "gave_up" and self.resolve == "retry" and call.run != self.ledger.run
            if call.status in DECIDED and not again:
                return call
        unsure = [call for call in calls if call.status is None]
        mine = [call for call in unsure if call.run == self.ledger.run]
        if mine:
            return mine[-1]
        if unsure and self.resolve is None:
            raise SaveRouterError(
                f"the call of model {request.model!r} for query {request.name!r} was begun by an earlier run and has no "
                f"result: it may have been billed, up to {unsure[-1].worst:.4g}. Say resolve='retry' to make it again, or "
                "resolve='write off' to leave its outcome missing; either way it stays on the bill at that price "
                "(read_ledger(path).ambiguous lists all)"
            )
        for call in unsure:
            self.ledger.settle(call, "retried" if self.resolve == "retry" else "written_off", call.worst, "worst case")
            self.budget.settle(0.0, call.worst, -call.worst)
        return unsure[-1] if unsure and self.resolve == "write off" else None

    @contextmanager
    def holding(self, amount: float) -> Iterator[Hold | None]:
        """Set money aside; where it does not fit into the cap, all stops and there is None."""
        if not self.budget.reserve(amount):
            self.stop("the cap is reached: the next call may cost more than is left of it")
            yield None
            return
        hold = Hold(amount)
        try:
            yield hold
        finally:
            self.budget.done(hold.left)

    def bought(self, request: Request, worst: float, hold: Hold | None) -> Call | None:
        """``buy`` out of what is held already, or else of money set aside for it."""
        if hold is not None:
            return self.buy(request, worst, hold)
        with self.holding(worst) as own:
            return None if own is None else self.buy(request, worst, own)

    def buy(self, request: Request, worst: float, hold: Hold) -> Call | None:
        """Make a call whose worst case is reserved, and book what became of it; None where all stopped before it was made."""
        began, owed, chance = time.monotonic(), {}, random.Random(request.hash)
        try:
            for attempt in count(1):
                if self.stopped is not None:
                    return None
                call = self.ledger.intend(request, worst)
                owed, start = {"doubt": worst}, time.monotonic()  # in doubt until its result stands in the ledger
                ending = self._ask(call, request)
                now = time.monotonic()
                if isinstance(ending, Answer):
                    owed = {"cost": self._received(call, request, ending, now - start)}
                    return call
                if ending.kind == "unsure":
                    call.error = f"may have been billed: {ending.text}"
                    return call
                wait, left = self._wait(ending, attempt, chance), self.patience.total - (now - began)
                again = ending.kind == "again" and attempt < self.patience.attempts and wait < left
                too_long = ending.kind == "again" and ending.wait is not None and wait >= left
                status = "failed" if again or too_long or ending.kind == "stop" else ENDINGS[ending.kind]
                cost = worst if status == "refused" else 0.0
                priced = "worst case" if cost else "nothing"
                self.ledger.settle(call, status, cost, priced, error=ending.text, seconds=now - start)
                owed = {"cost": cost}
                if status != "failed":
                    return call
                if not again:
                    asked = f", and asks to wait {wait:.6g} s" if too_long else ""
                    self.stop(f"model {request.asked.name!r}: {ending.text}{asked}")
                    return None
                self._sleep(wait)
        finally:
            self.budget.settle(worst, **owed)
            hold.left -= worst

    def _ask(self, call: Call, request: Request) -> Answer | Failure:
        timeout = self.patience.timeout
        once = digest_of(self.ledger.mark, call.intent)
        ask = partial(self.client, once=once) if isinstance(self.client, OpenAIClient) else self.client
        try:
            raw = within(timeout + GRACE, partial(ask, request.asked, request.messages, timeout))
        except Exception as error:
            failure = failure_of(error)
            return replace(failure, text=self.redacted.error(failure.text))
        return self.redacted.answer(answer_of(raw, request.asked.names))

    def _wait(self, failure: Failure, attempt: int, chance: random.Random) -> float:
        """As long as the server asks, else twice as long every time, with some chance so that not all come back at once."""
        if failure.wait is not None:
            return failure.wait
        return min(self.patience.first_wait * 2 ** (attempt - 1), self.patience.longest_wait) * chance.uniform(0.5, 1.0)

    def _received(self, call: Call, request: Request, found: Answer, seconds: float) -> float:
        """A server answered: its cost, which is kept whatever the answer is."""
        cost, priced = call.worst, "worst case"
        if found.counted:
            tokens = found.input_tokens, found.output_tokens
            cost, priced = self.prices.billed(request.asked, found.served, *tokens), "usage"
        status = "ok" if found.wrong is None else "refused"
        self.ledger.settle(call, status, cost, priced, answer=found, error=found.wrong, seconds=seconds)
        if cost > call.worst:
            self.stop(
                f"model {request.asked.name!r} billed {cost:.6g} for query {request.name!r}, more than the {call.worst:.6g} "
                "that the request allows: the server does not keep to max_tokens, adds to the prompt, or lets another model "
                "answer. The real cost is kept; correct that first, or allow for it with a larger max_tokens"
            )
        return cost

    def tally(self, usable: bool, reason: str = "") -> None:
        """Count outcomes that cannot be used; many in a row have one cause, which more money does not cure."""
        with self._guard:
            self._in_row = 0 if usable else self._in_row + 1
            many = self._in_row >= self.patience.in_row
            if many:
                self._in_row = 0
        if many:
            self.stop(f"{self.patience.in_row} outcomes in a row cannot be used, the last because: {reason}")
