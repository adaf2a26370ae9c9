"""A DuckDB file is opened whatever its views are: one that cannot be read is named, and the rest works."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import almanaq
from almanaq.engines.duckdb import catalog as duckdb_catalog
from almanaq.errors import DatabaseError, UnknownNameError

VIEWS = {
    "of_csv": "SELECT * FROM read_csv('{csv}')",
    "of_view": "SELECT a FROM of_csv",
    "of_nothing": "SELECT * FROM gone",
    "of_bad_cells": "SELECT s::int AS n FROM kept",
    "endless": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c",
    "good": "SELECT upper(s) AS u FROM kept",
}
LEFT_OUT = {"of_csv", "of_view", "of_nothing"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(duckdb_catalog, "_LOOK_SECONDS", 0.2)
    (tmp_path / "in.csv").write_text("a,b\nsecret,2\n")
    with duckdb.connect(str(tmp_path / "f.duckdb")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS i, 'x' AS s")
        connection.execute("CREATE TABLE gone (a int)")
        for name, select in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {select.format(csv=tmp_path / 'in.csv')}")
        connection.execute("DROP TABLE gone")
    return str(tmp_path / "f.duckdb")


def test_views_that_cannot_be_read_are_named_and_the_rest_works(file: str) -> None:
    with almanaq.connect(file) as connection:
        said = connection.warnings
        assert {word for word in LEFT_OUT for message in said if f"'main.{word}'" in message} == LEFT_OUT
        assert len(said) == len(LEFT_OUT)
        assert connection.sql("SELECT u FROM good").rows == [("X",)]
        assert {r.name: bool(r.unread) for r in connection.catalog.relations} == {
            "kept": False,
            "good": False,
            "of_bad_cells": True,
            "endless": True,
        }
        for name in LEFT_OUT:
            with pytest.raises(UnknownNameError, match=f"the view '{name}' cannot be read: ") as caught:
                connection.sql(f"SELECT * FROM {name}")
            assert "secret" not in str(caught.value)
        with pytest.raises(DatabaseError, match="Could not convert"):
            connection.sql("SELECT * FROM of_bad_cells")


def test_a_view_of_a_file_says_what_to_do(file: str) -> None:
    with almanaq.connect(file) as connection, pytest.raises(UnknownNameError, match="keep its rows in a table"):
        connection.sql("SELECT * FROM main.of_csv")
