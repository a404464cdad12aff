"""The meter over real models: it buys an outcome by calling the model and asking the judge, and never pays for one twice."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import SaveRouterError, number, one_of, whole
from ..progress import say
from ..workloads import Asked, Feedback, Queries, at_once
from .account import Account, Patience
from .budget import Budget
from .client import OpenAIClient
from .estimate import Estimate, estimate_of
from .examiner import Appraiser, Examined, Examiner
from .inputs import ids_of, pool_of, references_of
from .judges import ModelJudge, Question, judge_of, name_of_judge, refuse_without_reference
from .keys import Redacted
from .ledger import Ledger
from .model import Model
from .prices import PriceTable, price_table

RESOLVE = ("retry", "write off")


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
        self.pool = pool_of(models)
        self.judge = judge_of(judge)
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
                client.prepare(model)
        Budget(max_spend, 0.0, 0.0)  # no start without a cap
        self._table, self._appraiser = table, Appraiser(table, self.judge)
        self._meter(queries, references, available)
        book = Ledger(ledger)
        try:
            redacted = Redacted(everyone)
            told = {model.name: model.to_dict() for model in everyone}
            terms |= {"pool": list(self.models), "models": told, "judge": name_of_judge(self.judge)}
            book.begin(max_spend, redacted(json.dumps(terms)))
            self._account = Account(
                book, Budget(max_spend, book.spent, book.doubt), table, client, redacted, workers=workers,
                patience=patience or Patience(), resolve=resolve, sleep=sleep,
            )  # fmt: skip
        except BaseException:
            book.close()
            raise
        self._examiner = Examiner(self._account, self._appraiser)

    def _meter(self, queries: Asked, references: Sequence | Mapping | None, available: np.ndarray | None) -> None:
        """An empty meter over these queries."""
        names = tuple(model.name for model in self.pool)
        given = Queries.of(queries)
        if not len(given):
            raise SaveRouterError("there are no queries to ask; give at least one prompt")
        ids = ids_of(given)
        mask = np.ones((len(given), len(names)), dtype=bool) if available is None else np.array(available, dtype=bool)
        if mask.shape != (len(given), len(names)):
            raise SaveRouterError(
                f"available has shape {mask.shape}; expected {(len(given), len(names))}: queries and models"
            )
        super().__init__(replace(given, ids=ids, models=names, available=None if available is None else mask), names)
        self._mask, self._references = mask, references_of(references, ids)
        tasks = [None] * len(given) if given.tasks is None else given.tasks
        self._questions = [Question(*row) for row in zip(ids, given.prompts, tasks, self._references, strict=True)]
        refuse_without_reference(self.judge, self._questions)
        self._known: dict[tuple[int, int], Examined] = {}
        self._counted: set[tuple[int, int]] = set()
        self._extra, self._announced, self._costs = 0.0, False, None

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
        return at_once(len(self))

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

    @property
    def ledger(self) -> Path:
        """Where every call stands: ``read_ledger(feedback.ledger)`` at any time, ``sr.load(feedback.ledger)`` in the end."""
        return self._account.ledger.path

    def close(self) -> None:
        """Let the ledger go, for all meters over it; another run can then go on."""
        self._account.ledger.close()

    def __enter__(self) -> LiveFeedback:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _expected(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, M) worst cases, and guesses, of what a pair costs; worked out once."""
        if self._costs is None:
            look, questions = self._appraiser, self._questions
            judging = np.array([look.judging(question) for question in questions])[:, None]
            worst = np.array([[look.worst(question, model) for model in self.pool] for question in questions])
            guess = np.array([[look.expected(question, model) for model in self.pool] for question in questions])
            self._costs = worst + judging, guess
        return self._costs

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
        first = {pair: place for place, pair in reversed(list(enumerate(pairs)))}
        new = sorted(place for pair, place in first.items() if pair not in self._counted)
        self._counted.update(first)
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
                changed += bool(before) and self._examiner.request(question, model).hash not in before
        if changed:
            say(
                f"{changed:,} pairs were bought before with another prompt or other options; if asked for, they are bought anew"
            )

    def _learn(self, row: int, column: int) -> None:
        found = self._examiner.examine(self._questions[row], self.pool[column])
        if found is not None:
            self._known[row, column] = found
