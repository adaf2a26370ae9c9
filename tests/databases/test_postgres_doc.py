"""The tables of docs/postgres.md say what PostgreSQL gives here, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyarrow import MonthDayNano

import almanaq
from engines import PostgresServer

DOC = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the cells of the first table under a heading."""
    lines = DOC.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ") + " ") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


DIFFERENT = [(query.strip("`"), here) for query, here, *_ in table("What comes otherwise than from a driver")]
REFUSED = [(query.strip("`"), message) for query, message, *_ in table("What is refused on PostgreSQL")]


@pytest.fixture(scope="module")
def stays(postgres_server: PostgresServer) -> Iterator[tuple[almanaq.Connection, psycopg.Connection]]:
    url = postgres_server.source({})
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE TYPE spot AS (a int, b text); CREATE TABLE stays (id int, spot spot)")
        server.execute("CREATE SEQUENCE s; CREATE VIEW v AS SELECT id FROM stays")
        for name, kind in (("steady", "STABLE"), ("moody", "VOLATILE")):
            body = f"LANGUAGE plpgsql {kind} AS 'BEGIN RETURN $1; END'"
            server.execute(f"CREATE FUNCTION {name}(int) RETURNS int {body}".encode())
        with almanaq.connect(url, cache=False) as con:
            yield con, server


def test_the_tables_are_read() -> None:
    assert len(DIFFERENT) >= 4
    assert len(REFUSED) >= 12


@pytest.mark.parametrize(("sql", "here"), DIFFERENT)
def test_a_value_that_looks_otherwise(
    stays: tuple[almanaq.Connection, psycopg.Connection], sql: str, here: str
) -> None:
    con, server = stays
    names = {"MonthDayNano": lambda **parts: MonthDayNano([*parts.values()])}
    expected = [eval(value, names) for value in re.findall(r"`([^`]+)`", here)]
    found = [row[0] for row in con.sql(sql).rows]
    assert found == expected
    given = [row[0] for row in server.execute(sql.encode()).fetchall()]
    assert given != found or repr(given) != repr(found)


@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_a_query_that_is_refused(stays: tuple[almanaq.Connection, psycopg.Connection], sql: str, message: str) -> None:
    con, _ = stays
    with pytest.raises(almanaq.AlmanaqError) as caught:
        con.sql(sql)
    assert message in str(caught.value)
