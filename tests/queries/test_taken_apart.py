"""Queries that the planner has no form for: text functions become tables of their answers, DuckDB runs the rest.

Each gives what DuckDB gives with `answer` as a function of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import almanaq
from almanaq.errors import QueryTypeError, UnsupportedError
from almanaq.testing import FunctionModel

TABLES = """
CREATE TABLE t AS SELECT * FROM (VALUES
    (1, 'a', [1, 2], {'f': 'u', 'g': 2}), (2, 'b', [3], {'f': 'v', 'g': 3}), (3, NULL, [], NULL),
    (4, 'Yes', NULL, {'f': 'w', 'g': 1})) AS v(id, x, l, s);
CREATE TABLE u AS SELECT * FROM (VALUES (1, 'p'), (2, 'q'), (2, 'a'), (5, 'z')) AS v(id, y);
"""
QUERIES = """
SELECT t, answer(t.x, 'q') FROM t
SELECT t.id, answer(x || k::VARCHAR, 'q'), k FROM t, unnest(l) AS e(k) WHERE answer(k::VARCHAR, 'q') IS NOT NULL
SELECT t.id, z FROM t, LATERAL (SELECT answer(t.x || y, 'q') AS z FROM u WHERE u.id = t.id) AS w
SELECT t.id, a.y FROM t LEFT JOIN LATERAL (SELECT y FROM u WHERE u.id = t.id AND answer(u.y, 'q') = 'Yes') AS a ON true
SELECT id, u.k FROM t, unnest([answer(x, 'q'), x]) AS u(k)
SELECT columns('i.*'), answer(x, 'q') FROM t WHERE answer(x, 'q') = 'Yes'
SELECT t.id, answer(u.y, 'q') FROM t POSITIONAL JOIN u
SELECT t.id, u.y FROM t ASOF JOIN u ON t.id >= u.id WHERE answer(y, 'q') = 'Yes' OR answer(x, 'q') = 'Yes'
SELECT any_value(t), answer(any_value(x), 'q') FROM t GROUP BY id
SELECT list(t ORDER BY answer(x, 'q'), id) FROM t
SELECT id, answer(x, 'q') AS a, t FROM t QUALIFY rank() OVER (PARTITION BY a ORDER BY id) = 1
SELECT t, answer(max(x) OVER (PARTITION BY id % 2), 'q') FROM t
SELECT upper(x) AS up, answer(up, 'q'), t FROM t WHERE up IS NOT NULL
FROM t SELECT answer(x, 'q') AS a, t WHERE a = 'Yes'
SELECT s.f, s.*, answer(s.f, 'q') FROM t
SELECT id, (SELECT max(answer(y, 'q')) FROM u WHERE u.id <= t.id) AS m, t AS z FROM t
SELECT t FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND answer(y, 'q') = 'Yes')
WITH w AS (SELECT id, answer(x, 'q') AS a FROM t) SELECT w, a FROM w ORDER BY ALL
WITH a AS (SELECT t AS r FROM t) SELECT r.x, answer(r.x, 'q') FROM a
WITH RECURSIVE r(n, a) AS (SELECT 1, answer('p', 'q') UNION ALL SELECT n + 1, a FROM r WHERE n < 3) SELECT r FROM r
PIVOT (SELECT id % 2 AS k, answer(x, 'q') AS a FROM t) ON a USING count(*)
SELECT id, t FROM t GROUP BY id, t HAVING max(answer(x, 'q')) = any_value(x) OR min(answer(x, 'q')) > 'q: a'
SELECT a, t FROM (SELECT answer(x, 'q') AS a, id FROM t) AS t WHERE a IS NOT NULL
SELECT t, answer(answer(x, 'q'), 'q') FROM t
SELECT ARRAY(SELECT answer(x, 'q') FROM t ORDER BY id DESC) AS a
SELECT t, CASE WHEN id > 1 THEN answer(x, 'q') ELSE 'none' END FROM t
SELECT * REPLACE (answer(x, 'q') AS x) FROM t
SELECT * EXCLUDE (l, s), answer(x, 'q') FROM t USING SAMPLE 100%
SELECT unnest(t), answer(x, 'q') FROM t
SELECT id, LAST_VALUE(id IGNORE NULLS) OVER (ORDER BY id), answer(x, 'q') FROM t
DESCRIBE SELECT t, answer(x, 'q') FROM t
DESCRIBE SELECT answer(x, 'q'), *, answer(x, 'q') = 'a' AS v, answer(x, 'q')::DATE FROM t
SELECT id, if(id > 1, answer(x, 'q'), 'none') FROM t WHERE if(id < 4, answer(x, 'q') = 'b', true)
SELECT t, answer(x, 'q') AS a, a || '!' AS b, b || '?' AS c FROM t WHERE c = 'Yes!?'
SELECT id, "Yes" FROM (PIVOT (SELECT id, answer(x, 'q') AS a FROM t) ON a USING count(*)) WHERE "q: b" = 0
PIVOT (SELECT id, answer(x, 'q') AS a FROM t) ON a || id % 2 USING count(*)
SELECT w FROM (SELECT answer(x, 'q'), s.*, upper(x), answer(x, 'q') || '!' FROM t) AS w
SELECT w FROM (SELECT answer(x, 'q'), unnest(s), upper(x) FROM t) AS w
SELECT "answer(x, 'q')", w FROM (SELECT *, answer(x, 'q') FROM t) AS w
SELECT a, answer(b, 'q') FROM (SELECT id, x FROM t UNION ALL BY NAME SELECT y AS x, id FROM u) AS v(a, b)
WITH v(a, b) AS (SELECT x, id FROM t UNION BY NAME SELECT id, y AS x FROM u) SELECT b FROM v WHERE answer(a, 'q') > 'q'
SELECT l[id], map([1, 2], ['a', 'b'])[id], answer(x, 'q') FROM t WHERE id < 3
""".strip().splitlines()
REFUSED = {
    "SELECT alias(x), answer(x, 'q') FROM t": r"alias\(\) tells",
    "PIVOT (SELECT id % 2 AS k, x AS a FROM t) ON k USING max(answer(a, 'q'))": "USING and GROUP BY of PIVOT",
    "SELECT list_transform(l, lambda e: answer(e::VARCHAR, 'q')) FROM t": "inside a lambda",
    "SELECT t, x FROM t UNION SELECT u, y FROM u ORDER BY answer(x, 'q')": "ORDER BY or LIMIT of UNION",
    "SELECT #1, answer(#2, 'q') FROM t": "columns by their numbers",
    "SELECT t, answer(x || random()::VARCHAR, 'q') FROM t": "drawn by chance",
    "SELECT unnest({'a': answer(x, 'q'), 'b': id}) FROM t": "unnest.. of a STRUCT",
    "SELECT unnest(answer(x, 'q', {'a': 'VARCHAR', 'b': 'INTEGER'})) FROM t": "unnest.. of a STRUCT",
}


def _reply(text: str, question: str) -> str | None:
    return "Yes" if text in ("a", "p", "Yes") else None if text == "q" else f"{question}: {text}"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database whose own connection knows `answer` as a plain function."""
    with duckdb.connect() as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture(scope="module")
def connection(database: duckdb.DuckDBPyConnection) -> Iterator[almanaq.Connection]:
    with almanaq.connect(database, model=FunctionModel(_reply), cache=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def reference() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(TABLES)
        texts: Any = ["VARCHAR", "VARCHAR"]
        made.create_function(
            "answer", lambda d, q: None if d is None else _reply(d, q), texts, "VARCHAR", null_handling="special"
        )
        yield made


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_duckdb(
    sql: str, connection: almanaq.Connection, reference: duckdb.DuckDBPyConnection
) -> None:
    expected = reference.execute(sql).fetchall()
    found = connection.sql(sql)
    assert sorted(map(str, found.rows)) == sorted(map(str, expected))
    assert list(found.columns) == [column[0] for column in reference.description or ()]


MEANT = """
SELECT id{} FROM t WHERE answer(x, 'q') = y
SELECT id{} FROM t WHERE y IN (answer(x, 'q'), 'other')
SELECT id{} FROM t WHERE answer(x, 'q') NOT IN (SELECT y FROM t WHERE id > 1)
SELECT id{} FROM t WHERE CASE WHEN id > 0 THEN answer(x, 'q') END IS DISTINCT FROM y
SELECT id{} FROM t WHERE upper(answer(x, 'q')) = y
SELECT id{} FROM t WHERE answer(x, 'n') = n AND answer(x, 'n') IS NOT DISTINCT FROM n
SELECT id{} FROM t WHERE answer(x, 'n') BETWEEN n AND n + 1
SELECT id{} FROM t WHERE n IN (answer(x, 'n'), 9) OR answer(x, 'n') IN (SELECT n FROM t WHERE id = 1)
SELECT id, answer(x, 'n') + 1 AS m{} FROM t WHERE 1 + answer(x, 'n') < n + 1
SELECT id, CASE WHEN answer(x, 'q') THEN 'y' ELSE 'n' END AS m{} FROM t WHERE answer(x, 'q') OR NOT answer(x, 'q')
SELECT id, m = y AS z{} FROM (SELECT *, answer(x, 'q') AS m FROM t) AS t
WITH w AS (SELECT *, answer(x, 'q') AS m FROM t) SELECT id, answer(x, 'q') AS a{} FROM w AS t WHERE a = y OR m = y
SELECT id, m = answer(x, 'q') AS z{} FROM (SELECT *, upper(answer(x, 'q')) AS m FROM t) AS t
SELECT id{} FROM (SELECT *, answer(x, 'q') AS m FROM t) AS t WHERE EXISTS (SELECT 1 FROM t AS k WHERE k.y = t.m)
SELECT id{} FROM t WHERE answer(x, 'q') IN [y, 'other'] AND answer(x, 'q') = ANY ([y, 'other'])
SELECT id{} FROM t WHERE CASE WHEN id < 3 THEN answer(x, 'q') ELSE true END OR coalesce(answer(x, 'q'), false)
SELECT bool_and(answer(x, 'q')){} FROM t GROUP BY id, t
SELECT id, m = y AS z, m || '' = y AS w{} FROM (SELECT *, coalesce(answer(x, 'q'), '-') AS m FROM t) AS t
SELECT a, y = m AS z{} FROM (SELECT 0 AS a, '-' AS m UNION ALL SELECT id, answer(x, 'q') FROM t) AS b, t
SELECT id{} FROM (SELECT id, answer(x, 'q') AS y FROM t) AS t WHERE y IN (SELECT y FROM t AS k WHERE y = lower(k.y))
SELECT b.y, t.y, b.y = t.y AS z{} FROM (SELECT id, answer(x, 'q') AS y FROM t) AS b, t
SELECT a{} FROM (SELECT id, coalesce(answer(x, 'q'), y) FROM t) AS d(a, b), t WHERE a = id AND b = t.y
SELECT a{} FROM (SELECT id, answer(x, 'q') FROM t UNION ALL SELECT id, y FROM t) AS d(a, b), t WHERE b = t.y
SELECT a{} FROM (SELECT *, coalesce(answer(x, 'q'), y) FROM t) AS d(a, b, c, e, f), t WHERE a = id AND f = t.y
WITH d(a, b) AS (SELECT id, if(id > 1, answer(x, 'q'), y) FROM t) SELECT k{} FROM d AS e(k, l), t WHERE l = lower(y)
SELECT a{} FROM (SELECT coalesce(answer(x, 'q'), y) FROM t) AS d(m), LATERAL (SELECT m) AS e(a), t WHERE a = t.y
SELECT m{} FROM (SELECT y AS m FROM (SELECT answer(x, 'q') AS m, y FROM t) AS e) AS d, t WHERE m = lower(t.y)
SELECT id{} FROM t WHERE n IN (SELECT answer(k.x, 'n') FROM t AS k)
SELECT id{} FROM t WHERE n > ALL (SELECT answer(k.x, 'n') FROM t AS k WHERE k.id <> 2)
SELECT id{} FROM t WHERE n = (SELECT answer(k.x, 'n') FROM t AS k WHERE k.id = t.id)
SELECT m{} FROM (SELECT coalesce(nullif(y, 'no'), answer(x, 'q')) AS m FROM t) AS d, t WHERE m = answer(x, 'q')
""".strip().splitlines()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", MEANT)
def test_comparisons_mean_what_they_mean_in_a_query_that_is_planned(sql: str) -> None:
    def reply(text: str, question: str) -> str:
        return {"a": "1", "b": "many"}.get(text, "3") if question == "n" else "No" if text == "b" else "yes"

    tables = {"t": {"id": [1, 2, 3], "x": ["a", "b", "c"], "y": ["YES", "no", "maybe"], "n": [1, 2, 4]}}
    with almanaq.connect(tables, model=FunctionModel(reply), cache=False) as con:
        whole, apart = con.sql(sql.format("")).rows, con.sql(sql.format(", t")).rows
    assert sorted(row[:-1] for row in apart) == sorted(whole)
    assert whole


@pytest.mark.parametrize("join", ["JOIN u USING (y)", "NATURAL JOIN u"])
def test_an_answer_is_not_merged_with_a_text(join: str, connection: almanaq.Connection) -> None:
    with pytest.raises(UnsupportedError, match="write ON"):
        connection.sql(f"SELECT a FROM (SELECT answer(x, 'q') AS y FROM t) AS a {join}")


@pytest.mark.parametrize(("sql", "place"), REFUSED.items())
def test_a_refusal_names_the_place(sql: str, place: str, connection: almanaq.Connection) -> None:
    with pytest.raises(UnsupportedError, match=place):
        connection.sql(sql)


@pytest.mark.parametrize("shown", ["-answer(x, 'q')", "sum(answer(x, 'q'))", "coalesce(answer(x, 'q'), 0)"])
def test_what_takes_a_text_for_something_else_is_duckdbs_own_error(shown: str) -> None:
    database, model = duckdb.connect(), FunctionModel(_reply)
    database.execute(TABLES)
    with almanaq.connect(database, model=model, cache=False) as con, pytest.raises(QueryTypeError, match="VARCHAR"):
        con.sql(f"SELECT t, {shown} FROM t GROUP BY ALL")
    assert not model.calls


def test_quotes_lead_to_the_rows_of_relations() -> None:
    with almanaq.connect("sample:restaurants", model="local", cache=False) as sample:
        plain = "FROM restaurants AS r WHERE id < 20 AND answer(reviews, 'is it romantic?') = 'Yes' ORDER BY id LIMIT 3"
        whole, planned = sample.sql(f"SELECT r, id {plain}"), sample.sql(f"SELECT name, id {plain}")
        assert [row[1] for row in whole.rows] == [row[1] for row in planned.rows]
        assert whole.evidence == planned.evidence
        assert any(whole.evidence)


def test_a_cast_that_duckdb_refuses_is_counted(connection: almanaq.Connection) -> None:
    found = connection.sql("SELECT id, answer(x, 'q')::UUID AS u FROM t WHERE x IS NOT NULL")
    assert [row[1] for row in found.rows] == [None] * 3
    assert "2 answer(s) to 'q' could not be read as uuid; they are NULL" in found.trace.warnings


@pytest.mark.parametrize(
    ("sql", "ids"),
    [
        ("SELECT t, id FROM t WHERE answer(x, 'q') = 'Yes' LIMIT 3", [3, 13, 23]),
        ("SELECT t, id FROM t WHERE answer(x, 'q') = 'Yes' ORDER BY id LIMIT 2 OFFSET 1", [13, 23]),
        ("SELECT t, id FROM t WHERE id > 7 AND answer(x, $1) = 'Yes' ORDER BY id LIMIT 2", [13, 23]),
        ("SELECT t, id FROM t WHERE id < 50 ORDER BY answer(x, 'n')::INT DESC LIMIT 2", [49, 48]),
        ("SELECT * FROM (SELECT t, id FROM t WHERE answer(x, 'q') = 'Yes' LIMIT 2) ORDER BY id", [3, 13]),
        ("SELECT t, id FROM (SELECT * FROM t) AS t WHERE answer(x, 'q') = 'Yes' LIMIT 2", [3, 13]),
        ("WITH t AS (SELECT * FROM t) SELECT t, id FROM t WHERE answer(x, 'q') = 'Yes' ORDER BY id LIMIT 2", [3, 13]),
        (
            "SELECT DISTINCT ON (g) t, id, answer(x, 'q') FROM (SELECT *, id % 3 AS g FROM t) AS t ORDER BY g, id",
            [0, 1, 2],
        ),
        ("SELECT DISTINCT ON (id // 500) t, id, answer(x, 'q') FROM t ORDER BY id // 500, id DESC", [499, 999]),
        # The rest stops nothing: its LIMIT does not cut the rows of a relation by what they are.
        ("SELECT t, -id AS id FROM t WHERE answer(x, 'q') = 'Yes' ORDER BY id LIMIT 2", [-993, -983]),
        ("SELECT unnest([t, t]), id FROM t WHERE answer(x, 'q') = 'Yes' ORDER BY id LIMIT 2", [3, 3]),
        ("SELECT count(t), max(id) FROM t WHERE answer(x, 'q') = 'Yes' LIMIT 1", [993]),
        ("SELECT DISTINCT t, id FROM t WHERE answer(x, 'q') = 'Yes' ORDER BY id LIMIT 2", [3, 13]),
    ],
)
def test_a_limit_stops_where_it_cuts_the_rows_of_a_relation(sql: str, ids: list[int]) -> None:
    tables = {"t": {"id": list(range(1000)), "x": [f"x{i}" for i in range(1000)]}}
    model = FunctionModel(lambda text, question: text[1:] if question == "n" else "Yes" if text[-1:] == "3" else "No")
    with almanaq.connect(tables, model=model, cache=False, order="table") as con:
        found = con.sql(sql, ["q"] if "$1" in sql else ())
    assert [row[1] for row in found.rows] == ids
    stops = any(part in sql for part in ("SELECT t, id", "(SELECT", "DISTINCT ON"))
    assert (found.trace.text_calls < 100) == stops


@pytest.mark.parametrize(
    ("query", "calls"),
    [
        ("DESCRIBE SELECT t, answer(x, 'q'), answer(x, 'n')::INT FROM t", 0),
        ("FROM (DESCRIBE SELECT answer(x, 'q') FROM t)", 0),
        ("SELECT if(id > 3, answer(x, 'q'), '-') FROM t", 1),
        ("SELECT t, answer(x, 'q') FROM t LIMIT 1", 1),
        ("SELECT t, answer(x, 'q') FROM t WHERE answer(x, 'q') > 'B' ORDER BY id DESC LIMIT 1", 1),
        ("SELECT id FROM t WHERE if(id > 3, answer(x, 'q') = 'Yes', true)", 1),
        ("SELECT t, CASE WHEN id > 2 THEN 'z' WHEN id = 2 THEN answer(x, 'q') END FROM t", 1),
        ("SELECT t, coalesce(nullif(x, 'b'), answer(id::VARCHAR, 'q')) FROM t", 2),
        ("SELECT t FROM t WHERE (id > 3 OR answer(x, 'q') = 'b') AND answer(x, 'n') = 'b'", 2 + 2),
        ("SELECT t FROM t WHERE answer(x, 'q') = 'b' OR NOT (answer(x, 'n') = 'b' AND id > 1)", 3 + 1),
        ("SELECT t, CASE WHEN id = 1 THEN (SELECT max(answer(y || t.x, 'q')) FROM u) END FROM t", 4),
    ],
)
def test_what_no_row_looks_at_is_not_asked(query: str, calls: int) -> None:
    database, model = duckdb.connect(), FunctionModel(lambda text, _: text)
    database.execute(TABLES)
    with almanaq.connect(database, model=model, cache=False) as con:
        con.sql(query)
    assert model.calls == calls
