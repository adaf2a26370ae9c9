"""A duckdb connection of the user's: names mean what they mean to it, also later; a file's macros are called alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import almanaq
from almanaq.errors import AlmanaqError, RefusedQueryError, SourceError, UnknownNameError, UsageError
from almanaq.testing import FunctionModel

PLACES = ("main", "s2", "other.main", "other.s2")
WORLD = "ATTACH ':memory:' AS other; CREATE SCHEMA s2; CREATE SCHEMA other.s2;" + "".join(
    f"CREATE TABLE {place}.t AS SELECT '{place}' AS x; CREATE MACRO {place}.f(x) AS x || ' by {place}';"
    for place in PLACES
)
PATHS = (
    *("USE s2", "USE main", "USE other", "USE other.s2", "USE memory", "SET schema = 's2'"),
    *("SET search_path = 's2,main'", "SET search_path = 'main,s2'", "RESET search_path"),
)


def connect(source: object, **given: str) -> almanaq.Connection:
    return almanaq.connect(source, model=FunctionModel(lambda text, _: text), cache=False, **given)  # type: ignore[arg-type]


@pytest.fixture
def user() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(WORLD)
        yield connection


@pytest.mark.parametrize("path", PATHS)
def test_bare_names_mean_what_they_mean_to_the_connection(user: duckdb.DuckDBPyConnection, path: str) -> None:
    opened = connect(user)
    assert opened.sql("SELECT x FROM t").rows == [("main",)]
    user.execute(path)
    right = user.execute("SELECT x, f(x), current_schema(), current_database() FROM t").fetchall()
    with opened, opened.public() as public, connect(user) as after:
        for con in (opened, public, after):
            assert con.sql("SELECT x, f(x), current_schema(), current_database() FROM t").rows == right
            assert con.sql("SELECT x, f(answer(x, 'q')) FROM t").rows == [row[:2] for row in right]
            assert con.catalog.relation("t").location[-1] == "t"
            assert con.catalog.relation("t").location[1] == right[0][2]


def test_a_path_of_several_databases_is_refused_by_name(user: duckdb.DuckDBPyConnection) -> None:
    with connect(user) as con:
        user.execute("SET search_path = 'other.main,memory.main'")
        with pytest.raises(UsageError, match=r"several databases \(other\.main,memory\.main\): USE one"):
            con.sql("SELECT x FROM t")
        user.execute("USE memory")
        assert con.sql("SELECT x FROM t").rows == [("main",)]


SETTINGS = {
    "integer_division = true": "SELECT 7 / 2, x FROM t",
    "TimeZone = 'Asia/Tokyo'": "SELECT TIMESTAMPTZ '2020-01-01 00:00:00Z'::VARCHAR, x FROM t",
    "default_order = 'DESC'": "SELECT list(n ORDER BY n), any_value(x) FROM t, range(3) AS r(n)",
    "default_null_order = 'NULLS_FIRST'": "SELECT n, x FROM t, (VALUES (1), (NULL)) AS v(n) ORDER BY n LIMIT 1",
    "default_collation = 'NOCASE'": "SELECT 'A' = 'a', x FROM t",
    "ieee_floating_point_ops = false": "SELECT TRY(1.0::DOUBLE / 0), x FROM t",
}


@pytest.mark.parametrize(("setting", "sql"), SETTINGS.items())
def test_what_is_set_later_holds_for_queries_too(user: duckdb.DuckDBPyConnection, setting: str, sql: str) -> None:
    asked = sql.replace("(x)", "(answer(x, 'q'))").replace(", x ", ", answer(x, 'q') ")
    with connect(user) as con:
        before = user.execute(sql).fetchall()
        for statement in ("SELECT 1", f"SET {setting}", f"RESET {setting.partition(' ')[0]}"):
            user.execute(statement)
            expected = user.execute(sql).fetchall()
            assert con.sql(sql).rows == con.sql(asked).rows == expected
            assert (expected != before) == statement.startswith("SET")


def test_what_a_schema_file_says_is_never_said_of_another_table(
    user: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text("[t.columns.x]\nprivate = true\n")
    with connect(user, schema=str(tmp_path / "s.toml")) as con:
        for path in ("USE s2", "USE other"):
            user.execute(path)
            for _ in range(2):
                with pytest.raises(UsageError, match="would mean other tables"):
                    con.sql("SELECT x FROM t")
        user.execute("USE memory.main")
        assert con.sql("SELECT x FROM t").rows == [("main",)]


def test_what_was_made_later_is_seen(user: duckdb.DuckDBPyConnection) -> None:
    with connect(user) as con:
        assert con.ask("How many later are there?").rows == ()
        user.execute(
            "CREATE TABLE later AS SELECT 'new' AS x; CREATE MACRO g(x) AS x || '!'; CREATE TYPE k AS ENUM('a')"
        )
        assert con.sql("SELECT g(answer(x, 'q')), 'a'::k FROM later").rows == [("new!", "a")]
        user.execute("ALTER TABLE later ADD COLUMN y VARCHAR; UPDATE later SET y = 'of y'")
        assert con.sql("SELECT answer(y, 'q') FROM later").rows == [("of y",)]
        user.execute("CREATE VIEW view AS SELECT y FROM later")
        assert {row[0] for row in con.sql("SHOW TABLES").rows} >= {"later", "view"}
        user.execute("DROP VIEW view; DROP TABLE later")
        assert con.catalog.find("later") is None
        with pytest.raises(UnknownNameError, match="later"):
            con.sql("SELECT answer(x, 'q') FROM later")


@pytest.mark.parametrize("sql", ["SELECT py(x) FROM t", "SELECT through(x) FROM t", "SELECT z FROM v"])
def test_a_function_of_python_is_called_if_the_user_names_it(user: duckdb.DuckDBPyConnection, sql: str) -> None:
    user.create_function("py", lambda text: text + "!", ["VARCHAR"], "VARCHAR")  # type: ignore[arg-type]
    user.execute("CREATE MACRO through(x) AS py(x); CREATE VIEW v AS SELECT py(x) AS z FROM t")
    with connect(user) as con, pytest.raises(RefusedQueryError, match="'py'"):
        con.sql(sql)
    with almanaq.connect(user, allow_functions=["py"], cache=False) as con:
        assert con.sql(sql).rows == [("main!",)]


def test_a_table_made_later_takes_the_name_that_it_has_to_the_connection(user: duckdb.DuckDBPyConnection) -> None:
    user.execute("CREATE TABLE s2.lone AS SELECT 's2' AS x")
    with connect(user) as con:
        assert con.sql("SELECT answer(x, 'q') FROM lone").rows == [("s2",)]
        user.execute("CREATE TABLE main.lone AS SELECT 'main' AS x")
        assert con.sql("SELECT answer(x, 'q') FROM lone").rows == user.execute("SELECT x FROM lone").fetchall()


def test_a_result_that_the_user_reads_stays_open(user: duckdb.DuckDBPyConnection) -> None:
    with connect(user) as con:
        user.execute("SELECT * FROM range(5000)")
        assert user.fetchone() == (0,)
        assert con.sql("SELECT answer(x, 'q') FROM t").rows == [("main",)]
        assert len(user.fetchall()) == 4999


def test_a_connection_that_cannot_be_asked_reads_what_it_read(user: duckdb.DuckDBPyConnection) -> None:
    with connect(user) as con:
        user.execute("USE s2")
        assert con.sql("SELECT x FROM t").rows == [("s2",)]
        user.execute("BEGIN")
        with pytest.raises(duckdb.Error):
            user.execute("SELECT error('fails')").fetchall()
        assert con.sql("SELECT x FROM t").rows == [("s2",)]
        user.close()
        with pytest.raises(UsageError, match="is closed: connect again"):
            con.sql("SELECT x FROM t")
    with pytest.raises(SourceError, match="cannot be used"):
        connect(user)


OPENED: dict[str, Callable[[str], object]] = {
    "file": str,
    "connection": duckdb.connect,
    "connection that only reads": lambda path: duckdb.connect(path, read_only=True),
}
CALLS = {
    "SELECT dbl(3)": [(6,)],
    "SELECT quad(3)": [(12,)],
    "SELECT count(*) FROM rows_of()": [(2,)],
    "SELECT 'low'::pri": [("low",)],
    "SELECT answer(x, 'q')::pri FROM t ORDER BY x": [("high",), (None,)],
    "SELECT answer(x, 'q'), dbl(len(x)) FROM t ORDER BY x": [("high", 8), ("other", 10)],
    "SELECT n FROM v": [(4,)],
    "SELECT * FROM reads()": "the macro 'reads' of the database is not called here: the table function 'read_csv'",
    "SELECT waits()": "the macro 'waits' of the database is not called here",
    "SELECT reads_later()": "the macro 'reads_later' of the database is not called here",
}


@pytest.mark.parametrize("kind", OPENED)
def test_macros_and_types_of_a_file(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "shop.duckdb")
    (tmp_path / "x.csv").write_text("a\n1\n")
    with duckdb.connect(path) as made:
        made.execute(
            "CREATE TABLE t AS SELECT unnest(['high', 'other']) AS x; CREATE TYPE pri AS ENUM ('low', 'high');"
            "CREATE MACRO dbl(x) AS x * 2; CREATE MACRO quad(x) AS dbl(dbl(x)); CREATE MACRO rows_of() AS TABLE FROM t;"
            "CREATE VIEW v AS SELECT dbl(2) AS n; CREATE MACRO waits() AS pg_sleep(1);"
            f"CREATE MACRO reads() AS TABLE FROM read_csv('{tmp_path}/x.csv');"
            "CREATE MACRO reads_later() AS (SELECT count(*) FROM reads())"
        )
    source = OPENED[kind](path)
    with connect(source) as con:
        for sql, right in CALLS.items():
            if isinstance(right, str):
                with pytest.raises(AlmanaqError, match=right):
                    con.sql(sql)
            else:
                assert con.sql(sql).rows == right, sql
    if isinstance(source, duckdb.DuckDBPyConnection):
        assert source.execute("FROM duckdb_databases() WHERE NOT internal").fetchall()[1:] == []
        source.close()
