"""connect() takes tables and connections of other libraries as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pandas as pd
import pyarrow as pa
import pytest

import almanaq

ROWS = {"id": [1, 2, 3], "name": ["Alba", "Brio", None]}
EXPECTED = [(1, "Alba"), (2, "Brio"), (3, None)]


def rows_of(source, relation="data"):
    with almanaq.connect(source, cache=False) as connection:
        return connection.sql(f"SELECT id, name FROM {relation} ORDER BY id").rows


def _polars():
    import polars as pl

    return pl


FRAMES = {
    "arrow table": lambda: pa.table(ROWS),
    "arrow batch": lambda: pa.record_batch(ROWS),
    "arrow reader": lambda: pa.table(ROWS).to_reader(),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with an index that has a name": lambda: pd.DataFrame(ROWS).set_index("id"),
    "polars": lambda: _polars().DataFrame(ROWS),
    "polars lazy": lambda: _polars().LazyFrame(ROWS),
    "polars categorical": lambda: _polars().DataFrame(ROWS).cast({"name": _polars().Categorical}),
    "a result": lambda: almanaq.connect({"t": pa.table(ROWS)}, cache=False).sql("SELECT * FROM t"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_is_a_source_as_it_is_and_in_a_mapping(kind):
    assert rows_of(FRAMES[kind]()) == EXPECTED
    assert rows_of({"places": FRAMES[kind]()}, "places") == EXPECTED


def test_a_mapping_of_columns_is_a_table_of_a_mapping():
    assert rows_of({"places": ROWS}, "places") == EXPECTED


def test_an_enum_of_polars_is_an_enum_in_its_order():
    pl = _polars()
    frame = pl.DataFrame({"size": pl.Series(["small", "large"], dtype=pl.Enum(["small", "large"]))})
    with almanaq.connect({"t": frame}, cache=False) as connection:
        assert connection.catalog.relation("t").columns[0].values == ("small", "large")


def test_an_index_without_a_name_is_left_out():
    frame = pd.DataFrame({"id": [1]}, index=["a"])
    with almanaq.connect(frame, cache=False) as connection:
        assert connection.sql("SELECT * FROM data").columns == ("id",)


def test_types_of_a_library_s_own_come_as_what_they_store():
    opaque = pa.array(["1.5"], pa.string()).cast(pa.string())
    column = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), opaque)
    with almanaq.connect(pa.table({"price": column}), cache=False) as connection:
        assert connection.sql("SELECT price::numeric(4,2) * 2 AS p FROM data").df()["p"].astype(float).tolist() == [3.0]


@pytest.fixture
def sqlite():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE places (id INTEGER PRIMARY KEY, name TEXT);"
            "INSERT INTO places VALUES (1, 'Alba'), (2, 'Brio'), (3, NULL);"
        )
        yield connection


def test_a_sqlite3_connection_is_a_source_and_stays_open(sqlite):
    with almanaq.connect(sqlite, cache=False) as connection:
        assert connection.sql("SELECT id, name FROM places ORDER BY id").rows == EXPECTED
        assert connection.catalog.relation("places").key == ("id",)
    assert sqlite.execute("SELECT count(*) FROM places").fetchone() == (3,)


def test_a_sqlite3_connection_shows_what_it_has_not_committed(sqlite):
    sqlite.execute("UPDATE places SET name = 'Cava' WHERE id = 3")
    assert rows_of(sqlite, "places")[2] == (3, "Cava")
    assert sqlite.in_transaction


def test_a_closed_sqlite3_connection_is_a_source_error():
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(almanaq.SourceError, match="closed"):
        almanaq.connect(connection)


def test_sqlalchemy_is_a_source_by_engine_connection_and_url(tmp_path, sqlite):
    import sqlalchemy

    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as copy:
        sqlite.backup(copy)
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    assert rows_of(engine, "places") == EXPECTED
    assert rows_of(engine.url, "places") == EXPECTED
    assert rows_of(f"sqlite:///{path}", "places") == EXPECTED
    with engine.connect() as connection:
        assert rows_of(connection, "places") == EXPECTED
    engine.dispose()


def test_a_sqlalchemy_engine_in_memory_is_a_source():
    import sqlalchemy

    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE places AS SELECT 1 AS id, 'Alba' AS name"))
    assert rows_of(engine, "places") == [(1, "Alba")]
    with pytest.raises(almanaq.UsageError, match="in memory"):
        almanaq.connect("sqlite://")
    engine.dispose()


def test_a_sqlalchemy_session_is_told_what_to_pass():
    import sqlalchemy.orm

    engine = sqlalchemy.create_engine("sqlite://")
    with pytest.raises(almanaq.UsageError, match="pass its engine"):
        almanaq.connect(sqlalchemy.orm.Session(engine))
    engine.dispose()


def test_a_url_may_name_the_driver_as_sqlalchemy_s_do(postgres_server):
    import sqlalchemy

    url = sqlalchemy.engine.make_url(postgres_server.url).set(drivername="postgresql+psycopg")
    written = url.render_as_string(hide_password=False)
    for source in (written, url):
        with almanaq.connect(source, cache=False) as connection:
            assert connection.sql("SELECT 1 AS one").rows == [(1,)]


def test_an_adbc_connection_is_a_source_and_stays_open(sqlite, tmp_path):
    import adbc_driver_sqlite.dbapi as adbc

    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as copy:
        sqlite.backup(copy)
    with adbc.connect(str(path)) as connection:
        assert rows_of(connection, "places") == EXPECTED
        with connection.cursor() as cursor:
            assert cursor.execute("SELECT count(*) FROM places").fetchone() == (3,)
    with adbc.connect() as empty, pytest.raises(almanaq.SourceError, match="no table"):
        almanaq.connect(empty)


@pytest.mark.parametrize("source", [3, object(), None, b"places.csv"])
def test_whatever_else_is_refused_with_what_is_taken(source):
    with pytest.raises(almanaq.UsageError) as caught:
        almanaq.connect(source)
    for taken in ("path", "URL", "mapping", "pandas", "polars", "duckdb", "sqlite3", "SQLAlchemy", "ADBC", "ibis"):
        assert taken in str(caught.value)


@pytest.mark.parametrize("table", [3, "text", [1, 2], {"a": [1], "b": [1, 2]}, {}, object()])
def test_what_is_no_table_is_refused_by_its_name(table):
    with pytest.raises(almanaq.UsageError, match="places"):
        almanaq.connect({"places": table})
