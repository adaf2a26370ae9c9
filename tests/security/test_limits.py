"""Queries of any size and depth are planned in a second or two or refused by a limit that is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

from almanaq import connect
from almanaq.connection import Connection
from almanaq.errors import ParameterError, QueryError, UnsupportedError
from almanaq.suql.syntax.limits import MOST_BRACKETS, MOST_QUERIES

SECONDS = 20.0
"""Ten times what planning may take: a machine may be slow and busy."""


def _joined(separator: str, count: int, piece: Callable[[int], str]) -> str:
    return separator.join(map(piece, range(count)))


def _derived(n: int) -> str:
    return "SELECT * FROM " + "(SELECT * FROM " * n + "t" + "".join(f") s{i}" for i in range(n))


SHAPES: dict[str, Callable[[int], str]] = {
    "in": lambda n: f"SELECT id FROM t WHERE id IN ({_joined(',', n, str)})",
    "members": lambda n: f"WITH {_joined(', ', n, lambda i: f'c{i} AS (SELECT id FROM t)')} SELECT * FROM c0",
    "chain of members": lambda n: (
        "WITH c0 AS (SELECT id FROM t)"
        + "".join(f", c{i} AS (SELECT id FROM c{i - 1})" for i in range(1, n))
        + f" SELECT * FROM c{n - 1}"
    ),
    "or": lambda n: f"SELECT id FROM t WHERE {_joined(' OR ', n, lambda i: f'id = {i}')}",
    "and": lambda n: f"SELECT id FROM t WHERE {_joined(' AND ', n, lambda i: f'id <> {i + 9}')}",
    "row": lambda n: f"SELECT id FROM t WHERE ({_joined(', ', n, lambda _: 'id')}) < ({_joined(', ', n, str)})",
    "parentheses": lambda n: f"SELECT {'(' * n}1{')' * n}",
    "open": lambda n: f"SELECT {'(' * n}",
    "tuples": lambda n: f"SELECT id FROM t WHERE (id, n) IN ({_joined(', ', n, lambda i: f'({i}, {i})')})",
    "patterns": lambda n: f"SELECT id FROM t WHERE {_joined(' OR ', n, lambda i: f'body LIKE $$a{i}%$$')}",
    "sum": lambda n: f"SELECT {_joined(' + ', n, str)}",
    "joined text": lambda n: f"SELECT {_joined(' || ', n, repr)}",
    "union": lambda n: _joined(" UNION ALL ", n, lambda i: f"SELECT {i}"),
    "derived tables": _derived,
    "columns": lambda n: f"SELECT {_joined(', ', n, lambda i: f'id AS c{i}')} FROM t",
    "case": lambda n: f"SELECT CASE {_joined(' ', n, lambda i: f'WHEN id = {i} THEN {i}')} END FROM t",
    "nested case": lambda n: f"SELECT {'CASE WHEN id = 1 THEN 1 ELSE ' * n}0{' END' * n} FROM t",
    "not": lambda n: f"SELECT id FROM t WHERE {'NOT ' * n}id = 1",
    "signs": lambda n: f"SELECT {'- ' * n}1",
    "calls": lambda n: f"SELECT {'abs(' * n}1{')' * n}",
    "casts": lambda n: f"SELECT 1{'::int' * n}",
    "subscripts": lambda n: f"SELECT body{'[1]' * n} FROM t",
    "values": lambda n: f"SELECT * FROM (VALUES {_joined(', ', n, lambda i: f'({i})')}) AS v (a)",
    "exists": lambda n: (
        f"SELECT id FROM t WHERE {_joined(' AND ', n, lambda i: f'EXISTS (SELECT 1 FROM t x WHERE x.id = {i})')}"
    ),
    "joins": lambda n: f"SELECT t.id FROM t {_joined(' ', n, lambda i: f'JOIN t t{i} ON t{i}.id = t.id')}",
    "keys": lambda n: f"SELECT count(*) FROM t GROUP BY {_joined(', ', n, lambda i: f'id + {i}')}",
    "questions": lambda n: (
        f"SELECT id FROM t WHERE {_joined(' OR ', n, lambda i: f'answer(body, {i}::text) = {i}::text')}"
    ),
    "comment": lambda n: f"SELECT 1 /* {'x' * n} */",
    "text": lambda n: f"SELECT '{'x' * n}'",
}


@pytest.fixture(scope="module")
def con() -> Connection:
    return connect({"t": pa.table({"id": [1, 2, 3], "n": [1, 2, 3], "body": ["a", "a1b", "c"]})}, cache=False)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [60, 500, 10_000])
def test_planned_soon_or_refused_by_a_named_limit(con: Connection, shape: str, size: int) -> None:
    query = SHAPES[shape](size)
    started = time.process_time()
    with suppress(QueryError) if shape != "open" else pytest.raises(QueryError):
        con.explain(query)
    assert time.process_time() - started < SECONDS


def test_what_failed_before_runs(con: Connection) -> None:
    def rows(shape: str, size: int) -> list[int]:
        return sorted(row[0] for row in con.sql(SHAPES[shape](size)).rows)

    assert rows("parentheses", 500) == [1]
    assert rows("tuples", 200) == [1, 2, 3]
    assert rows("patterns", 400) == [2]
    assert rows("row", 50) == []
    assert rows("or", 500) == [1, 2, 3]
    assert rows("and", 500) == [1, 2, 3]
    assert rows("in", 5_000) == [1, 2, 3]
    assert rows("chain of members", MOST_QUERIES // 3) == [1, 2, 3]


def test_brackets_that_are_never_closed_are_counted_before_the_engine_reads_them(con: Connection) -> None:
    """DuckDB's parser takes minutes over twenty thousand of them, and nothing interrupts it."""
    with pytest.raises(UnsupportedError, match="1,000 brackets"):
        con.sql("SELECT " + "(" * (MOST_BRACKETS + 1))
    many = "(" * (MOST_BRACKETS + 1)
    for query in (f"SELECT '{many}'", f"SELECT $${many}$$", f"SELECT 1 -- {many}", f"SELECT 1 /* {many} */"):
        assert len(con.sql(query).rows) == 1
    assert con.sql(f'SELECT 1 AS "{many}"').columns == (many,)


def test_a_long_list_as_a_parameter_is_bounded(con: Connection) -> None:
    assert len(con.sql("SELECT id FROM t WHERE id = ANY (?)", [list(range(2_000))]).rows) == 3
    with pytest.raises(UnsupportedError, match="more than 100,000"):
        con.sql("SELECT id FROM t WHERE id = ANY (?)", [list(range(200_000))])


def test_deep_values_of_parameters_are_refused_by_a_limit(con: Connection) -> None:
    nested: list[object] = [1]
    for _ in range(5_000):
        nested = [nested]
    with pytest.raises(ParameterError, match="100 levels"):
        con.sql("SELECT 1 WHERE 1 = ANY (?)", [nested])


def test_casts_in_casts_are_looked_at_once_each(con: Connection) -> None:
    """Looked at twice each, 40 of them would take days."""
    assert con.sql("SELECT " + "CAST((" * 40 + "1" + ") AS integer)" * 40 + " AS one").rows == [(1,)]
