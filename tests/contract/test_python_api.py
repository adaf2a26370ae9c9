"""The Python names of the contract: connect, sql, explain, ask, stream, DB-API 2.0."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import UnknownNameError, UsageError
from almanaq.testing import FunctionModel

NOTES = ["Candles on every table, and a pianist who takes requests after ten.", "Neon light, plastic chairs, a queue."]
TABLE = pa.table({"id": [1, 2], "name": ["Alba", "Brio"], "notes": NOTES})
CANDLES = "answer(notes, 'are there candles?') = 'Yes'"


@pytest.fixture
def connection():
    model = FunctionModel(lambda text, question: "Yes" if "Candles" in text else "No")
    with almanaq.connect({"places": TABLE}, model=model, embedder="lexical", cache=False) as opened:
        yield opened


def test_a_result_gives_rows_in_every_form(connection):
    result = connection.sql(f"SELECT id, name FROM places WHERE {CANDLES}")
    assert list(result.columns) == ["id", "name"]
    assert result.rows == [(1, "Alba")]
    assert result.arrow().to_pylist() == [{"id": 1, "name": "Alba"}]
    assert result.df().to_dict("records") == [{"id": 1, "name": "Alba"}]
    assert len(result.evidence) == 1
    assert result.trace.text_calls == 2


def test_dataframes_are_a_source():
    frame = pd.DataFrame({"id": [1, 2], "name": ["Alba", "Brio"]})
    with almanaq.connect({"places": frame}) as connection:
        assert connection.sql("SELECT name FROM places ORDER BY id DESC").rows == [("Brio",), ("Alba",)]


def test_a_duckdb_connection_is_a_source_and_stays_open():
    import duckdb

    with duckdb.connect() as database:
        database.execute("CREATE TABLE places AS SELECT 1 AS id, 'Alba' AS name")
        with almanaq.connect(database) as connection:
            assert connection.sql("SELECT name FROM places").rows == [("Alba",)]
        assert database.execute("SELECT count(*) FROM places").fetchall() == [(1,)]


def test_parameters_are_qmarks(connection):
    assert connection.sql("SELECT name FROM places WHERE id = ?", (2,)).rows == [("Brio",)]
    assert connection.sql("SELECT id FROM places WHERE name = ? OR id = ?", ("Alba", 2)).rows == [(1,), (2,)]


def test_explain_calls_no_model():
    model = FunctionModel(lambda text, question: "Yes")
    with almanaq.connect({"places": TABLE}, model=model, cache=False) as connection:
        plan = connection.explain(f"SELECT name FROM places WHERE {CANDLES}", verbose=True)
        assert "are there candles?" in str(plan)
        assert plan.to_json()
        assert model.calls == 0


def test_analyze_counts_what_was_called(connection):
    assert connection.analyze(f"SELECT name FROM places WHERE {CANDLES}").to_json()


def test_stream_yields_the_rows_of_sql(connection):
    async def collect() -> list[tuple[object, ...]]:
        return [tuple(row) async for row in connection.stream(f"SELECT id, name FROM places WHERE {CANDLES}")]

    assert asyncio.run(collect()) == [(1, "Alba")]


def test_sql_runs_inside_a_running_event_loop(connection):
    """Notebooks run one; a blocking call must work there too."""

    async def inside() -> list[tuple[object, ...]]:
        return connection.sql(f"SELECT id FROM places WHERE {CANDLES}").rows

    assert asyncio.run(inside()) == [(1,)]


def test_db_api_module_attributes():
    assert (almanaq.apilevel, almanaq.paramstyle) == ("2.0", "qmark")
    assert almanaq.threadsafety in (0, 1, 2, 3)
    assert issubclass(almanaq.DatabaseError, almanaq.Error)


def test_a_cursor_hands_out_rows(connection):
    with connection.cursor() as cursor:
        assert (cursor.description, cursor.rowcount) == (None, -1)
        cursor.execute("SELECT id, name FROM places WHERE id < ? ORDER BY id", (10,))
        assert [column[0] for column in cursor.description] == ["id", "name"]
        assert all(len(column) == 7 for column in cursor.description)
        assert cursor.rowcount == 2
        assert cursor.fetchone() == (1, "Alba")
        assert cursor.fetchmany(5) == [(2, "Brio")]
        assert cursor.fetchone() is None
        assert cursor.fetchall() == []
        assert list(cursor.execute("SELECT id FROM places ORDER BY id")) == [(1,), (2,)]
    with pytest.raises(UsageError, match="closed"):
        cursor.execute("SELECT 1")


def test_fetching_before_a_query_is_an_error(connection):
    with pytest.raises(UsageError, match="execute"):
        connection.cursor().fetchone()


def test_a_failed_query_leaves_no_old_rows(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM places")
    with pytest.raises(UnknownNameError):
        cursor.execute("SELECT nothing FROM places")
    assert cursor.description is None


def test_pandas_reads_from_a_connection(connection):
    with pytest.warns(UserWarning, match="DBAPI2"):
        frame = pd.read_sql("SELECT id, name FROM places ORDER BY id", connection)
    assert frame.to_dict("list") == {"id": [1, 2], "name": ["Alba", "Brio"]}


def test_a_closed_connection_says_so(connection):
    connection.close()
    connection.close()
    with pytest.raises(UsageError, match="closed"):
        connection.sql("SELECT 1")


@pytest.mark.parametrize(
    ("option", "value"),
    [("order", "sideways"), ("speculation", 0.5), ("speculation", float("nan")), ("max_calls", -1), ("passages", 0),
     ("candidates", 0), ("concurrency", 0), ("deadline", 0)],
)  # fmt: skip
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(UsageError, match=option):
        almanaq.connect({"places": TABLE}, **{option: value})


def test_options_are_given_together_or_by_name():
    together = almanaq.Options(order="table", max_calls=1, concurrency=2)
    with almanaq.connect({"places": TABLE}, options=together, max_calls=5) as connection:
        assert connection.engine._options == almanaq.Options(order="table", max_calls=5, concurrency=2)
    with almanaq.connect({"places": TABLE}, options=almanaq.Options(order="table"), strict=False) as connection:
        assert connection.engine._options == almanaq.Options(order="table")
    with pytest.raises(UsageError, match="speculation"):
        almanaq.connect({"places": TABLE}, options=almanaq.Options(speculation=0))


def test_a_source_of_the_wrong_type_is_refused():
    with pytest.raises(UsageError, match="int"):
        almanaq.connect(3)


def test_the_catalog_is_public(connection):
    assert [r.name for r in connection.catalog.relations] == ["places"]


def test_ask_gives_a_response():
    with almanaq.connect("sample:restaurants", embedder="lexical", cache=False) as connection:
        reply = connection.ask("Which Italian restaurants are in Palo Alto?")
    assert reply.status == "answered"
    assert reply.answer
    assert "restaurants" in reply.suql


@pytest.mark.parametrize("kind", ["files", "frames", "duckdb"])
def test_a_frame_is_registered_beside_the_tables(tmp_path: Path, kind: str) -> None:
    import duckdb

    (tmp_path / "dogs.csv").write_text("name,age\nRex,7\nBella,3\n")
    own = duckdb.connect()
    own.execute("CREATE TABLE dogs AS SELECT 'Rex' AS name, 7 AS age")
    sources = {"files": tmp_path, "frames": {"dogs": {"name": ["Rex"], "age": [7]}}, "duckdb": own}
    with almanaq.connect(sources[kind]) as connection:
        connection.register("owners", {"dog": ["Rex"], "owner": ["Ann"], "about": ["Ann is friendly to all dogs."]})
        join = "SELECT owner FROM dogs JOIN owners ON dog = name WHERE answer(about, 'is Ann friendly?') = 'Yes'"
        assert connection.sql(join).rows == [("Ann",)]
        assert connection.ask("Who owns Rex?").status
        connection.register("owners", {"dog": ["Rex"]})
        assert connection.sql("SELECT * FROM owners").rows == [("Rex",)]
        assert "owners (1 rows): dog text" in repr(connection.catalog)
        with pytest.raises(almanaq.UsageError, match="the source has a table 'dogs'"):
            connection.register("DOGS", {"dog": ["Rex"]})
    assert own.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (1,)


def test_a_catalog_shows_itself_on_a_screen() -> None:
    tables = {f"t{n}": {f"a_column_{i}": [1] for i in range(30)} for n in range(40)}
    lines = repr(almanaq.connect(tables).catalog).splitlines()
    assert len(lines) == 21
    assert max(map(len, lines)) <= 120
    assert lines[-1] == "… and 20 more"


@pytest.mark.parametrize("value", [None, 5, b"SELECT 1"])
def test_what_is_no_text_is_no_query_and_no_question(value):
    with almanaq.connect({"t": {"a": [1]}}) as connection:
        chat, tables = connection.chat(), almanaq.tables({"t": {"a": [1]}})
        cursor = connection.cursor()
        for take in (connection.sql, connection.explain, connection.analyze, cursor.execute, connection.translate):
            with pytest.raises(UsageError, match="the query must be text"):
                take(value)
        for take in (connection.ask, chat.ask, tables.find, lambda question: connection.confirm(question, "SELECT 1")):
            with pytest.raises(UsageError, match="the question must be text"):
                take(value)
