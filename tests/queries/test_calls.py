"""How many calls a query takes, at the floor: table order, speculation 1."""

from __future__ import annotations

import pytest

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")

YES = "answer(body, 'calm?') = 'Yes'"


@pytest.fixture(scope="module")
def rows(engine: str) -> Asked:
    """20 rows, each its own text; every fourth is calm (ids 4, 8, …), the odd ones are in Oslo."""
    ids = range(1, 21)
    return Asked(
        t={
            "id": list(ids),
            "city": ["Oslo" if i % 2 else "Rome" for i in ids],
            "stars": [i % 5 for i in ids],
            "body": texts(*(f"n={i};calm={'No' if i % 4 else 'Yes'};loud={'Yes' if i % 3 else 'No'}" for i in ids)),
        }
    )


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        (f"SELECT id FROM t WHERE {YES}", 20),
        (f"SELECT id FROM t WHERE city = 'Rome' AND {YES}", 10),
        (f"SELECT id FROM t WHERE {YES} AND city = 'Rome'", 10),
        (f"SELECT id FROM t WHERE city = 'Rome' OR {YES}", 10),
        (f"SELECT id FROM t WHERE NOT (city = 'Rome' AND {YES})", 10),
        (f"SELECT id FROM t WHERE NOT (city = 'Rome' OR NOT ({YES}))", 10),
        (f"SELECT id FROM t WHERE {YES} LIMIT 2", 8),
        (f"SELECT id FROM t WHERE {YES} LIMIT 1 OFFSET 1", 8),
        (f"SELECT id FROM t WHERE {YES} LIMIT 0", 0),
        (f"SELECT id FROM t WHERE city = 'Rome' AND {YES} LIMIT 1", 2),
        (f"SELECT id FROM t WHERE {YES} ORDER BY id DESC LIMIT 1", 1),
        (f"SELECT id FROM t WHERE {YES} ORDER BY id DESC LIMIT 2", 5),
        (f"SELECT id, answer(body, 'calm?') FROM t WHERE {YES}", 20),
        (f"SELECT id, answer(body, 'n?') FROM t WHERE {YES} LIMIT 2", 10),
        ("SELECT id, answer(body, 'n?') FROM t ORDER BY id LIMIT 2", 2),
        ("SELECT id, answer(body, 'n?') FROM t ORDER BY id LIMIT 2 OFFSET 3", 2),
        (f"SELECT id FROM t WHERE {YES} ORDER BY answer(body, 'n?')::int LIMIT 1", 25),
        (f"SELECT count(*) FROM t WHERE {YES} AND FALSE", 0),
        (f"SELECT id FROM t WHERE city = 'Bonn' AND {YES}", 0),
        (f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id < 0) AND {YES}", 0),
        ("SELECT answer(body, 'n?') FROM t WHERE id = 3 UNION ALL SELECT answer(body, 'n?') FROM t WHERE id = 3", 1),
        ("SELECT city, count(*) FROM t GROUP BY city HAVING count(*) > 99 AND summary(array_agg(body)) <> ''", 0),
        ("SELECT CASE WHEN city = 'Rome' THEN answer(body, 'n?') END FROM t", 10),
        ("SELECT coalesce(city, answer(body, 'n?')) FROM t", 0),
        ("SELECT id FROM t WHERE CASE WHEN city = 'Rome' THEN answer(body, 'n?') ELSE 'no' END = '4'", 10),
        ("SELECT id FROM t WHERE coalesce(nullif(city, 'Rome'), answer(body, 'n?')) IN ('4', 'Oslo')", 10),
        (f"SELECT id FROM t WHERE CASE WHEN {YES} THEN answer(body, 'n?')::int ELSE 1 END > 7", 25),
        (f"SELECT count(*) FROM t WHERE CASE WHEN id > 12 AND {YES} THEN answer(body, 'n?') ELSE 'x' END > 'a'", 10),
        (f"SELECT CASE WHEN {YES} THEN answer(body, 'n?') END FROM t", 25),
        (f"SELECT city = 'Oslo' AND {YES} AND answer(body, 'loud?') = 'Yes' FROM t", 10),
        (f"SELECT {YES} OR answer(body, 'loud?') = 'Yes' FROM t", 35),
        ("SELECT coalesce(answer(body, 'n?'), answer(body, 'loud?')) FROM t", 20),
        (f"SELECT max(CASE WHEN {YES} THEN answer(body, 'n?') END) FROM t", 25),
        ("SELECT count(*) OVER (PARTITION BY CASE WHEN stars = 1 THEN answer(body, 'n?') END) FROM t", 4),
        ("SELECT city, max(answer(body, 'n?')) FILTER (WHERE stars = 1) FROM t GROUP BY city", 4),
        ("SELECT DISTINCT CASE WHEN stars = 1 THEN answer(answer(body, 'calm?'), 'n?') END FROM t", 6),
        (
            "SELECT n FROM (SELECT answer(body, 'n?') AS n, row_number() OVER (PARTITION BY city ORDER BY id) AS r "
            "FROM t) AS d WHERE r = 1",
            2,
        ),
        (
            "SELECT n FROM (SELECT answer(body, 'n?') AS n, stars, rank() OVER (ORDER BY id) AS r FROM t) AS d "
            "WHERE r <= 5 AND stars > 1",
            3,
        ),
        ("SELECT (SELECT answer(u.body, 'n?') FROM t AS u WHERE u.stars = t.id ORDER BY u.id LIMIT 1) FROM t", 4),
        (
            "SELECT t.id, c FROM t JOIN (SELECT row_number() OVER (ORDER BY id DESC) AS n, answer(body, 'n?') AS c "
            "FROM t) AS d ON d.n = t.id",
            20,
        ),
        (
            "SELECT t.id FROM t LEFT JOIN LATERAL (SELECT max(CASE WHEN t.id > 3 THEN answer(u.body, 'n?') ELSE '-' END"
            ") AS m, count(*) AS c FROM t AS u) AS l ON true WHERE answer(t.body, 'calm?') = 'Yes'",
            20,
        ),
        ("SELECT id FROM t WHERE stars < 4 OR answer(body || answer(body, 'n?'), 'calm?') = 'Yes'", 8),
    ],
)
def test_calls(rows: Asked, sql: str, calls: int) -> None:
    assert rows.calls(sql) == calls


@pytest.mark.parametrize(
    ("joined", "calls"),
    [
        (f"LEFT JOIN t AS u ON u.id = t.id + 15 AND t.{YES}", 5),
        (f"LEFT JOIN t AS u ON u.id = t.id + 15 AND t.{YES} WHERE t.city = 'Rome'", 2),
        (f"LEFT JOIN t AS u ON u.id = t.id + 15 AND u.{YES}", 5),
        (f"RIGHT JOIN t AS u ON u.id = t.id + 15 AND u.{YES} WHERE u.city = 'Rome'", 3),
        (f"FULL JOIN t AS u ON u.id = t.id + 15 AND t.{YES} WHERE t.city = 'Rome'", 2),
        (f"FULL JOIN t AS u ON u.id = t.id + 15 AND t.{YES} WHERE t.city IS NULL", 5),
        ("LEFT JOIN t AS u ON answer(t.body, u.city || ' calm?') = 'Yes' WHERE t.id < 4", 6),
    ],
)
def test_an_outer_join_asks_for_the_rows_that_matter(rows: Asked, joined: str, calls: int) -> None:
    """Rows that WHERE drops, or the rest of ON finds no match for, are not asked."""
    joined = joined.replace("t.answer(", "answer(t.").replace("u.answer(", "answer(u.")
    assert rows.calls(f"SELECT t.id, u.id FROM t {joined}") == calls


@pytest.mark.parametrize(
    ("joined", "calls"),
    [
        ("JOIN t AS u ON {t} = {u} WHERE t.id < 4", 20),
        ("JOIN t AS u ON {t} = {u} WHERE t.id < 4 AND u.city = 'Bonn'", 0),
        ("JOIN t AS u ON {t} = {u} WHERE t.id < 4 AND u.id = 8 AND answer(u.body, 'calm?') = 'No'", 4),
        ("JOIN t AS u ON {t} = {u} AND answer(t.body, 'calm?') = 'Yes' WHERE t.id < 9 AND u.id = 20", 11),
        ("LEFT JOIN t AS u ON {t} = {u} AND u.city = 'Bonn'", 0),
        ("RIGHT JOIN t AS u ON {t} = {u} WHERE u.city = 'Bonn'", 0),
    ],
)
def test_a_join_on_answers_asks_for_the_rows_that_matter(rows: Asked, joined: str, calls: int) -> None:
    """Nothing where the other side has no row, and of rows with a condition of their own those that meet it."""
    joined = joined.format(t="answer(t.body, 'n?')", u="answer(u.body, 'n?')")
    assert rows.calls(f"SELECT t.id, u.id FROM t {joined}") == calls


def test_equal_texts_are_asked_once() -> None:
    asked = Asked(t={"id": list(range(50)), "body": texts(*["calm=Yes"] * 50)})
    assert len(asked.rows(f"SELECT id FROM t WHERE {YES}")) == 50
    assert asked.calls(f"SELECT id FROM t WHERE {YES}") == 1
    assert asked.calls(f"SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE {YES.replace('body', 'a.body')}") == 1


def test_two_answers_stop_at_the_decisive_one(rows: Asked) -> None:
    both = "answer(body, 'calm?') = 'Yes' AND answer(body, 'loud?') = 'Yes'"
    either = "answer(body, 'calm?') = 'Yes' OR answer(body, 'loud?') = 'Yes'"
    assert len(rows.rows(f"SELECT id FROM t WHERE {both}")) == 4
    assert 25 <= rows.calls(f"SELECT id FROM t WHERE {both}") <= 34
    assert len(rows.rows(f"SELECT id FROM t WHERE {either}")) == 15
    assert 26 <= rows.calls(f"SELECT id FROM t WHERE {either}") <= 35


def test_one_call_serves_where_select_and_order(rows: Asked) -> None:
    q = "answer(body, 'calm?')"
    sql = f"SELECT {q}, {q} || '!', count(*) OVER (PARTITION BY {q}) FROM t WHERE {q} <> 'x' ORDER BY {q}, id"
    assert rows.calls(sql) == 20
