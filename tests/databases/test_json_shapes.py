"""Shapes of JSON that are tables: files of one object, several lists, objects one after another, pandas' split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import almanaq
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import SourceError

USERS = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]
POSTS = [{"id": 10, "user_id": 1}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"users": USERS, "posts": POSTS}), {"users": [(1, "Ann"), (2, "Bob")], "posts": [(10, 1)]}),
        (json.dumps({"t": USERS, "posts": POSTS}), {"t": [(1, "Ann"), (2, "Bob")], "posts": [(10, 1)]}),
        ('{"a": 1}{"a": 2}\n{\n"a": 3}', {"t": [(1,), (2,), (3,)]}),
        ('{"columns": ["a", 7], "index": [0, 1], "data": [[1, 2], [3, 4]]}', {"t": [(1, 2), (3, 4)]}),
        ('{"columns": ["a"], "index": ["x", "y"], "data": [[1], [3]]}', {"t": [("x", 1), ("y", 3)]}),
    ],
)
def test_one_file(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    (tmp_path / "t.json").write_text(text)
    with almanaq.connect(tmp_path / "t.json") as connection:
        names = [relation.name for relation in connection.catalog.relations]
        assert {name: list(connection.sql(f"SELECT * FROM {name}").rows) for name in names} == expected
    (table,) = read_corpus(tmp_path / "t.json")
    assert len(table.rows) == sum(map(len, expected.values()))


def write(folder: Path, objects: dict[str, Any]) -> Path:
    folder.mkdir()
    for name, value in objects.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def test_a_folder_of_objects_is_one_table(tmp_path: Path) -> None:
    orders = {f"o{n}": {"id": n, "buyer": {"name": "Ann"}, "items": [{"sku": n}, {"sku": n + 1}]} for n in (1, 2, 3)}
    with almanaq.connect(write(tmp_path / "orders", orders)) as connection:
        assert connection.sql("SELECT * FROM orders ORDER BY id").rows == [
            ("o1", 1, "Ann"),
            ("o2", 2, "Ann"),
            ("o3", 3, "Ann"),
        ]
        assert connection.sql("SELECT count(*), sum(orders_id) FROM orders_items").rows == [(6, 12)]
        assert "its 3 JSON files of one object each are the rows of one table" in connection.warnings[0]


def test_a_key_twice_is_told_of_each_file_of_one_table(tmp_path: Path) -> None:
    folder = write(tmp_path / "orders", {"o1": {"id": 1, "buyer": "Ann"}})
    (folder / "o2.json").write_text('{"id": 2, "buyer": "Bo", "buyer": "Cy"}')
    with almanaq.connect(folder) as connection:
        assert connection.sql("SELECT buyer FROM orders ORDER BY id").rows == [("Ann",), ("Cy",)]
        assert any("o2.json: of a key that is twice in an object" in warning for warning in connection.warnings)


def test_settings_and_unlike_objects_stay_apart(tmp_path: Path) -> None:
    unlike = {"package": {"name": "x", "version": "1"}, "build": {"target": "y", "strict": True}}
    with pytest.raises(SourceError, match="holds one object"):
        almanaq.connect(write(tmp_path / "settings", unlike))
    pages = {"sales": {"count": 1, "data": [{"amount": 3}]}, "people": {"total": 2, "data": USERS}}
    with almanaq.connect(write(tmp_path / "pages", pages)) as connection:
        assert [relation.name for relation in connection.catalog.relations] == ["people", "sales"]


@pytest.mark.parametrize(
    ("text", "rows", "said"),
    [
        ('[{"a": [{"x": 1}, null]}, {"a": [{"x": 2}]}]', [('[{"x": 1}, null]',), ('[{"x": 2}]',)], ""),
        ('[{"a": "b\\ud83d"}, {"a": ["\\ud83d"]}]', [("b\ufffd",), ('["\ufffd"]',)], "2 cells hold half a character"),
        ('[{"a": 1, "A": 2}]', [(1, 2)], "it is called 'A_2'"),
        ('[{"a": 0.5}, {"a": 9007199254740993}]', [(0.5,), (2.0**53,)], "1 of 2 cells have more digits"),
        ('{"t": [{"a": 1}, 5], "u": [{"b": 1}]}', [(1,)], "1 of its elements are not objects"),
    ],
)
def test_nothing_in_json_is_dropped_without_a_word(tmp_path: Path, text: str, rows: list[Any], said: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with almanaq.connect(tmp_path / "t.json") as connection:
        assert connection.sql("SELECT * FROM t").rows == rows
        assert said in "\n".join(connection.notes("t"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_json_is_read_in_its_encoding(tmp_path: Path, encoding: str, name: str) -> None:
    (tmp_path / name).write_bytes('{"a": "José"}\n{"a": "Köln"}\n'.encode(encoding))
    with almanaq.connect(tmp_path / name) as connection:
        assert connection.sql("SELECT * FROM t").rows == [("José",), ("Köln",)]
        assert ("read as Windows-1252" in "".join(connection.notes("t"))) == (encoding == "cp1252")
    beside = tmp_path / f"{name}.almanaq.toml"
    beside.write_text(f'[t.file]\nencoding = "{encoding}"\n')
    with almanaq.connect(tmp_path / name) as connection:
        assert connection.sql("SELECT * FROM t").rows == [("José",), ("Köln",)]
    beside.write_text('[t.file]\nencoding = "klingon"\n')
    with pytest.raises(SourceError, match="unknown encoding 'klingon'"):
        almanaq.connect(tmp_path / name)
