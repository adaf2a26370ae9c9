"""The functions allowed on PostgreSQL, held against what the server itself says of each: pg_proc, all overloads.

A function that PostgreSQL calls volatile, unsafe in parallel or not everybody's has effects, waits, or reads what no
argument gives it; one that takes `internal` is no function for queries. None of these is allowed but for a named few,
and each of the others that the server has is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

import almanaq
from almanaq.errors import AlmanaqError, QueryError
from almanaq.suql.execution.emitted import REFUSED
from almanaq.suql.syntax.functions import functions_of, is_allowed
from almanaq.suql.syntax.parse import parse
from almanaq.testing import FunctionModel
from engines import PostgresServer

from .attacks import SECRET

VOLATILE = {
    "clock_timestamp": "the time of day, as now() is, asked for anew",
    "timeofday": "the same, as text",
    "random": "a number; the session's seed cannot be set by a query, setseed() is refused",
    "gen_random_uuid": "random bytes",
}
"""Allowed although each call gives another value: they take nothing, and leave nothing but a moved-on generator."""
NAMING = {
    **dict.fromkeys(
        "json_to_tsvector jsonb_to_tsvector phraseto_tsquery plainto_tsquery to_tsquery to_tsvector ts_headline "
        "ts_lexize websearch_to_tsquery".split(),
        "a text search configuration or dictionary: made by who owns the database, its files named by a superuser",
    ),
    "format_type": "the name of a type",
}
"""Allowed although an argument names something in the database's catalog; what it names, and why that is harmless."""
_CATALOG_TYPES = {"regclass", "regproc", "regprocedure", "regconfig", "regdictionary", "regnamespace", "regrole", "oid"}
_ITSELF = {"int8", "max", "min", "oid"}
"""An oid is but a number to these."""
WITHOUT_FUNCTION = {
    "of the grammar": "array cast coalesce current_date current_time current_timestamp exists greatest grouping least "
    "localtime localtimestamp nullif row trim xmlconcat json json_array jsonb",
    "of later versions": "any_value array_reverse array_sort casefold crc32 crc32c date_add date_subtract erf erfc "
    "gamma json_array lgamma to_bin to_oct",
    "written otherwise for PostgreSQL": "arg_max arg_min array_any datetime day group_concat if ifnull iif instr "
    "median month nvl quarter strftime year",
    "of an extension": "levenshtein",
}
"""Allowed names that the catalog of PostgreSQL 15 has no function for."""
BILLION = (
    '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">'
    + "".join(f'<!ENTITY {y} "{f"&{x};" * 10}">' for x, y in zip("bcdefghij", "cdefghijk", strict=True))
    + "]><a>&k;</a>"
)


@dataclass(frozen=True)
class Function:
    """One overload of a function of pg_catalog."""

    name: str
    arguments: frozenset[str]
    result: str
    volatility: str
    parallel: str
    definer: bool
    everyones: bool
    language: str

    @property
    def computes(self) -> bool:
        """Whether it only computes, as far as the server tells."""
        marked = self.volatility == "v" or self.parallel == "u" or self.definer or not self.everyones
        return not marked and "internal" not in {*self.arguments, self.result} and self.language in ("internal", "sql")


@pytest.fixture(scope="module")
def catalog(postgres_server: PostgresServer) -> list[Function]:
    with psycopg.connect(postgres_server.url) as connection:
        found = connection.execute(
            "SELECT proname, ARRAY(SELECT t::regtype::text FROM unnest(proargtypes::oid[]) t), "
            "prorettype::regtype::text, provolatile::text, proparallel::text, prosecdef, proacl IS NULL, lanname "
            "FROM pg_proc JOIN pg_language l ON l.oid = prolang WHERE pronamespace = 'pg_catalog'::regnamespace"
        )
        return [Function(name, frozenset(arguments), *rest) for name, arguments, *rest in found]


def allowed(catalog: list[Function]) -> Iterator[Function]:
    names = set(functions_of("postgres"))
    return (function for function in catalog if function.name in names)


def test_what_is_allowed_only_computes_but_for_a_named_few(catalog: list[Function]) -> None:
    found = list(allowed(catalog))
    assert len({function.name for function in found}) > 400
    assert {function.name for function in found if not function.computes} == set(VOLATILE)
    assert all(not function.arguments and function.everyones for function in found if function.name in VOLATILE)


def test_no_argument_names_a_relation_or_a_function_of_the_database(catalog: list[Function]) -> None:
    naming = {function.name for function in allowed(catalog) if function.arguments & _CATALOG_TYPES}
    assert naming - _ITSELF == set(NAMING)
    named = set().union(*(function.arguments & _CATALOG_TYPES for function in allowed(catalog)))
    assert named == {"regconfig", "regdictionary", "oid"}


def test_an_allowed_name_without_a_function_there_is_one_of_the_grammar_or_of_a_later_version(
    catalog: list[Function],
) -> None:
    known = {name for names in WITHOUT_FUNCTION.values() for name in names.split()}
    assert set(functions_of("postgres")) - {function.name for function in catalog} <= known


def test_every_other_function_of_the_server_is_refused_however_it_is_called(catalog: list[Function]) -> None:
    names = sorted({function.name for function in catalog if not function.computes} - set(VOLATILE))
    assert len(names) > 400
    assert [name for name in names if is_allowed(name, "postgres")] == []
    for name in names[::12]:
        for call in (f"{name}(1)", f'"{name}"()', f"pg_catalog.{name}('a', 'b')"):
            with pytest.raises(QueryError):
                parse(f"SELECT {call}", (), "postgres")


def test_what_reads_files_waits_locks_or_sets_is_refused_once_more_in_what_is_sent(catalog: list[Function]) -> None:
    """By the second list, which looks at texts of statements: each of these that an ordinary client may call."""
    effects = ("pg_read_", "pg_ls_", "pg_stat_file", "pg_sleep", "pg_advisory", "pg_try_advisory", "pg_notify", "lo_")
    effects += ("set_config", "current_setting", "nextval", "setval", "query_to_xml", "table_to_xml", "cursor_to_xml")
    effects += ("database_to_xml", "schema_to_xml", "pg_terminate", "pg_cancel", "pg_reload", "txid_", "ts_stat")
    names = {function.name for function in catalog if function.name.startswith(effects)}
    assert len(names) > 60
    assert [name for name in sorted(names) if not REFUSED.fullmatch(name)] == []


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
