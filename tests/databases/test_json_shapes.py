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


def test_settings_and_unlike_objects_stay_apart(tmp_path: Path) -> None:
    unlike = {"package": {"name": "x", "version": "1"}, "build": {"target": "y", "strict": True}}
    with pytest.raises(SourceError, match="holds one object"):
        almanaq.connect(write(tmp_path / "settings", unlike))
    pages = {"sales": {"count": 1, "data": [{"amount": 3}]}, "people": {"total": 2, "data": USERS}}
    with almanaq.connect(write(tmp_path / "pages", pages)) as connection:
        assert [relation.name for relation in connection.catalog.relations] == ["people", "sales"]
