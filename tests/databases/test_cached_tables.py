"""Tables of files are kept: a second opening reads none of them, and gives the same; a change is seen."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.messy import write_messy

from almanaq.engines.files import load, table_cache
from almanaq.engines.files.table_cache import TableCache


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableCache:
    monkeypatch.setattr(TableCache, "LEAST_BYTES", 0)
    return TableCache(tmp_path / "cache" / "tables")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_messy(tmp_path / "messy", rows=40)
    for path in folder.glob("*.csv*"):
        if path.name not in ("semicolons.csv", "dmy.csv"):
            path.unlink()
    return folder


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The sources that were read, not fetched from what is kept."""
    read: list[str] = []
    whole = load._load

    def counted(connection: Any, listing: Any, said: Any, name: str, views: Any) -> Any:
        read.append(name)
        return whole(connection, listing, said, name, views)

    monkeypatch.setattr(load, "_load", counted)
    return read


def content(folder: Path, tables: TableCache | None) -> Any:
    """All that a source says: its catalog, its messages and its rows."""
    with closing(load.open_files(folder, cache=tables)) as database:
        catalog = database.catalog()
        with database.session() as session:
            rows = {
                r.name: session.fetch("SELECT * FROM " + ".".join(f'"{part}"' for part in r.location)).to_pylist()
                for r in catalog.relations
            }
        return catalog, [report.messages for report in database.reports], rows


def test_what_is_kept_is_what_was_read(folder: Path, tables: TableCache, loads: list[str]) -> None:
    first = content(folder, tables)
    assert tables.stats()[0] == 1
    again = content(folder, tables)
    assert loads == ["messy"]
    assert again[1:] == first[1:]
    assert repr(again[0]) == repr(first[0])


def test_a_change_of_a_file_is_seen(folder: Path, tables: TableCache, loads: list[str]) -> None:
    content(folder, tables)
    file = folder / "tabs.tsv"
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text("a\tb\n1\tx\n2\tz\n")
    os.utime(file, ns=times)  # of the same size and time, but not of the same content
    assert content(folder, tables)[2]["tabs"][1] == {"a": 2, "b": "z"}
    (folder / "more.csv").write_text("a,b\n1,x\n")
    assert "more" in content(folder, tables)[2]
    assert len(loads) == 3


def test_kept_files_are_the_users_alone_and_bounded(folder: Path, tables: TableCache, loads: list[str]) -> None:
    content(folder, tables)
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in tables.folder.iterdir()}
    assert modes == {".duckdb": 0o600, ".json": 0o600}
    assert stat.S_IMODE(tables.folder.stat().st_mode) == 0o700
    small = TableCache(tables.folder, tables.stats()[1] - 1)
    small.shrink()
    assert list(tables.folder.iterdir()) == []
    content(folder, small)
    assert list(tables.folder.iterdir()) == []


def test_whoever_interrupts_does_not_wait_for_tables_to_be_kept(folder: Path, tables: TableCache) -> None:
    with pytest.raises(KeyboardInterrupt), closing(load.open_files(folder, cache=tables)):
        raise KeyboardInterrupt
    assert list(tables.folder.iterdir()) == []


@pytest.mark.parametrize("damage", ["half", "none", "told"])
def test_a_damaged_file_is_read_anew(folder: Path, tables: TableCache, loads: list[str], damage: str) -> None:
    first = content(folder, tables)
    [file] = tables.folder.glob("*.duckdb")
    if damage == "told":
        file.with_suffix(".json").write_text('{"reports": [')
    else:
        file.write_bytes(file.read_bytes()[: 5000 if damage == "half" else 0])
    assert content(folder, tables)[2] == first[2]
    assert len(loads) == 2
    assert tables.stats()[0] == 1


def test_a_folder_that_cannot_be_written_is_no_fault(folder: Path, tmp_path: Path, tables: TableCache) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert "tabs" in content(folder, tables)[2]


def test_it_can_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_KEEP_TABLES", "0")
    assert table_cache.default_table_cache() is None
    monkeypatch.setenv("ALMANAQ_KEEP_TABLES", "7")
    found = table_cache.default_table_cache()
    assert found is not None
    assert found.most_bytes == 7 << 20
