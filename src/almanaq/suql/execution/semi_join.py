"""Candidates of which one per value will do: the others wait until it is known whether those tried before pass.

Under a LIMIT a number of values will do: any, or the first in the order of the source that have a row which passes.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import Any

from almanaq.suql.execution.candidates import Candidate


class SemiJoinQueue:
    """Holds candidates back whose value is being tried, and drops those whose value has passed.

    Of those that wait, one that asks what another candidate has asked is tried as soon as that is known: it costs
    nothing, and may spare its value the others. So no text is asked about that is not in the order of the source.

    Args:
        column: holds the value; None holds nothing back.
        most: candidates of one value that may be tried at once.
        asks: gives what names all that a candidate may ask; None where that does not say what it costs.
        wanted: so many values will do; None: all are wanted.
        ordered: these have to be the first that pass, in the order of the source.
    """

    def __init__(
        self,
        column: str | None,
        most: int,
        asks: Callable[[Candidate], Hashable] | None = None,
        *,
        wanted: int | None = None,
        ordered: bool = False,
    ) -> None:
        self._column, self._most, self._asks = column, most, asks
        self._wanted, self._ordered = wanted, ordered
        self._found: set[Any] = set()
        self._places: dict[Any, int] = {}  # of each value: the number of its first candidate
        self._places_found: list[int] = []  # in order
        self._passed: dict[int, int] = {}  # by number: the place of its value
        self._undecided: defaultdict[Any, set[int]] = defaultdict(set)  # numbers that are being tried, or wait
        self._tried: Counter[Any] = Counter()
        self._under_way: dict[int, tuple[Any, int]] = {}
        self._waiting: defaultdict[Any, dict[int, Candidate]] = defaultdict(dict)  # by number
        self._alike: defaultdict[int, list[tuple[Any, int]]] = defaultdict(list)  # values and numbers that wait
        self._known: set[int] = set()
        self._ready: list[tuple[bool, int, Candidate]] = []  # those that cost nothing first, then as they came

    @property
    def missing(self) -> int | None:
        """How many values may still be wanted; None where all are."""
        if self._wanted is None:
            return None
        last = self._last
        if last is None:
            return self._wanted - len(self._found)
        return sum(self._places[value] < last for value in self._undecided) if self._ordered else 0

    @property
    def takes_more(self) -> bool:
        """Whether candidates that the source has not given yet may be wanted."""
        return self._last is None

    @property
    def _last(self) -> int | None:
        """The place of the last value that is wanted; None as long as too few have passed."""
        wanted = self._wanted
        if wanted is None or len(self._found) < wanted:
            return None
        return self._places_found[wanted - 1] if wanted else -1

    def keeps(self, number: int) -> bool:
        """Return whether a candidate that passed has a value which is wanted, as far as is known."""
        last = self._last if self._ordered else None
        return last is None or self._passed[number] <= last

    def next(self) -> Candidate | None:
        """Return a candidate that has waited for its turn."""
        return heapq.heappop(self._ready)[2] if self._ready else None

    def holds_back(self, candidate: Candidate) -> bool:
        """Tell whether a candidate is not to be tried now; if it is, it counts as being tried until it is done."""
        if self._column is None:
            return False
        value, asks = candidate.values[self._column], self._named(candidate)
        place = self._places.setdefault(value, candidate.number)
        last = self._last
        if value in self._found or (last is not None and place > last):
            self._decide(value, candidate.number)
            return True
        self._undecided[value].add(candidate.number)
        if self._tried[value] >= self._most and asks not in self._known:
            self._waiting[value][candidate.number] = candidate
            if self._asks is not None:
                self._alike[asks].append((value, candidate.number))
            return True
        self._tried[value] += 1
        self._under_way[candidate.number] = value, asks
        return False

    def done(self, number: int, *, passes: bool, asked: bool) -> None:
        """Take note of whether a candidate passed, and whether that took what it asks."""
        if self._column is None:
            return
        value, asks = self._under_way.pop(number)
        self._tried[value] -= 1
        self._decide(value, number)
        if passes:
            self._passed[number] = self._places[value]
            self._find(value)
        elif waiting := self._waiting.get(value):
            self._let(waiting.pop(next(iter(waiting))), costs=True)
        if asked and self._asks is not None:
            self._known.add(asks)
            for other, place in self._alike.pop(asks, ()):
                if place in self._waiting.get(other, ()):
                    self._let(self._waiting[other].pop(place), costs=False)

    def _find(self, value: Any) -> None:
        if value not in self._found:
            self._found.add(value)
            bisect.insort(self._places_found, self._places[value])
        self._undecided.pop(value, None)
        self._waiting.pop(value, None)

    def _decide(self, value: Any, number: int) -> None:
        undecided = self._undecided.get(value, set())
        undecided.discard(number)
        if not undecided:
            self._undecided.pop(value, None)

    def _let(self, candidate: Candidate, *, costs: bool) -> None:
        heapq.heappush(self._ready, (costs, candidate.number, candidate))

    def _named(self, candidate: Candidate) -> int:
        """Return a hash of what a candidate asks, which holds no text; equal ones of two, in 2^64, cost an order."""
        return 0 if self._asks is None else hash(self._asks(candidate))
