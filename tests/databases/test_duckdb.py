"""DuckDB: what its catalog gives, and what it refuses."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import almanaq
from almanaq.engines.open_source import open_database
from almanaq.engines.protocols import Database
from almanaq.errors import DatabaseError, InternalError, SourceError, UsageError
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.testing import FunctionModel


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rich.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("""
            CREATE TYPE price AS ENUM ('cheap', 'moderate', 'dear');
            CREATE TABLE owner (id INTEGER PRIMARY KEY, code VARCHAR UNIQUE);
            CREATE TABLE r (
                a INTEGER, b INTEGER, p price, ps price[], tags VARCHAR[], n DECIMAL(10, 2), j JSON, u UUID,
                owner INTEGER REFERENCES owner (id), UNIQUE (a, b));
            INSERT INTO owner VALUES (1, 'x'), (2, NULL);
            INSERT INTO r VALUES (1, 1, 'cheap', ['cheap', 'dear'], ['ü', NULL], 1.50, '{"k": 1}', NULL, 1),
                                 (1, 2, NULL, [], NULL, NULL, NULL, NULL, NULL);
            COMMENT ON TABLE r IS 'things';
            COMMENT ON COLUMN r.tags IS 'FREE_TEXT: what people said';
            COMMENT ON COLUMN owner.code IS 'ENUM';
            CREATE VIEW v AS SELECT a, p FROM r;
            CREATE SCHEMA other;
            CREATE TABLE other.owner (id INTEGER);
        """)
    return path


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = open_database(path)
    yield database
    database.close()


def test_types_kinds_and_comments(database: Database) -> None:
    relation = database.catalog().relation("r")
    found = {c.name: (c.type, c.array, c.kind, c.values) for c in relation.columns}
    prices = ("cheap", "moderate", "dear")
    assert found["p"] == ("text", False, ColumnKind.ENUM, prices)
    assert found["ps"] == ("text", True, ColumnKind.ENUM, prices)
    assert found["tags"] == ("text", True, ColumnKind.FREE_TEXT, ())
    assert found["n"] == ("numeric(10,2)", False, ColumnKind.STRUCTURED, ())
    assert found["j"][0] == "json"
    assert found["u"][0] == "uuid"
    assert relation.description == "things"
    assert relation.columns[4].description == "what people said"


def test_keys_are_those_that_hold(database: Database) -> None:
    catalog = database.catalog()
    assert catalog.relation("r").key == ("a", "b")
    assert catalog.relation("main.owner").key == ("id",)
    assert catalog.relation("r").foreign_keys == ((("owner",), "owner", ("id",)),)
    assert catalog.relation("v").row_id is None
    assert catalog.relation("r").row_id == "rowid"


def test_a_unique_column_with_nulls_is_no_key(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "u.duckdb")) as connection:
        connection.execute("CREATE TABLE u (a INTEGER UNIQUE); INSERT INTO u VALUES (1), (NULL)")
    database = open_database(tmp_path / "u.duckdb")
    assert database.catalog().relation("u").key == ()
    database.close()


def test_an_enum_by_comment_takes_the_values_of_its_rows(database: Database) -> None:
    column = database.catalog().relation("main.owner").column("code")
    assert column is not None
    assert (column.kind, column.values) == (ColumnKind.ENUM, ("x",))


def test_enums_and_arrays_arrive_as_plain_values(database: Database) -> None:
    with database.session() as session:
        table = session.fetch('SELECT p, ps, tags, n FROM src."main"."r" ORDER BY b')
        batches = list(session.stream('SELECT p, ps FROM src."main"."r" ORDER BY b'))
    assert table.to_pylist() == [
        {"p": "cheap", "ps": ["cheap", "dear"], "tags": ["ü", None], "n": decimal.Decimal("1.50")},
        {"p": None, "ps": [], "tags": None, "n": None},
    ]
    assert table.schema.field("p").type == pa.string()
    assert batches[0].schema.field("p").type == pa.string()


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM read_csv('{f}')", "SELECT * FROM '{f}'", "SELECT * FROM glob('{f}')", "SELECT * FROM table_"]
)
def test_files_and_python_variables_are_out_of_reach(database: Database, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    table_ = pa.table({"a": [1]})
    with database.session() as session, pytest.raises(DatabaseError):
        session.fetch(sql.format(f=file))
    assert table_.num_rows == 1


def test_a_schema_file_beside_the_source_is_used(path: Path) -> None:
    text = '[r]\nkey = ["b"]\n[r.columns.tags]\nkind = "structured"\nprivate = true\n'
    path.with_name("rich.duckdb.almanaq.toml").write_text(text)
    database = open_database(path)
    relation = database.catalog().relation("r")
    assert relation.key == ("b",)
    assert relation.columns[4].private
    assert relation.columns[4].kind is ColumnKind.STRUCTURED
    database.close()


def test_a_declared_key_that_repeats_is_refused(path: Path, tmp_path: Path) -> None:
    schema = tmp_path / "s.toml"
    schema.write_text('[r]\nkey = ["a"]\n')
    database = open_database(path, schema=schema)
    with pytest.raises(SourceError, match=r"s\.toml, \[r\]: the key \(a\) is not unique"):
        database.catalog()
    database.close()


def test_dataframes_and_dictionaries() -> None:
    frame = pd.DataFrame(
        {"name": ["x", None, "x"], "size": pd.Categorical(["s", "l", "s"], categories=["s", "m", "l"])}
    )
    database = open_database({"odd name": frame})
    relation = database.catalog().relation("odd name")
    assert (relation.columns[1].kind, relation.columns[1].values) == (ColumnKind.ENUM, ("s", "m", "l"))
    with database.session() as session:
        place = ".".join(f'"{p}"' for p in relation.location)
        assert session.fetch(f"SELECT * FROM {place}").column("name").to_pylist() == ["x", None, "x"]
    database.close()


@pytest.mark.parametrize("rows", [5, 9000])
@pytest.mark.parametrize("kind", ["frame", "csv", "duckdb"])
@pytest.mark.parametrize("cell", [lambda i: i // 3, lambda i: f"r{i}"])
def test_a_column_named_rowid_is_a_column(rows: int, kind: str, cell: Callable[[int], object], tmp_path: Path) -> None:
    table = pa.table({"RowId": [cell(i) for i in range(rows)], "x": [f"x{i % 5}" for i in range(rows)]})
    file: Any = tmp_path / f"t.{kind}"
    if kind == "csv":
        write_csv(table, file)
    elif kind == "duckdb":
        with duckdb.connect(str(file)) as made:
            made.from_arrow(table).create("t")
    model = FunctionModel(lambda text, _: text.upper())
    with almanaq.connect({"t": table} if kind == "frame" else file, model=model, cache=False) as con:
        found = con.sql("SELECT rowid, x, answer(x, 'q') AS a FROM t WHERE answer(x, 'q') <> 'X0' ORDER BY ALL").rows
    expected = [(id_, x, x.upper()) for id_, x in zip(*table.to_pydict().values(), strict=True) if x != "x0"]
    assert found == sorted(expected)


@pytest.mark.parametrize("tables", [{}, {"": pa.table({"a": [1]})}, {"t": [1, 2]}, {"t": pa.table({})}])
def test_what_is_no_table_is_refused(tables: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        open_database(tables)


def test_a_users_connection_is_left_as_it_was(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        before = connection.execute("SELECT count(*) FROM duckdb_databases()").fetchall()
        database = open_database(connection)
        with database.session() as session:
            session.create("t", "SELECT 1 AS a")
        database.close()
        assert connection.execute("SELECT count(*) FROM duckdb_databases()").fetchall() == before
        connection.execute("INSERT INTO owner VALUES (3, 'z')")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_text("not a database, by any means" * 1000)
    with pytest.raises(SourceError, match=r"cannot open x\.duckdb"):
        open_database(tmp_path / "x.duckdb")


def test_a_fault_of_the_engine_says_what_to_do(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumbles(_: str) -> None:
        raise duckdb.InternalException("INTERNAL Error: Attempted to access index 2 within vector of size 2")

    monkeypatch.setattr("almanaq.engines.duckdb.session.parse_select", stumbles)
    with (
        database.session() as session,
        pytest.raises(InternalError, match="write a subquery in IN or EXISTS as a join"),
    ):
        session.fetch("SELECT 1")
