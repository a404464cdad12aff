"""The meter over real models: it buys an outcome by calling the model and asking the judge, and never pays for one twice."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import SaveRouterError, number, one_of, whole
from ..files import digest_of
from ..progress import say
from ..workloads import Asked, Feedback, Queries
from ..workloads.ledger import NO_OUTCOME
from .account import Account, Hold, Patience
from .budget import Budget
from .client import OpenAIClient
from .estimate import Estimate, estimate_of
from .judges import ModelJudge, Question, judge_of, judged, name_of_judge, refuse_without_reference
from .keys import Redacted, key_of
from .ledger import Call, Ledger, Request
from .model import Model
from .prices import BYTES_PER_TOKEN, PriceTable, price_table

RESOLVE = ("retry", "write off")


@dataclass(frozen=True)
class Outcome:
    """Of a pair: quality (NaN where it cannot be used, and why), cost of the answer, and what was paid beside it."""

    quality: float
    cost: float
    extra: float
    reason: str = ""


class LiveFeedback(Feedback):
    """Buys outcomes from real models, within a cap, and writes every call into a ledger.

    Parameters
    ----------
    queries : prompts, ``Queries`` or a workload, whose outcomes are not looked at
    models : the pool, as ``Model``
    judge : "exact", "contains", "regex", "numeric", "choice", ``judge_model(...)``, or a function ``(question, answer) -> 0..1``
    prices : ``{model: (input, output) per token}``, or a ``PriceTable`` with currency, date and source
    max_spend : the most that may be spent through the ledger in all, by this run, those before it, and other meters
    references : what the judge compares with, one per query in their order, or a dict by query id
    workers : calls at a time
    ledger : path of the SQLite file; one that exists is resumed. It holds prompts and answers, and no key
    resolve : what becomes of calls of earlier runs that may have been billed: "retry" or "write off"; None stops when one of
        them is asked for
    patience : timeouts, attempts and waits
    client : who calls, ``(model, messages, timeout) -> response``, from several threads; by default the ``openai`` package
    available : (n, M) mask of the pairs that may be asked, or None for all
    seconds : how long a call is expected to take, for estimates
    sleep : how to wait between attempts
    """

    lacks = True

    def __init__(
        self, queries: Asked, models: Sequence[Model], *, judge: Callable | ModelJudge | str,
        prices: PriceTable | Mapping | None = None, max_spend: float | None = None, references: Sequence | Mapping | None = None,
        workers: int = 8, ledger: str | Path = "bought.sqlite", resolve: str | None = None, patience: Patience | None = None,
        client: Callable | None = None, available: np.ndarray | None = None, seconds: float = 2.0,
        sleep: Callable[[float], object] | None = None,
    ) -> None:  # fmt: skip
        self.pool = _pool(models)
        self.judge = judge_of(judge)
        self._judge_name = name_of_judge(self.judge)
        judges = [self.judge.model] if isinstance(self.judge, ModelJudge) else []
        everyone, table = [*self.pool, *judges], price_table(prices)
        terms = table.to_dict(everyone)  # an unknown price stops here
        whole("workers", workers, 1)
        self.seconds = number("seconds", seconds)
        if resolve is not None:
            one_of("resolve", resolve, RESOLVE)
        client = OpenAIClient() if client is None else client
        if isinstance(client, OpenAIClient):
            for model in everyone:
                key_of(model)
        Budget(max_spend, 0.0, 0.0)  # no start without a cap
        self._table = table
        self._meter(queries, references, available)
        book = Ledger(ledger)
        try:
            book.begin(max_spend, terms | {"pool": list(self.models), "judge": self._judge_name})
            self._account = Account(
                book, Budget(max_spend, book.spent, book.doubt), table, client, Redacted(everyone), workers=workers,
                patience=patience or Patience(), resolve=resolve, sleep=sleep,
            )  # fmt: skip
        except BaseException:
            book.close()
            raise

    def _meter(self, queries: Asked, references: Sequence | Mapping | None, available: np.ndarray | None) -> None:
        """An empty meter over these queries."""
        names = tuple(model.name for model in self.pool)
        given = Queries.of(queries)
        if not len(given):
            raise SaveRouterError("there are no queries to ask; give at least one prompt")
        ids = _ids(given)
        mask = np.ones((len(given), len(names)), dtype=bool) if available is None else np.array(available, dtype=bool)
        if mask.shape != (len(given), len(names)):
            raise SaveRouterError(
                f"available has shape {mask.shape}; expected {(len(given), len(names))}: queries and models"
            )
        super().__init__(replace(given, ids=ids, models=names, available=None if available is None else mask), names)
        self._mask, self._references = mask, _references(references, ids)
        tasks = [None] * len(given) if given.tasks is None else given.tasks
        self._questions = [Question(*row) for row in zip(ids, given.prompts, tasks, self._references, strict=True)]
        refuse_without_reference(self.judge, self._questions)
        self._known: dict[tuple[int, int], Outcome] = {}
        self._counted: set[tuple[int, int]] = set()
        self._extra, self._announced = 0.0, False

    def also(
        self, queries: Asked, *, references: Sequence | Mapping | None = None, available: np.ndarray | None = None
    ) -> LiveFeedback:
        """A meter over other queries, with the same models, judge, ledger and cap: fresh queries for a certificate."""
        other = copy.copy(self)
        other.certified = False
        other._meter(queries, references, available)
        return other

    def available(self, queries: Asked | None = None) -> np.ndarray:
        """(n, M) mask of the models that can be asked: all, unless a mask was given."""
        if queries is None or len(queries) == len(self):
            return self._mask
        return np.ones((len(queries), len(self.models)), dtype=bool)

    @property
    def batch(self) -> int:
        return max(1, min(128, len(self) // 10))

    @property
    def prices(self) -> np.ndarray:
        """(M,) what a call is expected to cost on average: of the prices, the prompts' lengths and the bounds of answers."""
        return self._expected()[1].mean(axis=0)

    @property
    def spent(self) -> float:
        """C_0: everything paid for the outcomes revealed, judges and repeated calls included; a pair counts once."""
        return self._spent + self._extra

    @property
    def observations(self) -> pd.DataFrame:
        """What was bought, in order: row, query_id, model, quality (NaN where it cannot be used), cost, extra."""
        table = super().observations
        columns = [self._position[name] for name in table["model"]]
        extra = [self._known[pair].extra for pair in zip(table["row"].tolist(), columns, strict=True)]
        return table.assign(extra=np.array(extra, dtype=np.float64))

    @property
    def quarantined(self) -> pd.DataFrame:
        """Outcomes that were asked for and cannot be used: query_id, model, reason, cost."""
        rows = [
            (self._name(row), self.models[column], found.reason, found.cost + found.extra)
            for (row, column), found in self._known.items() if np.isnan(found.quality)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["query_id", "model", "reason", "cost"])

    @property
    def remaining(self) -> float:
        """What may still be spent through the ledger; calls that may have been billed count at their worst case."""
        budget = self._account.budget
        return max(budget.limit - budget.spent - budget.doubt, 0.0)

    def estimate(self, k: int = 1) -> Estimate:
        """Calls, money and time of buying ``k`` outcomes per query, as if nothing were bought yet."""
        whole("k", k, 1)
        each = 2 if isinstance(self.judge, ModelJudge) else 1
        pace = self.seconds / self._account.workers
        return estimate_of(*self._expected(), self._mask, k, each, pace, self._table.currency)

    def close(self) -> None:
        """Let the ledger go, for all meters over it; another run can then go on."""
        self._account.ledger.close()

    def __enter__(self) -> LiveFeedback:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _expected(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, M) worst cases, and guesses, of what a pair costs."""
        worst, guess = np.empty(self._mask.shape), np.empty(self._mask.shape)
        for column, model in enumerate(self.pool):
            for row, question in enumerate(self._questions):
                messages = model.messages(question.prompt)
                worst[row, column] = self._table.worst(model, messages) + self._judging(question)
                guess[row, column] = self._table.expected(model, _size(messages))
        if isinstance(self.judge, ModelJudge):
            for column, model in enumerate(self.pool):
                for row, question in enumerate(self._questions):
                    answer = min(self.judge.sees, model.longest * BYTES_PER_TOKEN // 2)
                    size = _size(self.judge.messages(question, "x" * answer))
                    guess[row, column] += self._table.expected(self.judge.model, size)
        return worst, guess

    def _judging(self, question: Question) -> float:
        """The worst case of judging any answer."""
        if not isinstance(self.judge, ModelJudge):
            return 0.0
        messages = self.judge.messages(question, "")
        return self._table.worst_of(self.judge.model, _size(messages) + self.judge.sees, len(messages))

    def _outcomes(self, rows, models):
        asked = list(dict.fromkeys(zip(rows.tolist(), models.tolist(), strict=True)))
        missing = [pair for pair in asked if pair not in self._known]
        account = self._account
        if missing and not self._announced:
            self._announce()
        try:
            account.run([partial(self._learn, *pair) for pair in missing])
        finally:
            if account.stopped is not None:  # what was paid is on the meter all the same
                bought = [pair for pair in asked if pair in self._known]
                self._charge(*np.array(bought, dtype=np.int64).reshape(-1, 2).T, *self._table_of(bought))
        if account.stopped is not None:
            raise account.report()
        return self._table_of(zip(rows.tolist(), models.tolist(), strict=True))

    def _table_of(self, pairs) -> tuple[np.ndarray, np.ndarray]:
        found = [self._known[pair] for pair in pairs]
        return np.array([one.quality for one in found]), np.array([one.cost for one in found])

    def _charge(self, rows, columns, quality, cost) -> None:
        """A pair that is asked for again is answered from the ledger, for nothing."""
        pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
        new = [place for place, pair in enumerate(pairs) if pair not in self._counted and pair not in pairs[:place]]
        self._counted.update(pairs)
        self._extra += sum(self._known[pairs[place]].extra for place in new)
        if new:
            super()._charge(rows[new], columns[new], quality[new], cost[new])

    def _announce(self) -> None:
        self._announced = True
        account, ledger = self._account, self._account.ledger
        budget, unit = account.budget, f" {self._table.currency}".rstrip()
        doubt = f", {budget.doubt:.4g} in doubt" if budget.doubt else ""
        say(
            f"buying from {len(self.models)} models with {account.workers} workers: one outcome for each of {len(self):,} "
            f"queries is {self.estimate(1)}; cap {budget.limit:g}{unit}, of which {budget.spent:.4g} are spent{doubt} "
            f"(ledger {ledger.path.name})"
        )
        changed = 0
        for question in self._questions:
            for model in self.pool:
                before = ledger.pairs.get((question.id, model.name), set())
                changed += bool(before) and self._request(question, model).hash not in before
        if changed:
            say(
                f"{changed:,} pairs were bought before with another prompt or other options; if asked for, they are bought anew"
            )

    def _request(self, question: Question, model: Model) -> Request:
        query = (question.id, question.prompt, question.task)
        return self._account.request(query, model.name, "answer", model, model.messages(question.prompt))

    def _learn(self, row: int, column: int) -> None:
        """Find the outcome of a pair in the ledger, or buy it; nothing where all stopped before."""
        account, question, model = self._account, self._questions[row], self.pool[column]
        request = self._request(question, model)
        call = account.known(request)
        fresh = call is None or (call.usable(model) and self._place(call, question) not in account.ledger.verdicts)
        if call is None:
            worst = self._table.worst(model, request.messages)
            with account.holding(worst + self._judging(question)) as hold:
                call = hold and account.buy(request, worst, hold)
                found = call and self._outcome(request, call, question, model, hold)
        else:
            found = self._outcome(request, call, question, model, None)
        if found:
            self._known[row, column] = found
            if fresh:
                account.tally(
                    not np.isnan(found.quality), f"{found.reason} (model {model.name!r}, query {question.id!r})"
                )

    def _place(self, call: Call, question: Question) -> tuple[int, str]:
        """Where the verdict on an answer stands: a judge that changed, or another reference, judges anew."""
        return call.intent, f"{self._judge_name} of {digest_of(question.reference)[:12]}"

    def _outcome(
        self, request: Request, call: Call, question: Question, model: Model, hold: Hold | None
    ) -> Outcome | None:
        """What became of a pair that was bought; None where all stopped before it was judged."""
        account = self._account
        beside = [other for other in account.ledger.calls[request.key] if other is not call]
        quality, reason = None, call.error or NO_OUTCOME.get(call.status, "")
        if call.usable(model):
            place = self._place(call, question)
            verdict = account.ledger.verdicts.get(place)
            asked = self._judge_request(call, question, model)
            if verdict is None:
                verdict = self._verdict(place, call, question, asked, hold)
            if verdict is None:
                return None
            quality, reason = verdict
            beside += account.ledger.calls[asked.key] if asked else []
        extra = sum(other.money for other in beside)
        return Outcome(np.nan if quality is None else quality, call.money, extra, reason or "")

    def _judge_request(self, call: Call, question: Question, model: Model) -> Request | None:
        if not isinstance(self.judge, ModelJudge):
            return None
        query = (question.id, question.prompt, question.task)
        messages = self.judge.messages(question, call.answer)
        return self._account.request(query, model.name, "judge", self.judge.model, messages)

    def _verdict(
        self, place: tuple, call: Call, question: Question, asked: Request | None, hold: Hold | None
    ) -> tuple[float | None, str | None] | None:
        """Quality or what was wrong, written down; of a judge model whose call is in doubt it is not."""
        account, grade = self._account, None
        if asked is not None:
            grade = account.known(asked) or account.bought(asked, self._table.worst(asked.asked, asked.messages), hold)
            if grade is None:
                return None
            if not grade.usable(asked.asked):
                verdict = (None, f"judge {asked.asked.name}: {grade.error or NO_OUTCOME.get(grade.status, '')}")
                if grade.status is not None:
                    account.ledger.judge(call, place[1], *verdict)
                return verdict
        try:
            said = self.judge.read(grade.answer) if grade else self.judge(question, call.answer)
            verdict = (judged(said), None)
        except Exception as error:
            verdict = (None, f"judge: {account.redacted.error(f'{type(error).__name__}: {error}')}")
        account.ledger.judge(call, place[1], *verdict)
        return verdict


def _pool(models: Sequence[Model]) -> list[Model]:
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


def _ids(queries: Queries) -> np.ndarray:
    """Names of the queries; of plain prompts, names made of the prompt, so that they stay the same in another order."""
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


def _references(given: Sequence | Mapping | None, ids: np.ndarray) -> list:
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


def _size(messages: list[dict]) -> int:
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in messages)
