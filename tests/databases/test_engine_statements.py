"""Every statement that a query sends to an engine that no server can be had for, run on DuckDB.

The engine is played by DuckDB, which is given each statement as sqlglot reads that engine's dialect: so the rows tell
whether the plan, its pages and what is written into statements are right. Whether a real engine takes the text as
sqlglot does is not shown here; docs/engines.md says so.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import almanaq
from almanaq.engines.ibis.engine import IbisDatabase
from almanaq.errors import AlmanaqError, UnsupportedError
from almanaq.suql.catalog.schema_file import parse_schema
from almanaq.testing import FunctionModel

ibis = pytest.importorskip("ibis")
DIALECTS = ("mysql", "trino", "clickhouse", "snowflake", "bigquery", "databricks")
SCHEMA = """
[r]
key = ["id"]
[r.columns.body]
kind = "free_text"
[r.columns.price]
kind = "enum"
values = ["cheap", "dear"]
[o]
key = ["id"]
"""
CALM = "answer(r.body, 'is it calm?') = 'Yes'"
QUERIES = (
    f"SELECT id, name FROM r WHERE city = 'Oslo' AND {CALM} ORDER BY stars DESC, id LIMIT 2",
    f"SELECT city, count(*) AS n, sum(id + 1) AS s FROM r WHERE NOT ({CALM} OR stars > 4) GROUP BY city "
    "ORDER BY 2 DESC, 1",
    f"SELECT r.id, o.name FROM r JOIN o ON o.id = r.owner WHERE o.chain IS NOT NULL AND r.name LIKE 'N%' AND {CALM} "
    "ORDER BY r.opened, r.id LIMIT 3",
    "SELECT max(CAST(answer(body, 'which number?') AS INT)) AS m FROM r WHERE stars > 2 AND price = 'dear'",
    "SELECT id, answer(body, 'which number?') AS n FROM r WHERE city IS NULL ORDER BY id DESC LIMIT 2",
    "SELECT city, count(*) AS n FROM r WHERE stars > 1 GROUP BY city HAVING count(*) > 1 ORDER BY n DESC, city",
)
"""Queries of DuckDB's, which each engine is asked in its own words."""


def tables() -> dict[str, pa.Table]:
    ids = range(1, 41)
    return {
        "r": pa.table(
            {
                "id": list(ids),
                "name": [f"N{i:02d}" for i in ids],
                "city": [("Oslo", "Rome", None, "Kyiv")[i % 4] for i in ids],
                "price": [("cheap", "dear")[i % 2] for i in ids],
                "stars": [None if i % 9 == 0 else i % 6 for i in ids],
                "owner": [i % 4 for i in ids],
                "opened": [None if i % 7 == 0 else datetime.date(2020, 1, 1 + i % 9) for i in ids],
                "body": [None if i % 11 == 0 else f"number={i}; calm={'Yes' if i % 3 == 0 else 'No'}" for i in ids],
            }
        ),
        "o": pa.table({"id": [0, 1, 2, 3], "name": list("abcd"), "chain": [True, False, None, False]}),
    }


def said(text: str, question: str) -> str | None:
    word = "number" if "number" in question else "calm"
    return next(part.split("=")[1] for part in text.split("; ") if part.startswith(word))


# --- an engine played by DuckDB --------------------------------------------------------------------------------------


class Played:
    """What almanaq uses of an ibis backend, in the dialect of one engine."""

    def __init__(self, name: str, connection: duckdb.DuckDBPyConnection, sent: list[str]) -> None:
        self.name, self._connection, self._sent = name, connection, sent
        self.con = SimpleNamespace(
            get_server_info=lambda: "8.4.2", thread_id=lambda: 1, cursor=lambda _: Asked(self.raw_sql)
        )

    def list_tables(self) -> list[str]:
        return ["o", "r"]

    def get_schema(self, name: str) -> Any:
        names = {"bool": "boolean", "date32[day]": "date"}
        return ibis.schema({f.name: names.get(str(f.type), str(f.type)) for f in tables()[name].schema})

    def disconnect(self) -> None:
        self._connection.close()

    def raw_sql(self, sql: str) -> Any:
        self._sent.append(re.sub(r"\bt[0-9a-f]{12}_", "t_", sql))
        if "information_schema" in sql or "system.columns" in sql:
            return self._result([], [])
        if re.match(r"SET|ALTER SESSION|START|ROLLBACK", sql):
            return None
        [tree] = sqlglot.parse(sql.replace("DROP TEMPORARY", "DROP"), read=self.name)
        assert tree is not None
        written = tree.sql(self.name)
        if not isinstance(tree, exp.Insert):
            again = sqlglot.parse_one(written, read=self.name)
            assert again.sql(self.name) == written, "what is written is read as something else"
        found = self._connection.execute(tree.transform(played_by_duckdb).sql("duckdb"))
        return self._result([column[0] for column in found.description or ()], found.fetchall())

    def _result(self, names: list[str], rows: list[tuple[Any, ...]]) -> Any:
        """Return rows as the engine's driver does."""
        if self.name == "clickhouse":
            return SimpleNamespace(column_names=names, result_rows=rows)
        if self.name == "bigquery":
            return Rows(names, rows)
        return Cursor(names, rows)


def played_by_duckdb(node: exp.Expr) -> exp.Expr:
    """Say in DuckDB's words what sqlglot does not: text compared by bytes, and the division of integers."""
    if isinstance(node, exp.ColumnDef):
        node.set("constraints", None)
    if isinstance(node, exp.Collate):
        return node.this.this
    if isinstance(node, exp.JSONArrayAgg) or (isinstance(node, exp.Anonymous) and node.name == "JSON_ARRAYAGG"):
        return exp.ArrayAgg(this=node.this if isinstance(node, exp.JSONArrayAgg) else node.expressions[0])
    if isinstance(node, exp.Anonymous) and node.name == "intDiv":
        return exp.IntDiv(this=node.expressions[0], expression=node.expressions[1])
    if isinstance(node, exp.Div) and node.args.get("typed"):
        return exp.IntDiv(this=node.this, expression=node.expression)
    return node


class Cursor:
    """A DB-API cursor."""

    def __init__(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.description = [(name,) for name in names]
        self._rows = iter(rows)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return list(islice(self._rows, size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    def close(self) -> None:
        """Do nothing."""


class Asked(Cursor):
    """A cursor of MySQL's driver, where that is installed: it is told a statement after it was made."""

    def __init__(self, run: Callable[[str], Cursor]) -> None:
        super().__init__([], [])
        self._run = run

    def execute(self, sql: str) -> None:
        found = self._run(sql)
        self.description, self._rows = found.description, found._rows


class Rows:
    """BigQuery's iterator of rows."""

    def __init__(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.schema = [SimpleNamespace(name=name) for name in names]
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return (SimpleNamespace(values=lambda row=row: row) for row in self._rows)


# --- the tests -------------------------------------------------------------------------------------------------------


def connect(source: Any) -> almanaq.Connection:
    return almanaq.connect(source, model=FunctionModel(said), order="table", speculation=1, cache=False)


@contextmanager
def play(dialect: str, sent: list[str] | None = None) -> Iterator[IbisDatabase]:
    """Give an engine with the tables, which notes in `sent` what it is asked."""
    with duckdb.connect() as native:
        native.execute("SET GLOBAL lambda_syntax = 'ENABLE_SINGLE_ARROW'")
        for name, table in tables().items():
            native.register("loaded", table)
            native.execute(f"CREATE TABLE {name} AS SELECT * FROM loaded")
        noted = [] if sent is None else sent
        yield IbisDatabase(lambda: Played(dialect, native.cursor(), noted), name=dialect, schema=parse_schema(SCHEMA))


@pytest.fixture(scope="module")
def expected() -> list[almanaq.Result]:
    with connect(tables()) as con:
        return [con.sql(sql) for sql in QUERIES]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_engine_s_own_sql_gives_the_rows(dialect: str, expected: list[almanaq.Result]) -> None:
    with play(dialect) as played, connect(played) as con:
        assert con.engine.catalog.relation("r").row_id == '"id"'
        for sql, right in zip(QUERIES, expected, strict=True):
            result = con.sql(sqlglot.parse_one(sql, read="duckdb").sql(dialect, identify=True))
            assert [tuple(map(plain, row)) for row in result.rows] == [tuple(map(plain, row)) for row in right.rows]
            assert [name.lower() for name in result.columns] == list(right.columns)
            assert result.trace.text_calls == right.trace.text_calls
            assert len(result.evidence) == len(result.rows)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mysql", "SELECT load_file('/etc/passwd')"),
        ("mysql", "SELECT @@datadir"),
        ("mysql", "SELECT id FROM r INTO OUTFILE '/tmp/x'"),
        ("mysql", "SELECT sleep(9)"),
        ("clickhouse", "SELECT * FROM url('http://x', CSV)"),
        ("clickhouse", "SELECT id FROM r SETTINGS readonly = 0"),
        ("clickhouse", "SELECT file('/etc/passwd')"),
        ("trino", "SELECT * FROM TABLE(system.query(query => 'SELECT 1'))"),
        ("snowflake", "SELECT system$wait(9)"),
        ("bigquery", "SELECT * FROM EXTERNAL_QUERY('c', 'SELECT 1')"),
        ("databricks", "SELECT * FROM read_files('/etc')"),
        ("databricks", "SELECT unheard_of(1)"),
    ],
)
def test_what_does_more_than_read_is_not_sent(dialect: str, sql: str) -> None:
    sent: list[str] = []
    with play(dialect, sent) as played, connect(played) as con:
        con.sql("SELECT id FROM r WHERE id = 1")
        sent.clear()
        with pytest.raises(AlmanaqError):
            con.sql(sql)
    assert not sent


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != "clickhouse"])  # whose `?` is a condition
def test_parameters_go_to_their_places(dialect: str) -> None:
    with play(dialect) as played, connect(played) as con:
        mark = "`" if dialect in ("mysql", "bigquery", "databricks", "clickhouse") else '"'
        names = {name: f"{mark}{name}{mark}" for name in ("w", "id", "name", "body", "r")}
        sql = "WITH {w} AS (SELECT * FROM {r} WHERE {id} > ?) SELECT {id} FROM {w} WHERE {name} = ? AND {id} < ?"
        assert con.sql(sql.format(**names), [3, "N07", 30]).rows == [(7,)]
        asked = sql + " AND answer({body}, ?) = '7'"
        assert con.sql(asked.format(**names), [3, "N07", 30, "which number?"]).rows == [(7,)]


DEADLINES = {
    "mysql": r"SET SESSION max_execution_time = \d{4,5}",
    "trino": r"SET SESSION query_max_run_time = '\d{4,5}ms'",
    "clickhouse": r"SET max_execution_time = (29|30)",
    "snowflake": r"ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = (29|30)",
    "databricks": r"SET STATEMENT_TIMEOUT = (29|30)",
}


@pytest.mark.parametrize("dialect", DEADLINES)
def test_a_deadline_is_the_engine_s_own_limit_on_each_statement(dialect: str) -> None:
    sent: list[str] = []
    with duckdb.connect() as native:
        session = IbisDatabase(lambda: Played(dialect, native.cursor(), sent), name="d").session(deadline=30)
        with session:
            sent.clear()
            assert session.fetch("SELECT 1 AS a").to_pylist() == [{"a": 1}]
    assert re.fullmatch(DEADLINES[dialect], sent[0])
    assert sent[1] == "SELECT 1 AS a"


def test_what_does_not_fit_into_a_statement_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanaq.engines.ibis.session.MOST_WRITTEN", 10)
    wanted = pytest.raises(UnsupportedError, match="declare a key of one column")
    with play("trino") as played, connect(played) as con, wanted:
        con.sql(f"SELECT r.id FROM r JOIN o ON o.id = r.owner WHERE {CALM} LIMIT 1")


def plain(value: Any) -> Any:
    return float(value) if hasattr(value, "as_tuple") else value


@pytest.mark.parametrize("dialect", ["bigquery", "clickhouse", "snowflake"])
def test_no_row_is_lost_between_two_batches(dialect: str) -> None:
    """A result that is read 32 rows at first, then 64, is the whole result."""
    with play(dialect) as played, played.session() as session:
        batches = session.stream("SELECT id FROM r ORDER BY id", 10)
        assert [row["id"] for batch in batches for row in batch.to_pylist()] == list(range(1, 41))


def test_a_users_connection_is_free_for_its_owner() -> None:
    with duckdb.connect() as native:
        native.execute("CREATE TABLE t AS SELECT 1 AS id").fetchall()
        with almanaq.connect(native) as con:
            native.register("x", pa.table({"a": [1]}))
            assert con.sql("SELECT id FROM t").rows == [(1,)]
            native.register("y", pa.table({"a": [1]}))
        assert native.sql("SELECT count(*) FROM x, y").fetchall() == [(1,)]
