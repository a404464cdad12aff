"""How an outcome comes about: the model is asked, and the judge says what the answer is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..files import digest_of
from ..workloads.ledger import NO_OUTCOME
from .account import Account, Hold
from .judges import ModelJudge, Question, name_of_judge, quality_of
from .ledger import Call, Request
from .model import Model
from .prices import BYTES_PER_TOKEN, PriceTable, size_of


@dataclass(frozen=True)
class Examined:
    """Of a pair: quality (NaN where it cannot be used, and why), cost of the answer, and what was paid beside it."""

    quality: float
    cost: float
    extra: float
    reason: str = ""


class Appraiser:
    """What a pair may cost, and is expected to, the judge included."""

    def __init__(self, table: PriceTable, judge: Callable | ModelJudge):
        self.table, self.judge = table, judge

    def worst(self, question: Question, model: Model) -> float:
        """A bound on asking the model."""
        return self.table.worst(model, model.messages(question.prompt))

    def judging(self, question: Question) -> float:
        """A bound on judging any answer."""
        if not isinstance(self.judge, ModelJudge):
            return 0.0
        return self.table.worst(self.judge.model, self.judge.messages(question, "x" * self.judge.sees))

    def expected(self, question: Question, model: Model) -> float:
        """A guess of both."""
        asking = self.table.expected(model, size_of(model.messages(question.prompt)))
        if not isinstance(self.judge, ModelJudge):
            return asking
        answer = "x" * min(self.judge.sees, model.longest * BYTES_PER_TOKEN // 2)
        return asking + self.table.expected(self.judge.model, size_of(self.judge.messages(question, answer)))


class Examiner:
    """Finds outcomes in the ledger, or buys them."""

    def __init__(self, account: Account, appraiser: Appraiser):
        self.account, self.appraiser, self.judge = account, appraiser, appraiser.judge
        self._judge_name = name_of_judge(self.judge)

    def request(self, question: Question, model: Model) -> Request:
        """The call that asks the model."""
        return self.account.request(question, model.name, "answer", model, model.messages(question.prompt))

    def examine(self, question: Question, model: Model) -> Examined | None:
        """The outcome of a pair; None where all stopped before it was bought."""
        account, request = self.account, self.request(question, model)
        call = account.known(request)
        fresh = call is None or (call.usable(model) and self._place(call, question) not in account.ledger.verdicts)
        if call is None:
            worst = self.appraiser.worst(question, model)
            with account.holding(worst + self.appraiser.judging(question)) as hold:
                call = hold and account.buy(request, worst, hold)
                found = call and self._outcome(request, call, question, model, hold)
        else:
            found = self._outcome(request, call, question, model, None)
        if found and fresh:
            account.tally(not np.isnan(found.quality), f"{found.reason} (model {model.name!r}, query {question.id!r})")
        return found or None

    def _place(self, call: Call, question: Question) -> tuple[int, str]:
        """Where the verdict on an answer stands: a judge that changed, or another reference, judges anew."""
        return call.intent, f"{self._judge_name} of {digest_of(question.reference)[:12]}"

    def _outcome(
        self, request: Request, call: Call, question: Question, model: Model, hold: Hold | None
    ) -> Examined | None:
        """What became of a pair that was bought; None where all stopped before it was judged."""
        account = self.account
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
        return Examined(np.nan if quality is None else quality, call.money, extra, reason or "")

    def _judge_request(self, call: Call, question: Question, model: Model) -> Request | None:
        if not isinstance(self.judge, ModelJudge):
            return None
        messages = self.judge.messages(question, call.answer)
        return self.account.request(question, model.name, "judge", self.judge.model, messages)

    def _verdict(
        self, place: tuple, call: Call, question: Question, asked: Request | None, hold: Hold | None
    ) -> tuple[float | None, str | None] | None:
        """Quality or what was wrong, written down; of a judge model whose call is in doubt it is not."""
        account, grade = self.account, None
        if asked is not None:
            grade = account.known(asked) or account.bought(
                asked, self.appraiser.table.worst(asked.asked, asked.messages), hold
            )
            if grade is None:
                return None
            if not grade.usable(asked.asked):
                verdict = (None, f"judge {asked.asked.name}: {grade.error or NO_OUTCOME.get(grade.status, '')}")
                if grade.status is not None:
                    account.ledger.judge(call, place[1], *verdict)
                return verdict
        try:
            said = self.judge.read(grade.answer) if grade else self.judge(question, call.answer)
            verdict = (quality_of(said), None)
        except Exception as error:
            verdict = (None, f"judge: {account.redacted.error(f'{type(error).__name__}: {error}')}")
        account.ledger.judge(call, place[1], *verdict)
        return verdict
