"""Lower bounds of a mean difference in quality: "guarded", checked by enumeration, and "betting", proved.

Differences lie in -1..1, one per query, and are 0 where a policy keeps the reference. A bound serves a whole path of nested
policies without correction: the first policy of the path that breaks the promise would have to pass its own test.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

BETS = np.array([0.02, 0.035, 0.06, 0.1, 0.18, 0.3, 0.5, 0.9])  # lambda: shares of the wealth that are staked
PART = 250  # queries whose bets are counted at a time


def guarded(total: np.ndarray, squares: np.ndarray, n: int, confidence: float) -> np.ndarray:
    """Lower bounds from sums and sums of squares of n differences, to be looked at once.

    The normal bound, with a few lost queries added as a guard. Enumerated exactly over differences of -1, 0 and 1 with up
    to 40% of them not 0, its worst error stays within the nominal one at 80, 90 and 95%. It is not proved: where outcomes
    always differ and no margin is given, the error was .2005 at a nominal .20. "betting" is.
    """
    z = norm.ppf(confidence)
    return (total - (z * z + 2) / 3 - z * np.sqrt(scatter(total, squares, n) + 1)) / n


def scatter(total: np.ndarray, squares: np.ndarray, n: int) -> np.ndarray:
    """Sum of squared deviations from the mean, from a sum and a sum of squares."""
    return np.maximum(squares - total**2 / n, 0)


class Wealth:
    """What betting on every policy of a path earns, if the bets say that its mean difference is above -delta.

    Each starts with 1, spread over the stakes. If the mean were not above, wealth would not grow on average, and the chance
    that it ever reaches 1/alpha would be at most alpha (Ville): reaching it, at any time, is proof.
    """

    def __init__(self, size: int, delta: float):
        self.delta = delta
        self.now = np.ones((len(BETS), 1, size))
        self.highest = np.ones(size)

    def update(self, difference: np.ndarray, level: np.ndarray) -> None:
        """More queries, in order: their differences, and the first policy of the path that switches each."""
        for start in range(0, len(difference), PART):
            gains, first = difference[start : start + PART, None], level[start : start + PART, None]
            outcome = np.where(first <= np.arange(len(self.highest)), gains, 0.0) + self.delta
            path = self.now * _product(1 + BETS[:, None, None] * outcome)
            self.highest = np.maximum(self.highest, path.mean(axis=0).max(axis=0))
            self.now = path[:, -1:]


def betting(difference: np.ndarray, confidence: float) -> float:
    """The lower bound of a mean that betting proves: the highest one against which some wealth ever reached 1/alpha."""
    low, high = -1.0, 0.1  # above that, the largest stake could lose more than all
    for _ in range(16):
        middle = (low + high) / 2
        wealth = _product(np.maximum(1 + BETS[:, None] * (difference - middle), 0)).mean(axis=0)
        low, high = (middle, high) if wealth.max(initial=0.0) >= 1 / (1 - confidence) else (low, middle)
    return low


def _product(factors: np.ndarray) -> np.ndarray:
    """Over the queries so far; what grows beyond all numbers has proved its point."""
    with np.errstate(over="ignore"):
        return np.cumprod(factors, axis=1)
