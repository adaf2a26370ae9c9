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
        collation: what text is compared by, where the engine has to be told; None: by bytes of itself.
        deadline: sets the most time of a statement.
        drop: drops a temporary table.
    """

    dialect: str
    temporary: str = ""
    paged: bool = False
    text: str = ""
    collation: str | None = None
    begin: tuple[str, ...] = ()
    end: str = ""
    deadline: str = ""
    drop: str = "DROP TABLE {name}"


def _mysql(collation: str, deadline: str) -> Engine:
    """Return MySQL or MariaDB: each has only its own collation by bytes in which trailing blanks count."""
    return Engine(
        "mysql",
        temporary="CREATE TEMPORARY TABLE {name} AS {query}",
        paged=True,
        text=f"LONGTEXT CHARACTER SET utf8mb4 COLLATE {collation}",
        collation=collation,
        begin=(
            f"SET NAMES utf8mb4 COLLATE {collation}",
            "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO'",
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

    A query means the same on every engine (semantics 7); of another engine nobody has said how it divides integers,
    compares text or orders NULLs.
    """
    found = ENGINES.get(name)
    if found is None:
        known = ("postgresql", *(engine for engine in ENGINES if engine != "postgres"))
        raise UnsupportedError(
            f"{name} is no engine that almanaq has learned{suggest(name, known)}; "
            "export the tables to Parquet and name their folder"
        )
    return found
