"""Corpora: every form of a source gives the same tables as text, and only when they are asked for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from almanaq.corpus.files.shape import clean_header
from almanaq.corpus.table import TableId
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import SourceError


def test_a_folder_and_its_sub_folders(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.csv").write_text("x;y\n1,5;é\n;\n", encoding="utf-8")
    (tmp_path / "sub" / "b.jsonl").write_text('{"k": null, "t": ["p", "q"], "b": true}\n')
    (tmp_path / "ignored.css").write_text("# no table")
    pq.write_table(pa.table({"n": [1.5, None]}), tmp_path / "c.parquet")
    corpus = read_corpus(tmp_path)
    tables = {table.id: table for table in corpus}
    assert len(corpus) == 3
    assert tables[TableId(tmp_path.name, "a")].rows == (("1,5", "é"),)  # a row without a value is left out
    assert tables[TableId("sub", "b")].rows == (("", "p; q", "true"),)
    assert tables[TableId(tmp_path.name, "c")].rows == (("1.5",), ("",))
    assert list(corpus) == list(corpus)


def test_databases_give_keys_and_comments(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE o (id INTEGER PRIMARY KEY); CREATE TABLE t (o INTEGER REFERENCES o (id), d DATE)"
        )
        connection.execute(
            "INSERT INTO o VALUES (1); INSERT INTO t VALUES (1, '2020-01-02'); COMMENT ON TABLE t IS 'notes'"
        )
    sqlite = sqlite3.connect(tmp_path / "s.db")
    sqlite.executescript(
        "CREATE TABLE o (id INTEGER PRIMARY KEY); CREATE TABLE t (o INTEGER REFERENCES o (id), d DATE);"
    )
    sqlite.executescript("INSERT INTO o VALUES (1); INSERT INTO t VALUES (1, '2020-01-02');")
    sqlite.close()
    for name, database in (("d.duckdb", "d"), ("s.db", "s")):
        tables = {table.id: table for table in read_corpus(tmp_path / name)}
        table = tables[TableId(database, "t")]
        assert (table.header, table.rows) == (("o", "d"), (("1", "2020-01-02"),))
        assert table.keys == ("o -> o.id",)
        assert tables[TableId(database, "o")].keys == ("id",)
    assert {t.id.table: t.description for t in read_corpus(tmp_path / "d.duckdb")} == {"o": "", "t": "notes"}


def test_rows_are_limited(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n3,b\n5,c\n")
    assert next(iter(read_corpus(tmp_path / "a.csv", rows=2))).rows == (("1", "a"), ("3", "b"))


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\na,b\nc\nd,e,f\n")
    (tmp_path / "b.csv").write_text("")
    (tmp_path / "c.csv").write_bytes("x,y\nné,1\n".encode("latin-1"))
    corpus = read_corpus(tmp_path)
    tables = {table.id.table: table.rows for table in corpus}
    assert tables == {"a": (("a", "b"), ("c", ""), ("d", "e")), "c": (("né", "1"),)}
    ragged, empty, encoding = corpus.faults
    assert "a.csv, first in line 3: 2 of 3 rows do not have 2 fields" in ragged
    assert "b was left out: b.csv is empty" in empty
    assert "c.csv: not UTF-8, read as Windows-1252" in encoding
    with pytest.raises(SourceError, match=r"b\.csv is empty"):
        list(read_corpus(tmp_path / "b.csv"))


def test_the_second_file_of_one_name_gets_another(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\nu\n")
    (tmp_path / "a.tsv").write_text("x\nv\n")
    corpus = read_corpus(tmp_path)
    assert {table.id.table: table.rows for table in corpus} == {"a": (("u",),), "a_tsv": (("v",),)}
    assert "a.tsv: it is the table 'a_tsv', since a.csv is 'a' already" in corpus.faults[0]


def test_clean_header_is_distinct_and_keeps_what_is_good() -> None:
    header = clean_header(["a", "a_2", "A", " ", "column_4"], "t.csv")
    assert len({name.casefold() for name in header.names}) == 5
    assert header.names[:2] == ("a", "a_2")
    assert header.names[4] == "column_4"
    assert len(header.warnings) == 2
