"""Rows of a file that stand in it more than once, which counts and sums count each time."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from almanaq.text.sql_literals import quote

MOST_ROWS = 2_000_000
"""Of more rows than this, repeated ones are not looked for: it takes as much memory as the rows."""


def repeated_rows(connection: duckdb.DuckDBPyConnection, place: Sequence[str], rows: int, columns: int) -> int:
    """Return how many rows of a table are equal to an earlier one.

    A table of one column is a list, in which values may well come again.
    """
    if columns < 2 or not 1 < rows <= MOST_ROWS:
        return 0
    query = f"SELECT count(*) FROM (SELECT DISTINCT * FROM {quote(*place)})"
    ((different,),) = connection.execute(query).fetchall()
    return rows - int(different)
