"""In which order a text stage tries its candidates where the query leaves it open (semantics 9)."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Protocol, Self

from sqlglot import exp

from almanaq.options import Options
from almanaq.suql.execution.candidates import (
    LOOKED_AT,
    LOOKED_FURTHER,
    Candidate,
)
from almanaq.suql.plan.stages import TextStage

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


class Candidates(Protocol):
    """A stream of candidates that can be closed."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Candidate: ...
    async def aclose(self) -> None: ...


class FewestNewCalls:
    """Candidates of a join, next always the one with the fewest texts that no candidate before it had.

    Three texts that were asked about make three pairs, five make ten: a LIMIT of 10 over pairs takes five calls where
    all of them pass, and eleven where the pairs come row by row. The order depends only on texts, so that it is the
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
        candidate, calls = self._waiting.pop(place)
        for call in calls - self._known:
            for other in self._having.pop(call):
                if other in self._waiting:
                    self._new[other] -= 1
                    heapq.heappush(self._heap, (self._new[other], other))
        self._known |= calls
        del self._new[place]
        return candidate


def tries_by_similarity(stage: TextStage, options: Options) -> bool:
    """Return whether a stage's candidates are tried in order of similarity: a LIMIT stops it, and no ORDER
    BY binds it.
    """
    return options.order == "similarity" and stage.stop_after is not None and not stage.ordered


def describe_order(stage: TextStage, options: Options) -> str:
    """Return the order in which a stage's candidates are tried, for EXPLAIN; "" where it is the source's own."""
    if options.accuracy is not None and stage.may_infer:
        accuracy = options.accuracy
        return (
            f"asked until recall {accuracy.recall:g} and precision {accuracy.precision:g} are sure with probability "
            f"{1 - accuracy.delta:g}: some rows at random (seed {accuracy.seed}), then those that the proxy "
            f"{accuracy.proxy!r} leaves in doubt, and an audit of the others; the figures expected are those of all "
            "rows"
        )
    approximate = options.candidates is not None and stage.predicate is not None
    if not approximate and not tries_by_similarity(stage, options):
        return ""
    if approximate:
        return "tried in order of similarity"
    if is_of_pairs(stage):
        return f"those with the fewest new texts first, then in order of similarity; of {MOST_WAITING:,} rows at once"
    return (
        f"tried in order of similarity: the best of {LOOKED_AT} rows first, with {LOOKED_FURTHER} more to choose from "
        "after each; of more rows than that, each third in their own order"
    )
