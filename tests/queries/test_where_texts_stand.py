"""Readers are told where a document stands; equal documents are read once all the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

import almanaq
from almanaq.engines.duckdb.engine import DuckDBDatabase, Loaded, load_table
from almanaq.models.protocols import TextCall, TextReply
from almanaq.suql.catalog.schema_file import RelationSchema, Schema
from almanaq.testing import FunctionModel

PLACES = pa.table({"name": ["A", "B"], "reviews": ["quiet", "loud"], "menu": ["quiet", "fish"]})


class Noting(FunctionModel):
    """Keeps what it is told of each document."""

    def __init__(self) -> None:
        super().__init__(lambda text, question: "Yes" if "quiet" in text else "No")
        self.told: list[tuple[str, str]] = []

    async def read(self, call: TextCall) -> TextReply:
        self.told.append((call.passages[0], call.about))
        return await super().read(call)


def told(query: str, description: str | None = None) -> list[tuple[str, str]]:
    import duckdb

    connection, model = duckdb.connect(), Noting()
    connection.execute("CREATE SCHEMA data")
    load_table(connection, ("memory", "data", "places"), PLACES)
    loaded = Loaded((), Schema({"places": RelationSchema(description)}))
    source = DuckDBDatabase(connection, name="tables", database="memory", loaded=loaded, infer_enums=False)
    with almanaq.connect(source, model=model, cache=False) as con:
        con.sql(query)
    return sorted(model.told)


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("SELECT name FROM places WHERE answer(reviews, 'quiet?') = 'Yes'", "reviews of places"),
        ("SELECT answer(p.REVIEWS, 'quiet?') FROM places AS p", "reviews of places"),
        ("SELECT answer(reviews || '', 'quiet?') FROM places", ""),
        ("SELECT answer(reviews, 'quiet?') FROM (SELECT upper(reviews) AS reviews FROM places) AS p", ""),
    ],
)
def test_a_reader_is_told_the_column_and_the_table(query: str, where: str) -> None:
    assert {about for _, about in told(query)} == {where}


def test_a_reader_is_told_the_title_of_the_table() -> None:
    query = "SELECT answer(reviews, 'quiet?') FROM places"
    assert told(query, "Places to\nsit")[0][1] == "reviews of places: Places to sit"
    assert len(told(query, "so " * 100)[0][1]) < 170


def test_equal_documents_of_two_columns_are_read_once_and_told_of_neither() -> None:
    query = "SELECT answer(reviews, 'quiet?'), answer(menu, 'quiet?') FROM places"
    assert told(query) == [("fish", ""), ("loud", ""), ("quiet", "")]
    asked_apart = "SELECT answer(reviews, 'quiet?'), answer(menu, 'is it quiet?') FROM places"
    assert len(told(asked_apart)) == 4
    assert all(about for _, about in told(asked_apart))
