"""Candidates of which one per value will do: the others wait until it is known whether those tried before pass."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import Any

from almanaq.suql.execution.candidates import Candidate


class SemiJoinQueue:
    """Holds candidates back whose value is being tried, and drops those whose value has passed.

    Args:
        column: holds the value; None holds nothing back.
        most: candidates of one value that may be tried at once.
    """

    def __init__(self, column: str | None, most: int) -> None:
        self._column, self._most = column, most
        self._found: set[Any] = set()
        self._tried: Counter[Any] = Counter()
        self._values: dict[int, Any] = {}
        self._waiting: defaultdict[Any, deque[Candidate]] = defaultdict(deque)
        self._ready: deque[Candidate] = deque()

    def next(self) -> Candidate | None:
        """Return a candidate that has waited for its turn."""
        return self._ready.popleft() if self._ready else None

    def holds_back(self, candidate: Candidate) -> bool:
        """Tell whether a candidate is not to be tried now; if it is, it counts as being tried until it is done."""
        if self._column is None:
            return False
        value = candidate.values[self._column]
        if value in self._found:
            return True
        if self._tried[value] >= self._most:
            self._waiting[value].append(candidate)
            return True
        self._tried[value] += 1
        self._values[candidate.number] = value
        return False

    def done(self, number: int, *, passes: bool) -> None:
        """Take note of whether a candidate passed."""
        if self._column is None:
            return
        value = self._values.pop(number)
        self._tried[value] -= 1
        if passes:
            self._found.add(value)
            self._waiting.pop(value, None)
        elif self._waiting[value]:
            self._ready.append(self._waiting[value].popleft())
