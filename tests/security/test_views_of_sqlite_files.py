"""A view may have rows without end: loading a file, for queries or for an index, ends all the same."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import duckdb
import pytest

import almanaq
from almanaq.corpus import sqlite
from almanaq.engines import table_corpus
from almanaq.errors import SourceError, UnknownNameError

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
SLACK = 30  # seconds; what ends at all ends well before


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE kept (i, s)")
        connection.execute("INSERT INTO kept VALUES (1, 'x')")
        connection.execute(f"CREATE VIEW endless AS {ENDLESS} SELECT n FROM c")
        connection.execute(f"CREATE VIEW adding AS {ENDLESS} SELECT sum(n) AS s FROM c")
        connection.execute("CREATE VIEW good AS SELECT upper(s) AS u FROM kept")
    connection.close()
    return path


def test_endless_views_are_left_out_and_named(file: Path) -> None:
    started = time.monotonic()
    with almanaq.connect(str(file), deadline=0.5) as connection:
        assert time.monotonic() - started < SLACK
        assert len(connection.warnings) == 2
        assert all("was not read within 0.5 s" in message for message in connection.warnings)
        assert {r.name for r in connection.catalog.relations} <= {"kept", "good"}
        assert connection.sql("SELECT s FROM kept").rows == [("x",)]
        with pytest.raises(UnknownNameError):
            connection.sql("SELECT * FROM endless")


def test_an_endless_view_in_a_corpus_is_an_error_with_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "VIEW_SECONDS", 0.2)
    corpus = table_corpus.read_corpus(file)
    (endless,) = [table for table in corpus.ids if table.table == "adding"]
    with pytest.raises(SourceError, match="the view 'adding' was not read within"):
        corpus.read(endless)


def test_a_view_in_an_indexed_duckdb_file_reads_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_corpus, "VIEW_SECONDS", 0.2)
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter2\n")
    with duckdb.connect(str(tmp_path / "f.duckdb")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 'x' AS s")
        connection.execute(f"CREATE VIEW of_file AS SELECT * FROM read_csv('{secret}')")
        connection.execute(f"CREATE VIEW of_text AS SELECT content FROM read_text('{secret}')")
        connection.execute(f"CREATE VIEW adding AS {ENDLESS} SELECT sum(n) AS s FROM c")
    corpus = table_corpus.read_corpus(tmp_path / "f.duckdb")
    tables = {table.id.table: table.rows for table in corpus}
    assert tables == {"kept": (("x",),), "adding": ()}
    assert [fault.split()[0] for fault in corpus.faults] == ["main.of_file", "main.of_text"]
