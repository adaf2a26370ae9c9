"""No clause and no argument is lost between a query and what is sent for it: it is there, or refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlglot import exp

import almanaq
from almanaq.errors import NotSupportedError, ProgrammingError, QueryError
from almanaq.suql.dialects.texts import write_texts
from almanaq.suql.dialects.write import write_differences
from almanaq.suql.execution import render
from almanaq.suql.syntax.functions import functions_of
from almanaq.suql.syntax.operator_functions import OPERATOR_FUNCTIONS
from almanaq.suql.syntax.parse import parse
from engines import PostgresServer
from lost_words import lost

KEPT = (
    "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a ASC NULLS FIRST, b",
    "SELECT string_agg(DISTINCT b, ', ' ORDER BY b) FILTER (WHERE a > 17) FROM t",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY a DESC) FROM t",
    "SELECT sum(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 17 PRECEDING AND UNBOUNDED FOLLOWING) FROM t",
    "SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN CURRENT ROW AND 17 FOLLOWING) FROM t",
    "SELECT sum(a) OVER (ORDER BY a GROUPS BETWEEN 17 PRECEDING AND 18 FOLLOWING EXCLUDE GROUP) FROM t",
    "SELECT a FROM t GROUP BY ROLLUP (a), CUBE (a, b), GROUPING SETS ((a), ()) HAVING count(*) > 17",
    "SELECT a FROM t GROUP BY DISTINCT ROLLUP (a), CUBE (a, b)",
    "SELECT a FROM t UNION ALL SELECT 17 INTERSECT ALL SELECT 18 EXCEPT ALL SELECT 19 ORDER BY a LIMIT 20 OFFSET 21",
    "SELECT a FROM t WHERE b LIKE '17#%' ESCAPE '#' OR b NOT ILIKE '18' ESCAPE '!' OR b SIMILAR TO '19' ESCAPE '?'",
    "SELECT a FROM t WHERE a BETWEEN SYMMETRIC 18 AND 17 OR a NOT BETWEEN 19 AND 20",
    "SELECT a FROM t WHERE a <> ALL (SELECT 17) AND a = ANY (SELECT 18)",
    'SELECT b COLLATE "C" FROM t ORDER BY b COLLATE "POSIX" FETCH FIRST 17 ROWS WITH TIES',
    "SELECT trim(LEADING 'x17' FROM b), overlay(b PLACING 'x18' FROM 17 FOR 18), substring(b FROM 19 FOR 20) FROM t",
    "SELECT timestamptz '2020-01-01' AT TIME ZONE 'Asia/Tokyo', extract(epoch FROM now()), current_timestamp(3)",
    "SELECT localtime(2), localtimestamp(4), current_time(5), interval(3) '1.2345'",
    "SELECT * FROM unnest(ARRAY[17], ARRAY[18]) WITH ORDINALITY AS u(x, y, z)",
    "SELECT * FROM t, LATERAL (SELECT a + 17 AS c) x LEFT JOIN ONLY t AS y ON y.a = 18",
    "WITH RECURSIVE w(n) AS (SELECT 17 UNION SELECT n FROM w) CYCLE n SET c TO 'x18' DEFAULT 'x19' USING p TABLE w",
    "WITH x AS MATERIALIZED (SELECT 17 AS n), y AS NOT MATERIALIZED (SELECT 18) SELECT * FROM x, y",
    "SELECT CASE a WHEN 17 THEN 'x18' ELSE 'x19' END, CAST(a AS numeric(17, 3)), a::varchar(18) FROM t",
    "SELECT count(*) FROM t WINDOW w AS (PARTITION BY a)",
    "SELECT to_char(a, 'a.d.'), regexp_replace(b, 'x17', 'x18', 'gi'), regexp_match(b, 'x19', 'i') FROM t",
    "SELECT ARRAY[17, 18][1:2], (ARRAY[[17], [18]])[2][1], ROW(19, 'x20')",
)
REFUSED = (
    "SELECT a FROM t GROUP BY a WITH TOTALS",
    "SELECT a FROM t SORT BY a",
    "SELECT a FROM t CLUSTER BY a",
    "SELECT a FROM t CONNECT BY a = 17",
    "SELECT AS STRUCT 17",
    "SELECT a FROM t UNION BY NAME SELECT a FROM t",
    "SELECT a FROM t WITH (NOLOCK)",
    "SELECT a FROM t FOR SYSTEM_TIME AS OF now()",
    "SELECT a FROM t LIMIT 1 BY a",
    "SELECT a FROM t LIMIT 10 PERCENT",
    "SELECT a FROM t ORDER BY a WITH FILL",
    "SELECT a FROM t CROSS APPLY u",
    "SELECT a FROM t LATERAL VIEW explode(b) v",
    "SELECT array_agg(a LIMIT 1) FROM t",
    "SELECT CAST(a AS text FORMAT 'x') FROM t",
    "SELECT (ARRAY[1, 2])[1:2:3]",
    "(SELECT a FROM t) WHERE 1 = 2",
    "SELECT first_value(a) IGNORE NULLS OVER () FROM t",
    "SELECT sin(1, 2)",
    "SELECT array_agg(a, 2) FROM t",
    "SELECT now(3)",
    "SELECT div(7, 2, 3)",
)


@pytest.fixture(scope="module")
def con(postgres_server: PostgresServer) -> Iterator[almanaq.Connection]:
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute("CREATE TABLE t (a int, b text)")
    with almanaq.connect(url, cache=False) as opened:
        yield opened


@pytest.mark.parametrize("sql", KEPT)
def test_every_clause_is_sent(con: almanaq.Connection, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    check = render.check_emitted
    monkeypatch.setattr(render, "check_emitted", lambda text, *rest: (sent.append(text), check(text, *rest))[1])
    con.sql(sql)
    words = lost(sql, " ".join(sent))
    if "WINDOW w" in sql:  # no function names it
        words.remove("partition")
    if "= ANY (SELECT" in sql:  # it is sent as IN
        words = [word for word in words if word not in ("all", "any")]
    assert words == []


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_sent_is_refused(con: almanaq.Connection, sql: str) -> None:
    with pytest.raises((QueryError, NotSupportedError, ProgrammingError)):
        con.sql(sql)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("engine", ["postgres", "duckdb"])
def test_no_argument_is_dropped(engine: str, part: int) -> None:
    """Each function, given one to five texts that are told apart, is refused or written with all of them."""
    dropped = []
    behind_operators = set(OPERATOR_FUNCTIONS.split()) - {"date_mi"}  # all are written alike: one stands for them
    assert behind_operators.isdisjoint(key.lower() for key in exp.FUNCTION_BY_NAME)
    for name in sorted(set(functions_of(engine)) - behind_operators)[part::4]:
        for count in range(1, 6):
            arguments = ", ".join(f"c{i}::text || 'x{i}y'" for i in range(count))
            sql = f"SELECT {name}({arguments})"
            try:
                tree = write_texts(write_differences(parse(sql, (), engine), engine), engine)
                text = tree.sql(engine, unsupported_level=render.ErrorLevel.RAISE)
            except Exception:  # whatever is said of it
                continue
            if any(word.startswith("'") for word in lost(sql, text)):
                dropped.append(sql)
    assert {sql[7 : sql.index("(")] for sql in dropped} <= {"exists", "array_any"}  # no functions of several arguments
