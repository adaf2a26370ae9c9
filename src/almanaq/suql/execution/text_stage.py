"""Running a text stage: rows under way at once, each asked only what still matters, until LIMIT is satisfied."""

from __future__ import annotations

import asyncio
import bisect
import heapq
import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from typing import Any

from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, Listed, MostSimilarFirst, PassageSelection
from almanaq.suql.execution.evidence import StageCounts, StageRow
from almanaq.suql.execution.forecast import Course, Reached
from almanaq.suql.execution.row_evaluation import ComputedAtoms, RowContext, RowEvaluation, calls_of
from almanaq.suql.plan.estimate import Chances
from almanaq.suql.plan.predicates import (
    TRUE,
    Not,
    Predicate,
    Structured,
    Verdict,
    atoms,
    choose,
    mask,
    possible,
    sites_needed,
)
from almanaq.suql.plan.stages import TextStage


def further_trials(failed: int, speculation: float) -> int:
    """Return how many rows more may be tried at once after so many that did not pass.

    Where few rows pass, one that does is found sooner, and at most an eighth of all is asked in vain.
    """
    return failed // 8 if speculation > 1 else 0


class SemiJoinQueue:
    """Holds candidates back whose value is being tried, and drops those whose value has passed.

    Of those that wait, one that asks what another candidate has asked is tried as soon as that is known: it costs
    nothing, and may spare its value the others. So no text is asked about that is not in the order of the source.

    Args:
        column: holds the value; None holds nothing back.
        most: candidates of one value that may be tried at once; where it is more than 1, and more that did not pass.
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
        self._failed: Counter[Any] = Counter()
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
        wanted = self._wanted
        if wanted is None or len(self._found) < wanted:
            return None
        return self._places_found[wanted - 1] if wanted else -1

    def keeps(self, number: int) -> bool:
        """Return whether a candidate that passed has a value which is wanted, as far as is known."""
        last = self._last if self._ordered else None
        return last is None or self._passed[number] <= last

    def next(self) -> Candidate | None:
        return heapq.heappop(self._ready)[2] if self._ready else None

    def holds_back(self, candidate: Candidate) -> bool:
        """Tell whether a candidate is not to be tried now; if it is, it counts as being tried until it is done."""
        if self._column is None:
            return False
        # A hash of what it asks, which holds no text; equal ones of two, in 2^64, cost an order.
        value, asks = candidate.values[self._column], 0 if self._asks is None else hash(self._asks(candidate))
        value = repr(value) if isinstance(value, list | dict) else value
        place = self._places.setdefault(value, candidate.number)
        last = self._last
        if value in self._found or (last is not None and place > last):
            self._decide(value, candidate.number)
            return True
        self._undecided[value].add(candidate.number)
        if (
            self._tried[value] >= self._most + further_trials(self._failed[value], self._most)
            and asks not in self._known
        ):
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
        else:
            before = further_trials(self._failed[value], self._most)
            self._failed[value] += 1
            waiting = self._waiting.get(value, {})
            for other in list(waiting)[: 1 + further_trials(self._failed[value], self._most) - before]:
                self._enqueue_ready(waiting.pop(other), costs=True)
        if asked and self._asks is not None:
            self._known.add(asks)
            for other, place in self._alike.pop(asks, ()):
                if place in self._waiting.get(other, ()):
                    self._enqueue_ready(self._waiting[other].pop(place), costs=False)

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

    def _enqueue_ready(self, candidate: Candidate, *, costs: bool) -> None:
        heapq.heappush(self._ready, (costs, candidate.number, candidate))


class StageRun:
    """One run of a text stage over its candidates.

    Args:
        rows_at_once: rows under way where no LIMIT stops the stage.
        speculation: rows under way per row that LIMIT still needs.
        selection: reads only the best passages of each document, by the user's choice; None reads all.
        steady: LIMIT keeps the rows that were tried first, however long the calls of each take; else those whose calls
            come first, and the same query may give other rows.
    """

    def __init__(
        self,
        stage: TextStage,
        calls: TextCalls,
        computed: ComputedAtoms,
        *,
        rows_at_once: int,
        speculation: float,
        selection: PassageSelection | None = None,
        steady: bool = False,
    ) -> None:
        self._in_turn = stage.ordered or steady
        self.course: Course | None = None
        """Is told how far the run is."""
        self._turns: dict[int, int] = {}
        self._stage, self._calls = stage, calls
        self._rows_at_once, self._speculation = rows_at_once, speculation
        self._chances = Chances(stage.inputs)
        free = len(stage.inputs) == 1 and not stage.ordered  # of several, one may do; the first is not to be overtaken
        asks = calls_of(stage.inputs, calls) if free else None
        wanted, ordered = stage.values_wanted, stage.values_ordered
        self._semi_join = SemiJoinQueue(
            stage.semi_join_key, math.ceil(speculation), asks, wanted=wanted, ordered=ordered
        )
        # Where calls cost nothing, all of some rows are waited for, so that the same query gives the same values.
        self._in_rounds = steady and wanted is not None and not ordered
        self._passed: list[StageRow] = []
        self._failed = 0
        self._ended: asyncio.Queue[asyncio.Task[StageRow | None]] = asyncio.Queue()
        self._open: set[int] = set()
        self._exhausted = False
        self._learning_source: MostSimilarFirst | None = None
        self.counts = StageCounts()
        needs = {atom.column: sites_needed(atom) for atom in atoms(stage.predicate)} if stage.predicate else {}
        inputs = {item.site.id: item for item in stage.inputs}
        self._context = RowContext(inputs, needs, calls, computed, selection, self.counts)

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Yield rows that pass as soon as they are sure to be kept; closing the iterator leaves nothing under way."""
        released = 0
        self._learning_source = candidates if isinstance(candidates, MostSimilarFirst) else None
        under_way: dict[asyncio.Task[StageRow | None], Candidate] = {}
        made = self._calls.made
        try:
            while True:
                room = self._rows_to_try() - len(under_way)
                if not under_way or (room >= self._fewest_to_start and not self._in_rounds):
                    async with self._calls.hold():
                        await self._start_rows(candidates, under_way)
                if self._limit_is_met() or (not under_way and self._exhausted):
                    break
                if not under_way:
                    continue
                await self._wait_for_a_row(under_way)
                if rows := self._release(released):
                    released += len(rows)
                    yield rows
        finally:
            self.counts.calls = self._calls.made - made
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        self._open.clear()
        if rows := self._release(released):
            yield rows

    async def _start_rows(
        self, candidates: AsyncIterator[Candidate], under_way: dict[asyncio.Task[StageRow | None], Candidate]
    ) -> None:
        while len(under_way) < self._rows_to_try():
            candidate = await self._next_candidate(candidates, may_wait=bool(under_way))
            if candidate is None:
                return
            if self._semi_join.holds_back(candidate):
                continue
            self.counts.candidates += 1
            if (passes := self.decided(candidate)) is not None:
                if passes:
                    row = StageRow(candidate.number, candidate.row, {}, payload=candidate.payload)
                    self._passed.append(row)
                self._semi_join.done(candidate.number, passes=passes, asked=False)
                continue
            self._open.add(candidate.number)
            task = asyncio.ensure_future(self._evaluate(candidate))
            task.add_done_callback(self._ended.put_nowait)
            under_way[task] = candidate

    async def _next_candidate(self, candidates: AsyncIterator[Candidate], *, may_wait: bool) -> Candidate | None:
        candidate = self._semi_join.next()
        if (
            may_wait
            and candidate is None
            and self._learning_source is not None
            and self._learning_source.waits_for_outcomes
        ):
            return None
        if candidate is None and not self._exhausted and self._semi_join.takes_more:
            candidate = await anext(candidates, None)
            self._exhausted = candidate is None
            if candidate is not None and self._stage.predicate is not None:
                self._turns[candidate.number] = len(self._turns)
        return candidate

    async def _wait_for_a_row(self, under_way: dict[asyncio.Task[StageRow | None], Candidate]) -> None:
        ended = [await self._ended.get()]
        ended += [self._ended.get_nowait() for _ in range(self._ended.qsize())]
        for task in ended:
            candidate = under_way.pop(task)
            row = task.result()
            self._open.discard(candidate.number)
            self._semi_join.done(candidate.number, passes=row is not None, asked=True)
            if self._learning_source is not None:
                self._learning_source.learn(candidate, passes=row is not None)
            if row is not None:
                self._passed.append(row)
            else:
                self._failed += 1
        if self.course is not None:
            source = self._learning_source
            waiting = 0 if self._exhausted else None if source is None else source.waiting
            passed = self.counts.passed + len(self._passed)
            reached = Reached(self.counts.candidates, len(under_way), passed, self._missing, waiting)
            await self.course.go_on(reached)

    def _release(self, before: int) -> list[StageRow]:
        """Return the rows that are surely kept, less the first so many of them; a projection's are not held here."""
        if self._stage.predicate is None:
            rows = self._passed[:]
            self._passed.clear()
            self.counts.passed += len(rows)
            return rows
        if not self._in_turn or (self._stage.stop_after is None and not self._stage.ordered):
            return self._passed[before : self._stage.stop_after]
        return self._passed_in_turn()[before : self._stage.stop_after]

    def _passed_in_turn(self) -> list[StageRow]:
        first_open = min(map(self._turn, self._open), default=math.inf)
        return [row for row in self._by_turn() if self._turn(row.number) < first_open]

    def _turn(self, number: int) -> int:
        return number if self._stage.ordered else self._turns[number]

    def _by_turn(self) -> list[StageRow]:
        return sorted(self._passed, key=lambda row: self._turn(row.number) if self._in_turn else row.number)

    async def ask(self, candidates: Sequence[Candidate]) -> list[StageRow]:
        async for _ in self.batches(Listed(candidates)):
            pass
        return self.kept()

    async def chances(self, candidates: Sequence[Candidate]) -> dict[int, float]:
        """Return how likely each row that was asked about passes, by its number.

        Empty where more than one verdict decides, or the model's server does not tell.
        """
        predicate = self._stage.predicate
        negated = isinstance(predicate, Not)
        verdict = predicate.child if isinstance(predicate, Not) else predicate
        if not isinstance(verdict, Verdict):
            return {}
        found = {}
        for candidate in candidates:
            row = RowEvaluation(self._context, candidate)
            await row.select_passages()
            chance = await row.chance(verdict)
            if chance is not None:
                found[candidate.number] = 1 - chance if negated else chance
        return found

    def kept(self) -> list[StageRow]:
        return self._keep_first(self._by_turn())

    def sure(self) -> list[StageRow]:
        """Return the rows that passed before the run was stopped, less those that an open one could push out of it."""
        rows = self._by_turn()
        if self._in_turn and self._stage.stop_after is not None:
            opened = [self._turn(number) for number in self._open]
            before = [i + sum(turn < self._turn(row.number) for turn in opened) for i, row in enumerate(rows)]
            rows = [row for row, ahead in zip(rows, before, strict=True) if ahead < self._stage.stop_after]
        return self._keep_first(rows)

    def _keep_first(self, rows: list[StageRow]) -> list[StageRow]:
        rows = [row for row in rows if self._semi_join.keeps(row.number)]
        kept = sorted(rows[: self._stage.stop_after], key=lambda row: row.number)
        self.counts.passed = len(kept)
        return kept

    @property
    def _missing(self) -> int | None:
        """How many rows, or values, are still wanted; None where all are."""
        stop_after = self._stage.stop_after
        return self._semi_join.missing if stop_after is None else stop_after - len(self._passed)

    def _rows_to_try(self) -> int:
        missing = self._missing
        if missing is None:
            return self._rows_at_once
        wanted = math.ceil(self._speculation * missing) + further_trials(self._failed, self._speculation)
        return min(self._rows_at_once, wanted) if missing > 0 else 0

    @property
    def _fewest_to_start(self) -> int:
        """How many rows are started at once while others are under way.

        They fill a request that several share; and where no LIMIT counts them, as there are twice as many as calls,
        they look into the cache together.
        """
        return max(self._calls.company, self._rows_at_once // 8 if self._missing is None else 1)

    def _limit_is_met(self) -> bool:
        stop_after = self._stage.stop_after
        if (values := self._semi_join.missing) is not None:
            return values == 0 and not (self._in_rounds and self._open)
        if stop_after is None or len(self._passed) < stop_after:
            return False
        return not self._in_turn or len(self._passed_in_turn()) >= stop_after

    # One row

    def decided(self, candidate: Candidate) -> bool | None:
        """Return whether a row passes, where that is clear without asking about it; None where it is not."""
        if self._stage.predicate is None:
            return None
        state = possible(self._stage.predicate, _evaluate_structured(self._stage.predicate, candidate))
        return state == TRUE if _is_decided(state) else None

    async def without_asking(
        self, candidates: AsyncIterator[Candidate], counts: StageCounts
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the rows that pass without asking about them, and those that only an answer can decide."""
        passing: list[Candidate] = []
        undecided: list[Candidate] = []
        async for candidate in candidates:
            counts.candidates += 1
            passes = self.decided(candidate)
            if passes is None:
                undecided.append(candidate)
            elif passes:
                passing.append(candidate)
        return passing, undecided

    async def _evaluate(self, candidate: Candidate) -> StageRow | None:
        row = RowEvaluation(self._context, candidate)
        await row.select_passages()
        if self._stage.predicate is None:
            if len(self._stage.inputs) == 1:  # without the tasks that gather() and the call make
                in_own_task = self._stage.stop_after is None
                await row.outcome(self._stage.inputs[0].site.id, in_own_task=in_own_task)
            else:
                await asyncio.gather(*(row.outcome(item.site.id) for item in self._stage.inputs))
            return None if self._stage.leaves_out_unknown and row.has_unknown else row.result()
        known = _evaluate_structured(self._stage.predicate, candidate)
        while not _is_decided(state := possible(self._stage.predicate, known)):
            atom = choose(self._stage.predicate, known, row.cost, self._chances.of).atom
            truth = await row.truth(atom)
            self._chances.learn(atom.column, truth)
            known[atom.column] = mask(truth)
        passes = state == TRUE or (self._stage.keeps_unknown and await self._may_pass(row, known))
        return row.result() if passes else None

    async def _may_pass(self, row: RowEvaluation, known: dict[str, int]) -> bool:
        """Return whether a row would pass for some answers to the calls that failed; asks what may still settle it."""
        predicate = self._stage.predicate
        assert predicate is not None
        asked = [atom for atom in atoms(predicate) if not isinstance(atom, Structured)]
        unknown = {atom.column for atom in asked if atom.column in known and row.is_unknown(atom)}
        settled = {column: values for column, values in known.items() if column not in unknown}
        for atom in asked if unknown else ():
            if atom.column not in known and possible(predicate, settled) & TRUE:
                truth = await row.truth(atom)
                settled |= {} if row.is_unknown(atom) else {atom.column: mask(truth)}
        return bool(unknown) and bool(possible(predicate, settled) & TRUE)


def _evaluate_structured(predicate: Predicate, candidate: Candidate) -> dict[str, int]:
    found = (atom for atom in atoms(predicate) if isinstance(atom, Structured))
    return {atom.column: mask(candidate.values[atom.column]) for atom in found}


def _is_decided(state: int) -> bool:
    """A row is decided when it surely passes or surely does not: FALSE and NULL come to the same."""
    return state == TRUE or not state & TRUE
