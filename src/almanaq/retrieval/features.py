"""What a question and a table have in common: figures, mostly between 0 and 1, that a linear reranker weighs.

They are computed for all candidates of a question at once from term streams: no model, about a millisecond for 100.
A stream is one int32 array per table: numbers from 0 up are terms, negative ones mark where a field, a row or a cell
begins. It is compact, can lie in a memory-mapped file, and is read with whole-array operations.

Word association: what questions ask for and what columns are called (`who` goes with `player`, `released` with
`album`), as two learned sets of word vectors. How well a question and a header go together is the product of the sums
of their words' vectors, which are stored as integers with a scale per dimension.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Field, Table, field_text
from almanaq.text.index_terms import Analyzer, words

# Stopwords that still tell what is asked for.
QUESTION_WORDS = frozenset("who whom whose when where which what why how".split())
CELL, ROW, FIRST_FIELD = -1, -2, -10
FIELD_MARKS: Mapping[Field, int] = {name: FIRST_FIELD - number for number, name in enumerate(Field)}  # begin each field
LOWEST_MARK = FIRST_FIELD - len(FIELD_MARKS)
_CACHED_CELLS = 500_000  # cells whose terms are cached while streams are written: some 150 MB at most
_CACHED_CHARS = 80
_MOST_COLUMNS = 64  # columns further right count as the last

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordAssociation:
    """Vectors of words: row `asked[word]` of `asking` for a question's, those of `named` in `naming` for a header's."""

    asked: Mapping[str, int]
    named: tuple[str, ...]
    asking: Floats
    naming: Floats

    def scores(self, question: Iterable[str], headers: NDArray[np.bool_]) -> Floats:
        """Return how well a question goes with tables; `headers` says which words of `named` theirs have, by row."""
        rows = [self.asked[word] for word in question if word in self.asked]
        tables = (headers @ self.naming) / np.sqrt(np.maximum(headers.sum(axis=1, keepdims=True), 1))
        made: Floats = (tables @ self.asking[rows].sum(axis=0)) / np.sqrt(max(len(rows), 1))
        return made


def question_words(question: str, analyzer: Analyzer) -> set[str]:
    """Return the words of a question to look up: its terms, and its question words."""
    return set(analyzer.terms(question)) | QUESTION_WORDS.intersection(words(question))


def load_word_association(*, statements: bool) -> WordAssociation:
    style, arrays = ("statements" if statements else "questions"), _read_arrays()
    asked = {word.decode(): row for row, word in enumerate(arrays["asked"].tolist())}
    named = tuple(word.decode() for word in arrays["named"].tolist())
    names = (f"{style}_asking", f"{style}_naming")
    vectors = (arrays[name].astype(np.float32) * arrays[f"{name}_scale"].astype(np.float32) for name in names)
    return WordAssociation(asked, named, *vectors)


@lru_cache(maxsize=1)
def _read_arrays() -> Mapping[str, NDArray[np.generic]]:
    kept = files("almanaq.retrieval").joinpath("word_association.npz").read_bytes()
    with np.load(BytesIO(kept), allow_pickle=False) as arrays:
        return dict(arrays)


@dataclass(frozen=True, slots=True)
class TermStreams:
    """The streams of tables: that of table i is `tokens[starts[i]:starts[i + 1]]`."""

    size: int  # of the corpus
    terms: Mapping[str, int]  # the number of each
    starts: Ints
    tokens: NDArray[np.int32]
    held: NDArray[np.int32]  # per term, the number of tables that contain it
    analyzer: Analyzer

    def rarity(self) -> Floats:
        return np.log1p((self.size - self.held + 0.5) / (self.held + 0.5)).astype(np.float32)


class StreamWriter:
    """Turns tables into streams, one table at a time; new terms are added to `terms`."""

    def __init__(self, fields: Sequence[Field], analyzer: Analyzer, terms: dict[str, int] | None = None) -> None:
        self.fields = fields
        self.analyzer = analyzer
        self.terms: dict[str, int] = {} if terms is None else terms
        self.tokens = array("i")
        self.starts = array("q", [0])
        self._cells: dict[str, list[int]] = {}

    def add(self, table: Table) -> None:
        for name in self.fields:
            self.tokens.append(FIELD_MARKS[name])
            self.tokens.extend(self._field(table, name))
        self.starts.append(len(self.tokens))

    def finish(self) -> TermStreams:
        tokens = np.frombuffer(self.tokens, dtype=np.int32) if self.tokens else np.zeros(0, np.int32)
        starts = np.frombuffer(self.starts, dtype=np.int64)
        tables = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
        real = tokens >= 0
        pairs = np.unique(tokens[real] * np.int64(len(starts)) + tables[real])
        held = np.bincount(pairs // len(starts), minlength=len(self.terms)).astype(np.int32)
        return TermStreams(len(starts) - 1, self.terms, starts, tokens, held, self.analyzer)

    def _field(self, table: Table, name: Field) -> Iterator[int]:
        if name is Field.CELLS:
            for row in table.rows:
                yield ROW
                for cell in row:
                    yield CELL
                    yield from self._numbers(cell)
        elif name is Field.HEADER:
            for column in table.header:
                yield CELL
                yield from self._numbers(column)
        else:
            yield from self._numbers(field_text(table, name))

    def _numbers(self, text: str) -> list[int]:
        """Return the term numbers of a text; those of short texts are cached, as cells repeat."""
        known = self._cells.get(text)
        if known is None:
            known = [self.terms.setdefault(term, len(self.terms)) for term in self.analyzer.terms(text)]
            if len(text) <= _CACHED_CHARS:
                if len(self._cells) >= _CACHED_CELLS:
                    self._cells.clear()
                self._cells[text] = known
        return known


FEATURES = (
    "title",  # share of the question's idf mass that the title and section hold
    "title_whole",  # share of the title's own idf mass that the question holds
    "header",  # share of the question's idf mass in column names
    "header_whole",  # share of the header's own idf mass that the question holds
    "cells",  # share of the question's idf mass in cells
    "any",  # share of the question's idf mass anywhere in the table
    "rare",  # as any, idf squared: the rarest words decide
    "row",  # share that the best row holds
    "row_rare",  # as row, idf squared
    "row_title_header",  # share that the best row holds together with title, section and header
    "two_rows",  # share that the best row holds together with the one that adds most to it
    "row_values",  # share covered by cells of one row that the question contains whole
    "row_numbers",  # share of the question's numbers in one row
    "named_row",  # share that one row holds in columns whose names the question has words of
    "column",  # share that the best column holds, its name included
    "numbers",  # share of the question's numbers found anywhere
    "phrases",  # share of the question's adjacent word pairs that are adjacent in the table
    "entities",  # share of the question's idf mass covered by cells of two or more words that it contains whole
    "values",  # as entities, cells of one word included
    "columns",  # share of the question's idf mass covered by column names that it contains whole
    "size",  # logarithm of the table's length over 10
    "association",  # how well the question's words go with those of the header, below and above 0; 0 without it
)

_TITLE, _HEADER, _PROSE, _CELLS = range(4)
_GROUP_OF = {Field.TITLE: _TITLE, Field.SECTION: _TITLE, Field.HEADER: _HEADER, Field.CELLS: _CELLS}


@dataclass(frozen=True, slots=True)
class _QuestionTerms:
    """A question's distinct terms: numbers, idf, which are numerals, and pairs of adjacent terms."""

    numbers: NDArray[np.int64]
    worth: Floats
    numerals: NDArray[np.bool_]
    pairs: NDArray[np.int64]  # matrix (terms, terms): the pair's number, or -1
    pair_worth: Floats


class Featurizer:
    """Computes the features of candidates; not thread-safe, as it reuses one array over the vocabulary."""

    def __init__(self, streams: TermStreams) -> None:
        self._streams = streams
        self._rarity = streams.rarity()
        # Marks are negative and so index from the end: a slot for each mark, which never belongs to a term.
        self._place = np.full(len(self._rarity) - LOWEST_MARK + 1, -1, dtype=np.int64)

    def features(self, question: str, tables: Sequence[int], association: WordAssociation | None = None) -> Floats:
        asked = self._parse_question(question)
        if asked is None or not len(tables):
            return np.zeros((len(tables), len(FEATURES)), dtype=np.float32)
        texts = _gather(self._streams, tables)
        with self._with_positions(asked.numbers):
            shared = _compare(asked, texts, self._place, self._rarity)
        associated = (
            np.zeros(len(tables))
            if association is None
            else self._association(association, question, texts, len(tables))
        )
        return np.column_stack([shared, associated]).astype(np.float32)

    def _association(self, association: WordAssociation, question: str, texts: _Texts, size: int) -> Floats:
        known = self._streams.terms
        held = [
            (number, column) for column, word in enumerate(association.named) if (number := known.get(word)) is not None
        ]
        numbers, columns = np.array(held, dtype=np.int64).reshape(-1, 2).T
        with self._with_positions(numbers):
            names = np.flatnonzero((texts.groups == _HEADER) & (self._place[texts.tokens] >= 0))
            headers = np.zeros((size, len(association.named)), dtype=bool)
            headers[texts.tables[names], columns[self._place[texts.tokens[names]]]] = True
        return association.scores(question_words(question, self._streams.analyzer), headers)

    @contextmanager
    def _with_positions(self, numbers: Ints) -> Iterator[None]:
        self._place[numbers] = np.arange(len(numbers))
        try:
            yield
        finally:
            self._place[numbers] = -1

    def unknown_share(self, question: str) -> float:
        """Return the share of a question's words that no table contains; 1 for a question without words."""
        terms = set(self._streams.analyzer.terms(question))
        return sum(term not in self._streams.terms for term in terms) / len(terms) if terms else 1.0

    def _parse_question(self, question: str) -> _QuestionTerms | None:
        known = self._streams.terms
        terms = [term for term in self._streams.analyzer.terms(question) if term in known]
        if not terms:
            return None
        distinct = list(dict.fromkeys(terms))
        numbers = np.array([known[term] for term in distinct], dtype=np.int64)
        worth = self._rarity[numbers]
        order = {term: place for place, term in enumerate(distinct)}
        pairs = np.full((len(distinct), len(distinct)), -1, dtype=np.int64)
        pair_worth: list[float] = []
        for one, other in pairwise(terms):
            if pairs[order[one], order[other]] < 0:
                pairs[order[one], order[other]] = len(pair_worth)
                pair_worth.append(float(worth[order[one]] + worth[order[other]]))
        numerals = np.array([term[0].isdigit() for term in distinct])
        return _QuestionTerms(numbers, worth, numerals, pairs, np.array(pair_worth, dtype=np.float32))


@dataclass(frozen=True, slots=True)
class _Texts:
    """The concatenated streams of the candidates, with what each token belongs to."""

    tokens: NDArray[np.int32]
    tables: Ints
    groups: Ints
    rows: Ints  # counted through all candidates; meaningless outside cells
    row_tables: Ints  # the candidate of each row
    pieces: Ints  # counted through all candidates: cells, column names, whole fields
    columns: Ints  # counted through all candidates, the same for a column's name and its cells


def _gather(streams: TermStreams, tables: Sequence[int]) -> _Texts:
    chosen = np.asarray(tables, dtype=np.int64)
    parts = [streams.tokens[streams.starts[table] : streams.starts[table + 1]] for table in chosen]
    tokens = np.concatenate(parts)
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    marked = tokens < 0
    fields = np.maximum.accumulate(np.where(tokens <= FIRST_FIELD, np.arange(len(tokens)), 0))
    groups = _GROUPS[-tokens[fields]] if len(tokens) else tokens.astype(np.int64)
    begins = tokens == ROW
    rows = np.cumsum(begins) - 1
    # A token's column is the number of cells since its row, or the header, began.
    cells = np.cumsum(tokens == CELL)
    line = np.maximum.accumulate(np.where(begins | (tokens <= FIRST_FIELD), np.arange(len(tokens)), 0))
    place = np.clip(cells - cells[line] - 1, 0, _MOST_COLUMNS - 1) if len(tokens) else cells
    columns = owners * _MOST_COLUMNS + place
    return _Texts(tokens, owners, groups, rows, owners[begins], np.cumsum(marked), columns)


_GROUPS = np.full(-LOWEST_MARK + 1, _PROSE, dtype=np.int64)
for _name, _mark in FIELD_MARKS.items():
    _GROUPS[-_mark] = _GROUP_OF.get(_name, _PROSE)


def _compare(asked: _QuestionTerms, texts: _Texts, place: Ints, rarity: Floats) -> Floats:
    size, terms = int(texts.tables[-1]) + 1, len(asked.numbers)
    places = place[texts.tokens]
    hits = np.flatnonzero(places >= 0)
    at, tables, groups = places[hits], texts.tables[hits], texts.groups[hits]
    held = np.zeros((size, 4, terms), dtype=bool)
    held[tables, groups, at] = True
    anywhere = held.any(axis=1)
    mass, squares = _normalize_weights(asked.worth), _normalize_weights(asked.worth**2)
    numerals = _normalize_weights(asked.numerals.astype(np.float32))
    in_cells = groups == _CELLS
    in_row = _terms_by_row(texts, hits[in_cells], at[in_cells], terms)
    framed = in_row | (held[:, _TITLE] | held[:, _HEADER])[texts.row_tables]
    first = hits[:-1][np.diff(hits) == 1]
    found = asked.pairs[places[first], places[first + 1]]
    pairs = np.zeros((size, len(asked.pair_worth)), dtype=bool)
    pairs[texts.tables[first[found >= 0]], found[found >= 0]] = True
    whole = _find_whole_pieces(texts, hits, first[found >= 0])
    entities, values, columns = _find_covered_terms(texts, whole, places, size, terms)
    inside = whole[texts.groups[whole] == _CELLS]
    named, column = _by_column(texts, hits, at, held.shape)
    outside = (held[:, _TITLE] | held[:, _HEADER]) @ mass
    return np.stack(
        [
            held[:, _TITLE] @ mass,
            _own_share(texts, places, rarity, _TITLE, size),
            held[:, _HEADER] @ mass,
            _own_share(texts, places, rarity, _HEADER, size),
            held[:, _CELLS] @ mass,
            anywhere @ mass,
            anywhere @ squares,
            _max_by_table(in_row @ mass, texts.row_tables, size),
            _max_by_table(in_row @ squares, texts.row_tables, size),
            np.maximum(_max_by_table(framed @ mass, texts.row_tables, size), outside),
            _max_two_rows(in_row, mass, texts.row_tables, size),
            _max_by_table(_terms_by_row(texts, inside, places[inside], terms) @ mass, texts.row_tables, size),
            _max_by_table(in_row @ numerals, texts.row_tables, size),
            _max_by_table(named @ mass, texts.row_tables, size),
            (column @ mass).max(axis=1),
            anywhere @ numerals,
            pairs @ _normalize_weights(asked.pair_worth),
            entities @ mass,
            values @ mass,
            columns @ mass,
            np.log1p(np.bincount(texts.tables, minlength=size)) / 10,
        ],
        axis=1,
    ).astype(np.float32)


def _terms_by_row(texts: _Texts, hits: Ints, at: Ints, terms: int) -> NDArray[np.bool_]:
    held = np.zeros((len(texts.row_tables), terms), dtype=bool)
    held[texts.rows[hits], at] = True
    return held


def _max_two_rows(in_row: NDArray[np.bool_], mass: Floats, tables: Ints, size: int) -> Floats:
    """Return the share of each table's best row, plus the most that one other row adds."""
    if not len(tables):
        return np.zeros(size, dtype=np.float32)
    shares = in_row @ mass
    order = np.lexsort((-shares, tables))
    first = order[np.diff(tables[order], prepend=-1) > 0]
    held = np.zeros((size, in_row.shape[1]), dtype=bool)
    held[tables[first]] = in_row[first]
    return _max_by_table(shares, tables, size) + _max_by_table((in_row & ~held[tables]) @ mass, tables, size)


def _by_column(
    texts: _Texts, hits: Ints, at: Ints, shape: tuple[int, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the terms by row in columns whose name is in the question, and the terms by column, name included."""
    size, _, terms = shape
    names, cells = (texts.groups[hits] == group for group in (_HEADER, _CELLS))
    named = np.zeros(size * _MOST_COLUMNS, dtype=bool)
    named[texts.columns[hits[names]]] = True
    under = cells & named[texts.columns[hits]]
    column = np.zeros((size * _MOST_COLUMNS, terms), dtype=bool)
    column[texts.columns[hits[names | cells]], at[names | cells]] = True
    return _terms_by_row(texts, hits[under], at[under], terms), column.reshape(size, _MOST_COLUMNS, terms)


def _normalize_weights(weights: Floats) -> Floats:
    total = weights.sum() if len(weights) else 0.0
    return weights / total if total > 0 else weights


def _max_by_table(scores: Floats, tables: Ints, size: int) -> Floats:
    best = np.zeros(size, dtype=np.float32)
    np.maximum.at(best, tables, scores.astype(np.float32))
    return best


def _own_share(texts: _Texts, places: Ints, rarity: Floats, group: int, size: int) -> Floats:
    own = np.flatnonzero((texts.tokens >= 0) & (texts.groups == group))
    worth = rarity[texts.tokens[own]]
    whole = np.bincount(texts.tables[own], weights=worth, minlength=size)
    found = np.bincount(texts.tables[own], weights=worth * (places[own] >= 0), minlength=size)
    shares: Floats = (found / np.maximum(whole, 1e-6)).astype(np.float32)
    return shares


def _find_whole_pieces(texts: _Texts, hits: Ints, joined: Ints) -> Ints:
    """Return the positions of terms in cells and column names that the question contains word for word."""
    # `joined` are the positions of terms whose next one follows them in the question, too.
    pieces = int(texts.pieces[-1]) + 1
    length = np.bincount(texts.pieces[texts.tokens >= 0], minlength=pieces)
    held = np.bincount(texts.pieces[hits], minlength=pieces)
    together = np.bincount(texts.pieces[joined], minlength=pieces)
    whole = (length > 0) & (held == length) & (together == length - 1)
    kept: Ints = hits[whole[texts.pieces[hits]]]
    return kept


def _find_covered_terms(
    texts: _Texts, inside: Ints, places: Ints, size: int, terms: int
) -> tuple[NDArray[np.bool_], ...]:
    """Return which terms are covered by whole cells of several words, by any whole cells, and by column names."""
    covers = [np.zeros((size, terms), dtype=bool) for _ in range(3)]
    cells = texts.groups[inside] == _CELLS
    long = np.bincount(texts.pieces[inside], minlength=1)[texts.pieces[inside]] > 1
    names = texts.groups[inside] == _HEADER
    for cover, chosen in zip(covers, (cells & long, cells, names), strict=True):
        cover[texts.tables[inside[chosen]], places[inside[chosen]]] = True
    return tuple(covers)
