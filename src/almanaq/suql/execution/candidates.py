"""The rows of a text stage's source, and in which order they are tried where the query leaves it open (semantics 9)."""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.errors import ModelError
from almanaq.options import Options
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import ROW, SiteInput, TextStage
from almanaq.suql.result import python_column

FIRST_LESSON = 8
"""Rows that are tried before the first lesson; the next follows when half as many again have been."""
_WEIGHT = 2.0
"""Of likeness to rows that passed, less likeness to those that did not, beside that to the question."""


class Lessons:
    """What the rows tried so far teach of the others.

    A lesson is taken at the same places in the order of trial whatever is under way, when all rows before it are known:
    so the order is the same at any concurrency. Over SemBench's reviews, asked whether they are positive, ten that are
    not took 31 calls instead of 46 where a quarter passes, and 112 instead of 237 where a twentieth does.
    """

    def __init__(self) -> None:
        self._sums: dict[bool, NDArray[np.float32]] = {}
        self._counts = {True: 0, False: 0}
        self._direction: NDArray[np.float32] | None = None
        self._next = FIRST_LESSON

    def is_due(self, tried: int) -> bool:
        return tried >= self._next

    @property
    def is_taken(self) -> bool:
        """Whether there was something to learn: else rows are tried by their likeness to the question alone."""
        return self._direction is not None

    def take(self, tried: int, vectors: NDArray[np.float32], passed: Sequence[bool]) -> None:
        self._next = tried + tried // 2
        for passes in (False, True):
            chosen = vectors[np.array(passed, bool) == passes]
            if len(chosen):
                self._counts[passes] += len(chosen)
                self._sums[passes] = chosen.sum(axis=0) + self._sums.get(passes, np.float32(0))
        means = [(1 if passes else -1) * total / self._counts[passes] for passes, total in sorted(self._sums.items())]
        self._direction = _WEIGHT * np.sum(means, axis=0) if means else None

    def scored(self, scores: Sequence[float], vectors: Sequence[NDArray[np.float32]]) -> list[float]:
        """Return the scores of rows by the last lesson; higher is to be tried first."""
        found = np.array(scores, np.float64)
        if self._direction is not None and len(vectors):
            found += np.stack(vectors) @ self._direction
        return found.tolist()  # type: ignore[no-any-return]


_BATCH, _READ_AT_ONCE = 2048, 16
LOOKED_AT, LOOKED_FURTHER = 200, 5
"""Rows that are looked at before the first is tried in order of similarity, and more for each that was tried."""
_LOOKED_AT_ONCE, _LOOKED_AT_BATCH, _LEARNED_FROM = 50, 128, 8


class Similarity(Protocol):
    """Scores passages against a text constraint; higher is more alike (paper, section 5.1)."""

    def scores(self, constraint: str, passages: Sequence[str]) -> NDArray[np.float32]: ...
    def vector(self, constraint: str) -> NDArray[np.float32]: ...
    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Candidate(NamedTuple):
    """One row of a text stage's source; `number` is its place in source order.

    `payload` holds what the result shows of it: rows, and which of them it is; None where nothing was brought along.
    `cells` holds in the same way the columns that conditions over answers read, as the database gave them.
    """

    number: int
    row: Any
    values: dict[str, Any]
    payload: tuple[pa.RecordBatch, int] | None = None
    cells: tuple[pa.RecordBatch, int] | None = None


def passages_of(document: object) -> tuple[str, ...]:
    """Return the passages of a document: the text itself, or the elements of a text[] that are not blank."""
    if document is None:
        return ()
    if isinstance(document, list):
        return tuple(passage for part in document for passage in passages_of(part))
    text = document if isinstance(document, str) else str(document)
    return (text,) if text.strip() else ()


class PassageSelection:
    """Picks the passages of a document that are most like a question: the paper's way, approximate, by choice only."""

    def __init__(self, similarity: Similarity, most: int) -> None:
        self._similarity, self._most = similarity, most
        self.read = self.total = 0

    async def best(self, question: str, passages: tuple[str, ...]) -> tuple[int, ...]:
        self.total += len(passages)
        self.read += min(len(passages), self._most)
        if len(passages) <= self._most:
            return tuple(range(len(passages)))
        scores = await in_thread(self._similarity.scores, question, passages)
        best = np.argsort(-scores, kind="stable")[: self._most]
        return tuple(sorted(int(i) for i in best))


class Candidates(AsyncIterator[Candidate]):
    """The rows of a stage, in the order in which they are tried; closing them stops the database.

    No async generators: the event loop would close one a second time when it shuts down early.
    """

    async def aclose(self) -> None:
        """Stop what still looks for rows."""


class CandidateStream(Candidates):
    """The rows of a SELECT as the database finds them."""

    def __init__(
        self,
        session: Session,
        sql: str,
        batch_rows: int = _BATCH,
        first_rows: int | None = None,
        *,
        payload: tuple[str, ...] = (),
        cells: tuple[str, ...] = (),
    ) -> None:
        self._session, self._sql, self._batch_rows, self._first_rows = session, sql, batch_rows, first_rows
        self._payload, self._cells = payload, cells
        self._batches: Any = None
        self._ahead: deque[pa.RecordBatch] = deque()
        self._rows: Iterator[Candidate] = iter(())
        self._number = 0

    def count_ahead(self) -> int | None:
        """Return the number of rows where one batch holds them, None where there are more; they are candidates still.

        Blocks while the database looks for them.
        """
        while len(self._ahead) < 2 and (batch := self._fetch_batch()) is not None:
            self._ahead.append(batch)
        return sum(batch.num_rows for batch in self._ahead) if len(self._ahead) < 2 else None

    async def __anext__(self) -> Candidate:
        while (found := next(self._rows, None)) is None:
            if not (self._begin_batch() if self._ahead else await in_thread(self._begin_batch)):
                raise StopAsyncIteration
        return found

    def pull(self, count: int) -> list[Candidate]:
        """Return the next so many rows, fewer at the end; blocks while the database looks for them."""
        found = list(itertools.islice(self._rows, count))
        while len(found) < count and self._begin_batch():
            found.extend(itertools.islice(self._rows, count - len(found)))
        return found

    def _begin_batch(self) -> bool:
        batch = self._ahead.popleft() if self._ahead else self._fetch_batch()
        if batch is not None:
            self._rows = _rows(batch, self._number, self._payload, self._cells)
            self._number += batch.num_rows
        return batch is not None

    async def aclose(self) -> None:
        close: Callable[[], None] | None = getattr(self._batches, "close", None)
        if close is not None:
            with contextlib.suppress(ValueError):  # it is under way in another thread: the session's end stops it
                await in_thread(close)

    def _fetch_batch(self) -> pa.RecordBatch | None:
        if self._batches is None:
            self._batches = self._session.stream(self._sql, self._batch_rows, self._first_rows)
        return next(self._batches, None)


class Listed(Candidates):
    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = iter(candidates)

    async def __anext__(self) -> Candidate:
        found = next(self._candidates, None)
        if found is None:
            raise StopAsyncIteration
        return found


class MostSimilarFirst(Candidates):
    """The rows of a SELECT, the most similar of those seen first.

    However many rows the database has, few are brought here before they are tried: LOOKED_AT, and LOOKED_FURTHER more
    for each that was tried. While there may be more, each third row is the one that waits longest: so a score that
    misleads costs at most three times the rows of table order, and one that helps half as many again as by itself.
    What is learned of the rows tried changes the order of the others (`Lessons`).

    Attributes:
        problem: why rows are tried in table order from then on: their texts cannot be compared; None where they can.
    """

    def __init__(
        self,
        session: Session,
        sql: str,
        inputs: Sequence[SiteInput],
        similarity: Similarity,
        payload: tuple[str, ...] = (),
        *,
        cells: tuple[str, ...] = (),
        learns: bool = True,
    ) -> None:
        first = LOOKED_AT + _LOOKED_AT_ONCE
        self._source = CandidateStream(session, sql, _LOOKED_AT_BATCH, first, payload=payload, cells=cells)
        self._inputs, self._similarity = inputs, similarity
        self._best: list[tuple[float, int]] = []
        self._lessons = Lessons() if learns else None
        self._learned: list[tuple[Candidate, bool]] = []  # since the last lesson
        self._waiting: dict[int, Candidate] = {}  # by number, the longest first
        self._scores: dict[int, float] = {}
        self._vectors: dict[int, NDArray[np.float32]] = {}  # of those that wait, once a lesson needs them
        self._seen = self._tried = 0
        self._more = True
        self.problem: ModelError | None = None

    async def __anext__(self) -> Candidate:
        if self._lessons is not None and self._lessons.is_due(self._tried):
            await in_thread(self._reorder, self._lessons)
        wanted = LOOKED_AT + LOOKED_FURTHER * self._tried
        if self._more and self._seen < wanted:
            # Those that the second try would ask for come with the first ones: one wait less.
            await in_thread(self._pull, _LOOKED_AT_ONCE if self._seen else LOOKED_AT + _LOOKED_AT_ONCE)
        if not self._waiting:
            raise StopAsyncIteration
        self._tried += 1
        if self._more and self._tried % 3 == 0:
            return self._take(next(iter(self._waiting)))
        number = heapq.heappop(self._best)[1]
        while number not in self._waiting:  # it was tried for its waiting
            number = heapq.heappop(self._best)[1]
        return self._take(number)

    def _take(self, number: int) -> Candidate:
        self._vectors.pop(number, None)
        self._scores.pop(number, None)
        return self._waiting.pop(number)

    @property
    def waiting(self) -> int | None:
        """How many rows are still to be tried; None while the database may have more."""
        return None if self._more else len(self._waiting)

    @property
    def waits_for_outcomes(self) -> bool:
        """Whether the next row is chosen by what is found out about all of those before it."""
        return self._lessons is not None and self._lessons.is_due(self._tried)

    def learn(self, candidate: Candidate, *, passes: bool) -> None:
        if self._lessons is not None:
            self._learned.append((candidate, passes))

    @contextlib.contextmanager
    def _comparing(self) -> Iterator[None]:
        """Go on without scores where the embedder fails: an order is all that they are for."""
        try:
            yield
        except ModelError as problem:
            self.problem, self._lessons = problem, None

    def _reorder(self, lessons: Lessons) -> None:
        learned = sorted(self._learned, key=lambda row: row[0].number)  # as they came in, sums would differ in bits
        self._learned.clear()
        rows = [candidate for candidate, _ in learned]
        with self._comparing():
            vectors = vectors_of(rows, self._inputs, self._similarity)
            lessons.take(self._tried, vectors, [passes for _, passes in learned])
            if lessons.is_taken:
                numbers = list(self._waiting)
                self._best = [(-s, n) for s, n in zip(self._score(lessons, numbers), numbers, strict=True)]
                heapq.heapify(self._best)

    def _score(self, lessons: Lessons, numbers: Sequence[int]) -> list[float]:
        new = [self._waiting[number] for number in numbers if number not in self._vectors]
        for row, vector in zip(new, vectors_of(new, self._inputs, self._similarity), strict=True):
            self._vectors[row.number] = vector
        return lessons.scored([self._scores[n] for n in numbers], [self._vectors[n] for n in numbers])

    def _pull(self, number: int) -> None:
        rows = self._source.pull(number)
        scores = [0.0] * len(rows)
        if self.problem is None:
            with self._comparing():
                scores = totals(rows, self._inputs, self._similarity).tolist()
        self._more = len(rows) == number
        self._seen += len(rows)
        for row, score in zip(rows, scores, strict=True):
            self._waiting[row.number], self._scores[row.number] = row, score
        if self._lessons is not None and self._lessons.is_taken:
            with self._comparing():
                scores = self._score(self._lessons, [row.number for row in rows])
        for row, score in zip(rows, scores, strict=True):
            heapq.heappush(self._best, (-score, row.number))

    async def aclose(self) -> None:
        await self._source.aclose()


def totals(candidates: Sequence[Candidate], inputs: Sequence[SiteInput], similarity: Similarity) -> NDArray[np.float64]:
    """Return the similarity of rows: the sum over text constraints of the best passage's score."""
    found = np.zeros(len(candidates))
    for item in inputs:
        constraint = constraint_of(item)
        passages = [passages_of(candidate.values[item.document]) for candidate in candidates]
        owners = np.repeat(np.arange(len(candidates)), list(map(len, passages)))
        if constraint is not None and len(owners):
            best = np.zeros(len(candidates))
            np.maximum.at(best, owners, similarity.scores(constraint, list(itertools.chain(*passages))))
            found += best
    return found


def vectors_of(
    candidates: Sequence[Candidate], inputs: Sequence[SiteInput], similarity: Similarity
) -> NDArray[np.float32]:
    """Return a vector for each row: the means of the first passages of each of its documents."""
    found = [np.zeros((len(candidates), 0), np.float32)]
    for item in inputs:
        constraint = constraint_of(item)
        if constraint is None:
            continue
        means = np.zeros((len(candidates), len(similarity.vector(constraint))), np.float32)
        for mean, candidate in zip(means, candidates, strict=True):
            if passages := passages_of(candidate.values[item.document])[:_LEARNED_FROM]:
                mean += similarity.vectors(passages).mean(axis=0)
        found.append(means)
    return np.concatenate(found, axis=1)


def constraint_of(item: SiteInput) -> str | None:
    """Return the text of a constraint: its question, and what it is compared with unless that says just yes or no."""
    if item.question_column is not None:
        return None
    literals = [literal for literal in item.site.compared if literal.casefold() not in ("yes", "no", "true", "false")]
    return " ".join([item.site.question.name, *literals])


def _rows(batch: pa.RecordBatch, first: int, payload: tuple[str, ...], cells: tuple[str, ...]) -> Iterator[Candidate]:
    names = batch.schema.names
    row = names.index(ROW)
    shown = batch.select([*payload, ROW]) if payload else None
    read = batch.select(list(cells)) if cells else None
    start, size = 0, _READ_AT_ONCE
    while start < batch.num_rows:
        part = batch.slice(start, size)
        columns = [
            column.to_pylist() if field.name == ROW else python_column(field, column)
            for field, column in zip(part.schema, part.columns, strict=True)
        ]
        for i, values in enumerate(zip(*columns, strict=True), start):
            found = dict(zip(names, values, strict=True))
            yield Candidate(
                first + i,
                values[row],
                found,
                None if shown is None else (shown, i),
                None if read is None else (read, i),
            )
        start, size = start + size, 2 * size


MOST_WAITING = 2_000
"""Pairs that are looked at before the first is tried."""


def is_of_pairs(stage: TextStage) -> bool:
    """Return whether a stage reads texts of several sources, so that a text comes with many rows."""
    documents = {item.document for item in stage.inputs}
    columns = [output.this for output in stage.source.expressions if output.alias in documents]
    # Columns of candidates that were copied are called `source.column`.
    return len({(c.table, c.name.rpartition(".")[0]) if isinstance(c, exp.Column) else c for c in columns}) > 1


class FewestNewCalls(Candidates):
    """Candidates of a join, next always the one with the fewest texts that no candidate before it had.

    Three texts that were asked about make three pairs, five make ten: a LIMIT of 10 over pairs takes five calls where
    all of them pass, and eleven where the pairs come row by row. The order depends only on texts, so that it is the
    same at every run. Among equals the order is that of the source.
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
