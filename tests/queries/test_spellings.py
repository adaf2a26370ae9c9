"""Replies that differ in case alone are one value to every equality, in whatever order rows come (semantics 4)."""

from __future__ import annotations

import itertools

import pytest

from queries.support import Asked

MOOD = "answer(x, 'mood')"
LABELS = {"k": [" Calm", "loud"], "score": [5, 1]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "condition",
    [
        f"{MOOD} = 'calm'",
        f"{MOOD} IS NOT DISTINCT FROM 'calm'",
        f"coalesce({MOOD}, '-') = 'calm'",
        f"CASE WHEN id < 9 THEN {MOOD} END = 'calm'",
        f"({MOOD}, 1) = ('calm', 1)",
        f"{MOOD} IN (SELECT k FROM labels)",
        f"{MOOD} IN (SELECT k FROM labels ORDER BY score DESC LIMIT 1)",
        f"{MOOD} = ANY (SELECT k FROM labels)",
        f"NOT {MOOD} NOT IN (SELECT k FROM labels)",
        f"{MOOD} IN (SELECT k FROM labels UNION ALL SELECT 'happy' AS k)",
        f"{MOOD} = (SELECT max(k) FROM labels WHERE score = 5)",
        f"EXISTS (SELECT 1 FROM labels WHERE k = {MOOD})",
    ],
)
def test_every_equality_agrees_whatever_the_order_of_rows(condition: str) -> None:
    for order in itertools.permutations(["Calm", "calm", "CALM", "sad"]):
        asked = Asked(reply=lambda text, _: text, t={"id": [1, 2, 3, 4], "x": list(order)}, labels=LABELS)
        found = {order[i - 1] for (i,) in asked.rows(f"SELECT id FROM t WHERE {condition}")}
        assert found == {"Calm", "calm", "CALM"}


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id, score FROM t JOIN labels ON {MOOD} = k",
        f"SELECT id, score FROM t LEFT JOIN labels ON k = {MOOD} WHERE score IS NOT NULL",
        f"SELECT id, score FROM (SELECT id, {MOOD} AS k FROM t) AS a JOIN labels USING (k)",
        f"WITH a AS (SELECT id, {MOOD} AS m FROM t) SELECT id, score FROM a, labels WHERE m = k",
        f"SELECT id, score FROM (SELECT 0 AS id, '-' AS m UNION SELECT id, {MOOD} FROM t) AS a, labels WHERE m = k",
    ],
)
def test_joins_agree_with_equalities(query: str) -> None:
    asked = Asked(reply=lambda text, _: text, t={"id": [1, 2, 3], "x": ["CALM", "sad", "calm"]}, labels=LABELS)
    assert sorted(asked.rows(query)) == [(1, 5), (3, 5)]


def test_a_value_is_spelled_as_the_query_or_a_parameter_spells_it() -> None:
    asked = Asked(reply=lambda text, _: text, t={"id": [1, 2, 3], "x": ["no", "NO", "Maybe"]})
    query = f"SELECT {MOOD} AS m FROM t ORDER BY id"
    assert asked.rows(query) == [("no",), ("no",), ("Maybe",)]
    assert asked.rows(f"SELECT coalesce({MOOD}, 'No') AS m FROM t ORDER BY id") == [("No",), ("No",), ("Maybe",)]
    assert asked.rows(f"SELECT id FROM t WHERE coalesce({MOOD}, '') = ? ORDER BY id", ["nO"]) == [(1,), (2,)]


@pytest.mark.parametrize(
    "source", ["t", "(SELECT *, upper(m) AS up FROM (SELECT *, answer(x, 'mood') AS m FROM t) AS i)"]
)
def test_what_is_made_of_an_answer_is_compared_as_it_is(source: str) -> None:
    asked = Asked(reply=lambda text, _: text, t={"id": [1, 2], "x": ["CALM", "calm"], "k": ["CALM", "calm"]})
    made = f"upper({MOOD})" if source == "t" else "up"
    assert asked.rows(f"SELECT id FROM {source} AS a WHERE {made} = k ORDER BY id") == [(1,)]
    assert asked.rows(f"SELECT id FROM {source} AS a WHERE answer(x, 'mood again') = {made} ORDER BY id") == [
        (1,),
        (2,),
    ]
    asked = Asked(reply=lambda text, _: text.lower(), t={"id": [1], "x": ["CALM"], "k": ["CALM"]})
    assert asked.rows(f"SELECT id FROM {source} AS a WHERE answer(x, 'mood again') = {made}") == []


def test_a_literal_beside_a_text_is_compared_as_it_is() -> None:
    asked = Asked(reply=lambda *_: None, t={"id": [1, 2], "x": ["a", "b"], "k": ["Calm", "calm"]})
    assert asked.rows(f"SELECT id FROM t WHERE coalesce({MOOD}, k) = 'calm'") == [(2,)]
