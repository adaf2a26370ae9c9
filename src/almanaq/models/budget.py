"""Budget: how many calls, tokens and dollars may be spent; what is spent is settled after each call."""

from __future__ import annotations

import threading

from almanaq.errors import BudgetExceeded
from almanaq.models.protocols import Usage


class Budget:
    """A limit on calls, tokens (read and written) and US dollars, shared by any number of threads and loops.

    A call is reserved before it is made, at the most it can cost, so that a limit is never exceeded.

    Attributes:
        usage: what has been spent.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, money: float | None = None) -> None:
        self.calls, self.tokens, self.money = calls, tokens, money
        self.usage = Usage()
        self._reserved = Usage()
        self._lock = threading.Lock()

    def reserve(self, most: Usage) -> bool:
        """Set aside what a call may cost; False: only once calls under way have settled is it known to fit.

        Raises:
            BudgetExceeded: it does not fit, whatever the calls under way will cost.
        """
        with self._lock:
            self._check(self.usage + most)
            if self._excess(self.usage + self._reserved + most) is not None:
                return False
            self._reserved += most
            return True

    def settle(self, most: Usage, spent: Usage) -> None:
        """Exchange what was reserved for what was spent."""
        with self._lock:
            back = Usage(-most.calls, 0, -most.input_tokens, -most.output_tokens, -(most.money or 0.0))
            self._reserved += back
            self.usage += spent

    def _check(self, usage: Usage) -> None:
        excess = self._excess(usage)
        if excess is not None:
            raise BudgetExceeded(f"the budget of {excess} is used up: raise it, or ask for less")

    def _excess(self, usage: Usage) -> str | None:
        if self.calls is not None and usage.calls > self.calls:
            return f"{self.calls:,} calls"
        if self.tokens is not None and usage.input_tokens + usage.output_tokens > self.tokens:
            return f"{self.tokens:,} tokens"
        if self.money is not None and usage.money is None:
            return f"{self.money:g} dollars, with a model whose price is not known (name one in the prices file),"
        if self.money is not None and (usage.money or 0.0) > self.money + 1e-12:
            return f"{self.money:g} dollars"
        return None
