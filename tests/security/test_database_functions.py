"""What a PostgreSQL database has of its own: its functions, its views' definitions, its sequences and ENUM types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import almanaq
from almanaq.errors import AlmanaqError, QueryError, RefusedQueryError, UnknownNameError
from almanaq.testing import FunctionModel
from engines import PostgresServer

WORLD = """
CREATE TYPE level AS ENUM ('low', 'high');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE people (id serial, name text, secret text, grade level);
INSERT INTO people (name, secret, grade) VALUES ('Ann', 'canary', 'high'), ('Bob', 'canary', 'low');
CREATE TABLE plain (id int, kind text);
INSERT INTO plain VALUES (1, 'a');
CREATE TABLE bare (); INSERT INTO bare DEFAULT VALUES;
CREATE SEQUENCE numbers;
CREATE VIEW of_plain AS SELECT id FROM plain WHERE kind = 'a';
CREATE VIEW of_people AS SELECT name FROM people WHERE secret LIKE 'c%';
CREATE VIEW of_both AS SELECT name, kind FROM people JOIN plain USING (id);

CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2;';
CREATE FUNCTION named(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
CREATE FUNCTION several(int) RETURNS SETOF int LANGUAGE sql AS 'VALUES ($1), ($1 + 1)';
CREATE FUNCTION paired(int) RETURNS pair LANGUAGE sql AS $$SELECT row($1, '$1')::pair$$;
CREATE FUNCTION steady(int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 + 1; END';
CREATE FUNCTION peeks() RETURNS text LANGUAGE sql STABLE AS 'SELECT min(secret) FROM people';
CREATE FUNCTION lists() RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT enum_range(NULL::level)::text';
CREATE FUNCTION files() RETURNS text LANGUAGE sql STABLE AS $$SELECT pg_read_file('PG_VERSION')$$;
CREATE FUNCTION sets() RETURNS text LANGUAGE sql STABLE AS $$SELECT set_config('work_mem', '1MB', false)$$;
CREATE FUNCTION calls() RETURNS int LANGUAGE sql STABLE AS 'SELECT steady(1)';
CREATE FUNCTION defines() RETURNS text LANGUAGE sql STABLE AS $$SELECT pg_get_viewdef('of_people')$$;
CREATE FUNCTION shadows(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE FUNCTION lower(pair) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''mine''';
CREATE FUNCTION chance() RETURNS float8 LANGUAGE sql AS 'SELECT random()';
CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS 'DELETE FROM plain; SELECT 1';
CREATE FUNCTION moody(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
CREATE FUNCTION lent(int) RETURNS int LANGUAGE sql IMMUTABLE SECURITY DEFINER AS 'SELECT $1';
CREATE FUNCTION tuned(int) RETURNS int LANGUAGE sql IMMUTABLE SET work_mem = '1MB' AS 'SELECT $1';
CREATE FUNCTION mixed(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION mixed(text) RETURNS text LANGUAGE sql STABLE AS 'SELECT min(secret) FROM people';
CREATE AGGREGATE my_sum(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
"""
COMPUTES = {
    "SELECT twice(21), TWICE(1)": [(42, 2)],
    "SELECT named(1, 2)": [(3,)],
    "SELECT several(4)": [(4,), (5,)],
    "SELECT * FROM paired(7)": [(7, "$1")],
    "SELECT p.b FROM plain, paired(id) AS p": [("$1",)],
    "SELECT id FROM plain WHERE twice(id) = 2": [(1,)],
}
BY_NAME = ("steady", "peeks", "lists", "files", "sets", "calls", "defines", "shadows", "tuned", "mixed")
NEVER = ("chance", "writes", "moody", "lent", "my_sum")
ARGUMENTS = {"steady": "1", "shadows": "'A'", "moody": "1", "lent": "1", "tuned": "1", "mixed": "1", "my_sum": "id"}


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    made = postgres_server.new_database()
    with psycopg.connect(made, autocommit=True) as server:
        server.execute(WORLD.encode())
    return made


@pytest.fixture(scope="module")
def con(url: str) -> Iterator[almanaq.Connection]:
    with almanaq.connect(url, cache=False) as opened:
        yield opened


def called(name: str) -> str:
    return f"SELECT {name}({ARGUMENTS.get(name, '')}) FROM plain"


@pytest.mark.parametrize("sql", COMPUTES)
def test_a_function_that_only_computes_is_called(con: almanaq.Connection, sql: str) -> None:
    assert con.sql(sql).rows == COMPUTES[sql]


def test_a_function_is_called_beside_text_functions(url: str) -> None:
    with almanaq.connect(url, model=FunctionModel(lambda *_: "Yes"), cache=False) as con:
        asked = "SELECT twice(id) FROM plain WHERE answer(kind, 'is it?') = 'Yes' AND named(id, 1) = 2"
        assert con.sql(asked).rows == [(2,)]
        with pytest.raises(QueryError, match="gives rows"):
            con.sql("SELECT several(id) FROM plain WHERE answer(kind, 'is it?') = 'Yes'")


@pytest.mark.parametrize("name", [*BY_NAME, *NEVER])
def test_what_does_more_than_compute_is_not_called(con: almanaq.Connection, name: str) -> None:
    with pytest.raises(RefusedQueryError, match="one of the database's own") as caught:
        con.sql(called(name))
    assert ("allow_functions" in str(caught.value)) is (name in BY_NAME)


def test_who_names_a_function_vouches_for_it(url: str) -> None:
    names = ["steady", "Calls", *NEVER]
    with almanaq.connect(url, cache=False, allow_functions=names) as con:
        assert con.sql("SELECT steady(1), calls()").rows == [(2, 2)]
        for name in NEVER:
            with pytest.raises(RefusedQueryError, match="queries do not call"):
                con.sql(called(name))
        with pytest.raises(RefusedQueryError, match="allow_functions=\\['peeks'\\]"):
            con.sql(called("peeks"))


def test_a_query_may_name_functions_of_its_own(con: almanaq.Connection) -> None:
    trusting = almanaq.Options(allow_functions=("steady",))
    for _ in range(2):  # a plan that is kept for one set of choices is none for another
        assert con.sql(called("steady"), options=trusting).rows == [(2,)]
        assert con.explain(called("steady"), options=trusting) is not None
        with pytest.raises(RefusedQueryError, match="one of the database's own"):
            con.sql(called("steady"))


@pytest.mark.parametrize("name", ["nextval", "pg_read_file", "dblink", "query_to_xml", "set_config", "lo_import"])
def test_no_function_of_the_system_is_allowed_by_name(url: str, name: str) -> None:
    with almanaq.connect(url, cache=False, allow_functions=[name]) as con, pytest.raises(AlmanaqError) as caught:
        con.sql(f"SELECT {name}('numbers')")
    assert name in str(caught.value)


# --- what is private -------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(url: str, tmp_path: Path) -> Iterator[almanaq.Connection]:
    schema = tmp_path / "schema.toml"
    schema.write_text("[people.columns.secret]\nprivate = true\n[people.columns.grade]\nprivate = true\n")
    with almanaq.connect(url, schema=str(schema), cache=False, allow_functions=["peeks", "steady"]) as con:
        yield con


def test_a_public_connection_calls_no_function_that_may_read(guarded: almanaq.Connection) -> None:
    public = guarded.public()
    assert public.sql("SELECT twice(2)").rows == [(4,)]
    for name in ("peeks", "steady"):
        assert guarded.sql(called(name)).rows
        with pytest.raises(RefusedQueryError):
            public.sql(called(name), options=almanaq.Options(allow_functions=(name,)))
        with pytest.raises(RefusedQueryError, match="one of the database's own"):
            public.sql(called(name))


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        *("SELECT pg_get_viewdef('of_people')", "SELECT pg_catalog.pg_get_viewdef('of_people'::regclass, true)"),
        *(
            "SELECT enum_range(NULL::level)",
            "SELECT enum_first(NULL::level) FROM plain",
            "SELECT enumlabel FROM pg_enum",
        ),
        *("SELECT * FROM pg_catalog.pg_enum", "SELECT definition FROM pg_views", "SELECT * FROM pg_stats"),
        *("SELECT * FROM information_schema.columns", "SELECT answer(enum_range(NULL::level)::text, 'is it?')"),
    ],
)
def test_where_columns_are_private_the_system_tells_nothing_of_columns(
    guarded: almanaq.Connection, query: str, public: bool
) -> None:
    con = guarded.public() if public else guarded
    with pytest.raises(QueryError) as caught:
        con.sql(query)
    assert "secret" not in str(caught.value)


def test_the_system_is_asked_as_the_role_may(con: almanaq.Connection) -> None:
    labels = "SELECT enumlabel FROM pg_enum WHERE enumtypid = 'level'::regtype ORDER BY enumsortorder"
    assert con.sql(labels).rows == [("low",), ("high",)]
    assert con.sql(
        "SELECT data_type FROM information_schema.columns WHERE table_name = 'plain' AND column_name = 'kind'"
    ).rows == [("text",)]
    assert "kind = 'a'" in con.sql("SELECT pg_get_viewdef('of_plain')").rows[0][0]


@pytest.mark.parametrize(
    "relation",
    [
        *("pg_stats", "pg_statistic", "pg_authid", "pg_shadow", "pg_settings", "pg_user_mapping", "pg_largeobject"),
        *("pg_file_settings", "pg_catalog.pg_stat_activity", "pg_hba_file_rules", "pg_locks", "pg_subscription"),
        *("pg_prepared_statements", "pg_stats_ext", "pg_stat_replication", "information_schema.user_mapping_options"),
    ],
)
def test_catalogs_that_hold_cells_passwords_or_sessions_are_refused(con: almanaq.Connection, relation: str) -> None:
    with pytest.raises(QueryError, match="is not read here"):
        con.sql(f"SELECT * FROM {relation}")


# --- what a role may not read ----------------------------------------------------------------------------------------


def test_sequences_and_tables_without_columns_are_seen_and_not_listed(con: almanaq.Connection) -> None:
    assert con.sql("SELECT last_value, is_called FROM numbers").rows == [(1, False)]
    assert con.sql("SELECT count(*) FROM bare").rows == [(1,)]
    assert con.sql("SELECT exists(SELECT * FROM bare)").rows == [(True,)]
    assert {"numbers", "bare", "pg_enum", "pg_type"}.isdisjoint(r.name for r in con.engine.catalog.relations)
    with pytest.raises(UnknownNameError):
        con.sql("SELECT last_value FROM people_id_seq")  # tells of a column's values


def test_a_role_sees_nothing_through_them_that_it_may_not_read(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE ROLE visitor LOGIN; GRANT SELECT ON plain, of_plain, of_both, of_people TO visitor")
    with almanaq.connect(url.replace("postgres@", "visitor@"), cache=False) as con:
        assert con.sql("SELECT twice(2)").rows == [(4,)]
        for query in ("SELECT * FROM numbers", "SELECT * FROM bare", "SELECT * FROM people"):
            with pytest.raises(UnknownNameError):
                con.sql(query)


def test_a_function_that_anybody_may_replace_is_not_called(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE ROLE guest LOGIN; CREATE SCHEMA theirs AUTHORIZATION guest; CREATE SCHEMA open")
        server.execute("GRANT CREATE ON SCHEMA open TO public")
        for role, name in (("postgres", "open.anyones"), ("guest", "theirs.guests"), ("postgres", "theirs.ours")):
            made = f"CREATE FUNCTION {name}(int) RETURNS int LANGUAGE sql AS 'SELECT $1'"
            server.execute(f"SET ROLE {role}; {made}".encode())
    path = url + "?options=-csearch_path%3Dpublic,theirs,open"
    with almanaq.connect(path, cache=False) as con:
        assert con.sql("SELECT ours(2), twice(1)").rows == [(2, 2)]
        for name in ("guests", "anyones"):
            with pytest.raises(RefusedQueryError, match="queries do not call"):
                con.sql(f"SELECT {name}(1)")


def test_where_nobody_else_may_log_in_an_open_schema_is_the_owners(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("GRANT CREATE ON SCHEMA public TO public; CREATE ROLE stranger LOGIN")
        server.execute("CREATE FUNCTION same(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
        with almanaq.connect(url, cache=False) as con, pytest.raises(RefusedQueryError, match="queries do not call"):
            con.sql("SELECT same(1)")
        others = server.execute(
            "SELECT quote_ident(rolname) FROM pg_roles WHERE rolcanlogin AND NOT rolsuper"
        ).fetchall()
        try:
            for (role,) in others:
                server.execute(f"ALTER ROLE {role} NOLOGIN".encode())
            with almanaq.connect(url, cache=False) as con:
                assert con.sql("SELECT same(1)").rows == [(1,)]
        finally:
            for (role,) in others:
                server.execute(f"ALTER ROLE {role} LOGIN".encode())
