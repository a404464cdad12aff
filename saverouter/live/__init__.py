"""Buying outcomes from real models: calls within a cap, every one of them in a ledger, none paid for twice.

``LiveFeedback`` is a ``Feedback`` like any other, so that ``fit`` and ``certify`` use it unchanged. This room knows workloads and
nothing above them; it calls nobody before the first outcome is asked for, and reads keys from the environment only.
"""

from ..workloads.ledger import LedgerContents, read_ledger
from .account import Patience
from .client import BadBody, OutOfTime
from .estimate import Estimate
from .feedback import LiveFeedback
from .judges import ChoiceLetter, Contains, ExactMatch, Matches, ModelJudge, Numeric, Question, judge_model
from .model import Model
from .prices import PriceTable
from .rehearsal import Rehearsal

__all__ = [
    "BadBody", "ChoiceLetter", "Contains", "Estimate", "ExactMatch", "LedgerContents", "LiveFeedback", "Matches", "Model",
    "ModelJudge", "Numeric", "OutOfTime", "Patience", "PriceTable", "Question", "Rehearsal", "judge_model", "read_ledger",
]  # fmt: skip
