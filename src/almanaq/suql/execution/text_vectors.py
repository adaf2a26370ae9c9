"""Vectors of the texts that queries compare, in one matrix that stays in memory from query to query."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from almanaq.suql.execution.threads import given_up, refuse_given_up

Rows = NDArray[np.int64]
Matrix = NDArray[np.float32]
NO_TEXT = -1
"""The row of a NULL, and of a text of nothing but white space."""
MOST_BYTES = 2_000_000_000
"""Memory for the matrix: a larger one is forgotten before the next comparison."""
_GRID = 2048
"""Components are multiples of 1/2048. Then the products of two vectors' components are multiples of 2^-22 and their
sums are below 2, so that single precision holds each of them exactly: a similarity is the same in whatever order it is
added up, alone or in a product of matrices. It differs by some 0.0002 from that of the embedder's own vectors."""
_KEPT_COLUMNS = 8
_CHUNK = 4096
_BLOCK = 8192


class TextVectors:
    """Gives each text a row of a matrix of vectors, embedded when it is first met.

    Args:
        embed: gives unit vectors for texts: an embedder's `embed`, or the `vectors` of a store that keeps them on disk.
        remote: whether the texts leave this machine.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Matrix], *, remote: bool = False) -> None:
        self.remote = remote
        self._embed = embed
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._row_of: dict[int, int] = {}  # by the text's hash: two texts share one in 2^64
        self._matrix: Matrix = np.zeros((0, 0), np.float32)
        self._lengths = np.zeros(0)
        self._columns: list[tuple[pa.Array, Rows]] = []

    def similarities(self, documents: pa.ChunkedArray, others: pa.ChunkedArray | str) -> pa.Array:
        """Return the cosine of each document and what it is compared with; NULL where one of them is no text."""
        one = isinstance(others, str)
        compared = pa.chunked_array([[others]], pa.string()) if isinstance(others, str) else others
        with self._lock:
            if self._matrix.nbytes > MOST_BYTES:
                self._forget()
            first, second = self._rows(documents), self._rows(compared)
            if not self._row_of:
                found = np.zeros(len(first))
            elif not one:
                found = _in_blocks(self._pairwise, first, second)
            elif second[0] == NO_TEXT:
                found = np.zeros(len(first))
            else:
                found = self._with_one(first, int(second[0]))
        return pa.array(found, mask=(first == NO_TEXT) | (second == NO_TEXT))

    def vectors(self, documents: pa.ChunkedArray) -> tuple[Matrix, Rows]:
        """Return the vectors of the distinct texts of a column, and the number of its text for each row."""
        with self._lock:
            rows = self._rows(documents)
            distinct, numbers = np.unique(rows, return_inverse=True)
            if len(distinct) and distinct[0] == NO_TEXT:
                distinct, numbers = distinct[1:], numbers - 1
            return self._matrix[distinct], numbers

    def _with_one(self, rows: Rows, query: int) -> NDArray[np.float64]:
        """Return the cosines of rows with one row."""
        count, vector = len(self._row_of), self._matrix[query]
        if 2 * len(rows) > count:
            dots = (self._matrix[:count] @ vector)[rows]
        else:
            dots = _in_blocks(lambda block: self._matrix[block] @ vector, rows)
        return cosines(dots, self._lengths[rows], self._lengths[query])

    def _pairwise(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        dots = np.einsum("ij,ij->i", self._matrix[first], self._matrix[second])
        return cosines(dots, self._lengths[first], self._lengths[second])

    def _rows(self, texts: pa.ChunkedArray) -> Rows:
        """Return the row of each text; a column that was looked up before is known again by its bytes."""
        column = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
        for known, rows in self._columns:
            if len(known) == len(column) and known.type == column.type and known.equals(column):
                return rows
        rows = self._look_up(column)
        if len(column) > _BLOCK:
            self._columns = [(column, rows), *self._columns][:_KEPT_COLUMNS]
        return rows

    def _look_up(self, column: pa.Array) -> Rows:
        coded = _plain(column).dictionary_encode()
        distinct = coded.dictionary.to_pylist()
        keys = [hash(text) if text is not None and text.strip() else None for text in distinct]
        wanted = {key: text for key, text in zip(keys, distinct, strict=True) if key is not None}
        self._learn({key: text for key, text in wanted.items() if key not in self._row_of})
        rows = np.array([NO_TEXT if key is None else self._row_of[key] for key in keys] + [NO_TEXT], np.int64)
        codes = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        found: Rows = rows[codes]
        return found

    def _learn(self, missing: dict[int, str]) -> None:
        items, ended = list(missing.items()), given_up()
        for at in range(0, len(items), _CHUNK):
            refuse_given_up(ended)
            chunk = items[at : at + _CHUNK]
            made = on_grid(self._embed([text for _, text in chunk]))
            start = len(self._row_of)
            self._make_room(start + len(chunk), made.shape[1])
            self._matrix[start : start + len(chunk)] = made
            self._lengths[start : start + len(chunk)] = np.sqrt(np.einsum("ij,ij->i", made, made, dtype=np.float64))
            self._row_of.update((key, start + i) for i, (key, _) in enumerate(chunk))

    def _make_room(self, count: int, dimensions: int) -> None:
        if count > len(self._matrix):
            room = max(count, 1024, min(2 * len(self._matrix), MOST_BYTES // (4 * dimensions)))
            grown = np.zeros((room, dimensions), np.float32)
            lengths = np.zeros(room)
            used = len(self._row_of)
            grown[:used], lengths[:used] = self._matrix[:used] if used else 0, self._lengths[:used]
            self._matrix, self._lengths = grown, lengths


def _in_blocks(compute: Callable[..., NDArray[Any]], *columns: Rows) -> NDArray[Any]:
    """Return what a function makes of columns, which it is given some rows at a time."""
    starts = range(0, max(1, len(columns[0])), _BLOCK)
    return np.concatenate([compute(*(column[at : at + _BLOCK] for column in columns)) for at in starts])


def on_grid(vectors: Matrix) -> Matrix:
    """Return vectors with their components rounded, so that products of them are exact."""
    return np.asarray(np.rint(vectors * _GRID) / _GRID, np.float32)


def cosines(
    dots: NDArray[np.float32], first: NDArray[np.float64], second: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return cosines from inner products and lengths, to six decimals; 0 with a vector of zeros."""
    lengths = first * second
    found = np.divide(dots, lengths, out=np.zeros(len(dots)), where=lengths > 0)
    return np.round(found, 6, out=found)


def _document(passages: list[str | None] | None) -> str | None:
    if passages is None:
        return None
    return "\n\n".join(passage for passage in passages if passage is not None and passage.strip())


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of texts: of a list the passages that are not blank, joined by a blank line."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.array(map(_document, column.to_pylist()), pa.string())
    return column if pa.types.is_string(kind) or pa.types.is_large_string(kind) else column.cast(pa.string())
