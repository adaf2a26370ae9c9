"""The stages of `similarity`: a score for each row, or the pairs of rows whose texts are alike."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from almanaq.engines.protocols import Session
from almanaq.errors import OperationalError
from almanaq.suql.execution.blas_threads import one_thread_each
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.text_vectors import Matrix, TextVectors, cosines
from almanaq.suql.execution.threads import given_up, in_thread, refuse_given_up
from almanaq.suql.plan.stages import ROW, SimilarityCall, SimilarityJoin, SimilarityStage, selects_of

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
    """Return the table that a stage makes."""
    tables = [await in_thread(session.fetch, renderer.sql(select)) for select in selects_of(stage)]
    if isinstance(stage, SimilarityJoin):
        return await in_thread(similar_pairs, vectors, tables[0], tables[1], stage.at_least)
    return await in_thread(similar_rows, vectors, tables[0], stage.calls)


def similar_rows(vectors: TextVectors, rows: pa.Table, calls: Sequence[SimilarityCall]) -> pa.Table:
    """Return the table of a SimilarityStage from the rows of its source."""
    made = {ROW: rows.column(ROW)}
    for call in calls:
        other = call.words if call.other is None else rows.column(call.other)
        made[call.column] = pa.chunked_array([vectors.similarities(rows.column(call.document), other)])
    table = pa.table(made)
    for call in calls:
        table = _wanted(table, call)
    return table


def _wanted(table: pa.Table, call: SimilarityCall) -> pa.Table:
    """Return the rows whose score of a call does not keep them from being wanted."""
    scores = table.column(call.column).to_numpy()  # NULL is no number
    if call.at_least is not None:
        return table.filter(pa.array(scores >= call.at_least))
    known = scores[~np.isnan(scores)]
    if not call.most or len(known) <= call.most:
        return table
    last = np.partition(known, len(known) - call.most)[len(known) - call.most]
    return table.filter(pa.array(np.isnan(scores) | (scores >= last)))


def similar_pairs(vectors: TextVectors, left: pa.Table, right: pa.Table, at_least: float) -> pa.Table:
    """Return the table of a SimilarityJoin from the rows of its sides."""
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
    left, right = _turned(_units(first, lengths[0]), _units(second, lengths[1]), at_least)
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


def _turned(left: Matrix, right: Matrix, at_least: float) -> tuple[Matrix, Matrix]:
    """Return vectors, shorter ones where that pays, whose inner products bound those of unit vectors from above."""
    if len(left) * len(right) <= _LEFT * _RIGHT:
        return left, right
    draw = np.random.default_rng(0)
    samples = [side[draw.choice(len(side), min(_SAMPLE, len(side)), replace=False)] for side in (left, right)]
    both = np.concatenate(samples)
    axes = np.linalg.eigh(both.T @ both)[1][:, ::-1].astype(np.float32)
    turned = [sample @ axes for sample in samples]

    def cost(width: int) -> float:
        bounds = _shortened(turned[0], width) @ _shortened(turned[1], width).T
        return width + float((bounds >= at_least).mean()) * _CANDIDATE

    width = min((w for w in _WIDTHS if w < left.shape[1]), key=cost, default=left.shape[1])
    if width >= left.shape[1] or cost(width) >= left.shape[1]:
        return left, right
    return _shortened(left @ axes, width), _shortened(right @ axes, width)


def _shortened(turned: Matrix, width: int) -> Matrix:
    """Return the first components, and the length of the others as one more."""
    rest = np.sqrt(np.einsum("ij,ij->i", turned[:, width:], turned[:, width:]))
    return np.ascontiguousarray(np.concatenate([turned[:, :width], rest[:, None]], axis=1))


def _candidates(left: Matrix, right: Matrix, at_least: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs whose inner product is not below a bound, block by block."""
    for start in range(0, len(right), _RIGHT):
        product = left @ right[start : start + _RIGHT].T
        places = np.flatnonzero(product >= at_least)
        i, j = np.divmod(places, product.shape[1])
        yield i, j + start
