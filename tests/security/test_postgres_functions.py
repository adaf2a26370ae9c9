"""The functions allowed on PostgreSQL, held against what the server itself says of each: pg_proc, all overloads.

A function that PostgreSQL calls volatile has effects, waits, or reads what no argument gives it. None of these is
allowed but for a named few, and some that it calls stable are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import almanaq
from almanaq.engines.postgres.functions import ALLOWED, FunctionCatalog
from almanaq.engines.postgres.statements import computes
from almanaq.errors import AlmanaqError, QueryError
from almanaq.testing import FunctionModel
from engines import PostgresServer

from .attacks import SECRET

EFFECTS = """
pg_read_file pg_read_binary_file pg_ls_dir pg_ls_logdir pg_stat_file pg_sleep pg_sleep_for pg_advisory_lock
pg_try_advisory_lock pg_notify lo_import lo_export lo_get lo_put
set_config current_setting nextval setval currval lastval
query_to_xml table_to_xml cursor_to_xml database_to_xml schema_to_xml query_to_xmlschema pg_terminate_backend
pg_cancel_backend pg_reload_conf txid_current pg_current_xact_id ts_stat ts_rewrite setseed pg_logical_emit_message
pg_create_restore_point pg_switch_wal pg_promote pg_stat_get_activity pg_stat_reset pg_show_all_settings
pg_export_snapshot pg_backup_start binary_upgrade_set_next_pg_type_oid
""".split()
"""Functions that read files, settings or tables by name, wait, lock, write, or run a text as SQL."""
BILLION = (
    '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">'
    + "".join(f'<!ENTITY {y} "{f"&{x};" * 10}">' for x, y in zip("bcdefghij", "cdefghijk", strict=True))
    + "]><a>&k;</a>"
)


@pytest.fixture(scope="module")
def functions(postgres_server: PostgresServer) -> FunctionCatalog:
    with psycopg.connect(postgres_server.url) as connection:
        return FunctionCatalog(lambda sql: connection.execute(sql.encode()).fetchall(), computes)


def is_allowed(functions: FunctionCatalog, name: str) -> bool:
    try:
        functions.check((name,), frozenset())
    except QueryError:
        return False
    return True


def test_what_is_allowed_only_computes_but_for_a_named_few(
    functions: FunctionCatalog, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Near names of thousands take long.
    monkeypatch.setattr("almanaq.engines.postgres.functions.suggest", lambda *_: "")
    with psycopg.connect(postgres_server.url) as connection:
        marked = connection.execute(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace "
            "AND (provolatile = 'v' OR prosecdef OR 'internal'::regtype = ANY (proargtypes))"
        ).fetchall()
        known = connection.execute("SELECT DISTINCT proname FROM pg_proc WHERE prokind <> 'p'").fetchall()
    allowed = {name for (name,) in known if is_allowed(functions, name)}
    assert len(allowed) > 1500
    assert {name for (name,) in marked} & allowed <= {*ALLOWED}
    assert {"lower", "sum", "jsonb_path_query", "to_tsvector", "rank", "now", "random"} <= allowed


@pytest.fixture(scope="module")
def allowing(postgres_server: PostgresServer) -> Iterator[almanaq.Connection]:
    """A connection whose user has allowed every function that has effects."""
    with almanaq.connect(postgres_server.url, cache=False, allow_functions=EFFECTS) as con:
        yield con


@pytest.mark.parametrize("name", EFFECTS)
def test_what_has_effects_is_refused_however_it_is_called(allowing: almanaq.Connection, name: str) -> None:
    for call in (f"{name}('a')", f'"{name}"(1, 2)', f"pg_catalog.{name}()", f"coalesce({name}('a')::text, '')"):
        for query in (f"SELECT {call}", f"SELECT * FROM {call} AS x", f"SELECT 1 ORDER BY {call}"):
            with pytest.raises(QueryError):
                allowing.sql(query)


@pytest.mark.parametrize(
    "xml",
    [  # an entity that is a file, a grammar that is one, a thousand million letters
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file://{canary}">]><a>&b;</a>',
        '<!DOCTYPE a SYSTEM "file://{canary}"><a/>',
        BILLION,
    ],
    ids=["entity", "grammar", "billion"],
)
def test_a_document_of_xml_reads_no_file_and_does_not_grow(postgres_server: PostgresServer, xml: str) -> None:
    canary = postgres_server.log.parent / "data" / "canary"
    canary.write_text(SECRET)
    canary.chmod(0o644)
    document = xml.replace("{canary}", str(canary))
    with almanaq.connect(postgres_server.new_database(), model=FunctionModel(lambda *_: "Yes"), cache=False) as con:
        for query in ("SELECT xpath('/a/text()', ?::xml)::text", "SELECT xml_is_well_formed(?)", "SELECT ?::xml::text"):
            try:
                said = str(con.sql(query, [document]).rows)
            except AlmanaqError as error:
                said = str(error)
            assert SECRET not in said
            assert len(said) < 5_000


@pytest.fixture(scope="module")
def trapped(postgres_server: PostgresServer) -> str:
    """The URL of a database in which somebody has put functions under the names of the system's."""
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int, x varchar(9), s text); INSERT INTO t VALUES (1, 'Ab', 'Cd')")
        for heading in (
            *("lower(varchar)", "lower(int)", "upper(varchar)", "length(varchar)", "levenshtein(text, text)"),
            *(
                "strpos(varchar, text)",
                "concat(varchar, text)",
                '"substring"(varchar, int)',
                "to_char(int, text)",
                '"coalesce"(varchar)',
            ),
        ):
            body = "BEGIN RAISE EXCEPTION 'the trap was called'; END"
            connection.execute(f"CREATE FUNCTION {heading} RETURNS text LANGUAGE plpgsql AS $${body}$$")
    return url


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT lower(x) FROM t", "ab"),
        ("SELECT upper(x) FROM t WHERE answer(s, 'q') = 'Yes'", "AB"),
        ("SELECT id FROM t WHERE length(x) = 2 AND answer(s, 'q') = 'Yes'", 1),
        ("SELECT position('b' IN x) FROM t", 2),
        ("SELECT trim(x) || coalesce(x, 'lower(') FROM t", "AbAb"),
        ("SELECT concat(x, 'lower(x)') FROM t", "Ablower(x)"),
        ("SELECT to_char(id, '9') FROM t", " 1"),
        ("SELECT substring(x, 2) FROM t", "b"),
        ("SELECT lower(id) FROM t", None),
        ("SELECT levenshtein(s, 'a') FROM t", None),
    ],
)
def test_a_function_of_the_database_is_not_called_under_an_allowed_name(
    trapped: str, query: str, value: object
) -> None:
    with almanaq.connect(trapped, model=FunctionModel(lambda *_: "Yes"), cache=False) as con:
        if value is not None:
            assert con.sql(query).rows == [(value,)]
            return
        with pytest.raises(AlmanaqError) as raised:
            con.sql(query)
    assert "trap was called" not in str(raised.value)
