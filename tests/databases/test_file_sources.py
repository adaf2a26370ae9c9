"""Files as databases: how cells are typed, and what is wrong with a file."""

from __future__ import annotations

import datetime
import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import almanaq
from almanaq.engines.files.load import open_files, read_table
from almanaq.engines.open_source import open_database
from almanaq.errors import AlmanaqError, SourceError, UsageError
from almanaq.suql.catalog.relations import ColumnKind


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_messy_cells_are_typed_and_failures_counted(tmp_path: Path) -> None:
    times = ["2:13.32", "1:02", "0:59.9", "2:00"] * 10
    rows = [f'"{i},{i:03d}",US${i}m,15 February 19{i:02d},{times[i - 10]},0{i},{i}%' for i in range(10, 50)]
    rows[7] = '"oops",n/a,,1:00.5,017,17%'
    path = write(tmp_path, "t.csv", "\n".join(["number,money,day,time,code,share", *rows]))
    table, report = read_table(path)
    types = {column.name: column.type for column in report.columns}
    assert types == {
        "number": "bigint",
        "money": "bigint",
        "day": "date",
        "time": "time",
        "code": "text",
        "share": "bigint",
    }
    assert table.column("number")[0].as_py() == 10_010
    assert table.column("money")[0].as_py() == 10_000_000
    assert table.column("day")[0].as_py() == datetime.date(1910, 2, 15)
    assert table.column("time")[1].as_py() == datetime.time(0, 1, 2)
    number, money = report.columns[:2]
    assert (number.failures, number.examples, money.missing, money.unit) == (1, ("oops",), 1, "US$")
    assert table.column("number").null_count == 1
    assert report.messages == (
        "t.number: 1 of 40 cells are not bigint and read as NULL: 'oops'",
        "t.money: 1 of 40 cells are placeholders such as n/a or -, and read as NULL",
    )


def test_more_failures_than_five_percent_leave_text(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a\n" + "1\n" * 18 + "x\n" * 2)
    table, report = read_table(path)
    assert report.columns[0].type == "text"
    assert table.column("a").null_count == 0


def test_a_folder_gives_its_tables_with_kinds(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    rows = [
        {"id": i, "kind": ["red", "blue"][i % 2], "tags": ["a", "b"], "when": f"2020-01-0{i % 9 + 1}"}
        for i in range(30)
    ]
    write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    prose = [f"{i},Visit {i} was lovely; we sat by the window and stayed for hours." for i in range(20)]
    write(tmp_path / "more", "b.csv", "\n".join(["id,review", *prose]))
    pq.write_table(pa.table({"x": ["1", "2"]}), tmp_path / "c.parquet")
    database = open_database(tmp_path)
    found = {f"{r.name}.{c.name}": (c.type, c.array, c.kind) for r in database.catalog().relations for c in r.columns}
    assert found["a.when"] == ("date", False, ColumnKind.STRUCTURED)
    assert found["a.tags"][:2] == ("text", True)
    assert found["b.review"] == ("text", False, ColumnKind.FREE_TEXT)
    assert found["c.x"] == ("text", False, ColumnKind.STRUCTURED)
    assert database.catalog().relation("b").location == ("files", "more", "b")
    database.close()


def test_json_digits_in_quotes_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path, "t.jsonl", '{"zip": "94301", "n": 1}\n{"zip": "94302", "n": 9007199254740993}\n')
    table, report = read_table(path)
    assert [c.type for c in report.columns] == ["text", "bigint"]
    assert table.column("n").to_pylist() == [1, 9007199254740993]


def test_enum_is_inferred_for_text_files_only(tmp_path: Path) -> None:
    text = "colour\n" + "red\nblue\n" * 20
    database = open_database(write(tmp_path, "t.csv", text))
    column = database.catalog().relation("t").columns[0]
    assert (column.kind, column.values) == (ColumnKind.ENUM, ("blue", "red"))
    database.close()
    database = open_database({"t": pa.table({"colour": ["red", "blue"] * 20})})
    assert database.catalog().relation("t").columns[0].kind is ColumnKind.STRUCTURED
    database.close()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", r"empty\.csv: not opened: is empty"),
        ("bad.jsonl", b'{"a":\n{"a": \n', r"bad\.jsonl: not opened: line 1: not JSON"),
        ("list.jsonl", b"[1]\n", r"list\.jsonl: not opened: line 1: one object per line, not a list"),
        ("none.jsonl", b"\n\n", r"none\.jsonl: not opened: is empty"),
        ("bad.parquet", b"PAR1 but not really", r"bad\.parquet: not opened: is not a Parquet file"),
        ("bad.sqlite", b"certainly no database" * 100, r"bad\.sqlite: not opened: is not a SQLite database"),
        ("notes.css", b"hello", "cannot be opened; known"),
    ],
)
def test_a_file_at_fault_says_where(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=message):
        open_database(tmp_path / name)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, "restaurants.csv", "a\n1\n")
    with pytest.raises(SourceError, match=r"did you mean 'restaurants\.csv'"):
        open_database(tmp_path / "restaurant.csv")
    (tmp_path / "void").mkdir()
    with pytest.raises(SourceError, match="holds no table"):
        open_database(tmp_path / "void")
    with pytest.raises(SourceError, match="no folder"):
        open_database(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(AlmanaqError, match="no parameter 'shema'; did you mean 'schema'"):
        open_database("spark+sc://localhost:1/;shema=town")
    with pytest.raises(AlmanaqError, match="did you mean"):
        open_database("postgersql://localhost/x")
    with pytest.raises(UsageError, match="int is no source"):
        open_database(3)


def test_header_only_and_faulty_headers(tmp_path: Path) -> None:
    database = open_database(write(tmp_path, "t.csv", "a,,A,a,\n"))
    relation = database.catalog().relation("t")
    assert [c.name for c in relation.columns] == ["a", "column_2", "A_2", "a_3", "column_5"]
    assert relation.rows == 0
    assert len(database.reports[0].messages) == 4  # type: ignore[attr-defined]
    database.close()


def test_sqlite_types_keys_and_mixed_cells(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE pet (tag TEXT PRIMARY KEY, owner INTEGER REFERENCES owner, weight, born DATETIME, raw BLOB);
        INSERT INTO owner VALUES (1, 'Ann');
        INSERT INTO pet VALUES (NULL, 1, 3, '2020-01-01 10:00:00', x'00ff'), (NULL, 1, 'heavy', NULL, NULL);
    """)
    connection.executemany(
        "INSERT INTO pet VALUES (?, 1, ?, '2020-01-02 10:00:00', NULL)", [(str(i), i / 2) for i in range(40)]
    )
    connection.commit()
    connection.close()
    database = open_files(path)
    pet = database.catalog().relation("pet")
    assert [c.type for c in pet.columns] == ["text", "bigint", "double precision", "timestamp", "bytea"]
    assert pet.key == ()  # SQLite lets a primary key be null, and here it is
    assert pet.foreign_keys == ((("owner",), "owner", ("id",)),)
    assert database.catalog().relation("owner").key == ("id",)
    (weight,) = [c for r in database.reports for c in r.columns if c.name == "weight"]
    assert (weight.failures, weight.examples) == (1, ("heavy",))
    database.close()


def test_sqlite_generated_columns_odd_names_virtual_tables_and_broken_views(tmp_path: Path) -> None:
    path = tmp_path / "odd.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE made (a INT, twice INT GENERATED ALWAYS AS (a * 2), "odd name" TEXT, "a.b" TEXT);
        INSERT INTO made (a, "odd name") VALUES (1, 'x'), (NULL, 'y');
        CREATE VIRTUAL TABLE found USING fts5(title); INSERT INTO found VALUES ('words');
        CREATE TABLE gone (a INT); CREATE VIEW left_over AS SELECT a FROM gone; DROP TABLE gone;
        """
    )
    connection.close()
    with almanaq.connect(path) as con:
        assert [r.name for r in con.engine.catalog.relations] == ["found", "made"]
        assert list(con.sql("SELECT * FROM made ORDER BY a").rows) == [(1, 2, "x", None), (None, None, "y", None)]
        [warning] = con.warnings
        assert "'left_over' of odd.sqlite is left out" in warning


def test_sqlite_rows_are_streamed_in(tmp_path: Path) -> None:
    """A table without columns of mixed cells never lies in memory twice: its Arrow form is a stream."""
    path = tmp_path / "rows.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, f REAL, s TEXT, b BLOB)")
    rows = [(i, i / 2 if i % 3 else i, f"text {i}" if i % 5 else None, b"\x00") for i in range(45_000)]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    database = open_files(path)
    with database.session() as session:
        table = session.fetch(f"SELECT * FROM {'.'.join(database.catalog().relation('t').location)} ORDER BY id")
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == rows
    assert database.reports[0].rows == 45_000
    database.close()


def test_text_of_sqlite_is_found_to_be_enum_and_its_json_is_read_by_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, doc TEXT)")
    documents = [{"to": {"city": "Rome"}}, {"to": {"city": "Oslo"}}, None] * 4
    rows = [(i, ["open", "sent"][i % 2], d and json.dumps(d)) for i, d in enumerate(documents)]
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    with almanaq.connect(path) as con:
        kinds = {c.name: c.kind for c in con.catalog.relation("orders").columns}
        assert kinds["state"] is ColumnKind.ENUM
        assert con.sql("SELECT count(*) FROM orders WHERE (doc->'to'->>'city') = 'Rome'").rows == [(4,)]
