"""A cluster gives DuckDB's rows for as many calls: the language's document, two samples, generated queries.

ALMANAQ_CLUSTER_LAWS says how many generated queries, ALMANAQ_CLUSTER_EXAMPLES=all that every example of the document is
asked; else one in four is, from one on that ALMANAQ_CLUSTER_FIRST_EXAMPLE names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from test_same_as_duckdb import RESTAURANTS, TASK, connect, odd, task
from tests.laws.compare import difference, expect
from tests.laws.oracle import Oracle
from tests.queries.support import texts
from tests.queries.test_language_doc import EXAMPLES, choices, filled, ordered, reply
from tests.queries.test_lists import CASES, SAID

import almanaq
from almanaq import sample
from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.schema_file import read_schema
from almanaq.suql.databases.spark import SparkDatabase
from almanaq.testing import FunctionModel

from .laws import Record, compared
from .tables import Tables

LAWS = int(os.environ.get("ALMANAQ_CLUSTER_LAWS", "4"))
FIRST = int(os.environ.get("ALMANAQ_CLUSTER_FIRST_LAW", "0"))

WHOLE = os.environ.get("ALMANAQ_CLUSTER_EXAMPLES") == "all"
ASKED = EXAMPLES if WHOLE else EXAMPLES[int(os.environ.get("ALMANAQ_CLUSTER_FIRST_EXAMPLE", "0")) % 4 :: 4]


@pytest.fixture(scope="module")
def places(tables: Tables) -> str:
    return tables.source({**sample.load("restaurants").tables, **task(), **odd()})


@pytest.fixture(scope="module")
def both(places: str) -> Iterator[tuple[Any, Any]]:
    first = connect({**sample.load("restaurants").tables, **task(), **odd()})[0]
    second = connect(SparkDatabase(places))[0]
    yield first, second
    first.close()
    second.close()


def _fractional(value: object) -> bool:
    return isinstance(value, float) or hasattr(value, "as_tuple")


@pytest.mark.parametrize("sql", [*RESTAURANTS, *TASK])
def test_same_rows_and_calls(both: tuple[Any, Any], sql: str) -> None:
    results = [con.sql(sql) for con in both]
    # Sums of doubles hang on their order in the last digit, which a cluster does not keep.
    rows = [[tuple(float(f"{v:.12g}") if _fractional(v) else v for v in row) for row in r.rows] for r in results]
    assert rows[0]
    assert rows[1] == rows[0]
    assert results[0].trace.text_calls == results[1].trace.text_calls > 0


def test_a_limit_stops_the_job_and_the_calls(places: str) -> None:
    model = FunctionModel(lambda text, question: "Yes")
    with almanaq.connect(SparkDatabase(places), model=model, cache=False, speculation=2) as con:
        assert len(con.sql("SELECT id FROM task WHERE answer(body, 'is it calm?') = 'Yes' LIMIT 3").rows) == 3
    assert model.calls <= 2 * 3


def test_the_examples_of_the_document(tables: Tables) -> None:
    restaurants = {"restaurants": ordered(sample.load("restaurants").tables["restaurants"])}
    said = read_schema(sample.schema_path("restaurants"))
    source = tables.source(restaurants)
    wrong, refused = [], []
    for example in ASKED:
        sql, chosen = choices(example)
        parameters = chosen.pop("parameters", [])
        if chosen:
            continue  # what is approximate, or linked, is no matter of the database
        database = SparkDatabase(source, schema=said)
        with almanaq.connect(database, model=FunctionModel(reply), embedder="lexical", cache=False, link=False) as con:
            try:
                result = con.sql(sql, parameters)
                columns, rows = list(result.columns), list(result.rows)
            except UnsupportedError as error:
                refused.append((sql, str(error)))
                continue
        oracle = Oracle(restaurants, reply)
        try:
            found = difference(expect(oracle, filled(sql, parameters)), columns, rows)
        finally:
            oracle.close()
        wrong += [(sql, found)] if found else []
    print(f"{len(ASKED)} examples, {len(wrong)} differ, {len(refused)} refused by name")
    for sql, said_of_it in refused:
        print("refused:", said_of_it.split("\n")[0][:110], "|", sql[:90].replace("\n", " "))
    assert not wrong
    assert len(refused) <= 5


def test_lists_of_texts_are_arrays(tables: Tables) -> None:
    source = tables.source({"t": pa.table({"id": range(1, 7), "body": texts("a", "b", "c", "d", "e", None)})})
    model = FunctionModel(lambda text, question: SAID[text] if question == "dishes?" else "Yes")
    cases = [*CASES, ("SELECT id FROM t WHERE ARRAY['x', NULL] && ARRAY[body, NULL]", [], 0)]
    with almanaq.connect(SparkDatabase(source), model=model, speculation=1, cache=False, link=False) as con:
        for sql, rows, calls in cases:
            before = model.calls
            assert [tuple(row) for row in con.sql(sql).rows] == rows, sql
            if "LIMIT 1" not in sql:  # which rows come first is the cluster's choice
                assert model.calls - before == calls, sql


def test_generated_queries(tables: Tables) -> None:
    record = Record(FIRST)
    for found in compared(tables, FIRST, LAWS):
        record.add(found)
    print(record)
    assert not record.failures, "\n".join(map(str, record.failures))
