"""Tables of SQLite files are kept until the file changes, or the log beside it that holds what is not yet in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from almanaq.engines.files import load
from almanaq.engines.files.table_cache import TableCache


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableCache:
    monkeypatch.setattr(TableCache, "LEAST_BYTES", 0)
    return TableCache(tmp_path / "cache" / "tables")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The SQLite files that were read, not fetched from what is kept."""
    read: list[str] = []
    whole = load.load_sqlite

    def counted(connection: Any, place: str, *more: Any) -> Any:
        read.append(place)
        return whole(connection, place, *more)

    monkeypatch.setattr(load, "load_sqlite", counted)
    return read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, born DATE)")
        connection.execute("CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT)")
        connection.execute("CREATE VIEW names AS SELECT upper(name) AS n FROM item")
        connection.executemany(
            "INSERT INTO item VALUES (?, ?, ?)", [(1, "cup", "2020-01-02"), (2, "pot", "2021-01-02")]
        )
        connection.execute("""INSERT INTO docs VALUES (1, '{"a": 1, "parts": [{"p": 1}]}')""")
        connection.commit()
    return path


def content(path: Path, tables: TableCache | None) -> Any:
    """All that a source says: its catalog, its messages and its rows."""
    with closing(load.open_files(path, cache=tables)) as database:
        catalog = database.catalog()
        with database.session() as session:
            places = {r.name: ".".join(f'"{part}"' for part in r.location) for r in catalog.relations}
            rows = {name: session.fetch(f"SELECT * FROM {place}").to_pylist() for name, place in places.items()}
        return catalog, [report.messages for report in database.reports], rows


def test_what_is_kept_is_what_was_read(file: Path, tables: TableCache, loads: list[str]) -> None:
    plain = content(file, None)
    first, again = content(file, tables), content(file, tables)
    assert plain == first == again
    assert set(plain[2]) == {"item", "docs", "names"}
    assert len(loads) == 2


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_each_commit_is_seen(file: Path, tables: TableCache, loads: list[str], journal: str) -> None:
    with closing(sqlite3.connect(file)) as writer:
        writer.execute(f"PRAGMA journal_mode = {journal}")
        content(file, tables)
        for number in (3, 4):
            # Of one length, so that no size tells it; the log of WAL is not moved into the file while it is open.
            writer.execute("UPDATE item SET name = ? WHERE id = 1", (f"cup{number}",))
            writer.commit()
            assert [row["name"] for row in content(file, tables)[2]["item"]] == [f"cup{number}", "pot"]
        assert (file.with_name(file.name + "-wal").exists()) == (journal == "WAL")
        writer.execute("UPDATE item SET name = 'lost' WHERE id = 1")
        writer.rollback()
        read = len(loads)
        assert content(file, tables)[2]["item"][0]["name"] == "cup4"
        assert len(loads) == read
    assert content(file, tables)[2]["item"][0]["name"] == "cup4"


def test_what_was_left_out_for_want_of_time_is_not_kept(file: Path, tables: TableCache, loads: list[str]) -> None:
    with closing(sqlite3.connect(file)) as writer:
        writer.execute(
            "CREATE VIEW z AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
        )
    for _ in range(2):
        with closing(load.open_files(file, cache=tables, seconds=0.05)) as database:
            assert any("was not read within" in message for report in database.reports for message in report.messages)
    assert len(loads) == 2
