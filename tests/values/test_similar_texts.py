"""Similarities of texts and the pairs of a join: none is missed, and none depends on what else is compared."""

from __future__ import annotations

import ast
import asyncio
import os
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.suql.execution import similarity
from almanaq.suql.execution.similarity import TextVectors, on_grid, pairs_above
from almanaq.suql.execution.threads import in_thread

WORDS = "good bad food service room clean dirty sea view breakfast staff friendly slow fast cheap dear".split()


def test_no_pair_is_missed_where_parts_of_the_vectors_bound_them(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    scale = np.linspace(2, 0.2, 96)
    centres = draw.standard_normal((60, 96)) * scale
    sides = [centres[draw.integers(0, 60, n)] + 0.5 * scale * draw.standard_normal((n, 96)) for n in (700, 900)]
    first, second = (on_grid((side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32)) for side in sides)
    monkeypatch.setattr(similarity, "_LEFT", 100)
    monkeypatch.setattr(similarity, "_CANDIDATE", 100)
    monkeypatch.setattr(similarity, "_RIGHT", 128)
    exact = [side.astype(float) / np.linalg.norm(side.astype(float), axis=1, keepdims=True) for side in (first, second)]
    turned, _ = similarity._rotate(exact[0].astype(np.float32), exact[1].astype(np.float32), 0.7)
    assert turned.shape[1] < 96
    i, j, scores = pairs_above(first, second, 0.7)
    above = scores >= 0.7
    wanted = set(zip(*(side.tolist() for side in np.nonzero(np.round(exact[0] @ exact[1].T, 6) >= 0.7)), strict=True))
    assert 100 < len(wanted) < 100_000
    assert set(zip(i[above].tolist(), j[above].tolist(), strict=True)) == wanted


def test_scores_are_the_same_alone_and_among_many() -> None:
    draw = random.Random(8)
    texts = [" ".join(draw.choices(WORDS, k=6)) + f" {i}" for i in range(9000)]
    many, alone = TextVectors(LexicalEmbedder().embed), TextVectors(LexicalEmbedder().embed)
    column = pa.chunked_array([texts])
    scores = many.similarities(column, "good food").to_pylist()
    assert many.similarities(column, "good food").to_pylist() == scores
    some = [0, 5, 8999]
    assert alone.similarities(column.take(some), "good food").to_pylist() == [scores[i] for i in some]
    assert alone.similarities(column.take(some), pa.chunked_array([["good food"] * 3])).to_pylist() == [
        scores[i] for i in some
    ]


def test_memory_for_vectors_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanaq.suql.execution.similarity.MOST_BYTES", 1024 * 1024 * 4)
    embedded: list[str] = []

    def embed(texts: Any) -> Any:
        embedded.extend(texts)
        return LexicalEmbedder().embed(texts)

    vectors = TextVectors(embed)
    first = vectors.similarities(pa.chunked_array([[f"food {i}" for i in range(1500)]]), "food")
    again = vectors.similarities(pa.chunked_array([[f"food {i}" for i in range(1500)]]), "food")
    assert first.equals(again)
    assert len(embedded) == 2 * 1501


# In a process of its own: in one with other tests, work that was given up may still be inside.
ONE_THREAD = """
import numpy
from threadpoolctl import threadpool_info, threadpool_limits
from almanaq.suql.execution.threads import one_thread_each
def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
seen = []
with threadpool_limits(2, user_api="blas"):
    first, second = one_thread_each(), one_thread_each()
    seen.append(threads())
    with first:
        second.__enter__()
        seen.append(threads())
    seen.append(threads())
    second.__exit__(None, None, None)
    seen.append(threads())
print(seen)
"""


def test_products_use_one_thread_until_the_last_block_is_left() -> None:
    done = subprocess.run([sys.executable, "-c", ONE_THREAD], capture_output=True, text=True, timeout=60, check=True)
    before, one, still, after = ast.literal_eval(done.stdout)
    assert one == still == {1}
    assert after == before


@pytest.mark.parametrize("work", ["pairs", "vectors"])
def test_work_that_nobody_waits_for_ends(monkeypatch: pytest.MonkeyPatch, work: str) -> None:
    monkeypatch.setattr(similarity, "_LEFT", 1)
    monkeypatch.setattr(similarity, "_CHUNK", 1)
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    steps: list[object] = []

    def step() -> None:
        steps.append(None)
        begun.set()
        assert go_on.wait(60)

    def embed(texts: Sequence[str]) -> Any:
        step()
        return LexicalEmbedder().embed(texts)

    def candidates(*_: object) -> Any:
        step()
        yield np.zeros(0, int), np.zeros(0, int)

    def compare() -> None:
        try:
            if work == "pairs":
                pairs_above(np.eye(90, dtype=np.float32), np.eye(90, dtype=np.float32), 0.5)
            else:
                TextVectors(embed).similarities(pa.chunked_array([[f"food {i}" for i in range(90)]]), "good")
        finally:
            ended.set()

    monkeypatch.setattr(similarity, "_candidates", candidates)

    async def stopped() -> None:
        task = asyncio.create_task(in_thread(compare))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        assert await asyncio.to_thread(ended.wait, 60)

    asyncio.run(stopped())
    assert 1 <= len(steps) <= 2 * (os.cpu_count() or 1)
