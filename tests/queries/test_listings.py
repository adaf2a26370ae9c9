"""DESCRIBE, SHOW TABLES and SUMMARIZE are answered from the catalog; words that are nearly right are named."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from almanaq.errors import QuerySyntaxError, RefusedQueryError, UnknownNameError, UnsupportedError

from .support import Asked, texts


@pytest.fixture(scope="module")
def town(engine: str) -> Asked:
    assert engine
    return Asked(
        places={"id": [1, 2], "name": texts("a", "b"), "day": pa.array([None, None], pa.date32())},
        stays={"id": [1]},
    )


@pytest.mark.parametrize("sql", ["SHOW TABLES", "show tables;", r"\d", r"\dt"])
def test_tables_are_listed(town: Asked, sql: str) -> None:
    result = town.con.sql(sql)
    assert result.columns == ("table", "columns", "rows", "description")
    assert [row[:2] for row in sorted(result.rows)] == [("places", 3), ("stays", 1)]


@pytest.mark.parametrize("sql", ["DESCRIBE places", "desc Places", 'DESCRIBE TABLE "places";', r"\d places"])
def test_columns_are_described_as_the_catalog_has_them(town: Asked, sql: str) -> None:
    columns = town.con.catalog.relation("places").columns
    assert town.con.sql(sql).rows == [(c.name, c.type, c.kind.value, c.description or None) for c in columns]
    assert [column.name for column in columns] == ["id", "name", "day"]


def test_a_summary_has_values_too(town: Asked) -> None:
    result = town.con.sql("SUMMARIZE places")
    assert result.columns == ("column", "type", "kind", "description", "values", "rows")
    assert {row[0]: row[4] for row in result.rows} == {"id": "1, 2", "name": "a, b", "day": None}
    assert result.trace.text_calls == 0


def test_what_is_no_relation_is_named(town: Asked) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'places'"):
        town.con.sql("DESCRIBE plces")
    with pytest.raises(UnsupportedError, match="takes the name of a relation"):
        town.con.sql("SUMMARIZE SELECT 1")
    with pytest.raises(RefusedQueryError, match="SHOW"):
        town.con.sql("SHOW server_version")


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELEC id FROM places", "SELECT"),
        ("summarise places", "SUMMARIZE"),
        ("SELECT * FORM places", "FROM"),
        ("SELECT * FROM places WHRE id = 1", "WHERE"),
        ("SELECT * FROM places ODER BY id", "ORDER"),
        ("SELECT id FROM places GRUOP BY id", "GROUP"),
        ("SELECT id FROM places LIMT 1", "LIMIT"),
    ],
)
def test_a_word_that_is_nearly_right_is_offered(town: Asked, sql: str, meant: str) -> None:
    with pytest.raises(QuerySyntaxError, match=f"did you mean {meant}\\?") as caught:
        town.con.sql(sql)
    assert re.search(r"line 1, column \d+", str(caught.value))
