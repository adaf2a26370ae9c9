"""Tables as streams of term numbers that keep where each term stands: field, row and cell.

A stream is one array of int32: numbers from 0 up are terms, negative ones mark where a field, a row or a cell
begins. It is compact, can lie in a memory-mapped file, and is read with whole-array operations.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field, field_text
from almanaq.corpus.table import Table
from almanaq.text.index_terms import Analyzer

CELL, ROW, FIRST_FIELD = -1, -2, -10
FIELD_MARKS: Mapping[Field, int] = {name: FIRST_FIELD - number for number, name in enumerate(Field)}
"""The mark that begins each field."""

LOWEST_MARK = FIRST_FIELD - len(FIELD_MARKS)


@dataclass(frozen=True, slots=True)
class TermStreams:
    """The streams of tables, and in how many tables of their corpus each term stands.

    Attributes:
        size: how many tables the corpus has.
        terms: numbers of terms.
        tokens: all streams, one after another; that of table i is `tokens[starts[i]:starts[i + 1]]`.
        held: per term, the tables that hold it.
    """

    size: int
    terms: Mapping[str, int]
    starts: NDArray[np.int64]
    tokens: NDArray[np.int32]
    held: NDArray[np.int32]
    analyzer: Analyzer

    def rarity(self) -> NDArray[np.float32]:
        """Return each term's inverse document frequency, as BM25 has it."""
        return np.log1p((self.size - self.held + 0.5) / (self.held + 0.5)).astype(np.float32)


class StreamWriter:
    """Turns tables into streams, one table at a time.

    Args:
        terms: numbers that terms have already; new ones are added.
    """

    def __init__(self, fields: Sequence[Field], analyzer: Analyzer, terms: dict[str, int] | None = None) -> None:
        self.fields = fields
        self.analyzer = analyzer
        self.terms: dict[str, int] = {} if terms is None else terms
        self.tokens = array("i")
        self.starts = array("q", [0])
        self._cells: dict[str, list[int]] = {}

    def add(self, table: Table) -> None:
        """Append the stream of a table."""
        for name in self.fields:
            self.tokens.append(FIELD_MARKS[name])
            self.tokens.extend(self._field(table, name))
        self.starts.append(len(self.tokens))

    def finish(self) -> TermStreams:
        """Return the streams of all tables that were added."""
        tokens = np.frombuffer(self.tokens, dtype=np.int32) if self.tokens else np.zeros(0, np.int32)
        starts = np.frombuffer(self.starts, dtype=np.int64)
        held = held_by(tokens, starts, len(self.terms))
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
        """Return the term numbers of a text; those of short texts are remembered, as cells repeat."""
        known = self._cells.get(text)
        if known is None:
            known = [self.terms.setdefault(term, len(self.terms)) for term in self.analyzer.terms(text)]
            if len(text) <= _REMEMBERED_CHARS:
                if len(self._cells) >= _REMEMBERED:
                    self._cells.clear()
                self._cells[text] = known
        return known


_REMEMBERED = 500_000  # cells whose terms are remembered while streams are written: some 150 MB at most
_REMEMBERED_CHARS = 80


def held_by(tokens: NDArray[np.int32], starts: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """Return per term the number of tables that hold it."""
    tables = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
    real = tokens >= 0
    pairs = np.unique(tokens[real] * np.int64(len(starts)) + tables[real])
    return np.bincount(pairs // len(starts), minlength=size).astype(np.int32)
