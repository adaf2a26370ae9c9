"""What a text stage gives: rows as columns of Arrow, the quotes that they rest on, and the answers that they lack."""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from almanaq.event_loops import set_within
from almanaq.models.protocols import Quote
from almanaq.suql.accuracy import Inference
from almanaq.suql.accuracy.estimates import Sample
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.candidates import Candidate
from almanaq.suql.language import Cited
from almanaq.suql.plan.stages import ROW, RowName, SiteInput, TextStage
from almanaq.suql.result import UNPLACED, Evidence, UnknownAnswer
from almanaq.values import SEPARATOR, canonical

_MOST_BYTES = 2**31 - 1
# Columns are made of buffers: `pa.array` of Python values imports pandas, which takes longer than most queries.


def boolean_column(values: Sequence[bool | None]) -> pa.Array:
    true = _bits([value is True for value in values])
    return pa.Array.from_buffers(pa.bool_(), len(values), [_present(values), true])


def text_column(values: Sequence[str | None]) -> pa.Array:
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > _MOST_BYTES:
        return pa.array(values, pa.string())
    buffers = [_present(values), pa.py_buffer(ends.astype(np.int32).tobytes()), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def id_column(values: Sequence[Any]) -> pa.Array:
    """Return a column of row ids: integers, text where an engine names its rows by text, or what an engine else has."""
    if all(type(value) is int for value in values):
        numbers = pa.py_buffer(np.array(values, np.int64).tobytes())
        return pa.Array.from_buffers(pa.int64(), len(values), [None, numbers])
    if all(isinstance(value, str) for value in values):
        return text_column(values)
    return pa.array(values)


def _present(values: Sequence[Any]) -> pa.Buffer | None:
    missing = [value is None for value in values]
    return _bits([not absent for absent in missing]) if any(missing) else None


def _bits(values: list[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(values, bool), bitorder="little").tobytes())


@dataclass(frozen=True, slots=True)
class SiteQuote:
    """A quote that an answer rests on, with the input it belongs to; `text` is its passage where those are kept."""

    item: SiteInput
    question: str
    quote: Quote
    text: str | None = None


@dataclass(slots=True)
class StageRow:
    """A row that passed: its id, the computed columns known of it, the quotes they rest on, and its key columns.

    `payload` is that of its candidate. An `inferred` row was kept without asking about it, by the caller's choice.
    """

    number: int
    row: Any
    values: dict[str, Any]
    quotes: list[SiteQuote] = field(default_factory=list)
    key: dict[str, Any] = field(default_factory=dict)
    payload: tuple[pa.RecordBatch, int] | None = None
    inferred: bool = False


@dataclass
class StageCounts:
    """What a stage did, for EXPLAIN ANALYZE and the trace.

    `cells` says how many of each column were asked about; `inference` what was decided without asking,
    `sample` what rows drawn at random say.
    """

    candidates: int = 0
    passed: int = 0
    calls: int = 0
    cells: Counter[str] = field(default_factory=Counter)
    inference: Inference | None = None
    sample: Sample | None = None

    def add_asked(self, part: StageCounts) -> None:
        self.calls += part.calls
        self.cells.update(part.cells)


def payload_of(rows: Sequence[StageRow]) -> pa.Table:
    """Return the columns that came along with the candidates that became rows, in one table of these rows alone."""
    pieces: list[tuple[pa.RecordBatch, list[int]]] = []
    for batch, number in (row.payload for row in rows if row.payload is not None):
        if not pieces or pieces[-1][0] is not batch:
            pieces.append((batch, []))
        pieces[-1][1].append(number)
    return pa.Table.from_batches([batch.take(pa.array(numbers)) for batch, numbers in pieces]).combine_chunks()


_AT_ONCE = 10_000


class Spellings:
    """Gives columns of replies in which equal values are spelled alike.

    Args:
        given: the spellings that come before those of replies.
        several: more than one column will come, or lists, so that the spellings of one have to be known to the next;
            a million values take hundreds of megabytes then, and a few tens otherwise.
    """

    def __init__(self, given: Iterable[str] = (), *, several: bool) -> None:
        self._given = spellings_of(given)
        self._known = dict(self._given) if several else None

    def column(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column, in the order of the source, with one spelling for all equals."""
        if self._known is None:
            given = self._given
            return _alone(_map_values(values, lambda value: given.get(canonical(value), value)) if given else values)
        known = self._known
        return _map_values(values, lambda value: spelled(value, known))


def spellings_of(given: Iterable[str]) -> dict[str, str]:
    """Return the first spelling of each of some texts, by its canonical form."""
    known: dict[str, str] = {}
    for text in given:
        known.setdefault(canonical(text), text)
    return known


def spelled(value: str, known: dict[str, str]) -> str:
    """Return a value as its first equal was spelled, which is added to those known; of a list, each of its texts."""
    if SEPARATOR in value:
        return SEPARATOR.join(spelled(text, known) for text in value.split(SEPARATOR))
    form = canonical(value)
    # One object where both are the same text: there may be a million of them.
    return known.setdefault(form, form if form == value else value)


def _alone(values: pa.ChunkedArray) -> pa.ChunkedArray:
    encoded = _map_values(values, canonical).dictionary_encode()
    codes = np.concatenate([np.zeros(0, np.int32), *(part.indices.fill_null(-1).to_numpy() for part in encoded.chunks)])
    present, first = np.unique(codes, return_index=True)
    if len(present) == len(codes):  # no two are equal
        return values
    places = first[np.searchsorted(present, codes)].astype(np.int64)
    return values.take(_indices(places))


def _map_values(values: pa.ChunkedArray, change: Callable[[str], str]) -> pa.ChunkedArray:
    """Return a column changed value by value, little by little: as objects, its values take ten times the memory."""
    changed = []
    for start in range(0, len(values), _AT_ONCE):
        part: list[str | None] = values.slice(start, _AT_ONCE).to_pylist()
        changed.append(text_column([value if value is None else change(value) for value in part]))
    return pa.chunked_array(changed, pa.string())


_PACKED_AT_ONCE = 10_000
_NUMBER = "_number"


class ProjectedRows:
    """Takes rows in any order of their answers, and gives the table that later SQL joins on ROW."""

    def __init__(self, stage: TextStage, spellings: Spellings) -> None:
        self._spellings = spellings
        self._texts = [item.site.id for item in stage.inputs] if stage.predicate is None else []
        self._verdicts = [name for item in stage.inputs for name in item.site.columns[1:]] if self._texts else []
        self._waiting: list[StageRow] = []
        self._pieces: list[pa.Table] = []

    def add(self, rows: Sequence[StageRow]) -> None:
        self._waiting += rows
        if len(self._waiting) >= _PACKED_AT_ONCE:
            self._pack()

    def table(self) -> pa.Table:
        self._pack()
        whole = pa.concat_tables(self._pieces)
        self._pieces = []
        numbers = whole.column(_NUMBER).to_numpy()
        if len(numbers) > 1 and (np.diff(numbers) < 0).any():
            whole = whole.take(_indices(np.argsort(numbers, kind="stable")))
        columns = {ROW: whole.column(ROW)}
        for name in self._texts:
            columns[name] = self._spellings.column(whole.column(name))
        columns |= {name: whole.column(name) for name in self._verdicts}
        return pa.table(columns)

    def _pack(self) -> None:
        rows, self._waiting = self._waiting, []
        if self._pieces and not rows:
            return
        columns: dict[str, pa.Array] = {_NUMBER: id_column([row.number for row in rows])}
        columns[ROW] = id_column([row.row for row in rows])
        columns |= {name: text_column([row.values.get(name) for row in rows]) for name in self._texts}
        columns |= {name: boolean_column([row.values.get(name) for row in rows]) for name in self._verdicts}
        self._pieces.append(pa.table(columns))


def warn_unsorted(stage: TextStage, table: pa.Table) -> list[str]:
    """Say how many rows have no answer by which they are sorted: they come last, and may be the first in truth."""
    warnings = []
    for item in stage.inputs:
        unknown = table.column(item.site.id).null_count if item.site.id in stage.sorts else 0
        if unknown:
            asked = item.site.question.name if item.site.question.is_string else "what is asked of them"
            warnings.append(
                f"{unknown:,} of {table.num_rows:,} rows have no answer to {asked!r}, by which they are sorted"
            )
    return warnings


def _indices(order: Any) -> pa.Array:
    buffer = pa.py_buffer(order.astype(np.int64).tobytes())
    return pa.Array.from_buffers(pa.int64(), len(order), [None, buffer])


Place = tuple[str, str, str, int]
"""(relation, key, column, passage) of an Evidence."""
_MOST_CITED = 16_000_000
"""Characters."""


@dataclass
class CitedTexts:
    """The passages behind the evidence of the queries that ran meanwhile.

    Attributes:
        texts: by place.
        moved: by place and start in characters, the start in UTF-16 units, where the two differ.
        left_out: places of passages that are not kept, as there were too many before.
    """

    texts: dict[Place, str] = field(default_factory=dict)
    moved: dict[tuple[Place, int], int] = field(default_factory=dict)
    left_out: set[Place] = field(default_factory=set)
    _held: int = 0

    def add(self, place: Place, start: int, text: str) -> None:
        beyond = sum(character > "\uffff" for character in text[:start])
        if beyond:
            self.moved[place, start] = start + beyond
        if place in self.texts:
            return
        if self._held + len(text) > _MOST_CITED:
            self.left_out.add(place)
            return
        self._held += len(text)
        self.texts[place] = text


_keeper: ContextVar[CitedTexts | None] = ContextVar("almanaq_cited_texts", default=None)


@contextmanager
def citing() -> Iterator[CitedTexts]:
    """Keep the passages that the evidence of queries run in this block stands in."""
    kept = CitedTexts()
    with set_within(_keeper, kept):
        yield kept


def keeper() -> CitedTexts | None:
    return _keeper.get()


_MOST_PER_AGGREGATE = 3


class EvidenceBook:
    def __init__(self) -> None:
        self._quotes: dict[tuple[str, object], list[Evidence]] = defaultdict(list)
        self._inferred: set[tuple[str, object]] = set()

    def add(self, block: str, row: StageRow) -> None:
        if row.inferred:
            self._inferred.add((block, row.row))
        kept, keeping = self._quotes[block, row.row], keeper()
        for quote in row.quotes:
            item, found = quote.item, quote.quote
            key, by_row = row_name(item, row.row, row.key), item.named is not RowName.KEY
            place = (item.relation, key, item.column, found.passage)
            evidence = Evidence(*place, found.start, found.text, quote.question, by_row=by_row)
            if keeping is not None and quote.text is not None:
                keeping.add(place, evidence.start, quote.text)
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
        """Yield the evidence of rows whose answers were looked up, with the rows of relations that the texts are of."""
        by_row = place.named != "key"
        for number, answer in enumerate(answers):
            named = ", ".join(str(column[number]) for column in key) or f"{UNPLACED}{number}"
            named = f"rowid {named}" if place.named == "address" and named.isdigit() else named
            yield tuple(
                replace(found, relation=place.relation, key=named, column=place.column, by_row=by_row)
                for found in self._quotes.get((block, answer), ())
            )

    def inferred(self, sources: Sequence[tuple[str, str]], hidden: Sequence[pa.ChunkedArray]) -> tuple[bool, ...]:
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
        return tuple(answer for _, answer in self._least())

    @property
    def count(self) -> int:
        return len(self._known)

    @property
    def unreadable(self) -> int:
        """How many of them were answered, by something else than what was asked for."""
        return len(self._known) - sum(self._known.values())
