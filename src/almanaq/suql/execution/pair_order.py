"""The order in which pairs are tried under a LIMIT: those that ask the fewest new questions first."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, Self

from sqlglot import exp

from almanaq.suql.execution.candidates import Candidate, passages_of
from almanaq.suql.plan.stages import SiteInput, TextStage

MOST_WAITING = 2_000
"""Pairs that are looked at before the first is tried."""


def is_of_pairs(stage: TextStage) -> bool:
    """Return whether a stage reads texts of several sources, so that a text comes with many rows."""
    documents = {item.document for item in stage.inputs}
    columns = [output.this for output in stage.source.expressions if output.alias in documents]
    return len(set(map(_source_of, columns))) > 1


def _source_of(document: exp.Expr) -> object:
    """Return where a document comes from; columns of candidates that were copied are called `source.column`."""
    if not isinstance(document, exp.Column):
        return document
    return document.table, document.name.rpartition(".")[0]


def calls_of(inputs: Sequence[SiteInput]) -> Callable[[Candidate], frozenset[Hashable]]:
    """Return what names the calls that a candidate may take; equal texts and questions share one."""

    def asks(candidate: Candidate) -> frozenset[Hashable]:
        return frozenset(
            (
                item.site.function,
                item.site.type,
                item.site.options,
                item.site.question if item.question_column is None else candidate.values[item.question_column],
                passages_of(candidate.values[item.document]),
            )
            for item in inputs
        )

    return asks


class Candidates(Protocol):
    """A stream of candidates that can be closed."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Candidate: ...
    async def aclose(self) -> None: ...


class FewestNewCalls:
    """Candidates of a join, next always the one with the fewest texts that no candidate before it had.

    Three texts that were asked about make three pairs, five make ten: a LIMIT of 10 over pairs takes five calls where
    all of them pass, and eleven where the pairs come row by row. The order hangs on the texts alone, so that it is the
    same at every run. Among equals the order is that of the source.

    Args:
        asks: gives what identifies each call that a candidate may take.
    """

    def __init__(self, source: Candidates, asks: Callable[[Candidate], frozenset[Hashable]]) -> None:
        self._source, self._asks = source, asks
        self._more = True
        self._pulled = 0
        self._known: set[Hashable] = set()
        self._new: dict[int, int] = {}  # by place: how many of its calls are new
        self._waiting: dict[int, tuple[Candidate, frozenset[Hashable]]] = {}
        self._having: dict[Hashable, list[int]] = defaultdict(list)
        self._heap: list[tuple[int, int]] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Candidate:
        while self._more and len(self._waiting) < MOST_WAITING:
            candidate = await anext(self._source, None)
            self._more = candidate is not None
            if candidate is not None:
                self._add(candidate)
        while self._heap:
            new, place = heapq.heappop(self._heap)
            if place in self._waiting and new == self._new[place]:
                return self._take(place)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the source."""
        await self._source.aclose()

    def _add(self, candidate: Candidate) -> None:
        calls = self._asks(candidate)
        place, self._pulled = self._pulled, self._pulled + 1
        self._waiting[place] = (candidate, calls)
        self._new[place] = len(calls - self._known)
        for call in calls - self._known:
            self._having[call].append(place)
        heapq.heappush(self._heap, (self._new[place], place))

    def _take(self, place: int) -> Candidate:
        """Take a candidate; what it asks is new to no other from now on."""
        candidate, calls = self._waiting.pop(place)
        for call in calls - self._known:
            for other in self._having.pop(call):
                if other in self._waiting:
                    self._new[other] -= 1
                    heapq.heappush(self._heap, (self._new[other], other))
        self._known |= calls
        del self._new[place]
        return candidate
