"""Similarity of texts by an embedder: vectors kept from query to query, scores of passages, rows and pairs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from almanaq.engines.protocols import Session
from almanaq.errors import OperationalError
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.threads import given_up, in_thread, one_thread_each, refuse_given_up
from almanaq.suql.plan.stages import ROW, SimilarityCall, SimilarityJoin, SimilarityStage, selects_of

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

MOST_KEPT = 20_000
"""Vectors that are kept in memory, 30 MB of 384 dimensions; a store on disk keeps the others."""


class EmbedderSimilarity:
    """Cosine similarity of an embedder's vectors; a text is embedded once, and again after others have pushed it out.

    Args:
        embed_questions: gives those of constraints; None: `embed` does.
    """

    def __init__(self, embed: Embed, embed_questions: Embed | None = None, *, remote: bool = False) -> None:
        self.remote = remote
        self._embed, self._embed_questions = embed, embed_questions or embed
        # By the text's hash, the one used last at the end. Two texts of one hash, in 2^64, cost an order of trial.
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._asked: dict[int, NDArray[np.float32]] = {}
        self._lock = threading.Lock()

    def vector(self, constraint: str) -> NDArray[np.float32]:
        key = hash(constraint)
        vector = self._asked.get(key)
        if vector is None:
            if len(self._asked) >= MOST_KEPT:
                self._asked.clear()
            vector = self._asked[key] = self._embed_questions([constraint])[0]
        return vector

    def scores(self, constraint: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one score per passage."""
        # The product is too small to be worth the threads that `@` wakes.
        found: NDArray[np.float32] = np.einsum("ij,j->i", self.vectors(passages), self.vector(constraint))
        return found

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = list(map(hash, texts))
        with self._lock:
            vectors = {key: self._vectors[key] for key in keys if key in self._vectors}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            vectors.update(zip(missing, self._embed(list(missing.values())), strict=True))
        self._keep(vectors)
        return np.stack([vectors[key] for key in keys])

    def _keep(self, used: dict[int, NDArray[np.float32]]) -> None:
        with self._lock:
            for key, vector in used.items():
                self._vectors.pop(key, None)
                self._vectors[key] = vector.copy() if vector.base is not None else vector
            while len(self._vectors) > MOST_KEPT:
                del self._vectors[next(iter(self._vectors))]


Rows = NDArray[np.int64]
Matrix = NDArray[np.float32]
NO_TEXT = -1
"""The row of a NULL, and of a text of nothing but white space."""
MOST_BYTES = 2_000_000_000
"""Memory for the matrix: a larger one is forgotten before the next comparison."""
_GRID = 2048
"""Components are multiples of 1/2048. Then the products of two vectors' components are multiples of 2^-22 and their
sums are below 2, so that single precision holds each of them exactly: a similarity is the same in any order it is
added up, alone or in a product of matrices. It differs by some 0.0002 from that of the embedder's own vectors."""
_KEPT_COLUMNS = 8
_CHUNK = 4096
_BLOCK = 8192


class TextVectors:
    """Gives each text a row of a matrix of vectors, embedded when it is first met."""

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


Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Numbers of rows of one matrix and of the other, and their cosines."""
MOST_PAIRS = 50_000_000
"""Pairs of rows that a join may have: more hardly fit into memory."""
_SLACK = 1e-5
"""What rounding may take from a bound; the query's own condition decides the pairs near it."""
_SAMPLE = 1000
_WIDTHS = (32, 64, 96, 128, 192, 256)
_CANDIDATE = 60_000
"""What it takes to look at one candidate pair, in dimensions of the product of two matrices."""
_LEFT, _RIGHT = 512, 8192


async def compared(
    stage: SimilarityStage | SimilarityJoin, vectors: TextVectors, session: Session, renderer: Renderer
) -> pa.Table:
    tables = [await in_thread(session.fetch, renderer.sql(select)) for select in selects_of(stage)]
    if isinstance(stage, SimilarityJoin):
        return await in_thread(similar_pairs, vectors, tables[0], tables[1], stage.at_least)
    return await in_thread(similar_rows, vectors, tables[0], stage.calls)


def similar_rows(vectors: TextVectors, rows: pa.Table, calls: Sequence[SimilarityCall]) -> pa.Table:
    made = {ROW: rows.column(ROW)}
    for call in calls:
        other = call.words if call.other is None else rows.column(call.other)
        made[call.column] = pa.chunked_array([vectors.similarities(rows.column(call.document), other)])
    table = pa.table(made)
    for call in calls:
        table = _filter_scores(table, call)
    return table


def _filter_scores(table: pa.Table, call: SimilarityCall) -> pa.Table:
    scores = table.column(call.column).to_numpy()  # NULL is no number
    if call.at_least is not None:
        return table.filter(pa.array(scores >= call.at_least))
    known = scores[~np.isnan(scores)]
    if not call.most or len(known) <= call.most:
        return table
    last = np.partition(known, len(known) - call.most)[len(known) - call.most]
    return table.filter(pa.array(np.isnan(scores) | (scores >= last)))


def similar_pairs(vectors: TextVectors, left: pa.Table, right: pa.Table, at_least: float) -> pa.Table:
    first, first_numbers = vectors.vectors(left.column("d"))
    second, second_numbers = vectors.vectors(right.column("d"))
    i, j, scores = pairs_above(first, second, at_least)
    # From pairs of distinct texts to pairs of rows.
    by_text = [_rows_by_text(first_numbers, len(first)), _rows_by_text(second_numbers, len(second))]
    counts = [np.diff(ends) for _, ends in by_text]
    times = counts[0][i] * counts[1][j]
    _refuse_too_many(int(times.sum()))
    pair = np.repeat(np.arange(len(i)), times)
    nth = np.arange(len(pair)) - np.repeat(np.cumsum(times) - times, times)
    wide = counts[1][j][pair]
    l_rows = by_text[0][0][by_text[0][1][i[pair]] + nth // np.maximum(wide, 1)]
    r_rows = by_text[1][0][by_text[1][1][j[pair]] + nth % np.maximum(wide, 1)]
    return pa.table({"l": left.column(ROW).take(l_rows), "r": right.column(ROW).take(r_rows), "score": scores[pair]})


def _refuse_too_many(pairs: int) -> None:
    if pairs > MOST_PAIRS:
        raise OperationalError(
            f"more than {MOST_PAIRS:,} pairs of texts are so similar: ask for a higher similarity, or join fewer rows"
        )


def _rows_by_text(numbers: NDArray[np.int64], texts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in the order of their texts' numbers, and where each text's rows begin and the last's end."""
    order = np.argsort(numbers, kind="stable")
    return order, np.searchsorted(numbers[order], np.arange(texts + 1))


def pairs_above(first: Matrix, second: Matrix, at_least: float) -> Pairs:
    """Return all pairs of vectors whose cosine is not below a bound, as numbers of rows, with their cosines.

    The vectors are turned so that their first components hold most of their length. A pair's cosine is at most the
    product of the first components plus that of what remains of the two lengths: where this is below the bound, the
    rest of the pair is never looked at. So no pair is missed, and most take a fraction of the work.
    """
    if not len(first) or not len(second):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    lengths = [np.sqrt(np.einsum("ij,ij->i", side, side, dtype=np.float64)) for side in (first, second)]
    left, right = _rotate(_units(first, lengths[0]), _units(second, lengths[1]), at_least)
    so_far: list[int] = []
    ended = given_up()

    def pairs_of(top: int) -> list[Pairs]:
        refuse_given_up(ended)
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        for i, j in _candidates(left[top : top + _LEFT], right, at_least - _SLACK):
            refuse_given_up(ended)
            dots = np.einsum("ij,ij->i", first[i + top], second[j])
            scores = cosines(dots, lengths[0][i + top], lengths[1][j])
            kept = scores >= at_least - _SLACK
            found.append((i[kept] + top, j[kept], scores[kept]))
            so_far.append(int(kept.sum()))
            _refuse_too_many(sum(so_far))
        return found

    with one_thread_each(), ThreadPoolExecutor(os.cpu_count()) as workers:  # numpy works without the interpreter's lock
        made = [pairs for found in workers.map(pairs_of, range(0, len(left), _LEFT)) for pairs in found]
    firsts, seconds, cosine = zip(*made, strict=True)
    return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(cosine)


def _units(vectors: Matrix, lengths: NDArray[np.float64]) -> Matrix:
    return (vectors / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)


def _rotate(left: Matrix, right: Matrix, at_least: float) -> tuple[Matrix, Matrix]:
    """Return vectors, shorter ones where that pays, whose inner products bound those of unit vectors from above."""
    if len(left) * len(right) <= _LEFT * _RIGHT:
        return left, right
    draw = np.random.default_rng(0)
    samples = [side[draw.choice(len(side), min(_SAMPLE, len(side)), replace=False)] for side in (left, right)]
    both = np.concatenate(samples)
    axes = np.linalg.eigh(both.T @ both)[1][:, ::-1].astype(np.float32)
    turned = [sample @ axes for sample in samples]

    def cost(width: int) -> float:
        bounds = _shorten(turned[0], width) @ _shorten(turned[1], width).T
        return width + float((bounds >= at_least).mean()) * _CANDIDATE

    width = min((w for w in _WIDTHS if w < left.shape[1]), key=cost, default=left.shape[1])
    if width >= left.shape[1] or cost(width) >= left.shape[1]:
        return left, right
    return _shorten(left @ axes, width), _shorten(right @ axes, width)


def _shorten(turned: Matrix, width: int) -> Matrix:
    """Return the first components, and the length of the others as one more."""
    rest = np.sqrt(np.einsum("ij,ij->i", turned[:, width:], turned[:, width:]))
    return np.ascontiguousarray(np.concatenate([turned[:, :width], rest[:, None]], axis=1))


def _candidates(left: Matrix, right: Matrix, at_least: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    for start in range(0, len(right), _RIGHT):
        product = left @ right[start : start + _RIGHT].T
        places = np.flatnonzero(product >= at_least)
        i, j = np.divmod(places, product.shape[1])
        yield i, j + start
