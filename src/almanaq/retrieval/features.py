"""What a question and a table have in common: figures, most between 0 and 1, that a linear reranker weighs.

Computed for all candidates of a question at once, from their term streams: no model, about a millisecond for 100.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field
from almanaq.retrieval.streams import CELL, FIELD_MARKS, FIRST_FIELD, LOWEST_MARK, ROW, TermStreams
from almanaq.retrieval.word_association import WordAssociation, asked_words

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

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
    "row_values",  # share that cells of one row cover that stand in the question whole
    "row_numbers",  # share of the question's numbers in one row
    "named_row",  # share that one row holds in columns whose names the question has words of
    "column",  # share that the best column holds, its name included
    "numbers",  # share of the question's numbers found anywhere
    "phrases",  # share of the question's pairs of neighbouring words that stand together in the table
    "entities",  # share of the question's idf mass covered by cells that stand in it whole, of two words or more
    "values",  # as entities, cells of one word included
    "columns",  # share of the question's idf mass covered by column names that stand in it whole
    "size",  # logarithm of the table's length over 10
    "association",  # how well the question's words go with those of the header, below and above 0; 0 without it
)

_TITLE, _HEADER, _PROSE, _CELLS = range(4)
_GROUP_OF = {
    Field.TITLE: _TITLE,
    Field.SECTION: _TITLE,
    Field.HEADER: _HEADER,
    Field.CELLS: _CELLS,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question's distinct terms: numbers, worth, which are numerals, and the pairs that stand together."""

    numbers: NDArray[np.int64]
    worth: Floats
    numerals: NDArray[np.bool_]
    pairs: NDArray[np.int64]  # matrix (terms, terms): the pair's number, or -1
    pair_worth: Floats


class Featurizer:
    """Gives the features of candidates; holds one array over the vocabulary, so it is used by one thread at a time."""

    def __init__(self, streams: TermStreams) -> None:
        self._streams = streams
        self._rarity = streams.rarity()
        # Marks are negative, so they index from the end: one slot for each of them, never a term.
        self._place = np.full(len(self._rarity) - LOWEST_MARK + 1, -1, dtype=np.int64)

    def features(self, question: str, tables: Sequence[int], association: WordAssociation | None = None) -> Floats:
        """Return the features of the tables of these numbers, shape (tables, FEATURES)."""
        asked = self._asked(question)
        if asked is None or not len(tables):
            return np.zeros((len(tables), len(FEATURES)), dtype=np.float32)
        texts = _gather(self._streams, tables)
        with self._placed(asked.numbers):
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
        with self._placed(numbers):
            names = np.flatnonzero((texts.groups == _HEADER) & (self._place[texts.tokens] >= 0))
            headers = np.zeros((size, len(association.named)), dtype=bool)
            headers[texts.tables[names], columns[self._place[texts.tokens[names]]]] = True
        return association.scores(asked_words(question, self._streams.analyzer), headers)

    @contextmanager
    def _placed(self, numbers: Ints) -> Iterator[None]:
        """Let `_place` give for terms their places among these."""
        self._place[numbers] = np.arange(len(numbers))
        try:
            yield
        finally:
            self._place[numbers] = -1

    def unknown(self, question: str) -> float:
        """Return the share of a question's words that stand in no table; 1 where it has none."""
        terms = set(self._streams.analyzer.terms(question))
        return sum(term not in self._streams.terms for term in terms) / len(terms) if terms else 1.0

    def _asked(self, question: str) -> _Asked | None:
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
        return _Asked(numbers, worth, numerals, pairs, np.array(pair_worth, dtype=np.float32))


@dataclass(frozen=True, slots=True)
class _Texts:
    """The streams of the candidates, end to end, with what each token belongs to."""

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
    return _Texts(tokens, owners, groups, rows, owners[begins], np.cumsum(marked), _columns(tokens, owners))


def _columns(tokens: NDArray[np.int32], owners: Ints) -> Ints:
    """Return the column that each token stands in: the count of cells since its row, or the header, began."""
    cells = np.cumsum(tokens == CELL)
    line = np.maximum.accumulate(np.where((tokens == ROW) | (tokens <= FIRST_FIELD), np.arange(len(tokens)), 0))
    place = np.clip(cells - cells[line] - 1, 0, _MOST_COLUMNS - 1) if len(tokens) else cells
    columns: Ints = owners * _MOST_COLUMNS + place
    return columns


_MOST_COLUMNS = 64  # those further right are taken for the last
_GROUPS = np.full(-LOWEST_MARK + 1, _PROSE, dtype=np.int64)
for _name, _mark in FIELD_MARKS.items():
    _GROUPS[-_mark] = _GROUP_OF.get(_name, _PROSE)


def _compare(asked: _Asked, texts: _Texts, place: Ints, rarity: Floats) -> Floats:
    size, terms = int(texts.tables[-1]) + 1, len(asked.numbers)
    places = place[texts.tokens]
    hits = np.flatnonzero(places >= 0)
    at, tables, groups = places[hits], texts.tables[hits], texts.groups[hits]
    held = np.zeros((size, 4, terms), dtype=bool)
    held[tables, groups, at] = True
    anywhere = held.any(axis=1)
    mass, squares = _shares(asked.worth), _shares(asked.worth**2)
    numerals = _shares(asked.numerals.astype(np.float32))
    in_cells = groups == _CELLS
    in_row = _in_rows(texts, hits[in_cells], at[in_cells], terms)
    framed = in_row | (held[:, _TITLE] | held[:, _HEADER])[texts.row_tables]
    pairs = _pairs(asked, texts, places, hits, size)
    whole = _whole(asked, texts, places, hits)
    entities, values, columns = _covers(texts, whole, places, size, terms)
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
            _best(in_row @ mass, texts.row_tables, size),
            _best(in_row @ squares, texts.row_tables, size),
            np.maximum(_best(framed @ mass, texts.row_tables, size), outside),
            _best_two(in_row, mass, texts.row_tables, size),
            _best(_in_rows(texts, inside, places[inside], terms) @ mass, texts.row_tables, size),
            _best(in_row @ numerals, texts.row_tables, size),
            _best(named @ mass, texts.row_tables, size),
            (column @ mass).max(axis=1),
            anywhere @ numerals,
            pairs @ _shares(asked.pair_worth),
            entities @ mass,
            values @ mass,
            columns @ mass,
            np.log1p(np.bincount(texts.tables, minlength=size)) / 10,
        ],
        axis=1,
    ).astype(np.float32)


def _in_rows(texts: _Texts, hits: Ints, at: Ints, terms: int) -> NDArray[np.bool_]:
    """Return which of the question's terms each row holds, of these places in its cells."""
    held = np.zeros((len(texts.row_tables), terms), dtype=bool)
    held[texts.rows[hits], at] = True
    return held


def _best_two(in_row: NDArray[np.bool_], mass: Floats, tables: Ints, size: int) -> Floats:
    """Return the share of the best row of each table, with what one other row adds to it at most."""
    if not len(tables):
        return np.zeros(size, dtype=np.float32)
    shares = in_row @ mass
    order = np.lexsort((-shares, tables))
    first = order[np.diff(tables[order], prepend=-1) > 0]
    held = np.zeros((size, in_row.shape[1]), dtype=bool)
    held[tables[first]] = in_row[first]
    return _best(shares, tables, size) + _best((in_row & ~held[tables]) @ mass, tables, size)


def _by_column(
    texts: _Texts, hits: Ints, at: Ints, shape: tuple[int, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return what rows hold in columns whose name has a word of the question, and what columns hold, name included."""
    size, _, terms = shape
    names, cells = (texts.groups[hits] == group for group in (_HEADER, _CELLS))
    named = np.zeros(size * _MOST_COLUMNS, dtype=bool)
    named[texts.columns[hits[names]]] = True
    under = cells & named[texts.columns[hits]]
    column = np.zeros((size * _MOST_COLUMNS, terms), dtype=bool)
    column[texts.columns[hits[names | cells]], at[names | cells]] = True
    return _in_rows(texts, hits[under], at[under], terms), column.reshape(size, _MOST_COLUMNS, terms)


def _shares(weights: Floats) -> Floats:
    total = weights.sum() if len(weights) else 0.0
    return weights / total if total > 0 else weights


def _best(scores: Floats, tables: Ints, size: int) -> Floats:
    best = np.zeros(size, dtype=np.float32)
    np.maximum.at(best, tables, scores.astype(np.float32))
    return best


def _own_share(texts: _Texts, places: Ints, rarity: Floats, group: int, size: int) -> Floats:
    """Return how much of a field's own idf mass stands in the question."""
    own = np.flatnonzero((texts.tokens >= 0) & (texts.groups == group))
    worth = rarity[texts.tokens[own]]
    whole = np.bincount(texts.tables[own], weights=worth, minlength=size)
    found = np.bincount(texts.tables[own], weights=worth * (places[own] >= 0), minlength=size)
    shares: Floats = (found / np.maximum(whole, 1e-6)).astype(np.float32)
    return shares


def _pairs(asked: _Asked, texts: _Texts, places: Ints, hits: Ints, size: int) -> NDArray[np.bool_]:
    """Return which pairs of the question stand together in each table."""
    anywhere = np.zeros((size, len(asked.pair_worth)), dtype=bool)
    first = hits[:-1][np.diff(hits) == 1]
    found = asked.pairs[places[first], places[first + 1]]
    first, found = first[found >= 0], found[found >= 0]
    anywhere[texts.tables[first], found] = True
    return anywhere


def _whole(asked: _Asked, texts: _Texts, places: Ints, hits: Ints) -> Ints:
    """Return the places of terms in cells and column names that stand in the question word for word."""
    pieces = int(texts.pieces[-1]) + 1
    length = np.bincount(texts.pieces[texts.tokens >= 0], minlength=pieces)
    held = np.bincount(texts.pieces[hits], minlength=pieces)
    first = hits[:-1][np.diff(hits) == 1]
    joined = first[asked.pairs[places[first], places[first + 1]] >= 0]
    together = np.bincount(texts.pieces[joined], minlength=pieces)
    whole = (length > 0) & (held == length) & (together == length - 1)
    kept: Ints = hits[whole[texts.pieces[hits]]]
    return kept


def _covers(texts: _Texts, inside: Ints, places: Ints, size: int, terms: int) -> tuple[NDArray[np.bool_], ...]:
    """Return which terms are covered by whole cells of several words, by any whole cells, and by column names."""
    covers = [np.zeros((size, terms), dtype=bool) for _ in range(3)]
    cells = texts.groups[inside] == _CELLS
    long = np.bincount(texts.pieces[inside], minlength=1)[texts.pieces[inside]] > 1
    names = texts.groups[inside] == _HEADER
    for cover, chosen in zip(covers, (cells & long, cells, names), strict=True):
        cover[texts.tables[inside[chosen]], places[inside[chosen]]] = True
    return tuple(covers)
