"""Which functions of an engine that ibis reaches a query may call: what sqlglot and the engine list, less a few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot.dialects.dialect import Dialect

from almanaq.engines.rules import KNOWN_AGGREGATES, ListedFunctions
from almanaq.engines.spark.functions import REFUSED as REFUSED_BY_SPARK
from almanaq.errors import DatabaseError

REFUSED: Mapping[str, str] = {
    **REFUSED_BY_SPARK,
    **dict.fromkeys(
        ("load_file", "to_file", "get_presigned_url", "build_scoped_file_url", "build_stage_file_url", "get_stage_*"),
        "it reads files, or opens a way to them",
    ),
    **dict.fromkeys(("file*", "url", "s3*", "hdfs*", "gcs", "azure*", "iceberg*", "delta*", "hudi*"), "it reads files"),
    **dict.fromkeys(
        ("remote*", "cluster*", "mysql", "postgresql", "mongodb", "sqlite", "redis", "jdbc", "odbc", "external_query"),
        "it asks another database",
    ),
    **dict.fromkeys(("executable*", "sys_*"), "it runs a program"),
    **dict.fromkeys(("query", "query_table", "view", "merge", "input", "system$*"), "it reads a text as a statement"),
    **dict.fromkeys(("sleep*", "benchmark"), "it only waits"),
    **dict.fromkeys(
        ("master_pos_wait", "source_pos_wait", "master_gtid_wait", "wait_for_executed_gtid_set"), "it only waits"
    ),
    **dict.fromkeys(
        ("get_lock", "is_free_lock", "is_used_lock", "release_lock", "release_all_locks"), "it takes locks of the server"
    ),
    **dict.fromkeys(("nextval", "setval", "lastval", "generateserialid", "last_insert_id"), "it changes a sequence"),
    **dict.fromkeys(("logtrace", "set_user_var"), "it writes"),
    **dict.fromkeys(("dictget*", "dicthas*", "dictisin", "joinget*", "catboostevaluate", "evalmlmethod"), "it reads "
                    "what is no relation of the source"),
    **dict.fromkeys(
        ("current_role", "system_user", "currentuser", "connection_id", "hostname", "fqdn", "host", "servertimezone",
         "getsetting*", "getmacro", "getserverport", "current_session", "current_query", "current_account*",
         "current_ip_address", "current_organization*", "current_user_id", "current_version", "tcpport", "buildid"),
        "it tells of the connection, not of its data",
    ),
    **dict.fromkeys(("ml_*", "predict", "vector_*"), "it asks a model of the server's"),
}  # fmt: skip
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
"""What lists an engine's own functions: a name first, and whether it aggregates, where that is told."""

def list_functions(dialect: str, rows: Callable[[str], Sequence[tuple[Any, ...]]]) -> ListedFunctions:
    """Return the functions of an engine; `rows` runs a query and gives its rows.

    Each engine has others, and few list them: those that sqlglot knows in its dialect are taken for the engine's.
    """
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
