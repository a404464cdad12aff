"""The cap: what is spent, what is in doubt and what calls under way may cost at most never exceed it together."""

from __future__ import annotations

from threading import Condition

from ..errors import SaveRouterError, number


class Budget:
    """Money of one ledger, safe between threads.

    spent : known costs
    doubt : worst cases of calls that may have been billed
    reserved : worst cases of calls that are under way
    """

    def __init__(self, limit: float, spent: float, doubt: float):
        if limit is None:
            raise SaveRouterError("max_spend is missing: say how much may be spent at most, e.g. max_spend=5.0")
        self.limit = number("max_spend", limit, "the most that may be spent in all, a finite number >= 0")
        self.spent, self.doubt, self.reserved = spent, doubt, 0.0
        self._changed, self._closed, self._holders = Condition(), False, 0

    def reserve(self, amount: float) -> bool:
        """Set money aside before a purchase. What does not fit waits for those under way; False if it never will."""
        with self._changed:
            while not self._closed and self.spent + self.doubt + self.reserved + amount > self.limit:
                if not self._holders:
                    return False
                self._changed.wait()
            if self._closed:
                return False
            self.reserved += amount
            self._holders += 1
            return True

    def settle(self, reserved: float, cost: float = 0.0, doubt: float = 0.0) -> None:
        """A call is over: what was set aside for it becomes a cost, a doubt, or free again."""
        with self._changed:
            self.reserved = max(self.reserved - reserved, 0.0)
            self.spent += cost
            self.doubt += doubt
            self._changed.notify_all()

    def done(self, left: float) -> None:
        """A purchase is over: what is left of what was set aside for it is free again."""
        with self._changed:
            self._holders -= 1
            self.reserved = max(self.reserved - left, 0.0) if self._holders else 0.0  # exactly, whatever was rounded
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody gets anything more, and nobody waits any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def go(self) -> None:
        """Begin again."""
        with self._changed:
            self._closed = False
