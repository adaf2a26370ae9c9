"""A LIMIT stops the server too: its own log says how few rows it sent, and what it did by itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from benchmarks.engines.server_log import log_statements, statements

import almanaq
from almanaq.testing import FunctionModel
from engines import PostgresServer

ROWS = 20_000
CALM = "answer(r.body, 'is it calm?') = 'Yes'"
QUERIES = (
    (f"SELECT r.id FROM reviews r WHERE r.stars >= 2 AND {CALM} LIMIT 5", 600, "Seq Scan on reviews, filtered"),
    (f"SELECT r.id FROM reviews r WHERE r.stars = 4 AND {CALM} ORDER BY r.price, r.id LIMIT 5", 150, "Sort"),
    (
        f"SELECT r.id, o.name FROM reviews r JOIN owners o ON o.id = r.owner WHERE o.chain AND {CALM} LIMIT 5",
        800,
        "Hash Join",
    ),
)


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE owners AS SELECT o AS id, 'n' || o AS name, o < 9 AS chain FROM generate_series(0, 19) o"
        )
        connection.execute(
            "CREATE TABLE reviews AS SELECT i AS id, i % 20 AS owner, i % 7 AS stars, i * 37 % 1000 AS price, "
            f"'visit ' || i || ' calm=' || (ARRAY['Yes', 'No', 'No'])[1 + i % 3] AS body "
            f"FROM generate_series(1, {ROWS}) i"
        )
        connection.execute("COMMENT ON COLUMN reviews.body IS 'FREE_TEXT'")
        connection.execute("ANALYZE")
    return url


@pytest.mark.parametrize(("sql", "most", "node"), QUERIES)
def test_few_rows_leave_the_server(postgres_server: PostgresServer, url: str, sql: str, most: int, node: str) -> None:
    model = FunctionModel(lambda text, question: "Yes" if "calm=Yes" in text else "No")
    with almanaq.connect(log_statements(url), model=model, cache=False) as con:
        con.sql("SELECT count(*) FROM owners")  # reads the catalog, its functions too
        start = postgres_server.log.stat().st_size
        result = con.sql(sql)
    ran = list(statements(postgres_server.log, start))
    assert len(result.rows) == 5
    assert 5 < sum(statement.rows_sent for statement in ran) <= most
    assert node in {node for statement in ran for node in statement.nodes}


@pytest.mark.parametrize(("order", "most"), [("table", 3), ("similarity", 4)])
def test_few_messages_go_to_the_server(monkeypatch: pytest.MonkeyPatch, url: str, order: Any, most: int) -> None:
    """The transaction's begin with the first rows, the result, the end."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(str(query))
        return execute(cursor, query, *args, **kwargs)

    model = FunctionModel(lambda text, question: "Yes" if "calm=Yes" in text else "No")
    with almanaq.connect(url, model=model, cache=False, order=order) as con:
        con.sql(QUERIES[0][0])  # connects
        monkeypatch.setattr(psycopg.Cursor, "execute", counted)
        assert len(con.sql(QUERIES[0][0]).rows) == 5
        monkeypatch.undo()
    assert len(sent) <= most, sent
    assert sum("FETCH" in message for message in sent) >= 1


def test_nothing_is_compiled_for_few_rows(postgres_server: PostgresServer, url: str) -> None:
    """The server would compile a cursor's query by its cost for all rows, which takes longer than the few rows do."""
    with psycopg.connect(url) as connection:
        if connection.execute("SELECT pg_jit_available()").fetchone() != (True,):
            pytest.skip("this server compiles nothing")
    model = FunctionModel(lambda text, question: "Yes" if "calm=Yes" in text else "No")
    with almanaq.connect(f"{log_statements(url)}{quote(' -c jit_above_cost=0')}", model=model, cache=False) as con:
        con.sql("SELECT count(*) FROM owners")  # reads the catalog, its functions too
        compiled = []
        for sql in (QUERIES[0][0], "SELECT sum(price) FROM reviews"):
            start = postgres_server.log.stat().st_size
            con.sql(sql)
            compiled.append('"JIT"' in postgres_server.log.read_text()[start:])
    assert compiled == [False, True]
