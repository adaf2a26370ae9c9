"""Tables of other libraries (pandas, polars, whatever streams Arrow) as Arrow tables that DuckDB takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from almanaq.errors import UsageError, first_line
from almanaq.suql.catalog.relations import alike_but_for_case
from almanaq.suql.databases.found_tables import found_table, typed_table


def is_frame(value: object) -> bool:
    """Return whether a value is a table of some library, or one that was found."""
    return (
        found_table(value) is not None
        or any(hasattr(value, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "iloc"))
        or _is_lazy(value)
    )


def as_arrow(name: str, table: Any) -> pa.Table:
    """Return a table as Arrow: one of Arrow, pandas or polars, a mapping of columns, a hit of `find`, or what streams
    Arrow.

    A pandas index that has a name becomes a column; one without is left out.

    Raises:
        UsageError: it is no table, has no columns, or two of one name, or the table has no name.
    """
    if not name.strip():
        raise UsageError("a table needs a name")
    try:
        found = _converted(table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        kind = "columns of" if isinstance(table, Mapping) else f"{type(table).__name__}"
        raise UsageError(f"the {kind} {name!r} cannot be taken over: {first_line(error)}") from error
    if found is None:
        raise UsageError(f"{name!r} is a {type(table).__name__}, not a table of Arrow, pandas or polars")
    if not found.num_columns:
        raise UsageError(f"the table {name!r} has no columns")
    alike = alike_but_for_case(found.column_names)
    if alike:
        raise UsageError(f"the table {name!r} has two columns of one name, {alike[0]!r} and {alike[1]!r}: rename one")
    return found


def _converted(table: Any) -> pa.Table | None:
    if isinstance(table, pa.Table):
        return _plain(table)
    if (found := found_table(table)) is not None:
        return typed_table(found)
    if _is_lazy(table):
        table = table.collect()
    if hasattr(table, "iloc") and hasattr(table, "index"):
        return _plain(_from_pandas(table))
    if isinstance(table, Mapping) or is_frame(table):
        return _plain(pa.table(table))
    return None


def _from_pandas(frame: Any) -> pa.Table:
    if getattr(frame, "ndim", 2) == 1:
        frame = frame.to_frame()
    named = any(name is not None for name in frame.index.names)
    return pa.Table.from_pandas(frame, preserve_index=named)


def _is_lazy(value: object) -> bool:
    return type(value).__module__.startswith("polars.") and type(value).__name__ == "LazyFrame"


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without views and types of libraries' own, which DuckDB does not take everywhere."""
    fields = [pa.field(f.name, _plain_type(f.type), f.nullable) for f in table.schema]
    if all(new.type == old.type for new, old in zip(fields, table.schema, strict=True)):
        return table
    columns = [column.cast(field.type) for field, column in zip(fields, map(_stored, table.columns), strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        return _plain_type(type_.storage_type)
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _plain_type(type_.value_type), type_.ordered)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        inner = _plain_type(type_.value_type)
        return type_ if inner == type_.value_type else pa.large_list(inner)
    return type_
