"""Candidates in order of similarity: the best in sight first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import almanaq
from almanaq.suql.execution.candidates import LOOKED_AT, LOOKED_FURTHER, Candidate, Lessons, MostSimilarFirst
from almanaq.suql.execution.similarity import EmbedderSimilarity
from almanaq.testing import FunctionModel

QUERY = "SELECT id FROM t WHERE id > 0 AND answer(body, 'are there candles?') = 'Yes' LIMIT 2"
WORDS = ("stones", "rivers", "candles", "clouds")


def reading(text: str, question: str) -> str:
    """Answer by the word asked for."""
    return "Yes" if "candles" in text else "No"


class WordEmbedder:
    """An embedder of four dimensions: one for each word."""

    name, dimensions, remote = "words", 4, False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[float(word in text) for word in WORDS] for text in texts], np.float32)


# --- a choice of rows -------------------------------------------------------------------------------------------------


def rows_with_candles_at(*places: int, rows: int) -> dict[str, pa.Table]:
    bodies = [f"candles {i}" if i in places else f"nothing {i}" for i in range(rows)]
    return {"t": pa.table({"id": list(range(1, rows + 1)), "body": bodies})}


@pytest.mark.parametrize(
    ("places", "calls"),
    [
        ((30, LOOKED_AT - 1), 2),
        # The second comes into sight after as many calls as it takes to look so far.
        ((30, LOOKED_AT + 25 * LOOKED_FURTHER), 25),
        ((LOOKED_AT + 55 * LOOKED_FURTHER, LOOKED_AT + 56 * LOOKED_FURTHER), 56),
    ],
)
def test_the_most_similar_row_in_sight_is_tried_next(places: tuple[int, int], calls: int) -> None:
    tables = rows_with_candles_at(*places, rows=10 * LOOKED_AT)
    with almanaq.connect(tables, model=FunctionModel(reading), speculation=1, cache=False) as con:
        result = con.sql(QUERY)
    assert sorted(i - 1 for (i,) in result.rows) == list(places)
    assert abs(result.trace.text_calls - calls) <= 10  # rows are looked at some at once


def test_a_score_that_misleads_costs_little() -> None:
    """The rows that say it least are those that hold it: every eighth, of thousands."""
    bodies = [f"light {i}" if i % 8 == 7 else f"candles {i}" for i in range(4000)]
    tables = {"t": pa.table({"id": list(range(4000)), "body": bodies})}
    model = FunctionModel(lambda text, question: "Yes" if "light" in text else "No")
    with almanaq.connect(tables, model=model, speculation=1, cache=False) as con:
        result = con.sql(QUERY)
    assert len(result.rows) == 2
    assert result.trace.text_calls <= 3 * 16  # table order takes 16


@pytest.mark.parametrize("speculation", [1, 5])
def test_rows_like_those_that_passed_are_tried_first(speculation: int) -> None:
    """All rows are as like the question as another; each tenth passes, and those have a word in common."""
    bodies = [f"candles and {'clouds' if i % 10 == 9 else 'rivers' if i % 2 else 'stones'} {i}" for i in range(150)]
    tables = {"t": pa.table({"id": list(range(150)), "body": bodies})}
    model = FunctionModel(lambda text, _: "Yes" if "clouds" in text else "No")
    options: dict[str, Any] = {"embedder": WordEmbedder(), "speculation": speculation, "cache": False}
    with almanaq.connect(tables, model=model, **options) as con:
        result = con.sql(QUERY.replace("LIMIT 2", "LIMIT 12"))
    assert sorted(i % 10 for (i,) in result.rows) == [9] * 12
    # One in ten until the second lesson, at twelve; the next rows are all of that kind.
    assert result.trace.text_calls <= 12 + 11 + 4 * (speculation - 1)


@pytest.mark.parametrize(("limit", "taught"), [(2, False), (12, True)])
def test_lessons_are_taken_only_where_many_rows_are_tried(
    limit: int, taught: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons: list[int] = []
    take = Lessons.take
    monkeypatch.setattr(Lessons, "take", lambda self, tried, *of: lessons.append(tried) or take(self, tried, *of))
    tables = rows_with_candles_at(*range(0, LOOKED_AT, 9), rows=LOOKED_AT)
    with almanaq.connect(tables, model=FunctionModel(reading), speculation=1, cache=False) as con:
        assert len(con.sql(QUERY.replace("LIMIT 2", f"LIMIT {limit}")).rows) == limit
    assert bool(lessons) == taught


def test_rows_that_are_decided_on_the_spot_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[MostSimilarFirst] = []
    learned: list[int] = []

    class Watched(MostSimilarFirst):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            streams.append(self)

        def learn(self, candidate: Candidate, *, passes: bool) -> None:
            learned.append(candidate.number)
            super().learn(candidate, passes=passes)

    monkeypatch.setattr("almanaq.suql.execution.run.MostSimilarFirst", Watched)
    tables = rows_with_candles_at(rows=2 * LOOKED_AT)
    query = "SELECT id FROM t WHERE id % 2 = 0 OR answer(body, 'are there candles?') = 'Yes' LIMIT 390"
    with almanaq.connect(tables, model=FunctionModel(reading), cache=False) as con:
        found = con.sql(query)
    assert len(found.rows) == LOOKED_AT
    assert found.trace.text_calls == len(learned) == LOOKED_AT
    assert not any(number % 2 for number in learned)  # row 0 has the id 1
    (stream,) = streams
    kept = stream._waiting, stream._scores, stream._vectors
    assert not any(kept)
    assert {candidate.number for candidate, _ in stream._learned} <= set(learned)


def test_few_rows_are_tried_by_similarity_alone() -> None:
    tables = rows_with_candles_at(LOOKED_AT - 2, LOOKED_AT - 3, rows=LOOKED_AT - 1)
    with almanaq.connect(tables, model=FunctionModel(reading), speculation=1, cache=False) as con:
        assert con.sql(QUERY).trace.text_calls == 2


def test_every_row_is_tried_once() -> None:
    with almanaq.connect(rows_with_candles_at(rows=4 * LOOKED_AT), model=FunctionModel(reading), cache=False) as con:
        result = con.sql(QUERY)
        assert (len(result.rows), result.trace.text_calls) == (0, 4 * LOOKED_AT)
        assert f"the best of {LOOKED_AT} rows first" in str(con.explain(QUERY))


# --- what is kept in memory -------------------------------------------------------------------------------------------


def test_vectors_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanaq.suql.execution.similarity.MOST_KEPT", 3)
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        embedded.extend(texts)
        return WordEmbedder().embed(texts)

    similarity = EmbedderSimilarity(embed)
    passages = ["candles", "stones", "rivers", "clouds"]
    assert similarity.scores("candles here", passages).tolist() == [1, 0, 0, 0]
    assert similarity.scores("candles here", ["clouds"]).tolist() == [0]
    assert embedded == [*passages, "candles here"]  # what was used last is there
    assert similarity.scores("candles here", ["candles", "stones"]).tolist() == [1, 0]
    assert embedded[5:] == ["candles"]
    assert similarity.scores("stones here", ["candles"]).tolist() == [0]
    assert embedded[6:] == ["stones here"]
    assert len(similarity._vectors) == 3
