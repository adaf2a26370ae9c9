"""SQLAlchemy's dialect, and what reads through it: pandas without a warning, reflection, Core; polars by DB-API."""

from __future__ import annotations

import datetime
import decimal
import uuid

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa

import almanaq
from almanaq.testing import FunctionModel

PLACES = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["Alba", "Brio", "Cava"],
        "stars": [4.5, 3.0, None],
        "opened": [datetime.date(2020, 1, 2), None, None],
        "price": pa.array([decimal.Decimal("1.50"), None, None], pa.decimal128(5, 2)),
        "tags": [["a", "b"], [], None],
        "notes": ["Candles on every table, and a pianist.", "Neon light and a queue.", "Candles, and a garden."],
    }
)
VISITS = pa.table({"place": [1, 1, 2], "guest": ["x", "y", "z"]})
SCHEMA = """
[places]
description = "Places to eat"
key = ["id"]
[places.columns.stars]
description = "0 to 5"
[visits]
foreign_keys = [{columns = ["place"], table = "places", references = ["id"]}]
"""


@pytest.fixture
def engine(tmp_path):
    model = FunctionModel(lambda text, question: "Yes" if "Candles" in text else "No")
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA, encoding="utf-8")
    given = {"source": {"places": PLACES, "visits": VISITS}, "schema": str(schema), "model": model, "cache": False}
    opened = sa.create_engine("almanaq://", connect_args=given)
    yield opened
    opened.dispose()


def test_a_url_names_a_source_and_options(tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("id,name\n1,Alba\n", encoding="utf-8")
    engine = sa.create_engine(f"almanaq:///{path}?cache=false&max_calls=5&order=table")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT name FROM places")).all() == [("Alba",)]
        options = connection.connection.driver_connection.engine._options
        assert (options.max_calls, options.order) == (5, "table")
    engine.dispose()
    with pytest.raises(sa.exc.InterfaceError, match="batch: the model 'local' makes no calls"):
        sa.create_engine(f"almanaq:///{path}?batch=2&model=local").connect()
    for url in ("almanaq:///x?speed=1", "almanaq:///x?max_calls=many", "almanaq://host/x"):
        with pytest.raises(sa.exc.ArgumentError):
            sa.create_engine(url).connect()


def test_pandas_reads_without_a_warning(engine):
    frame = pd.read_sql("SELECT id, name FROM places ORDER BY id", engine)
    assert frame.to_dict("list") == {"id": [1, 2, 3], "name": ["Alba", "Brio", "Cava"]}
    asked = sa.text("SELECT name FROM places WHERE stars > :least AND answer(notes, 'candles?') = 'Yes'")
    assert pd.read_sql(asked, engine, params={"least": 1}).to_dict("list") == {"name": ["Alba"]}
    assert pd.read_sql_table("visits", engine).shape == (3, 2)
    assert pd.read_sql_table("visits", engine, schema="main").shape == (3, 2)


def test_polars_reads_through_a_connection_and_through_an_engine(engine):
    import polars as pl

    query = "SELECT id, name FROM places WHERE id < 3 ORDER BY id"
    expected = {"id": [1, 2], "name": ["Alba", "Brio"]}
    assert pl.read_database(query, engine).to_dict(as_series=False) == expected
    with almanaq.connect({"places": PLACES}, cache=False) as connection:
        assert pl.read_database(query, connection).to_dict(as_series=False) == expected
        assert pl.read_database(query, connection.cursor()).to_dict(as_series=False) == expected


def test_reflection_gives_what_the_catalog_knows(engine):
    seen = sa.inspect(engine)
    assert (seen.get_schema_names(), seen.get_table_names(), seen.get_view_names()) == (
        ["main"],
        ["places", "visits"],
        [],
    )
    assert seen.has_table("places")
    assert not seen.has_table("nothing")
    assert seen.get_pk_constraint("places")["constrained_columns"] == ["id"]
    assert seen.get_table_comment("places") == {"text": "Places to eat"}
    assert {c["name"]: c["comment"] for c in seen.get_columns("places")}["stars"] == "0 to 5"
    foreign = seen.get_foreign_keys("visits")[0]
    assert (foreign["constrained_columns"], foreign["referred_table"]) == (["place"], "places")
    assert (seen.get_indexes("places"), seen.get_unique_constraints("places")) == ([], [])
    with pytest.raises(sa.exc.NoSuchTableError):
        seen.get_columns("nothing")


def test_a_table_of_another_schema_is_read_by_its_schema(tmp_path):
    path = tmp_path / "places.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t (id INT PRIMARY KEY); CREATE SCHEMA old; CREATE TABLE old.t (id INT, name TEXT)")
        made.execute("INSERT INTO t VALUES (1); INSERT INTO old.t VALUES (1, 'Candles'), (2, 'Neon')")
    model = FunctionModel(lambda text, question: "Yes" if "Candles" in text else "No")
    engine = sa.create_engine("almanaq://", connect_args={"source": str(path), "model": model, "cache": False})
    told = sa.inspect(engine)
    assert [told.get_schema_names(), told.get_table_names(), told.get_table_names("old")] == [
        ["main", "old"],
        ["t"],
        ["t"],
    ]
    plain, old = (
        sa.Table("t", sa.MetaData(), autoload_with=engine),
        sa.Table("t", sa.MetaData(), schema="old", autoload_with=engine),
    )
    asked = (
        sa.select(old.c.name).join(plain, plain.c.id == old.c.id).where(sa.func.answer(old.c.name, "candles?") == "Yes")
    )
    with engine.connect() as connection:
        assert connection.execute(asked).all() == [("Candles",)]
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("u", sa.MetaData(), schema="old", autoload_with=engine)
    engine.dispose()


def test_core_selects_over_reflected_tables(engine):
    data = sa.MetaData()
    data.reflect(engine)
    places, visits = data.tables["places"], data.tables["visits"]
    assert isinstance(places.c.opened.type, sa.Date)
    assert isinstance(places.c.price.type, sa.Numeric)
    candles = sa.func.answer(places.c.notes, "candles?") == "Yes"
    asked = (
        sa.select(places.c.name, sa.func.count(visits.c.guest).label("guests"))
        .join_from(places, visits, isouter=True)
        .where(candles, places.c.name.ilike("%A%"))
        .group_by(places.c.id, places.c.name)
        .order_by(places.c.name.desc())
        .limit(2)
    )
    with engine.connect() as connection:
        assert connection.execute(asked).all() == [("Cava", 0), ("Alba", 2)]
        row = connection.execute(sa.select(places).where(places.c.id == 1)).mappings().one()
        assert row["opened"] == datetime.date(2020, 1, 2)
        assert (row["price"], row["stars"], row["tags"]) == (decimal.Decimal("1.50"), 4.5, ["a", "b"])
        chosen = sa.select(places.c.id).where(places.c.id.in_([1, 3])).order_by(places.c.id).offset(1)
        assert connection.execute(chosen).scalars().all() == [3]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("INSERT INTO places (id) VALUES (9)", sa.exc.NotSupportedError),
        ("DROP TABLE places", sa.exc.NotSupportedError),
        ("SELECT nothing FROM places", sa.exc.ProgrammingError),
        ("SELEC 1", sa.exc.ProgrammingError),
        ("SELECT cast(name AS int) FROM places", sa.exc.DataError),
    ],
)
def test_errors_are_of_the_class_that_sqlalchemy_has_for_them(engine, query, kind):
    with engine.connect() as connection, pytest.raises(kind) as caught:
        connection.execute(sa.text(query))
    assert isinstance(caught.value.orig, almanaq.Error)


def test_writing_through_core_is_refused(engine):
    places = sa.Table("places", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection, pytest.raises(sa.exc.NotSupportedError):
        connection.execute(places.insert().values(id=9))
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(places)).scalar_one() == 3


LITERALS = [
    datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6),
    datetime.time(3, 4),
    datetime.timedelta(days=1, seconds=2),
    decimal.Decimal("1.50"),
    b"\x00'a",
    uuid.UUID(int=5),
    'it\'s a \\ "%"',
    True,
    None,
]


@pytest.mark.parametrize("value", LITERALS, ids=lambda value: type(value).__name__)
def test_a_literal_is_the_value_that_a_parameter_is(engine, value):
    asked = sa.select(sa.literal(value))
    with engine.connect() as connection:
        written = str(asked.compile(engine, compile_kwargs={"literal_binds": True})).replace(":", "\\:")
        assert "?" not in written
        assert connection.execute(sa.text(written)).scalar_one() == connection.execute(asked).scalar_one() == value


def test_patterns_with_escapes_and_division_are_the_engine_s():
    tables = {"t": {"id": [1, 2], "name": ["50% off", "a_b"], "n": [7, 8], "u": [uuid.UUID(int=1), uuid.UUID(int=2)]}}
    engine = sa.create_engine("almanaq://", connect_args={"source": tables, "cache": False})
    t = sa.Table("t", sa.MetaData(), autoload_with=engine)
    found = {
        t.c.name.contains("50%", autoescape=True): [1],
        t.c.name.icontains("50% O", autoescape=True): [1],
        t.c.name.startswith("a_", autoescape=True): [2],
        t.c.name.like("a/_b", escape="/"): [2],
        t.c.name == sa.bindparam("name", "a_b", literal_execute=True): [2],
        t.c.n / 2 == 3.5: [1],
        t.c.n // 2 == 4: [2],
        t.c.u == uuid.UUID(int=2): [2],
        t.c.id.in_([2, 3]): [2],
    }
    with engine.connect() as connection:
        for condition, ids in found.items():
            assert connection.execute(sa.select(t.c.id).where(condition)).scalars().all() == ids
    engine.dispose()


def test_an_option_of_a_url_that_is_no_number_is_told_so():
    with pytest.raises(sa.exc.ArgumentError, match="max_calls takes a number"):
        sa.create_engine("almanaq:///sample:restaurants?max_calls=lots").connect()
