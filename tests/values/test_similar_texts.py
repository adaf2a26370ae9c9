"""Similarities of texts and the pairs of a join: none is missed, and none depends on what else is compared."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from almanaq.models.lexical import LexicalEmbedder
from almanaq.suql.execution import similar_texts
from almanaq.suql.execution.similar_texts import pairs_above
from almanaq.suql.execution.text_vectors import TextVectors, on_grid

WORDS = "good bad food service room clean dirty sea view breakfast staff friendly slow fast cheap dear".split()


def test_no_pair_is_missed_where_parts_of_the_vectors_bound_them(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    scale = np.linspace(2, 0.2, 96)
    centres = draw.standard_normal((60, 96)) * scale
    sides = [centres[draw.integers(0, 60, n)] + 0.5 * scale * draw.standard_normal((n, 96)) for n in (700, 900)]
    first, second = (on_grid((side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32)) for side in sides)
    monkeypatch.setattr(similar_texts, "_LEFT", 100)
    monkeypatch.setattr(similar_texts, "_CANDIDATE", 100)
    monkeypatch.setattr(similar_texts, "_RIGHT", 128)
    exact = [side.astype(float) / np.linalg.norm(side.astype(float), axis=1, keepdims=True) for side in (first, second)]
    turned, _ = similar_texts._turned(exact[0].astype(np.float32), exact[1].astype(np.float32), 0.7)
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
    monkeypatch.setattr("almanaq.suql.execution.text_vectors.MOST_BYTES", 1024 * 1024 * 4)
    embedded: list[str] = []

    def embed(texts: Any) -> Any:
        embedded.extend(texts)
        return LexicalEmbedder().embed(texts)

    vectors = TextVectors(embed)
    first = vectors.similarities(pa.chunked_array([[f"food {i}" for i in range(1500)]]), "food")
    again = vectors.similarities(pa.chunked_array([[f"food {i}" for i in range(1500)]]), "food")
    assert first.equals(again)
    assert len(embedded) == 2 * 1501
