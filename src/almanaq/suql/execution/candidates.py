"""The rows of a text stage's source: streamed in batches, or put in order of similarity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from almanaq.suql.databases.protocol import Session
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import ROW, SiteInput

_BATCH = 2048


class Similarity(Protocol):
    """Scores passages against a text constraint; higher is more alike (paper, section 5.1)."""

    def scores(self, constraint: str, passages: Sequence[str]) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of a text stage's source; `number` is its place in source order."""

    number: int
    row: Any
    values: dict[str, Any]


def passages_of(document: object) -> tuple[str, ...]:
    """Give the passages of a document: the text itself, or the elements of a text[] that are not blank."""
    if document is None:
        return ()
    parts = document if isinstance(document, list) else [document]
    return tuple(part for part in map(_as_text, parts) if part is not None and part.strip())


def _as_text(part: object) -> str | None:
    return part if part is None or isinstance(part, str) else str(part)


class PassageSelection:
    """Picks the passages of a document that are most like a question: the paper's way, approximate, by choice only."""

    def __init__(self, similarity: Similarity, most: int) -> None:
        self._similarity, self._most = similarity, most
        self.read = self.total = 0

    async def best(self, question: str, passages: tuple[str, ...]) -> tuple[int, ...]:
        """Give the numbers of the passages to read, in document order."""
        self.total += len(passages)
        self.read += min(len(passages), self._most)
        if len(passages) <= self._most:
            return tuple(range(len(passages)))
        scores = await in_thread(self._similarity.scores, question, passages)
        best = np.argsort(-scores, kind="stable")[: self._most]
        return tuple(sorted(int(i) for i in best))


class CandidateStream:
    """The rows of a SELECT as the database finds them; closing it stops the database.

    It is no async generator, since the event loop would close one a second time when it shuts down early.
    """

    def __init__(self, session: Session, sql: str) -> None:
        self._session, self._sql = session, sql
        self._batches: Any = None
        self._rows: Iterator[Candidate] = iter(())
        self._number = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Candidate:
        while True:
            found = next(self._rows, None)
            if found is not None:
                return found
            batch = await in_thread(self._next_batch)
            if batch is None:
                raise StopAsyncIteration
            self._rows = iter(_rows(batch, self._number))
            self._number += batch.num_rows

    async def aclose(self) -> None:
        """Stop the database."""
        close: Callable[[], None] | None = getattr(self._batches, "close", None)
        if close is not None:
            await in_thread(close)

    def _next_batch(self) -> pa.RecordBatch | None:
        if self._batches is None:
            self._batches = self._session.stream(self._sql, _BATCH)
        return next(self._batches, None)


class Listed:
    """Candidates that are all there already, as a stream."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = iter(candidates)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Candidate:
        found = next(self._candidates, None)
        if found is None:
            raise StopAsyncIteration
        return found

    async def aclose(self) -> None:
        """Do nothing: there is nothing under way."""


async def similar_candidates(
    session: Session, sql: str, inputs: Sequence[SiteInput], similarity: Similarity, most: int | None
) -> list[Candidate]:
    """Give the rows of a SELECT, the most similar first: the sum over text constraints of the best passage's score.

    Args:
        most: keep only so many (approximate, by the user's choice).
    """

    def ordered() -> list[Candidate]:
        candidates: list[Candidate] = []
        for batch in session.stream(sql, _BATCH):
            candidates.extend(_rows(batch, len(candidates)))
        totals = np.zeros(len(candidates), dtype=np.float64)
        for item in inputs:
            totals += _best_scores(item, candidates, similarity)
        order = np.argsort(-totals, kind="stable")
        return [candidates[i] for i in order[: most if most is not None else len(order)]]

    return await in_thread(ordered)


def constraint_of(item: SiteInput) -> str | None:
    """Give the text of a constraint: its question, and what it is compared with unless that says just yes or no."""
    if item.question_column is not None:
        return None
    literals = [literal for literal in item.site.compared if literal.casefold() not in ("yes", "no", "true", "false")]
    return " ".join([item.site.question.name, *literals])


def _best_scores(item: SiteInput, candidates: list[Candidate], similarity: Similarity) -> NDArray[np.float64]:
    constraint = constraint_of(item)
    best = np.zeros(len(candidates), dtype=np.float64)
    if constraint is None:
        return best
    passages: list[str] = []
    owners: list[int] = []
    for i, candidate in enumerate(candidates):
        found = passages_of(candidate.values[item.document])
        passages.extend(found)
        owners.extend([i] * len(found))
    if passages:
        np.maximum.at(best, np.array(owners), similarity.scores(constraint, passages))
    return best


def _rows(batch: pa.RecordBatch, first: int) -> list[Candidate]:
    names = batch.schema.names
    columns = [column.to_pylist() for column in batch.columns]
    row = names.index(ROW)
    return [
        Candidate(first + i, values[row], dict(zip(names, values, strict=True)))
        for i, values in enumerate(zip(*columns, strict=True))
    ]
