"""`answer(…)::text[]`: a list of texts from each document, as any array."""

from __future__ import annotations

from typing import Any

import pytest

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")

DISHES = "answer(body, 'dishes?')::text[]"
SAID = {"a": '["Fish, fried", "soup"]', "b": "Soup; rice", "c": "[]", "d": None, "e": '["soup", "SOUP", " ", "it\'s"]'}


@pytest.fixture(scope="module")
def asked(engine: str) -> Asked:
    def reply(text: str, question: str) -> str | None:
        return SAID[text] if question == "dishes?" else "Yes"

    return Asked(reply=reply, t={"id": [1, 2, 3, 4, 5, 6], "body": texts("a", "b", "c", "d", "e", None)})


ONE = "Fish, fried"
CASES: list[tuple[str, list[tuple[Any, ...]], int]] = [
    (
        f"SELECT id, {DISHES} FROM t ORDER BY id",
        [(1, [ONE, "soup"]), (2, ["soup", "rice"]), (3, []), (4, None), (5, ["soup", "it's"]), (6, None)],
        5,
    ),
    (f"SELECT id FROM t WHERE 'it''s' = ANY({DISHES})", [(5,)], 5),
    (f"SELECT id FROM t WHERE 'it''s' = ANY({DISHES}) OR answer(body, 'ok?') = 'No' LIMIT 1", [(5,)], 9),
    (f"SELECT id FROM t WHERE cardinality({DISHES}) = 0", [(3,)], 5),
    (f"SELECT id FROM t WHERE {DISHES} IS NULL ORDER BY id", [(4,), (6,)], 5),
    (f"SELECT id FROM t WHERE ({DISHES}) = ARRAY['{ONE}', 'soup']", [(1,)], 5),
    (f"SELECT id FROM t WHERE {DISHES.replace('::text[]', '')} = ARRAY['{ONE}', 'soup']", [(1,)], 5),
    (f"SELECT id FROM t WHERE CAST(answer(body, 'dishes?') AS VARCHAR[]) && ARRAY['{ONE}']", [(1,)], 5),
    (f"SELECT id, ({DISHES})[1] FROM t WHERE id <= 2 ORDER BY id", [(1, ONE), (2, "soup")], 2),
    (
        f"SELECT id, unnest({DISHES}) AS dish FROM t WHERE id <> 5 ORDER BY id, dish",
        [(1, ONE), (1, "soup"), (2, "rice"), (2, "soup")],
        4,
    ),
    (
        f"SELECT id, dish FROM t CROSS JOIN LATERAL unnest({DISHES}) AS d(dish) WHERE dish <> 'soup' ORDER BY id, dish",
        [(1, ONE), (2, "rice"), (5, "it's")],
        5,
    ),
    (
        f"SELECT dish, count(*) AS n FROM (SELECT unnest({DISHES}) AS dish FROM t) AS d GROUP BY dish "
        "ORDER BY n DESC, dish LIMIT 2",
        [("soup", 3), (ONE, 1)],
        5,
    ),
    (
        "SELECT id, answer(body, 'dishes?', ARRAY['Rice', 'Soup'])::text[] AS known FROM t WHERE id < 4 ORDER BY id",
        [(1, ["Soup"]), (2, ["Soup", "Rice"]), (3, [])],
        3,
    ),
    (f"WITH d AS (SELECT id, {DISHES} AS l FROM t) SELECT id FROM d WHERE 'rice' = ANY(l) AND id < 4", [(2,)], 3),
    (f"SELECT {DISHES} AS l, count(*) FROM t WHERE id IN (4, 6) GROUP BY 1", [(None, 2)], 1),
]


@pytest.mark.parametrize(("sql", "rows", "calls"), CASES)
def test_lists_are_arrays(asked: Asked, sql: str, rows: list[tuple[Any, ...]], calls: int) -> None:
    before = asked.model.calls
    assert asked.rows(sql) == rows
    assert asked.model.calls - before == calls


def test_a_list_is_a_document_of_passages(engine: str) -> None:
    asked = Asked(reply=lambda text, question: "x; y" if question == "parts?" else text, t={"body": texts("a")})
    assert asked.rows("SELECT answer(answer(body, 'parts?')::text[], 'whole?') FROM t") == [("x\n\ny",)]


@pytest.mark.parametrize("cast", ["int[]", "uuid", "interval"])
def test_a_cast_to_what_no_reply_is_read_as_is_the_engines_cast_of_the_text(engine: str, cast: str) -> None:
    values = {
        "int[]": "{1,2}" if engine == "postgres" else "[1, 2]",
        "uuid": "2f1e8e4a-5a55-4c9b-9b1e-000000000001",
        "interval": "3 days",
    }
    asked = Asked(reply=lambda text, _: values[cast] if text == "a" else "none of it", t={"body": texts("a", "b")})
    ((value,),) = asked.rows(f"SELECT answer(body, 'which?')::{cast} FROM t WHERE body = 'a'")
    assert [value] == [native for (native,) in asked.rows(f"SELECT '{values[cast]}'::{cast}")]
    assert asked.rows(f"SELECT answer(body, 'which?')::{cast} FROM t ORDER BY body") == [(value,), (None,)]
