"""What almanaq knows of each engine that it reaches through ibis: where results between steps go, and its settings."""

from __future__ import annotations

from dataclasses import dataclass

from almanaq.errors import UnsupportedError, suggest


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine's ways.

    Attributes:
        dialect: sqlglot's name of its dialect; ibis calls the engine the same.
        temporary: makes a temporary table of a query; "" where there are none, or none that every user may make: what
            comes between two steps is then written into the statements that need it.
        paged: whether a result has to be read whole before the next statement, so that streams are read in pages.
        text: the type of text in a temporary table, where it is not sqlglot's.
        begin: statements at the start of a session.
        end: the statement at its end.
        deadline: sets the most time of a statement.
        drop: drops a temporary table.
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


def _mysql(collation: str, deadline: str) -> Engine:
    """Return MySQL or MariaDB: each has only its own collation by bytes in which trailing blanks count.

    What tables between two steps hold is compared by it. A server's modes stay as they are, but for those by which it
    would read a text otherwise than it was read here.
    """
    return Engine(
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
ENGINES = {
    engine.dialect: engine
    for engine in (
        _mysql("utf8mb4_0900_bin", "SET SESSION max_execution_time = {milliseconds}"),
        Engine(
            "postgres",
            temporary="CREATE TEMPORARY TABLE {name} AS {query}",
            paged=True,
            begin=("SET standard_conforming_strings = on", "SET TimeZone = 'UTC'"),
            deadline="SET statement_timeout = {milliseconds}",
        ),
        Engine("trino", begin=("SET TIME ZONE 'UTC'",), deadline="SET SESSION query_max_run_time = '{milliseconds}ms'"),
        Engine(
            "clickhouse",
            temporary="CREATE TEMPORARY TABLE {name} AS {query}",
            paged=True,
            begin=(
                "SET join_use_nulls = 1, aggregate_functions_null_for_empty = 1, union_default_mode = 'DISTINCT', "
                "cast_keep_nullable = 1, session_timezone = 'UTC'",
            ),
            deadline="SET max_execution_time = {seconds}",
        ),
        Engine(
            "snowflake",
            temporary="CREATE TEMPORARY TABLE {name} AS {query}",
            begin=("ALTER SESSION SET TIMEZONE = 'UTC'",),
            deadline="ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {seconds}",
        ),
        Engine("bigquery"),
        Engine("databricks", begin=("SET TIME ZONE 'UTC'",), deadline="SET STATEMENT_TIMEOUT = {seconds}"),
    )
}
"""PostgreSQL stands here for the tests of this path: a source in PostgreSQL is spoken to directly."""


def find_engine(name: str) -> Engine:
    """Return what is known of an engine by ibis's name; raises UnsupportedError for one of which nothing is known.

    Of another engine nobody has said where results between steps go, and how long a statement may take.
    """
    found = ENGINES.get(name)
    if found is None:
        known = ("postgresql", *(engine for engine in ENGINES if engine != "postgres"))
        raise UnsupportedError(
            f"{name} is no engine that almanaq has learned{suggest(name, known)}; "
            "export the tables to Parquet and name their folder"
        )
    return found
