"""DuckDB instances of our own: how much they may write to the disk of what memory has no room for, and where."""

from __future__ import annotations

import os
from contextlib import suppress

import duckdb

from almanaq.models.private_files import private_temporary_folder

MOST_SPILLED = "16GB"
"""What queries of one instance may hold on the disk at a time; a query that needs more fails."""


def own_instance() -> duckdb.DuckDBPyConnection:
    """Return a connection to a new instance in memory, whose spilled rows are out of the sight of others."""
    connection = duckdb.connect()
    folder = str(private_temporary_folder() / str(os.getpid())).replace(
        "'", "''"
    )  # which is made where something is spilled
    if most := _most_memory():
        connection.execute(f"SET GLOBAL memory_limit = '{most}B'")
    connection.execute(f"SET GLOBAL temp_directory = '{folder}'; SET GLOBAL max_temp_directory_size = '{MOST_SPILLED}'")
    return connection


def _most_memory() -> int:
    """Return the bytes that an instance may hold, half of what this process may; 0 where that has no bound.

    DuckDB's own bound is four fifths of the machine's memory: what is the process's comes before it, and then whoever
    asks for memory next fails, which may be anybody.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        return 0 if soft == resource.RLIM_INFINITY else soft // 2
    return 0
