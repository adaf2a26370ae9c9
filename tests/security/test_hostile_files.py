"""Files that unpack to far more than they are, and queries that are no text or do not stop."""

from __future__ import annotations

import os
import random
import sqlite3
import time
import zipfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messy import write_workbook

import almanaq
from almanaq.corpus import table
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import BudgetExceeded, SourceError
from almanaq_bench.sql import sandbox as module
from almanaq_bench.sql.sandbox import Limits, Sandbox

_SHEETS = {"S": [["id", "name"], *([n, f"thing {n}"] for n in range(40))]}
HALVES = ["SELECT '\ud800'", "SELECT \udfff", "\ud83d", "SELECT 1 -- \udc80", "SELECT '\x00'", "\x00"]


@pytest.fixture(params=[True, False])
def bomb(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write a small file of a hundred thousand rows, each of a hundred kilobytes."""
    indices = pa.array([0], pa.int32()).take(pa.array([0] * 100_000))
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 100_000]))
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"x": column}), path, compression="zstd", store_schema=request.param)
    assert path.stat().st_size < 1_000_000
    return path


def test_a_parquet_bomb_is_an_error_in_a_corpus(bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_MOST_BYTES", 300_000_000)
    corpus = read_corpus(bomb)
    with pytest.raises(SourceError, match="holds more than 300 MB when it is unpacked"):
        corpus.read(corpus.ids[0])
    few = read_corpus(bomb, rows=3)
    assert len(few.read(few.ids[0]).rows) == 3


def test_a_parquet_bomb_is_asked_within_bounds(bomb: Path) -> None:
    with almanaq.connect(str(bomb), max_result_mb=50, cache=False) as connection:
        with pytest.raises(BudgetExceeded, match="more than 50 MB"):
            connection.sql("SELECT x FROM bomb")
        assert connection.sql("SELECT count(*), max(length(x)) FROM bomb").rows == [(100_000, 100_000)]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Make a database whose name is no text."""
    path = tmp_path / os.fsdecode(b"\xff.sqlite")
    with sqlite3.connect(tmp_path / "d.sqlite") as connection:
        connection.execute("CREATE TABLE t (n)")
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    (tmp_path / "d.sqlite").rename(path)
    return path


@pytest.mark.parametrize("sql", HALVES)
def test_half_a_character_in_generated_sql_is_an_error_of_that_query(database: Path, sql: str) -> None:
    with Sandbox() as sandbox:
        judged = sandbox.judge(database, "SELECT n FROM t", sql)
        process = sandbox._process
        assert (judged.gold.kind, judged.reply.kind in ("error", "refused")) == ("ok", True)
        assert sandbox.judge(database, sql, "SELECT n FROM t").gold.kind in ("error", "refused")
        assert sandbox._process is process, "the process went on"


@pytest.mark.parametrize("which", ["gold", "reply", "both"])
def test_a_query_that_heeds_no_interruption_costs_its_limit_and_a_second(
    database: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setattr(module, "_GRACE", 0.2)
    slow = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')"
    gold, reply = (slow if which in (name, "both") else "SELECT 1" for name in ("gold", "reply"))
    with Sandbox(Limits(seconds=0.2)) as sandbox:
        started = time.monotonic()
        judged = sandbox.judge(database, gold, reply)
        took = time.monotonic() - started
    kinds = [outcome.kind for outcome in (judged.gold, judged.reply)]
    assert kinds == ["crashed" if sql == slow else "ok" for sql in (gold, reply)]
    assert took < 60


def test_a_damaged_sqlite_file_is_refused_and_never_a_defect(tmp_path: Path) -> None:
    """Whatever byte of its pages of tables, columns and views is another: it is read, or refused as a source."""
    file, chance = tmp_path / "shop.sqlite", random.Random(3)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE goods (id INTEGER PRIMARY KEY, label TEXT, price REAL)")
        connection.execute("CREATE VIEW cheap AS SELECT label FROM goods WHERE price < 3")
        connection.executemany("INSERT INTO goods VALUES (?, ?, ?)", [(n, f"thing {n}", n) for n in range(90)])
    whole = file.read_bytes()
    text = whole.index(b"CREATE VIEW")
    ended = Counter[str]()
    for _ in range(12):
        changed = bytearray(whole)
        # Among them bytes that are no text: SQLite repeats them in its messages.
        changed[chance.choice([chance.randrange(text, 4096), chance.randrange(len(whole))])] = chance.randrange(
            128, 256
        )
        file.write_bytes(changed)
        for read in (_count_goods, _list_tables):
            try:
                read(file)
                ended["read"] += 1
            except SourceError:
                ended["refused"] += 1
    assert ended["read"]
    assert ended["refused"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stored", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_damaged_workbook_is_refused_and_hides_no_other_file(tmp_path: Path, stored: int) -> None:
    plain, file, chance = write_workbook(tmp_path / "plain.xlsx", _SHEETS), tmp_path / "w.xlsx", random.Random(stored)
    with zipfile.ZipFile(plain) as parts, zipfile.ZipFile(file, "w", stored) as archive:
        for name in parts.namelist():
            archive.writestr(name, parts.read(name))
    plain.rename(tmp_path / "good.xlsx")
    whole = file.read_bytes()
    refused = 0
    for _ in range(60):
        changed = bytearray(whole)
        changed[chance.randrange(len(whole))] ^= chance.randrange(1, 256)
        file.write_bytes(changed)
        with almanaq.connect(tmp_path, cache=False) as connection:
            assert connection.sql("SELECT count(*) FROM good").rows == [(40,)]
            refused += any("w.xlsx: not opened: " in said for said in connection.warnings)
    assert refused


def _count_goods(file: Path) -> None:
    with almanaq.connect(str(file), cache=False) as connection:
        for relation in connection.catalog.relations:
            connection.sql(f'SELECT * FROM "{relation.name}"')


def _list_tables(file: Path) -> None:
    found = read_corpus(file)
    for each in found.ids:
        found.read(each)
