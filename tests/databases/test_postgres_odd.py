"""PostgreSQL databases as they are found: odd types, names and relations, and rights to some of it."""

from __future__ import annotations

import datetime
import decimal
import math
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import almanaq
from almanaq.cli import main
from almanaq.encode import plain
from almanaq.engines.postgres import catalog as postgres_catalog
from almanaq.engines.postgres.engine import PostgresDatabase
from almanaq.engines.table_corpus import database_corpus
from almanaq.errors import AlmanaqError, DatabaseError, ProgrammingError, SourceError, UnknownNameError
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.testing import FunctionModel
from engines import PostgresServer

SETUP = """
    CREATE DOMAIN posint AS int CHECK (value > 0); CREATE DOMAIN small AS posint CHECK (value < 100);
    CREATE DOMAIN ids AS int[]; CREATE DOMAIN prose AS text; CREATE DOMAIN code AS varchar(9);
    CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE DOMAIN my_mood AS mood;
    CREATE TYPE address AS (street text, number int);
    CREATE TABLE odd (
        id int PRIMARY KEY, s small, i ids, ss small[], p prose[], c code, mm my_mood, a address, aa address[],
        n numeric, matrix int[][], tt text[][], tza timestamptz[], iva interval[], ra int4range[], mr text,
        ttz timetz, nothing posint[], body text);
    INSERT INTO odd VALUES (
        1, 7, '{1,2}', '{3,4}', '{calm,loud}', 'x', 'sad', ('Main', 5), ARRAY[('Main', 5)::address],
        'NaN', '{{1,2},{3,4}}', '{{calm,b},{c,d}}', '{2020-02-29 12:00+02}', '{1 day}', '{"[1,3)"}', NULL,
        '12:00+02', NULL, 'calm');
    CREATE SCHEMA sales; CREATE SCHEMA "Odd Schema";
    CREATE TABLE orders (id int PRIMARY KEY, note text); INSERT INTO orders VALUES (1, 'calm');
    CREATE TABLE sales.orders (id int PRIMARY KEY, note text); INSERT INTO sales.orders VALUES (1, 'loud'), (2, 'calm');
    CREATE TABLE "Odd Schema"."My Table" ("Id" int PRIMARY KEY, "The Text" text);
    INSERT INTO "Odd Schema"."My Table" VALUES (1, 'calm');
    CREATE TABLE parent (id int PRIMARY KEY, body text); CREATE TABLE child () INHERITS (parent);
    INSERT INTO parent VALUES (1, 'calm'); INSERT INTO child VALUES (1, 'calm'), (2, 'loud');
    CREATE TABLE parted (id int, body text) PARTITION BY RANGE (id);
    CREATE TABLE parted_a PARTITION OF parted FOR VALUES FROM (0) TO (10);
    CREATE TABLE parted_b PARTITION OF parted FOR VALUES FROM (10) TO (20);
    INSERT INTO parted VALUES (1, 'calm'), (11, 'calm');
    CREATE VIEW broken AS SELECT 1 / (id - id) AS z, body FROM odd;
    CREATE MATERIALIZED VIEW unfilled AS SELECT id FROM odd WITH NO DATA;
    CREATE TABLE bare ();
"""


def run(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line; give its exit code."""
    monkeypatch.setattr("sys.argv", ["almanaq", *arguments])
    try:
        return main()
    except SystemExit as done:
        return int(done.code or 0)


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    url = postgres_server.new_database()
    run(url, SETUP)
    return url


@pytest.fixture(scope="module")
def con(url: str) -> Iterator[almanaq.Connection]:
    model = FunctionModel(lambda text, question: "Yes" if "calm" in text else "No")
    with almanaq.connect(url, model=model, order="table", cache=False) as con:
        yield con


def test_a_domain_is_what_lies_beneath(con: almanaq.Connection) -> None:
    columns = {c.name: c for c in con.catalog.relation("odd").columns}
    found = {name: (columns[name].type, columns[name].array) for name in ("s", "i", "ss", "p", "c")}
    assert found == {
        "s": ("integer", False),
        "i": ("integer", True),
        "ss": ("integer", True),
        "p": ("text", True),
        "c": ("text", False),
    }
    assert (columns["mm"].kind, columns["mm"].values) == (ColumnKind.ENUM, ("sad", "happy"))


UTC = datetime.UTC


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("s", 7),
        ("i", [1, 2]),
        ("ss", [3, 4]),
        ("p", ["calm", "loud"]),
        ("mm", "sad"),
        ("a", "(Main,5)"),
        ("aa", ["(Main,5)"]),
        ("matrix", [[1, 2], [3, 4]]),
        ("matrix[2][1]", 3),
        ("tt", [["calm", "b"], ["c", "d"]]),
        ("tza", [datetime.datetime(2020, 2, 29, 10, tzinfo=UTC)]),
        ("iva", ["P1D"]),
        ("ra", ["[1,3)"]),
        ("ttz", "12:00:00+02"),
        ("nothing", None),
        ("'{[1,2),[4,6)}'::int4multirange", "{[1,2),[4,6)}"),
        ("answer(tt, 'calm?')", "Yes"),
        ("answer(p, 'calm?')", "Yes"),
    ],
)
def test_values_of_odd_types(con: almanaq.Connection, column: str, value: object) -> None:
    (row,) = con.sql(f"SELECT {column} FROM odd WHERE answer(body, 'calm?') = 'Yes'").rows
    assert plain(row) == [plain(value)]


def test_a_number_that_is_none_is_read(con: almanaq.Connection) -> None:
    ((value,),) = con.sql("SELECT n FROM odd").rows
    assert math.isnan(value)
    ((value,),) = con.sql("SELECT 1.50::numeric FROM odd").rows
    assert value == decimal.Decimal("1.50")


def test_a_number_beside_nan_keeps_its_digits(con: almanaq.Connection) -> None:
    long = decimal.Decimal("12345678901234567890.123")
    sql = f"SELECT x FROM odd, (VALUES ({long}), ('NaN'::numeric)) v(x) WHERE answer(body, 'calm?') = 'Yes' ORDER BY x"
    assert [str(value) for (value,) in con.sql(sql).rows] == [str(long), "NaN"]


def test_a_value_that_cannot_be_read_says_what_to_do(con: almanaq.Connection) -> None:
    with pytest.raises(DatabaseError, match=r"infinity.*cast it to text"):
        con.sql("SELECT 'infinity'::timestamp FROM odd")
    assert con.sql("SELECT 'infinity'::timestamp::text FROM odd").rows == [("infinity",)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id FROM parent WHERE answer(body, 'calm?') = 'Yes'", [(1,), (1,)]),
        ("SELECT id FROM parted WHERE answer(body, 'calm?') = 'Yes' ORDER BY id", [(1,), (11,)]),
        ("SELECT id FROM orders WHERE answer(note, 'calm?') = 'Yes'", [(1,)]),
        ("SELECT id FROM sales.orders WHERE answer(note, 'calm?') = 'Yes'", [(2,)]),
        ("SELECT sales.orders.id FROM sales.orders WHERE answer(orders.note, 'calm?') = 'Yes'", [(2,)]),
        (
            "SELECT sales.orders.note, public.orders.note FROM sales.orders "
            "JOIN public.orders ON sales.orders.id = public.orders.id",
            [("loud", "calm")],
        ),
        ('SELECT "Id" FROM "Odd Schema"."My Table" WHERE answer("The Text", \'calm?\') = \'Yes\'', [(1,)]),
        ('SELECT "Id" FROM "My Table"', [(1,)]),
        ("SELECT public.parent.id FROM public.parent WHERE public.parent.id > 1", [(2,)]),
    ],
)
def test_relations_are_found_by_their_names_and_rows_told_apart(
    con: almanaq.Connection, query: str, rows: list[tuple[object, ...]]
) -> None:
    assert list(con.sql(query).rows) == rows


def test_a_key_of_a_table_that_others_inherit_from_is_none(con: almanaq.Connection) -> None:
    assert con.catalog.relation("parent").key == ()
    assert con.catalog.relation("child").rows == 2
    assert con.catalog.relation("parted").rows == 2


def test_a_relation_that_fails_hides_no_other(
    con: almanaq.Connection, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert con.catalog.relation("broken").unread == "division by zero"
    bare = con.catalog.find("bare")
    assert bare is not None
    assert bare.columns == ()
    with pytest.raises(DatabaseError, match="division by zero"):
        con.sql("SELECT z FROM broken")
    assert command(monkeypatch, "schema", url) == 0
    printed = capsys.readouterr().out
    assert "# its rows could not be looked at: division by zero\n[broken]" in printed
    assert "unfilled" in printed


def test_a_locked_table_and_an_endless_view_hide_no_other(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_catalog, "_LOOK_SECONDS", 1)
    run(url, "CREATE VIEW endless AS SELECT count(*) FROM generate_series(1, 10000000000) a")
    started = time.monotonic()
    try:
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            catalog = PostgresDatabase(url).catalog()
    finally:
        run(url, "DROP VIEW endless")
    assert time.monotonic() - started < 60
    assert catalog.relation("endless").unread == catalog.relation("orders").unread == "no answer within 1 s"
    assert catalog.relation("odd").unread == ""


def test_a_mistake_in_syntax_leaves_the_other_streams_alive(url: str) -> None:
    """sqlglot takes it for a query, PostgreSQL does not: the message fails before its first statement."""
    with PostgresDatabase(url).session() as session:
        stream = session.stream("SELECT generate_series(1, 1000) AS x", 100)
        seen = next(stream).num_rows
        with pytest.raises(DatabaseError, match="syntax error"):
            session.fetch('SELECT * AS "c0" FROM odd')
        assert seen + sum(batch.num_rows for batch in stream) == 1000


# --- rights ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def someone(url: str) -> Iterator[str]:
    """The URL of a role without rights, and with those that a test gives it."""
    run(url, "CREATE ROLE someone LOGIN")
    yield url.replace("postgres@", "someone@")
    run(url, "DROP OWNED BY someone; DROP ROLE someone")


def test_columns_that_may_be_read_are_shown_and_no_others(url: str, someone: str) -> None:
    run(url, "GRANT SELECT (id, body) ON odd TO someone")
    with almanaq.connect(someone, model=FunctionModel(lambda t, q: "Yes"), cache=False) as con:
        assert [c.name for c in con.catalog.relation("odd").columns] == ["id", "body"]
        assert con.sql("SELECT * FROM odd WHERE answer(body, 'calm?') = 'Yes'").rows == [(1, "calm")]
        with pytest.raises(ProgrammingError, match="matrix"):
            con.sql("SELECT matrix FROM odd")
        assert con.sql("SELECT * FROM odd WHERE id = 1").columns == ("id", "body")
        for name in ("orders", "sales.orders"):
            with pytest.raises(UnknownNameError, match="this role has no right to it"):
                con.sql(f"SELECT id FROM {name}")


def test_a_role_that_may_read_nothing_is_told_so(
    someone: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked in (["schema", someone], ["ask", "Which is calm?", "--db", someone], ["find", "x", "--corpus", someone]):
        assert command(monkeypatch, *asked) == 1
        printed = capsys.readouterr()
        assert "may read none of the" in printed.out + printed.err
    with almanaq.connect(someone) as con:
        assert con.sql("SELECT 1").rows == [(1,)]


# --- searching its tables --------------------------------------------------------------------------------------------


def test_the_tables_of_a_server_are_a_corpus(url: str) -> None:
    tables = {table.id.table: table for table in database_corpus(PostgresDatabase(url), rows=1)}
    assert tables["sales.orders"].rows == (("1", "loud"),)
    assert tables["sales.orders"].keys == ("id",)
    assert tables["broken"].rows == ()


def test_find_searches_the_tables_of_a_server(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(monkeypatch, "find", "orders of sales", "--corpus", url, "--retriever", "bm25", "--json") == 0
    assert '"sales.orders"' in capsys.readouterr().out


@pytest.mark.parametrize(
    "written",
    [
        "host=127.0.0.1 port=1 user=bob password=hunter22",
        "postgresql:/bob:hunter22@127.0.0.1/x",
        "POSTGRESQL://bob:hunter22@127.0.0.1:1/x",
        "mysql://bob:hunt/er22@127.0.0.1:1/x",
    ],
)
def test_a_mistyped_source_does_not_print_its_password(written: str) -> None:
    with pytest.raises(AlmanaqError) as caught:
        almanaq.connect(written)
    assert "er22" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_server_that_goes_while_it_is_asked_for_its_set_up_is_our_error(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(connection: object) -> tuple[()]:
        run(url, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'almanaq'")
        return tuple(connection.execute("SELECT 1"))  # type: ignore[attr-defined]

    monkeypatch.setattr("almanaq.engines.postgres.engine.read_arrays", lost)
    with pytest.raises(SourceError, match="terminating connection"):
        PostgresDatabase(url)


@pytest.mark.parametrize(
    ("encoding", "said"), [("SQL_ASCII", "invalid byte sequence"), ("LATIN1", "has no equivalent")]
)
def test_a_database_of_another_encoding(postgres_server: PostgresServer, encoding: str, said: str) -> None:
    options = f"TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' STRATEGY FILE_COPY"
    url = postgres_server.new_database(options)
    run(f"{url}?client_encoding=utf8", "CREATE TABLE t AS SELECT 'café, calm' AS body; CREATE TABLE bad (body text)")
    if encoding == "SQL_ASCII":
        run(url, r"INSERT INTO bad VALUES (convert_from('\xff', 'SQL_ASCII'))")
    model = FunctionModel(lambda text, question: "Yes" if "calm" in text else "No")
    with almanaq.connect(url, model=model, cache=False) as con:
        assert con.sql("SELECT body FROM t WHERE answer(body, 'calm?') = 'Yes'").rows == [("café, calm",)]
        with pytest.raises(DatabaseError, match=said):
            con.sql("SELECT body FROM bad WHERE body <> '🍣'")
