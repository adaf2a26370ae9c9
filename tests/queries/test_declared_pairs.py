"""A foreign key from text to a number, as a file may declare one: what is declared to belong together is joined."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import almanaq
from almanaq.errors import QueryTypeError

TABLES = """
CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
CREATE TABLE club (id INTEGER PRIMARY KEY, town TEXT REFERENCES town (id), rank TEXT);
INSERT INTO town VALUES (1, 'Ash', 7), (2, 'Birch', 8);
INSERT INTO club VALUES (1, '1', '7'), (2, '2', '9'), (3, '1', 'n/a'), (4, 'unknown', '8'), (5, NULL, '1');
"""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[almanaq.Connection]:
    file: Path = tmp_path_factory.mktemp("pairs") / "clubs.sqlite"
    with sqlite3.connect(file) as made:
        made.executescript(TABLES)
    made.close()
    with almanaq.connect(str(file), cache=False) as opened:
        yield opened


@pytest.mark.parametrize(
    ("suql", "rows"),
    [
        ("SELECT c.id FROM club c JOIN town t ON c.town = t.id ORDER BY 1", [(1,), (2,), (3,)]),
        ("SELECT c.id FROM club c JOIN town t ON t.id = c.town ORDER BY 1", [(1,), (2,), (3,)]),
        ("SELECT name FROM town WHERE id IN (SELECT town FROM club WHERE id = 3)", [("Ash",)]),
        ("SELECT id FROM club WHERE town IN (SELECT id FROM town WHERE name = 'Birch')", [(2,)]),
        (
            "SELECT name FROM town WHERE EXISTS (SELECT 1 FROM club WHERE club.town = town.id AND club.id = 2)",
            [("Birch",)],
        ),
        ("WITH w AS (SELECT id AS no FROM town) SELECT count(*) FROM club, w WHERE club.town = w.no", [(3,)]),
        ("SELECT count(*) FROM club c, town t WHERE c.town <> t.id", [(5,)]),
    ],
)
def test_a_declared_pair_is_compared_as_text(connection: almanaq.Connection, suql: str, rows: list[object]) -> None:
    assert connection.sql(suql).rows == rows


@pytest.mark.parametrize(("left", "right"), [("t.size", "c.rank"), ("c.rank", "t.id")])
def test_other_pairs_are_refused_with_the_relations_of_their_columns(
    connection: almanaq.Connection, left: str, right: str
) -> None:
    with pytest.raises(QueryTypeError, match=rf"{left} is a? ?\w+, {right} is a? ?\w+"):
        connection.sql(f"SELECT 1 FROM club c JOIN town t ON {left} = {right}")
