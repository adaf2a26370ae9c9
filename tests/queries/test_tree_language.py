"""The language of engines without a tree of their own, over DuckDB, which also says what is right."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from almanaq.errors import QueryError, QuerySyntaxError, RefusedQueryError, UnknownNameError, suggest
from almanaq.suql.catalog.relations import Catalog, Column, Relation
from almanaq.suql.language import WORK_SCHEMA
from almanaq.suql.tree_language import TreeLanguage

_DOGS = Relation("dogs", ("memory", "main", "dogs"), (Column("name", "text"), Column("age", "bigint")))
_CATS = Relation("cats", ("memory", "main", "cats"), (Column("name", "text"),), withheld=("chip",))


class _Functions:
    aggregates = frozenset(["count", "max"])

    def check(self, name: str, *, in_from: bool, allowed: frozenset[str], **place: Any) -> None:
        known = {"range"} if in_from else {"count", "max", "upper", "round", *allowed}
        if name.lower() not in known:
            raise UnknownNameError(f"no function named {name!r}{suggest(name, known)}", **place)


@pytest.fixture
def connection() -> Any:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE dogs AS SELECT 'Rex' AS name, 7 AS age")
        connection.execute("CREATE TABLE cats AS SELECT 'Tom' AS name, '0815' AS chip")
        yield connection


@pytest.fixture
def language(connection: Any) -> TreeLanguage:
    def describe(sql: str, parameters: Any) -> list[str]:
        return [row[0] for row in connection.execute(f"DESCRIBE {sql}", parameters).fetchall()]

    return TreeLanguage("duckdb", Catalog((_DOGS, _CATS)), _Functions(), describe)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name, age FROM dogs WHERE age > 3",
        "WITH max (a) AS (SELECT max(age) FROM dogs) SELECT a, round(CAST(a AS decimal(10, 2))) FROM max",
        "WITH dogs AS (SELECT * FROM dogs) SELECT count(*) FROM dogs",
        "SELECT d.name, 'it''s; --' FROM Dogs AS d JOIN range(9) AS r(n) ON n = age",
        "SELECT upper(name) FROM (SELECT name FROM dogs UNION ALL SELECT name FROM cats) ORDER BY 1",
        "SELECT EXISTS (SELECT 1 FROM cats) AND age IN (7, 8) FROM dogs",
        "SELECT age * .5, -.25 FROM dogs",
        "SELECT * FROM (SELECT age, age + NULL AS n FROM dogs) UNPIVOT INCLUDE NULLS (v FOR k IN (age, n)) ORDER BY k",
    ],
)
def test_what_runs_gives_the_rows_of_the_text(query: str, language: TreeLanguage, connection: Any) -> None:
    statement = language.read(query)
    assert connection.execute(statement.shown).fetchall() == connection.execute(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM dogs",
        "INSERT INTO dogs SELECT * FROM dogs",
        "SELECT 1; SELECT 2",
        "COPY dogs TO 'x'",
        "SELECT * FROM 'x.csv'",
        "SELECT getenv('HOME')",
        "SELECT name.getenv() FROM dogs",
        'SELECT "getenv"(name) FROM dogs',
        "SELECT nulls(name), for(name) FROM dogs",
        'SELECT max(age) "for"(name) FROM dogs',
        "SELECT main.getenv(name) FROM dogs",
        "WITH getenv (x) AS (SELECT 1) SELECT getenv('HOME') FROM getenv",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM upper('x')",
        "SELECT * FROM (FROM information_schema.tables)",
        "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a",
        "SELECT * INTO x FROM dogs",
        "SELECT answer(name, 'q') OVER () FROM dogs",
        "",
    ],
)
def test_anything_but_a_query_that_reads_what_is_known_is_refused(query: str, language: TreeLanguage) -> None:
    with pytest.raises(QueryError):
        language.read(query)


def test_columns_that_are_withheld_are_not_read(language: TreeLanguage, connection: Any) -> None:
    assert connection.execute(language.read("SELECT * FROM cats").shown).fetchall() == [("Tom",)]
    with pytest.raises(duckdb.BinderException):
        connection.execute(language.read("SELECT c.chip FROM cats c").shown)


def test_names_are_the_engines(language: TreeLanguage) -> None:
    statement = language.read("SELECT *, answer(name, 'how old?'), answer(name, 'q')::int + 1 AS next FROM dogs")
    assert statement.has_text
    assert language.names(statement) == ("name", "age", "answer", "next")
    with pytest.raises(duckdb.BinderException):
        language.names(language.read("SELECT answer(colour, 'q') FROM dogs"))


def test_a_query_that_is_not_planned_reads_tables_of_its_derived_tables(
    language: TreeLanguage, connection: Any
) -> None:
    connection.execute("CREATE MACRO answer(d, q) AS 'old'")
    asked = "SELECT age, answer(name, 'q') AS a FROM dogs"
    query = f"SELECT * FROM ({asked}) AS d PIVOT (count(*) FOR a IN ('old', 'young'))"
    (made,) = language.split(language.read(query), "part_")
    (part,) = made.parts
    assert [name for name, _ in part.columns] == ["age", "a"]
    connection.execute(f"CREATE SCHEMA {WORK_SCHEMA}")
    connection.execute(f"CREATE TABLE {WORK_SCHEMA}.{part.name} AS {part.statement.shown}")
    assert connection.execute(made.sql).fetchall() == connection.execute(query).fetchall() == [(7, 1, 0)]
    assert not list(language.split(language.read(f"{asked} WHERE name IN ({asked})"), "part_"))


def test_parameters_are_numbered_as_they_are_written() -> None:
    language = TreeLanguage("spark", Catalog(()), _Functions(), lambda *_: [])
    assert language.read("WITH a AS (SELECT ? AS x) SELECT ?, x FROM a LIMIT ?").parameters == ("1", "2", "3")
    assert language.read("SELECT :b, :a, :b").parameters == ("b", "a")


def test_errors_say_where(language: TreeLanguage) -> None:
    for query, kind, start in (
        ("SELECT name FROM dosg", UnknownNameError, 17),
        ("SELECT uper(name) FROM dogs", UnknownNameError, 7),
        ("SELECT name FROM dogs WHERE (age", QuerySyntaxError, 29),
    ):
        with pytest.raises(kind) as raised:
            language.read(query)
        assert raised.value.start == start
    with pytest.raises(RefusedQueryError, match="DELETE"):
        language.read("DELETE FROM dogs")
    assert language.read("SELECT getenv('HOME')", frozenset(["getenv"])).sql
