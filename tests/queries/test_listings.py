"""Tables are listed; DuckDB describes and sums up of itself; near words are offered."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pytest

from almanaq.errors import QueryError, QuerySyntaxError, UnknownNameError

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")

PLACES = pa.table({"id": [1, 2], "name": texts("a", "b"), "day": pa.array([None, None], pa.date32())})


@pytest.fixture(scope="module")
def town(engine: str) -> Asked:
    assert engine
    return Asked(places=PLACES, stays={"id": [1]})


@pytest.mark.parametrize("sql", ["SHOW TABLES", "show tables;", r"\d", r"\dt"])
def test_tables_are_listed(town: Asked, sql: str) -> None:
    result = town.con.sql(sql)
    assert result.columns == ("table", "columns", "rows", "description")
    assert [row[:2] for row in sorted(result.rows)] == [("places", 3), ("stays", 1)]


@pytest.mark.parametrize(
    "sql", ["DESCRIBE places", "desc Places", "DESCRIBE SELECT id, id / 2 FROM places", "SUMMARIZE places"]
)
def test_duckdb_describes_and_sums_up_of_itself(engine: str, sql: str) -> None:
    if engine != "duckdb":
        pytest.skip("types of a table of SQLite are fewer, and PostgreSQL has no such statements")
    with duckdb.connect() as native:
        native.execute("CREATE TABLE places AS FROM PLACES")
        shown = native.sql(sql)
        result = Asked(places=PLACES).con.sql(sql)
        assert list(result.columns) == shown.columns
        assert result.rows == shown.fetchall()
    assert result.trace.text_calls == 0


def test_what_is_no_relation_is_named(town: Asked, engine: str) -> None:
    with pytest.raises(UnknownNameError if engine == "duckdb" else QueryError):
        town.con.sql("DESCRIBE plces")
    with pytest.raises(QueryError):
        town.con.sql("SHOW server_version")


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELEC id FROM places", "SELECT"),
        ("summarise places", "SUMMARIZE"),
        ("SELECT * FORM places", "FROM"),
        ("SELECT * FROM places WHRE id = 1", "WHERE"),
        ("SELECT * FROM places ODER BY id", "ORDER"),
        ("SELECT id FROM places GRUOP BY id", "GROUP"),
        ("SELECT id FROM places LIMT 1", "LIMIT"),
    ],
)
def test_a_word_that_is_nearly_right_is_offered(town: Asked, sql: str, meant: str) -> None:
    with pytest.raises(QuerySyntaxError, match=f"did you mean {meant}\\?") as caught:
        town.con.sql(sql)
    assert re.search(r"line 1, column \d+", str(caught.value))
