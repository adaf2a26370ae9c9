"""The contract of databases, kept by a Spark cluster."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from test_contract import *  # noqa: F403

from almanaq.engines.protocols import Database
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.errors import DatabaseError, DeadlineExceeded
from almanaq.suql.catalog.schema_file import RelationSchema, Schema

from .tables import Tables

ROWS = [
    (1, "Café Ölé", 4.5, "2020-02-29"),
    (2, 'O\'Hara "quoted", with comma', None, "1968-02-15"),
    (3, "日本料理 🍣", 3.0, None),
    (4, None, -1.25, "1999-12-31"),
]


@pytest.fixture(scope="module")
def opened(tables: Tables) -> Iterator[SparkDatabase]:
    ids, names, ratings, days = zip(*ROWS, strict=True)
    opened = [None if day is None else datetime.date.fromisoformat(day) for day in days]
    source = tables.source({"places": pa.table({"id": ids, "name": names, "rating": ratings, "opened": opened})})
    database = SparkDatabase(source, schema=Schema({"places": RelationSchema(key=("id",))}))
    yield database
    database.close()


@pytest.fixture
def database(opened: SparkDatabase) -> Database:
    return opened


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM parquet.`/etc`",
        "SELECT * FROM text.`/etc/passwd`",
        "SELECT java_method('java.lang.System', 'getenv')",
        "SELECT reflect('java.lang.Runtime', 'getRuntime')",
        "SELECT try_reflect('java.lang.System', 'getenv')",
        "SELECT input_file_name()",
        "SELECT * FROM read_files('/etc')",
        "SELECT my_function(1)",
        "SELECT TRANSFORM(1) USING 'cat' AS (x)",
        "SELECT * FROM spark_catalog.default.other",
    ],
)
def test_only_functions_that_compute_and_tables_of_the_source_are_sent(database: Database, sql: str) -> None:
    with database.session() as session, pytest.raises(DatabaseError):
        session.fetch(sql)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("deadline", [0.02, 0.1, 0.2])
def test_a_job_that_begins_after_its_interruption_is_ended_too(database: Database, deadline: float) -> None:
    with database.session(deadline=deadline) as session, pytest.raises(DeadlineExceeded):
        session.fetch("SELECT count(*) AS n FROM range(0, 400000000000, 1, 20000) WHERE id % 7 = 8")
    started = time.monotonic()
    with database.session() as session:
        assert session.fetch("SELECT count(*) AS n FROM range(0, 10, 1, 2)").to_pylist() == [{"n": 10}]
    assert time.monotonic() - started < 60  # two workers would be busy for minutes, and a job waits for the one before


def test_types_and_comments_of_spark(tables: Tables) -> None:
    place = pa.struct([("street", pa.string()), ("no", pa.int32())])
    moment = datetime.datetime(2020, 2, 29, 23, 59, 59, 123456)
    table = pa.table(
        {
            "body": ["It's 'fine'", None],
            "place": pa.array([{"street": "A", "no": 1}, None], place),
            "tags": pa.array([["x", None], []], pa.list_(pa.string())),
            "price": pa.array([12, None], pa.decimal128(10, 2)),
            "at": pa.array([moment, None], pa.timestamp("us")),
            "z": pa.array([moment, None], pa.timestamp("us", "UTC")),
        }
    )
    comments = {("things", "body"): "FREE_TEXT: what was said", ("things", "price"): "in euros"}
    database = SparkDatabase(tables.source({"things": table}, comments))
    relation = database.catalog().relation("things")
    assert [(c.type, c.array) for c in relation.columns] == [
        ("text", False),
        ("jsonb", False),
        ("text", True),
        ("numeric(10,2)", False),
        ("timestamp", False),
        ("timestamp with time zone", False),
    ]
    assert relation.column("body").kind.name == "FREE_TEXT"  # type: ignore[union-attr]
    assert relation.column("body").description == "what was said"  # type: ignore[union-attr]
    assert relation.column("price").description == "in euros"  # type: ignore[union-attr]
    with database.session() as session:
        row = session.fetch("SELECT * FROM " + ".".join(relation.location)).to_pylist()[0]
    assert row["place"] == {"street": "A", "no": 1}
    assert row["tags"] == ["x", None]
    assert row["at"] == moment
    assert row["z"] == moment.replace(tzinfo=datetime.UTC)
    database.close()


def test_a_table_that_changes_between_two_steps_is_an_error(tables: Tables) -> None:
    url = tables.source({"t": pa.table({"id": [1, 2, 3]})})
    database = SparkDatabase(url)
    schema = url.rpartition("=")[2]
    with database.session() as session:
        assert session.fetch(f"SELECT count(*) AS n FROM {schema}.t").to_pylist() == [{"n": 3}]
        folder = tables.cluster.folder / "tables" / schema / "t"
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id": [7]}), folder / "part-0.parquet")
        with pytest.raises(DatabaseError, match="changed while the query ran"):
            session.fetch(f"SELECT count(*) AS n FROM {schema}.t")
    with database.session() as session:
        assert session.fetch(f"SELECT id FROM {schema}.t").to_pylist() == [{"id": 7}]
    database.close()
