"""Tables of text that a search has found, as Arrow tables with types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from almanaq.corpus.table import Table
from almanaq.corpus.tabular import clean_header
from almanaq.suql.databases.typed_columns import type_column


def found_table(value: object) -> Table | None:
    """Return the table that a value is, or that it found (a hit of `find`); None where it is neither."""
    table = value if isinstance(value, Table) else getattr(value, "table", None)
    return table if isinstance(table, Table) else None


def typed_table(table: Table) -> pa.Table:
    """Return a table of text as Arrow: a column has the type that all of its cells can be read as, an empty cell is
    NULL, and names are made different.
    """
    names = clean_header(list(table.header), table.id.table).names
    cells = list(zip(*table.rows, strict=True)) or [()] * len(names)
    return pa.table({name: _typed(name, column) for name, column in zip(names, cells, strict=True)})


def _typed(name: str, cells: tuple[str, ...]) -> Any:
    written = pa.chunked_array([pa.array([cell or None for cell in cells], pa.large_string())])
    typed, report = type_column(name, written)
    return written if report.failures or report.missing else typed
