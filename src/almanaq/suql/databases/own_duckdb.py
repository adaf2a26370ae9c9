"""DuckDB instances of our own: how much they may write to the disk of what memory has no room for, and where."""

from __future__ import annotations

import os

import duckdb

from almanaq.models.own_files import own_temporary

MOST_SPILLED = "16GB"
"""What queries of one instance may hold on the disk at a time; a query that needs more fails."""


def own_instance() -> duckdb.DuckDBPyConnection:
    """Return a connection to a new instance in memory, whose spilled rows are out of the sight of others."""
    connection = duckdb.connect()
    folder = str(own_temporary() / str(os.getpid())).replace("'", "''")  # which is made where something is spilled
    connection.execute(f"SET GLOBAL temp_directory = '{folder}'; SET GLOBAL max_temp_directory_size = '{MOST_SPILLED}'")
    return connection
