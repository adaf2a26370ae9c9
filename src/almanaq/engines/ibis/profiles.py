"""What almanaq knows of each engine that ibis reaches: its ways and settings, its functions, its own catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot.dialects.dialect import Dialect

from almanaq.engines.common import KNOWN_AGGREGATES, ListedFunctions
from almanaq.engines.spark.language import REFUSED as REFUSED_BY_SPARK
from almanaq.errors import DatabaseError, UnsupportedError, suggest

# --- ways and settings ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """One engine's ways.

    Attributes:
        dialect: sqlglot's name of its dialect; ibis calls the engine the same.
        temporary: makes a temporary table of a query; "" where there are none, or none that every user may make: what
            comes between two steps is then written into the statements that need it.
        paged: whether a result has to be read whole before the next statement, so that streams are read in pages.
        text: the type of text in a temporary table, where it is not sqlglot's.
        deadline: sets the most time of a statement.
    """

    dialect: str
    temporary: str = ""
    paged: bool = False
    text: str = ""
    begin: tuple[str, ...] = ()
    end: str = ""
    deadline: str = ""
    drop: str = "DROP TABLE {name}"


_READ_AS_WRITTEN = "@@sql_mode"
for _mode in ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "IGNORE_SPACE", "ANSI", "ORACLE"):
    _READ_AS_WRITTEN = f"REPLACE({_READ_AS_WRITTEN}, '{_mode}', '')"
"""A server's modes, but for those by which it would read a text otherwise than it was read here."""


def _mysql(collation: str, deadline: str) -> EngineProfile:
    """Return MySQL or MariaDB: each has only its own collation by bytes in which trailing blanks count."""
    return EngineProfile(
        "mysql",
        temporary="CREATE TEMPORARY TABLE {name} AS {query}",
        paged=True,
        text=f"LONGTEXT CHARACTER SET utf8mb4 COLLATE {collation}",
        begin=(
            "SET NAMES utf8mb4",
            f"SET SESSION time_zone = '+00:00', sql_mode = {_READ_AS_WRITTEN}",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        ),
        end="ROLLBACK",
        deadline=deadline,
        drop="DROP TEMPORARY TABLE {name}",
    )


MARIADB = _mysql("utf8mb4_nopad_bin", "SET SESSION max_statement_time = {seconds}")
PROFILES = {
    engine.dialect: engine
    for engine in (
        _mysql("utf8mb4_0900_bin", "SET SESSION max_execution_time = {milliseconds}"),
        EngineProfile(
            "postgres",
            temporary="CREATE TEMPORARY TABLE {name} AS {query}",
            paged=True,
            begin=("SET standard_conforming_strings = on", "SET TimeZone = 'UTC'"),
            deadline="SET statement_timeout = {milliseconds}",
        ),
        EngineProfile(
            "trino", begin=("SET TIME ZONE 'UTC'",), deadline="SET SESSION query_max_run_time = '{milliseconds}ms'"
        ),
        EngineProfile(
            "clickhouse",
            temporary="CREATE TEMPORARY TABLE {name} AS {query}",
            paged=True,
            begin=(
                "SET join_use_nulls = 1, aggregate_functions_null_for_empty = 1, union_default_mode = 'DISTINCT', "
                "cast_keep_nullable = 1, session_timezone = 'UTC'",
            ),
            deadline="SET max_execution_time = {seconds}",
        ),
        EngineProfile(
            "snowflake",
            temporary="CREATE TEMPORARY TABLE {name} AS {query}",
            begin=("ALTER SESSION SET TIMEZONE = 'UTC'",),
            deadline="ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {seconds}",
        ),
        EngineProfile("bigquery"),
        EngineProfile("databricks", begin=("SET TIME ZONE 'UTC'",), deadline="SET STATEMENT_TIMEOUT = {seconds}"),
    )
}
"""PostgreSQL stands here for the tests of this path: a source in PostgreSQL is spoken to directly."""


def find_profile(name: str) -> EngineProfile:
    """Return what is known of an engine by ibis's name; raises UnsupportedError for one of which nothing is known."""
    found = PROFILES.get(name)
    if found is None:  # nobody has said where results between steps go, and how long a statement may take
        known = ("postgresql", *(engine for engine in PROFILES if engine != "postgres"))
        raise UnsupportedError(
            f"{name} is no engine that almanaq has learned{suggest(name, known)}; "
            "export the tables to Parquet and name their folder"
        )
    return found


# --- functions: what sqlglot and the engine list, less a few ----------------------------------------------------------


def _because(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


REFUSED: Mapping[str, str] = {
    **REFUSED_BY_SPARK,
    **_because(
        "it reads files, or opens a way to them",
        "load_file to_file file* url url_* s3* hdfs* gcs azure* iceberg* delta* hudi* filesystem* get_presigned_url "
        "build_scoped_file_url build_stage_file_url get_stage_* fl_get* infer_schema parse_document directory",
    ),
    **_because(
        "it asks another database",
        "remote* cluster* mysql postgresql mongodb sqlite redis jdbc odbc external_* federated*",
    ),
    **_because("it runs a program", "executable* sys_*"),
    **_because(
        "it reads a text as a statement, or the name of a relation",
        "query query_table view merge input loop dictionary table identifier execute to_query appends changes "
        "table_changes gap_fill exclude_columns search system$* validate copy_history result_scan get_ddl",
    ),
    **_because(
        "it only waits, or keeps a server busy",
        "sleep* benchmark master_* source_pos_wait wait_* gtid_* fuzz* generaterandom generator kill_query",
    ),
    **_because("it takes locks of the server", "get_lock is_free_lock is_used_lock release_lock release_all_locks"),
    **_because("it changes a sequence", "nextval setval lastval generateserialid last_insert_id seq1 seq2 seq4 seq8"),
    **_because("it writes", "logtrace setvariable set_user_var"),
    **_because(
        "it reads what is no relation of the source",
        "dictget* dicthas* dictisin joinget* catboostevaluate evalmlmethod getvariable kms* keyset* aead* encrypt "
        "decrypt showcertificate addresstoline* initializeaggregation",
    ),
    **_because(
        "it tells of the connection, not of its data",
        "current_role current_groups system_user currentuser currentdatabase database schema connection_id hostname "
        "fqdn host uptime transaction* getsetting* getmacro* getserver* getclienthttpheader tcpport current_session "
        "current_query current_account* current_ip_address current_organization* current_user_id current_version "
        "current_*_name last_query_id query_history buildid servertimezone",
    ),
    **_because(
        "it asks a model of the server's",
        "ml_* predict* vector_* complete cortex* embed_text* generate_text* generate_table classify_text sentiment",
    ),
    **_because("it opens what a text is packed in", "extractvalue updatexml uncompress"),
    **_because("it only ends the query", "fail throwif error"),
}
"""Functions of any of these engines which do more than compute from their arguments."""

IN_FROM = frozenset(
    """
    arrayjoin explode explode_outer flatten generate_array generate_date_array generate_series inline inline_outer
    json_array_elements json_array_elements_text json_each json_table jsonb_array_elements jsonb_array_elements_text
    numbers posexplode posexplode_outer range sequence stack unnest zeros
    """.split()
)
"""Functions that make rows of their arguments alone."""
_LISTS: Mapping[str, tuple[str, ...]] = {
    "clickhouse": ("SELECT name, is_aggregate FROM system.functions WHERE origin = 'System'",),
    "mysql": ("SELECT function, 0 FROM information_schema.sql_functions",),  # MariaDB has it
    "trino": ("SHOW FUNCTIONS",),
    "databricks": ("SHOW SYSTEM FUNCTIONS",),
}
"""What lists an engine's own functions: a name first, and whether it aggregates, where the engine says."""


def list_functions(dialect: str, rows: Callable[[str], Sequence[tuple[Any, ...]]]) -> ListedFunctions:
    """Return the functions of an engine; as few list them, those that sqlglot knows are taken for its own."""
    parser = Dialect.get_or_raise(dialect).parser_class
    names = {name.lower() for name in (*parser.FUNCTIONS, *parser.FUNCTION_PARSERS)}
    aggregates = set(KNOWN_AGGREGATES)
    for query in _LISTS.get(dialect, ()):
        try:
            found = rows(query)
        except DatabaseError:  # MySQL, or a role that may not read it
            continue
        names |= {str(row[0]).lower() for row in found}
        aggregates |= {str(row[0]).lower() for row in found if "aggregate" in row[1:] or 1 in row[1:2]}
    return ListedFunctions(frozenset(names), frozenset(aggregates & names), IN_FROM, REFUSED)
