"""What buying will take: calls, money and time, before the first call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..progress import duration


@dataclass(frozen=True)
class Estimate:
    """Of a purchase: ``expected`` money is a guess from the length of prompts, ``worst`` is a bound, ``seconds`` a guess too.

    calls : of the pool's models and of a judge model, repeated ones not counted
    """

    calls: int
    expected: float
    worst: float
    seconds: float
    currency: str = ""

    def __str__(self) -> str:
        unit = f" {self.currency}".rstrip()
        money = f"about {self.expected:.3g}{unit} and at most {self.worst:.3g}{unit}"
        return f"{self.calls:,} calls, {money}, about {duration(self.seconds)}"


def estimate_of(
    worst: np.ndarray,
    expected: np.ndarray,
    available: np.ndarray,
    k: int,
    calls_each: int,
    seconds: float,
    currency: str,
) -> Estimate:
    """Of ``k`` outcomes per query, from (n, M) worst cases, expected costs and the mask of what can be asked."""
    bought = np.minimum(available.sum(axis=1), k)
    dearest = -np.sort(-np.where(available, worst, 0.0), axis=1)
    ranks = np.arange(worst.shape[1])[None, :] < bought[:, None]
    mean = np.where(available, expected, 0.0).sum(axis=1) / np.maximum(available.sum(axis=1), 1)
    calls = int(bought.sum()) * calls_each
    return Estimate(calls, float((mean * bought).sum()), float(dearest[ranks].sum()), calls * seconds, currency)
