"""The fixed path of policies from "always the reference" to "never", and the walk along it on bought outcomes.

Policies are nested: a query that one policy switches is switched by all cheaper ones, to the same model. Two outcomes per
query therefore serve the whole path, and queries that no policy switches are zeros that cost nothing.

Where one of the two outcomes is missing though it was paid for, the query counts as lost: the candidate as 0, the reference
as 1. No other values in their place would certify less, or give the same queries a lower bound: what is higher raises the sum
by more than it can add to the scatter's part of the bound. ("guarded": where the mean difference is above -1/z, which is -78
points at 90%; below that nothing is certified anyway.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..workloads import Feedback
from .confidence import Wealth, betting, guarded, scatter
from .policies import Switch

STEPS = 100
FIRST_STEP_WITHOUT_MARGIN = 30  # without a margin, a handful of switched queries proves nothing
FIRST_LOOK = 250
LOST = -1.0  # the difference where an outcome is missing: the worst there can be
PATH = {"threshold": float, "share": float, "estimate": float, "bound": float, "decided": str}


def thresholds(bargains: np.ndarray, margin: float = 1.0) -> np.ndarray:
    """Falling thresholds on the bargain, the path's steps: quantiles of the training prompts', the last the lowest float."""
    known = bargains[np.isfinite(bargains)]
    if not len(known):
        return np.empty(0)
    first = 1 if margin > 0 else FIRST_STEP_WITHOUT_MARGIN
    steps = np.quantile(known, 1 - np.arange(first, STEPS + 1) / STEPS)
    steps[-1] = np.finfo(float).min
    return steps


@dataclass
class Walk:
    """Fresh queries in random order, and what their outcomes say of every policy of the path.

    rows : of the queries that count: those that can have the reference
    other : the model that each would be switched to
    level : the first policy of the path that switches it
    alive : policies of the path that were not given up
    frame : a row per policy, once all is decided
    """

    steps: np.ndarray
    rows: np.ndarray
    other: np.ndarray
    level: np.ndarray
    reference: int
    delta: float
    seen: int = 0
    bought: int = 0
    alive: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros(0))
    squares: np.ndarray = field(default_factory=lambda: np.zeros(0))
    difference: np.ndarray = field(default_factory=lambda: np.zeros(0))
    frame: pd.DataFrame | None = None

    @classmethod
    def of(cls, switch: Switch, steps: np.ndarray, quality: np.ndarray, cost: np.ndarray, delta: float) -> Walk:
        """The queries' places on the path, from estimates alone; nothing is bought yet."""
        reference, size = switch.models.index(switch.reference), len(steps)
        rows = np.flatnonzero(~np.isneginf(quality[:, reference]))
        other, bargain = switch.bargains(quality[rows], cost[rows])
        level = np.searchsorted(-steps, -bargain, side="left")
        sums, squares, difference = np.zeros(size), np.zeros(size), np.zeros(len(rows))
        return cls(steps, rows, other, level, reference, delta, alive=size,
                   sums=sums, squares=squares, difference=difference)  # fmt: skip

    @classmethod
    def to_one(cls, rows: np.ndarray, model: int, reference: int, delta: float) -> Walk:
        """A path of one step: every query leaves the reference for the same model."""
        steps, none = np.array([np.finfo(float).min]), np.zeros(1)
        other, level = np.full(len(rows), model), np.zeros(len(rows), dtype=np.int64)
        return cls(steps, rows, other, level, reference, delta, alive=1,
                   sums=none, squares=none.copy(), difference=np.zeros(len(rows)))  # fmt: skip

    def buy(self, feedback: Feedback, until: int) -> slice:
        """Both outcomes of the next queries, where the cheapest policy still alive leaves the reference."""
        part = slice(self.seen, until)
        new = self.seen + np.flatnonzero(self.level[part] < self.alive)
        if len(new):
            asked = np.concatenate([self.other[new], np.full(len(new), self.reference)])
            quality = feedback.reveal(np.tile(self.rows[new], 2), asked)[0]
            gains, size = quality[: len(new)] - quality[len(new) :], len(self.steps)
            gains = np.where(np.isnan(gains), LOST, gains)
            self.difference[new] = gains
            self.sums += np.cumsum(np.bincount(self.level[new], gains, size))
            self.squares += np.cumsum(np.bincount(self.level[new], gains**2, size))
        self.seen, self.bought = until, self.bought + len(new)
        return part

    def drop(self) -> None:
        """Give up the first policy that does badly so far, and all cheaper ones: always allowed, and saves money."""
        lost = self.sums + np.sqrt(scatter(self.sums, self.squares, self.seen) + 1) < -self.delta * self.seen
        self.alive = _before_first(~lost[: self.alive])

    def guarded(self, feedback: Feedback, confidence: float) -> int:
        """The last policy that is certified, -1 for none; all is bought, then looked at once."""
        for look in _looks(len(self.rows)):
            self.buy(feedback, look)
            if look < len(self.rows):
                self.drop()
        bounds = guarded(self.sums, self.squares, self.seen, confidence)[: self.alive]
        return self._decide(_before_first(bounds >= -self.delta), bounds)

    def betting(self, feedback: Feedback, confidence: float) -> int:
        """As ``guarded``, with bets; buying ends when the cheapest policy still alive is certified."""
        wealth, certified = Wealth(len(self.steps), self.delta), 0
        for look in [*range(FIRST_LOOK, len(self.rows), FIRST_LOOK), len(self.rows)]:
            part = self.buy(feedback, look)
            wealth.update(self.difference[part], self.level[part])
            if look < len(self.rows):
                self.drop()
            certified = _before_first(wealth.highest[: self.alive] >= 1 / (1 - confidence))
            if certified == self.alive:
                break
        seen, level = self.difference[: self.seen], self.level[: self.seen]
        bounds = np.array([betting(np.where(level <= step, seen, 0.0), confidence) for step in range(self.alive)])
        bounds[:certified] = np.maximum(bounds[:certified], -self.delta)  # what was shown, whatever was rounded
        return self._decide(certified, bounds)

    def _decide(self, certified: int, bounds: np.ndarray) -> int:
        size, open_ = len(self.steps), slice(0, self.alive)
        bound, estimate = np.full(size, np.nan), np.full(size, np.nan)
        bound[open_], estimate[open_] = 100 * bounds, 100 * self.sums[open_] / max(self.seen, 1)
        decided = np.full(size, "dropped", dtype=object)
        decided[open_] = "beyond the first that failed"
        decided[certified : self.alive][:1] = "failed"
        decided[:certified] = "certified"
        share = [float((self.level <= step).mean()) for step in range(size)]
        columns = (self.steps, share, estimate, bound, decided)
        self.frame = pd.DataFrame(dict(zip(PATH, columns, strict=True))).astype(PATH)
        return certified - 1


def _looks(n: int) -> list[int]:
    """250, 500, 1000, ... and n."""
    looks = []
    while FIRST_LOOK * 2 ** len(looks) < n:
        looks.append(FIRST_LOOK * 2 ** len(looks))
    return [*looks, n]


def _before_first(good: np.ndarray) -> int:
    """How many are good before the first that is not."""
    return int(np.argmin(np.append(good, False)))
