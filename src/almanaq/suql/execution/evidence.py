"""Which quotes a row rests on, the passages that they are in, and which answers rows lack."""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import pyarrow as pa

from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.candidates import Candidate
from almanaq.suql.execution.stage_rows import SiteQuote, StageRow
from almanaq.suql.language import Cited
from almanaq.suql.plan.stages import RowName, SiteInput
from almanaq.suql.result import UNPLACED, Evidence, UnknownAnswer

Place = tuple[str, str, str, int]
"""(relation, key, column, passage) of an Evidence."""


@dataclass
class CitedTexts:
    """The passages behind the evidence of the queries that ran meanwhile.

    Attributes:
        texts: by place.
        moved: by place and start in characters, the start in UTF-16 units, where the two differ.
        most: characters that are kept; what comes later is not kept, and its place is in `left_out`.
    """

    most: int = 16_000_000
    texts: dict[Place, str] = field(default_factory=dict)
    moved: dict[tuple[Place, int], int] = field(default_factory=dict)
    left_out: set[Place] = field(default_factory=set)
    _held: int = 0

    def add(self, place: Place, start: int, text: str) -> None:
        """Keep a passage in which a quote begins at `start`."""
        beyond = sum(character > "\uffff" for character in text[:start])
        if beyond:
            self.moved[place, start] = start + beyond
        if place in self.texts:
            return
        if self._held + len(text) > self.most:
            self.left_out.add(place)
            return
        self._held += len(text)
        self.texts[place] = text


_keeper: ContextVar[CitedTexts | None] = ContextVar("almanaq_cited_texts", default=None)


@contextmanager
def citing(most: int = CitedTexts.most) -> Iterator[CitedTexts]:
    """Keep the passages that the evidence of queries run in this block stands in."""
    kept = CitedTexts(most)
    token = _keeper.set(kept)
    try:
        yield kept
    finally:
        _keeper.reset(token)


def keeper() -> CitedTexts | None:
    """Return what keeps passages, None where nothing does."""
    return _keeper.get()


_MOST_PER_AGGREGATE = 3


class EvidenceBook:
    """The quotes found by text stages, by block and row."""

    def __init__(self) -> None:
        self._quotes: dict[tuple[str, object], list[Evidence]] = defaultdict(list)
        self._inferred: set[tuple[str, object]] = set()

    def add(self, block: str, row: StageRow) -> None:
        """Keep the quotes of a row that passed or was read, or that it was inferred."""
        if row.inferred:
            self._inferred.add((block, row.row))
        kept, keeping = self._quotes[block, row.row], keeper()
        for quote in row.quotes:
            evidence = _evidence(quote, row)
            if keeping is not None and quote.text is not None:
                keeping.add(
                    (evidence.relation, evidence.key, evidence.column, evidence.passage), evidence.start, quote.text
                )
            if evidence not in kept:
                kept.append(evidence)

    def of(self, block: str, rows: object) -> tuple[Evidence, ...]:
        """Return the evidence of one row, or a few examples for the rows behind an aggregate."""
        behind = rows_behind(rows)
        found = (evidence for row in behind for evidence in self._quotes.get((block, row), ()))
        if not isinstance(rows, list) and behind == [rows]:
            return tuple(found)
        return tuple(evidence for evidence, _ in zip(found, range(_MOST_PER_AGGREGATE), strict=False))

    def placed(
        self, block: str, answers: Sequence[object], place: Cited, key: Sequence[Sequence[object]]
    ) -> Iterator[tuple[Evidence, ...]]:
        """Yield the evidence of rows whose answers were looked up, with the rows of relations that the texts are of.

        Args:
            answers: the row of the block that each rests on; key: columns that name the row of the relation.
        """
        by_row = place.named != "key"
        for number, answer in enumerate(answers):
            named = ", ".join(str(column[number]) for column in key) or f"{UNPLACED}{number}"
            named = f"rowid {named}" if place.named == "address" and named.isdigit() else named
            yield tuple(
                replace(found, relation=place.relation, key=named, column=place.column, by_row=by_row)
                for found in self._quotes.get((block, answer), ())
            )

    def inferred(self, sources: Sequence[tuple[str, str]], hidden: Sequence[pa.ChunkedArray]) -> tuple[bool, ...]:
        """Say of each row of a result whether a row behind it was inferred.

        Args:
            sources: (block, column) pairs; hidden: these columns, which hold the row ids behind each row.
        """
        flags = [
            [any((block, row) in self._inferred for row in rows_behind(rows)) for rows in column.to_pylist()]
            for (block, _), column in zip(sources, hidden, strict=False)
        ]
        return tuple(map(any, zip(*flags, strict=True)))


def rows_behind(rows: object) -> list[object]:
    """Return the row ids behind a row of a result, which is one id or a list of them."""
    if isinstance(rows, str) and rows.startswith("["):
        rows = json.loads(rows)  # where there are no arrays the rows come as JSON
    return rows if isinstance(rows, list) else [rows]


def row_name(item: SiteInput, row: object, key: Mapping[str, object]) -> str:
    """Return what names a row of a stage in its relation: key, number or address, or a name for this result alone."""
    name = ", ".join(str(key.get(part)) for part in item.key) if item.key else f"{UNPLACED}{row}"
    return f"rowid {name}" if item.named is RowName.ADDRESS and name.isdigit() else name


def _evidence(found: SiteQuote, row: StageRow) -> Evidence:
    item, quote = found.item, found.quote
    key = row_name(item, row.row, row.key)
    by_row = item.named is not RowName.KEY
    return Evidence(
        item.relation, key, item.column, quote.passage, quote.start, quote.text, found.question, by_row=by_row
    )


MOST_UNKNOWN = 200
"""Unknown answers that are named; those beyond are counted."""


class UnknownAnswers:
    """Collects unknown answers while rows are asked about, in any order.

    Args:
        catalog: says which keys are private; None: of a query whose unknown answers are not reported.
    """

    def __init__(self, catalog: Catalog | None = None) -> None:
        self._known: dict[int, bool] = {}  # by hash: whether the call failed
        self._first: list[tuple[tuple[int, str], UnknownAnswer]] = []
        relations = catalog.relations if catalog is not None else ()
        private = {each.name: {column.name for column in each.columns if column.private} for each in relations}
        self._has_private = any(private.values())
        self._of_private_keys = {each.name for each in relations if private[each.name].intersection(each.key)}

    def add(self, item: SiteInput, question: str, candidate: Candidate, reason: str, *, failed: bool) -> None:
        """Take an answer that a row lacks; `failed`: the call did, else its reply is not what was asked for."""
        if item.question_column is not None and self._has_private:
            question = "what is asked of each row"  # made of cells, which may be private ones
        name = UNPLACED if item.relation in self._of_private_keys else row_name(item, candidate.row, candidate.values)
        by_row = item.named is not RowName.KEY
        answer = UnknownAnswer(name, item.column, question, reason, item.relation, by_row)
        identity = hash((answer, candidate.number if name == UNPLACED else 0))
        if identity in self._known:
            return
        self._known[identity] = failed
        self._first.append(((candidate.number, item.site.id), answer))
        if len(self._first) > 2 * MOST_UNKNOWN:
            self._first = self._least()

    def _least(self) -> list[tuple[tuple[int, str], UnknownAnswer]]:
        return heapq.nsmallest(MOST_UNKNOWN, self._first, key=lambda each: each[0])

    @property
    def first(self) -> tuple[UnknownAnswer, ...]:
        """The first of them, in the order of the rows."""
        return tuple(answer for _, answer in self._least())

    @property
    def count(self) -> int:
        return len(self._known)

    @property
    def unreadable(self) -> int:
        """How many of them were answered, by something else than what was asked for."""
        return len(self._known) - sum(self._known.values())
