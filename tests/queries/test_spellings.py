"""Spellings of PostgreSQL's grammar that say the same as simpler ones: the same rows, on every engine."""

from __future__ import annotations

import pytest

from almanaq.errors import QuerySyntaxError, UnsupportedError

from .support import Asked, Row, texts


@pytest.fixture(scope="module")
def town(engine: str) -> Asked:
    return Asked(
        t={"id": [1, 2, 3, 4], "grade": [2, 1, 2, 3], "name": texts("abcdefg", "x", "ab", None)},
        s={"id": [1, 2, 9], "score": [-5, 7, 0], "body": texts("calm=Yes", "calm=No", "calm=Yes")},
    )


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("VALUES (1, 'one'), (2, 'two')", [(1, "one"), (2, "two")]),
        ("VALUES (1), (3), (2) ORDER BY 1 DESC LIMIT 2", [(3,), (2,)]),
        ("VALUES (1) UNION ALL VALUES (2) ORDER BY column1", [(1,), (2,)]),
        ("WITH v AS (VALUES (1)) TABLE v", [(1,)]),
        ("SELECT id FROM t WHERE id IN (TABLE v) ORDER BY id".replace("TABLE v", "SELECT id FROM s"), [(1,), (2,)]),
        ("SELECT count(*) FROM (TABLE t) x", [(4,)]),
        ("SELECT j.id, score FROM t JOIN s USING (id) AS j WHERE j.id < 9 ORDER BY j.id", [(1, -5), (2, 7)]),
        ("SELECT j.* FROM t JOIN s USING (id) AS j ORDER BY 1", [(1,), (2,)]),
        ("SELECT id FROM t ORDER BY grade USING >, id USING <", [(4,), (1,), (3,), (2,)]),
        ("SELECT @ score - 2 FROM s ORDER BY id", [(7,), (5,), (2,)]),
        ("SELECT @ score AS a FROM s ORDER BY a", [(0,), (5,), (7,)]),
        ("SELECT ~ 1 + 2", [(-4,)]),
        ("SELECT float8 '2.5'::int, (date '2024-01-31'::text)", [(2, "2024-01-31")]),
        ("SELECT pg_catalog.upper('a'), '5'::int", [("A", 5)]),
        ("SELECT grade FROM t ORDER BY grade FETCH FIRST 2 ROWS WITH TIES", [(1,), (2,), (2,)]),
        ("SELECT 7 AS n ORDER BY n FETCH FIRST ROW WITH TIES", [(7,)]),
        ("SELECT grade AS g FROM t ORDER BY g OFFSET 1 FETCH NEXT ROW WITH TIES", [(2,), (2,)]),
        ("SELECT grade, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC FETCH FIRST ROW WITH TIES", [(2, 2)]),
        ("SELECT U&'d!0061t' UESCAPE '!', U&'\\0061'", [("dat", "a")]),
    ],
)
def test_the_rows_of_a_spelling(town: Asked, sql: str, rows: list[Row]) -> None:
    assert town.rows(sql) == rows


def test_merged_columns_by_their_alias_beside_an_answer(town: Asked) -> None:
    sql = "SELECT j.id FROM t JOIN s USING (id) AS j WHERE answer(body, 'calm?') = 'Yes' ORDER BY j.id"
    assert town.rows(sql) == [(1,)]


def test_columns_of_a_statement_of_values(town: Asked) -> None:
    assert town.con.sql("VALUES (1, 'a')").columns == ("column1", "column2")


def test_ties_want_an_order(town: Asked) -> None:
    with pytest.raises(QuerySyntaxError, match="ORDER BY"):
        town.con.sql("SELECT id FROM t FETCH FIRST 2 ROWS WITH TIES")


def test_the_alias_of_merged_columns_is_no_value(town: Asked) -> None:
    with pytest.raises(UnsupportedError, match=r"j\.id"):
        town.con.sql("SELECT j FROM t JOIN s USING (id) AS j")


def test_a_question_mark_between_two_values_is_an_operator(town: Asked, engine: str) -> None:
    if engine == "postgres":
        assert town.rows("""SELECT '{"a": 1}'::jsonb ? 'a', '{"a": 1}'::jsonb ? ?""", ["b"]) == [(True, False)]
    else:
        with pytest.raises(UnsupportedError, match=r"\?"):
            town.con.sql("""SELECT '{"a": 1}'::json ? 'a'""")
    assert town.rows("SELECT ?::int, ?||'x', id FROM t WHERE id = ?", [1, "a", 2]) == [(1, "ax", 2)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT", 1),
        ("SELECT FROM t", 4),
        ("SELECT UNION SELECT", 1),
        ("SELECT FROM t UNION ALL SELECT FROM s", 7),
        ("SELECT FROM t EXCEPT ALL SELECT FROM s", 1),
        ("SELECT FROM s WHERE answer(body, 'calm?') = 'Yes'", 2),
    ],
)
def test_rows_without_columns_are_counted(town: Asked, sql: str, rows: int) -> None:
    result = town.con.sql(sql)
    assert result.columns == ()
    assert result.rows == [()] * rows
    assert len(result) == rows
    assert f"{rows} row" in repr(result)
