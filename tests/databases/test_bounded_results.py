"""A result that is too large stops being fetched, however large it would be, and the session goes on."""

from __future__ import annotations

import pytest

from almanaq.engines.open_source import open_database
from almanaq.engines.protocols import Database

MOST = 2_000_000
WIDE = "SELECT repeat('x', 100000) AS s FROM {numbers}"
NUMBERS = {
    "postgres": "generate_series(1, 100000) AS g(i)",
    "mariadb": "(SELECT 1 AS i FROM information_schema.collations a CROSS JOIN information_schema.collations b) AS g",
}
"""For 10 GB and more: a fetch that is not stopped ends in no time that a test has."""


@pytest.fixture(params=list(NUMBERS))
def wide(request: pytest.FixtureRequest) -> tuple[Database, str]:
    return open_database(request.getfixturevalue(request.param)), WIDE.format(numbers=NUMBERS[request.param])


def test_the_bound_stops_the_fetch(wide: tuple[Database, str]) -> None:
    database, sql = wide
    with database.session() as session:
        table = session.fetch(sql, MOST)
        assert MOST < table.nbytes < MOST + 65 * 100_000
        assert session.fetch("SELECT 1 AS n", MOST).num_rows == 1
        assert session.create("made", "SELECT id FROM places") == 4
    database.close()


def test_a_stream_outlives_a_fetch_that_was_stopped(postgres: str) -> None:
    database = open_database(postgres)
    with database.session() as session:
        rows = session.stream("SELECT id FROM places ORDER BY id", batch_rows=1)
        first = next(rows)
        session.fetch(WIDE.format(numbers=NUMBERS["postgres"]), MOST)
        assert [first.column(0)[0].as_py(), *(batch.column(0)[0].as_py() for batch in rows)] == [1, 2, 3, 4]
    database.close()


@pytest.mark.parametrize(
    ("of_each", "type_"),
    [
        ("CASE WHEN i < 9000 THEN 1.5 ELSE 2.125 END", "decimal128(38, 3)"),
        ("CASE WHEN i < 9000 THEN 1.5 ELSE 'NaN'::numeric END", "double"),
        ("CASE WHEN i < 9000 THEN NULL ELSE ARRAY[i] END", "list<item: int32>"),
    ],
)
def test_rows_that_come_in_parts_have_the_types_of_all(postgres: str, of_each: str, type_: str) -> None:
    database = open_database(postgres)
    with database.session() as session:
        table = session.fetch(f"SELECT i, {of_each} AS n FROM generate_series(1, 10000) AS g(i)")
    database.close()
    assert (table.num_rows, str(table.schema.field("n").type)) == (10_000, type_)
    assert table["i"].to_pylist() == list(range(1, 10_001))
