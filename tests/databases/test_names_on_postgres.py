"""Stars, USING, NATURAL, alias lists, WITH, VALUES and clauses: columns, names and rows are PostgreSQL's own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import almanaq
from almanaq.errors import DatabaseError
from almanaq.testing import FunctionModel
from engines import PostgresServer

TABLES = {
    "r": (("k", "a"), [(1, 10), (2, 20), (3, None), (None, 40), (2, 21)]),
    "s": (("k", "b"), [(1, 11), (2, 22), (5, 55), (None, None)]),
    "t": (("k", "a", "c"), [(1, 10, 7), (3, 30, 8), (5, 20, 9), (6, None, 9)]),
    "u": (("c", "k"), [(7, 1), (9, 6), (None, 3)]),
}
FORMS = (
    "SELECT r.*, s.* FROM r JOIN s USING (k)",
    "SELECT k FROM r FULL JOIN s USING (k) ORDER BY k",
    "SELECT k, count(*) FROM r FULL JOIN s USING (k) GROUP BY k",
    "SELECT r.k, k FROM s LEFT JOIN r USING (k)",
    "SELECT k FROM r FULL JOIN s USING (k) WHERE EXISTS (SELECT FROM t AS x(l) WHERE l = k AND c < 9)",
    "SELECT * FROM r NATURAL JOIN (SELECT 1 AS one) o",
    "SELECT * FROM (r LEFT JOIN s ON r.k = s.k) LEFT JOIN r x(p, q) ON r.k = p",
    "SELECT * FROM r, s RIGHT JOIN u ON s.k = u.k",
    "SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v JOIN r ON r.k = v.column1",
    "WITH v(x) AS (VALUES (1), (3)) SELECT * FROM v LEFT JOIN r ON x = k",
    "WITH r AS (SELECT 7 AS k) SELECT * FROM r",
    "WITH r AS (SELECT * FROM r WHERE k > 1) SELECT * FROM r",
    "WITH w AS (SELECT 1 AS one), v AS (WITH w AS (SELECT 2 AS two) SELECT * FROM w) SELECT * FROM w, v",
    "WITH RECURSIVE w(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM w WHERE n < 4) SELECT * FROM w JOIN r ON n = k",
    "WITH RECURSIVE w AS (SELECT 1 AS n, 'a' AS p UNION ALL SELECT n + 1, p || n FROM w WHERE n < 4) SELECT * FROM w",
    "SELECT * FROM (VALUES (1), (3)) v(n), LATERAL generate_series(1, n) g",
    "SELECT * FROM r, LATERAL (SELECT r.*) x",
    "SELECT * FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS u(e, o)",
    "SELECT count(*) FROM (SELECT FROM r) x",
    "SELECT k FROM r WHERE EXISTS (SELECT FROM s WHERE s.k = r.k)",
    "SELECT * FROM (SELECT 1 AS a, 2 AS a) x",
    "SELECT (SELECT b FROM u AS x LIMIT 1) FROM s AS x",
    "SELECT a AS k, k AS a FROM r ORDER BY k, a",
    "SELECT count FROM (SELECT count(*) FROM r) x",
    "SELECT 1 AS k UNION SELECT * FROM (VALUES (2)) v ORDER BY k",
    "SELECT 1 AS k UNION ALL ((VALUES (2), (3)) UNION ALL (WITH v AS (VALUES (4)) SELECT * FROM v))",
    "SELECT (VALUES (7)) AS k",
    "WITH RECURSIVE w(n) AS (SELECT * FROM r UNION ALL SELECT n + 1 FROM w WHERE n < 5), r AS (VALUES (1)) TABLE w",
)
_TREE = "WITH RECURSIVE w(n, m) AS (SELECT 1, 'a' UNION ALL SELECT (n + 1) % 4, m FROM w WHERE n > 0)"
_ENDLESS = "WITH RECURSIVE w(n) AS (SELECT 0 UNION ALL SELECT (n + 1) % 3 FROM w)"
SEARCHES = (
    f"{_TREE} SEARCH DEPTH FIRST BY n, m SET o SELECT n, m, o::text AS t FROM w ORDER BY o",
    f"{_TREE} SEARCH BREADTH FIRST BY n SET o SELECT w.n, o::text FROM w ORDER BY o DESC",
    f"{_ENDLESS} CYCLE n SET c USING p SELECT n, c, p::text FROM w",
    f"{_ENDLESS} CYCLE n SET c TO 'Y' DEFAULT 'N' USING p SELECT n, c FROM w WHERE c = 'N'",
    f'{_ENDLESS} SEARCH DEPTH FIRST BY n SET o CYCLE n SET "c" TO 1 DEFAULT 0 USING p SELECT n, c, o::text FROM w',
    f"{_ENDLESS} CYCLE n SET c USING p, v AS (SELECT * FROM w) SELECT * FROM v JOIN r ON k = n",
    f"{_ENDLESS} CYCLE n SET c USING p SELECT * FROM (SELECT * FROM w UNION ALL SELECT * FROM w) v",
    "WITH RECURSIVE w(n) AS (SELECT 0 UNION ALL SELECT (n + 1) % 3 FROM w WHERE NOT c) CYCLE n SET c USING p "
    "SELECT count(*) FROM w WHERE n IN (SELECT k FROM r)",
    "SELECT * FROM (SELECT 1 AS one) cycle",
)
CLAUSES = (
    r"SELECT E'a\\b', length(E'a\\b'), 'x1' ~ E'\\d', E'it\'s', E'\xC3\xA9\u00e9', U&'\0041b'",
    "SELECT div(9.7, 2), div(-9.7, 2), div(7, 2), 7 / 2, -7 / 2",
    "SELECT exp(-123.456)",
    "SELECT to_hex(-k) AS h, to_hex(-k::bigint) AS g, to_hex(255) AS f FROM r",
    "SELECT name::char, name::bpchar AS b FROM p",
    "SELECT every(k > 1), every(k > 1) FILTER (WHERE k > 2) AS more FROM t",
    "SELECT k, count(*) FROM t GROUP BY ALL ROLLUP (k)",
    "SELECT grouping(k) / 2 AS g, bit_or(a) / 2 AS b, regr_count(a, a) / 2 AS r, k FROM t GROUP BY ROLLUP (k)",
    "SELECT g / 2 AS h, m / 2 AS n FROM (SELECT grouping(k) AS g, mode() WITHIN GROUP (ORDER BY c) AS m FROM t "
    "GROUP BY ROLLUP (k)) x",
    "SELECT gcd(k, 4) / 2 AS g, lcm(k, 3) / 2 AS l, bit_and(k) OVER () / 2 AS b FROM t",
    "SELECT 1.1::real, 1.1::real + 2.2::real, 0.1::real = 0.1::float8, 16777217::float(24)::bigint",
    "SELECT x / 2, x * 2, x = 1.1, x IN (1.1), x IN (1.1, 2), x BETWEEN 1.1 AND 2, x + x, 1.5 - x, sum(x) OVER () "
    "FROM (VALUES (1.1::real), (16777217::real)) v(x)",
    "SELECT sum(x), sum(x) FILTER (WHERE x > 2), sum(x + 1), avg(x) FROM (VALUES (1.1::real), (16777217::real)) v(x)",
    "SELECT 0.1::float = 0.1::float8, 16777217::float(53)::bigint, avg(1.5::real)",
    "SELECT to_char(timestamp '2020-01-02 03:04:05', 'YYYY-MM-DD HH24:MI:SS')",
    "SELECT k, count(*) FROM t GROUP BY k, ROLLUP(k)",
    "SELECT count(*) FROM t GROUP BY c, ROLLUP(a), CUBE(k)",
    "SELECT c, count(*) FROM t GROUP BY 1, ROLLUP(1)",
    "SELECT c AS z, count(*) FROM t GROUP BY ROLLUP(z)",
    "SELECT rank() OVER w, sum(a) OVER (w ROWS UNBOUNDED PRECEDING) FROM t WINDOW w AS (PARTITION BY c ORDER BY k)",
    "SELECT sum(count(*)) OVER w FROM t GROUP BY c WINDOW v AS (ORDER BY c), w AS (v)",
    "SELECT p.name, sum(k) FROM p LEFT JOIN t ON p.id = t.k GROUP BY p.id ORDER BY p.size, 1",
    "SELECT p.name || '!', (SELECT max(k) FROM t WHERE a > p.size) FROM p GROUP BY id HAVING size > 1",
    "SELECT p.name, rank() OVER (ORDER BY p.size) FROM p GROUP BY p.id, ROLLUP(p.size)",
)


ALONE = (
    "SELECT 1::oid, 'int4'::regtype, 'integer'::regtype::text",
    "SELECT current_time IS NOT NULL AS known, current_time(0) > timetz '00:00+00' OR true AS later",
    "SELECT ARRAY(VALUES (1), (2))::text, 'a' IS NORMALIZED, 'a' IS NOT NORMALIZED",
    "SELECT range_adjacent(int4range(1, 5), int4range(5, 9)), textcat('a', 'b'), int4pl(1, 2), jsonb_eq('1', '1.0')",
    "SELECT json('[1]')::text, jsonb_object_field_text('{\"a\": \"x\"}', 'a'), dsqrt(2), array_ne(ARRAY[1], ARRAY[2])",
)


@dataclass(frozen=True)
class Servers:
    """The same tables through psycopg and through us."""

    plain: psycopg.Connection[Any]
    ours: almanaq.Connection


@pytest.fixture(scope="module")
def servers(postgres_server: PostgresServer) -> Iterator[Servers]:
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as plain:
        for name, (columns, rows) in TABLES.items():
            plain.execute(f"CREATE TABLE {name} ({', '.join(f'{column} int' for column in columns)})".encode())
            for row in rows:
                plain.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(columns))})".encode(), row)
        plain.execute("CREATE TABLE p (id int PRIMARY KEY, name text, size int)")
        plain.execute("INSERT INTO p VALUES (1, 'one', 3), (2, 'two', 2), (3, 'one', 1), (4, NULL, NULL)")
        with almanaq.connect(url, model=FunctionModel(lambda *_: "Yes"), cache=False) as ours:
            yield Servers(plain, ours)


def assert_same(servers: Servers, sql: str) -> None:
    cursor = servers.plain.execute(sql.encode())
    rows, names = Counter(cursor.fetchall()), [column.name for column in cursor.description or ()]
    result = servers.ours.sql(sql)
    assert list(result.columns) == names, sql
    assert Counter(map(rounded, result.rows)) == Counter(map(rounded, rows.elements())), sql


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with numbers as far as engines agree on them."""
    return tuple(round(float(v), 12) if isinstance(v, float | Decimal) else v for v in row)


@pytest.mark.parametrize("sql", FORMS + CLAUSES + SEARCHES + ALONE)
def test_columns_and_rows_are_the_servers(servers: Servers, sql: str) -> None:
    assert_same(servers, sql)


@pytest.mark.parametrize(
    "aggregate", ["every(size > 1)", "jsonb_agg(id ORDER BY id)::text", "mode() WITHIN GROUP (ORDER BY id)"]
)
def test_any_aggregate_of_the_server_stands_beside_text_functions(servers: Servers, aggregate: str) -> None:
    found = servers.ours.sql(f"SELECT {aggregate} AS a FROM p WHERE answer(name, 'is it one?') = 'Yes'").rows
    assert found == servers.plain.execute(f"SELECT {aggregate} FROM p WHERE name IS NOT NULL".encode()).fetchall()


class Froms:
    """Draws FROM clauses: joins of all kinds and shapes, with every way to rename columns."""

    def __init__(self, seed: int) -> None:
        self.rng, self.count = random.Random(seed), 0

    def query(self) -> str:
        """Draw a query over one to four tables."""
        items = [self.item(self.rng.choice((1, 2, 2, 3)))]
        if self.rng.random() < 0.25:
            items.append(self.item(self.rng.choice((1, 2))))
        text = f"SELECT * FROM {', '.join(text for text, _ in items)}"
        names = [name for _, columns in items for name in columns]
        once = [name for name in names if names.count(name) == 1]
        if once and self.rng.random() < 0.5:
            chosen = self.rng.sample(once, min(len(once), 2))
            text = text.replace("*", f"{', '.join(chosen)}, *", 1) + f" ORDER BY {len(chosen)}"
        return text

    def item(self, size: int) -> tuple[str, list[str]]:
        """Draw an item of so many tables; give its text and the names of its columns, in the order of `*`."""
        if size == 1:
            return self.table()
        split = self.rng.randint(1, size - 1)
        (left, of_left), (right, of_right) = self.item(split), self.item(size - split)
        right = f"({right})" if size - split > 1 else right
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        common = [name for name in of_left if of_left.count(name) == of_right.count(name) == 1]
        unclear = any(of_left.count(name) > 1 or of_right.count(name) > 1 for name in {*of_left} & {*of_right})
        if common and not unclear and self.rng.random() < 0.4:
            text, merged = f"{left} NATURAL {kind} {right}", common
        elif common and self.rng.random() < 0.8:
            merged = self.rng.sample(common, self.rng.randint(1, len(common)))
            text = f"{left} {kind} {right} USING ({', '.join(merged)})"
        else:
            text, merged = f"{left} CROSS JOIN {right}", []
        rest = [name for name in (*of_left, *of_right) if name not in merged]
        columns = [*merged, *rest]
        return self.renamed(f"({text})", columns) if self.rng.random() < 0.2 else (text, columns)

    def table(self) -> tuple[str, list[str]]:
        """Draw a table, a subquery or VALUES."""
        name = self.rng.choice(tuple(TABLES))
        columns = list(TABLES[name][0])
        roll = self.rng.random()
        if roll < 0.25:
            return self.renamed(f"(SELECT * FROM {name} WHERE k > 1)", columns)
        if roll < 0.35:
            return self.renamed("(VALUES (1, 10), (6, NULL))", ["column1", "column2"])
        return self.renamed(name, columns)

    def renamed(self, text: str, columns: list[str]) -> tuple[str, list[str]]:
        """Return an item a name of its own, and now and then some of its columns."""
        self.count += 1
        names = self.rng.sample(("k", "a", "b", "c", "d", "e"), self.rng.randint(1, 2))
        if self.rng.random() < 0.3 and len(names) <= len(columns) and not set(names) & set(columns[len(names) :]):
            return f"{text} AS x{self.count}({', '.join(names)})", [*names, *columns[len(names) :]]
        return f"{text} AS x{self.count}", columns


def test_drawn(servers: Servers) -> None:
    """Errors of the server's are passed over: FULL JOIN wants a condition that it can merge or hash on."""
    refused = 0
    for seed in range(12):
        sql = Froms(seed).query()
        try:
            servers.plain.execute(sql)
        except psycopg.Error:
            refused += 1
            continue
        assert_same(servers, sql)
    assert refused < 4


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("WITH w(n) AS (SELECT 1) CYCLE n SET c USING p SELECT * FROM w", "not recursive"),
        ("WITH RECURSIVE w(n) USING KEY (n) AS (SELECT 1 UNION SELECT n FROM w) SELECT * FROM w", "USING"),
        (
            "WITH RECURSIVE w(n) AS (SELECT answer(name, 'q') FROM p UNION ALL SELECT n FROM w) "
            "SEARCH DEPTH FIRST BY n SET o SELECT * FROM w",
            "beside text functions",
        ),
        ("WITH RECURSIVE w(t) AS (SELECT name FROM p UNION SELECT answer(t, 'q') FROM w) SELECT * FROM w", "RECURSIVE"),
        ("SELECT rank() OVER v FROM t WINDOW w AS (ORDER BY k)", 'window "v" does not exist'),
        ("SELECT * FROM r x, s x", "specified more than once"),
        ("SELECT a FROM (SELECT 1 AS a, 2 AS a) x", "is ambiguous"),
    ],
)
def test_what_is_not_supported_or_wrong_is_refused_by_name(servers: Servers, sql: str, message: str) -> None:
    with pytest.raises(DatabaseError, match=message):
        servers.ours.sql(sql)
