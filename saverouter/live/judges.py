"""Judges: what an answer is worth, from 0 to 1.

A judge is any function ``(question, answer) -> 0..1``; ``question`` has ``id``, ``prompt``, ``task`` and ``reference``. Those
here compare with the reference. Judges run in several threads at once, and again for nothing when one of them is changed: answers
are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from string import Formatter

from ..errors import SaveRouterError, did_you_mean, number, whole
from ..files import digest_of
from .model import Model

NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?\.?\d+(?:[eE][-+]?\d+)?")
GRADE = """You grade an answer. Reply with one whole number from 0 (useless or wrong) to 10 (fully right), and nothing else.

Question:
{prompt}

Reference answer:
{reference}

Answer to grade:
{answer}"""


@dataclass(frozen=True)
class Question:
    """What a judge is told about a query."""

    id: str
    prompt: str
    task: str | None = None
    reference: object = None

    def expected(self) -> str:
        """The reference as text; a judge that compares cannot do without."""
        if self.reference is None:
            raise SaveRouterError(f"query {self.id!r} has no reference to compare with; give references, one per query")
        return str(self.reference)


def _plain(text: str) -> str:
    return " ".join(str(text).casefold().split())


@dataclass(frozen=True)
class ExactMatch:
    """1 where the answer is the reference, whatever the case and the space around words."""

    def __call__(self, question: Question, answer: str) -> float:
        return float(_plain(answer) == _plain(question.expected()))


@dataclass(frozen=True)
class Contains:
    """1 where the answer contains the reference, whatever the case."""

    def __call__(self, question: Question, answer: str) -> float:
        return float(_plain(question.expected()) in _plain(answer))


@dataclass(frozen=True)
class Matches:
    """1 where a regular expression is found in the answer: the one given, or else the reference."""

    pattern: str | None = None

    def __call__(self, question: Question, answer: str) -> float:
        pattern = question.expected() if self.pattern is None else self.pattern
        return float(re.search(pattern, answer) is not None)


@dataclass(frozen=True)
class Numeric:
    """1 where the last number of the answer is the reference, up to a relative or absolute tolerance."""

    tolerance: float = 1e-6

    def __post_init__(self):
        number("tolerance", self.tolerance)

    def __call__(self, question: Question, answer: str) -> float:
        expected, found = _last_number(question.expected()), _last_number(answer)
        if expected is None:
            raise SaveRouterError(
                f"the reference of query {question.id!r} is {question.reference!r}; expected a number"
            )
        if found is None:
            return 0.0
        return float(math.isclose(found, expected, rel_tol=self.tolerance, abs_tol=self.tolerance))


@dataclass(frozen=True)
class ChoiceLetter:
    """1 where the letter that the answer chooses is the reference's: "B", "(B)", "The answer is B." """

    letters: str = "ABCDE"

    def __call__(self, question: Question, answer: str) -> float:
        return float(self.chosen(answer) == question.expected().strip().strip("().").upper())

    def chosen(self, answer: str) -> str | None:
        """The letter alone at the beginning, or after "answer", else the last one that stands alone."""
        known = f"[{re.escape(self.letters)}]"
        first = re.match(rf"\s*\(?({known})(?:[).:,]|\s*$)", answer)
        said = re.findall(rf"(?i:answer|choice|option)(?i:\s+is|\s*:)?\s*\**\(?({known})\b", answer)
        alone = re.findall(rf"(?<![\w'])({known})(?![\w'])", answer)
        return said[-1] if said else first[1] if first else alone[-1] if alone else None


@dataclass(frozen=True)
class ModelJudge:
    """A judge that asks a model; ``judge_model`` makes one. Its calls stand in the ledger and on the bill."""

    model: Model
    instruction: str
    highest: float
    sees: int

    def messages(self, question: Question, answer: str) -> list[dict]:
        """What the judge is asked; an answer is cut after ``sees`` bytes, so that the worst case is known before it comes."""
        cut = answer.encode("utf-8", "replace")[: self.sees].decode("utf-8", "ignore")
        reference = "(none)" if question.reference is None else str(question.reference)
        return self.model.messages(self.instruction.format(prompt=question.prompt, reference=reference, answer=cut))

    def read(self, text: str) -> float:
        """The quality in its reply: the last number over the highest."""
        found = _last_number(text)
        if found is None:
            raise ValueError(f"the judge's reply holds no number: {text!r:.60}")
        return found / self.highest


def judge_model(model: Model, *, instruction: str = GRADE, highest: float = 10, sees: int = 8_000) -> ModelJudge:
    """A judge that asks ``model`` for a number from 0 to ``highest``.

    ``instruction`` has the fields {prompt}, {answer} and {reference}; ``sees`` is how many bytes of an answer it is shown.
    """
    if not isinstance(model, Model):
        raise SaveRouterError(
            f"the judge's model is {model!r:.60}; expected a Model, e.g. Model('gpt-4o', max_tokens=10)"
        )
    number("highest", highest, "a number above 0", least=1e-9)
    if "answer" not in _fields(instruction):
        raise SaveRouterError("the instruction of the judge does not hold {answer}; it would never see one")
    return ModelJudge(model, instruction, float(highest), whole("sees", sees, 1))


def _fields(instruction: str) -> set[str]:
    """What an instruction is filled in with, as it is: a conversion would make it longer than is reserved for."""
    try:
        parts = [part[1:] for part in Formatter().parse(instruction) if part[1] is not None]
    except ValueError as error:
        parts = [(str(error), "", None)]
    for name, form, conversion in parts:
        if name not in ("prompt", "answer", "reference") or form or conversion:
            raise SaveRouterError(
                f"the instruction of the judge cannot be filled in ({name or 'a field without a name'}); it may hold {{prompt}}, "
                "{answer} and {reference}, without ! and :, and {{ for a brace"
            )
    return {name for name, *_ in parts}


READY = {
    "exact": ExactMatch(),
    "contains": Contains(),
    "regex": Matches(),
    "numeric": Numeric(),
    "choice": ChoiceLetter(),
}


def judge_of(judge: object) -> Callable | ModelJudge:
    """A judge by its name, or the judge itself."""
    if isinstance(judge, str):
        if judge not in READY:
            raise SaveRouterError(
                f"judge is {judge!r}; {did_you_mean(judge, READY)}there are {', '.join(READY)}, or a function"
            )
        return READY[judge]
    if not callable(judge) and not isinstance(judge, ModelJudge):
        raise SaveRouterError(
            f"judge is {judge!r:.60}; expected one of {', '.join(READY)}, or a function (question, answer) -> 0..1"
        )
    return judge


def name_of_judge(judge: Callable | ModelJudge) -> str:
    """What tells judges apart: an answer that one has judged is judged anew by another."""
    if isinstance(judge, ModelJudge):
        asked = (judge.model.sent, judge.model.endpoint, judge.model.options, judge.model.system)
        return f"ModelJudge {judge.model.name} {digest_of(*asked, judge.instruction, judge.highest, judge.sees)[:12]}"
    if isinstance(judge, partial):
        return f"{name_of_judge(judge.func)} {digest_of(judge.args, judge.keywords)[:12]}"
    code = getattr(judge, "__code__", None)
    if code is None:
        named = type(judge).__dataclass_params__.repr if hasattr(type(judge), "__dataclass_params__") else False
        return repr(judge) if named else f"{type(judge).__module__}.{type(judge).__qualname__}"
    plain = [value for value in code.co_consts if isinstance(value, (str, int, float, bool, type(None)))]
    return f"{judge.__qualname__} {digest_of(code.co_code.hex(), list(code.co_names), plain)[:12]}"


def refuse_without_reference(judge: Callable | ModelJudge, questions: list[Question]) -> None:
    """A judge that compares needs something to compare with, for every query, before anything is bought."""
    if isinstance(judge, (ExactMatch, Contains, Numeric, ChoiceLetter)) or judge == Matches():
        for question in questions:
            question.expected()


def quality_of(quality: object) -> float:
    """What a judge said, as a number from 0 to 1."""
    value = float(quality)
    if not 0 <= value <= 1:
        raise ValueError(f"the judge said {value:g}; expected 0..1")
    return value


def _last_number(text: str) -> float | None:
    found = NUMBER.findall(str(text))
    return float(found[-1].replace(",", "")) if found else None
