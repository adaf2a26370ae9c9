"""Tables of other libraries (pandas, polars, any stream of Arrow) as Arrow tables that DuckDB takes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from almanaq.corpus.files.shape import clean_header
from almanaq.corpus.table import Table
from almanaq.engines.files.columns import type_column
from almanaq.errors import MissingExtraError, UsageError, first_line
from almanaq.suql.catalog.relations import alike_but_for_case

_MOST_DIGITS = 38
"""Of a decimal in DuckDB."""


def is_frame(value: object) -> bool:
    return (
        find_table(value) is not None
        or any(hasattr(value, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "iloc"))
        or _is_lazy(value)
    )


def as_arrow(name: str, table: Any) -> pa.Table:
    """Return a table as Arrow: of Arrow, pandas (a named index too), polars, a mapping, a hit of `find`, a stream."""
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"a table needs a name: a text, not {name!r}")
    try:
        found = _convert(name, table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        kind = "columns of" if isinstance(table, Mapping) else f"{type(table).__name__}"
        raise UsageError(f"the {kind} {name!r} cannot be taken over: {first_line(error)}") from error
    except ImportError as error:
        raise _make_missing_error(name, table, error) from error
    if found is None:
        raise UsageError(f"{name!r} is a {type(table).__name__}, not a table of Arrow, pandas or polars")
    if not found.num_columns:
        raise UsageError(f"the table {name!r} has no columns")
    if alike := alike_but_for_case(found.column_names):
        raise UsageError(f"the table {name!r} has two columns of one name, {alike[0]!r} and {alike[1]!r}: rename one")
    return found


def _convert(name: str, table: Any) -> pa.Table | None:
    if isinstance(table, pa.Table):
        return _readable(name, table)
    if (found := find_table(table)) is not None:
        return type_table(found)
    if _is_lazy(table):
        table = table.collect()
    if hasattr(table, "iloc") and hasattr(table, "index"):
        frame = table.to_frame() if getattr(table, "ndim", 2) == 1 else table
        named = any(level is not None for level in frame.index.names)
        return _readable(name, pa.Table.from_pandas(frame, preserve_index=named))
    if type(table).__module__.startswith("polars."):
        table = _for_arrow(name, table)
    if isinstance(table, Mapping) or is_frame(table):
        return _readable(name, pa.table(table))
    return None


def _is_lazy(value: object) -> bool:
    return type(value).__module__.startswith("polars.") and type(value).__name__ == "LazyFrame"


def _for_arrow(name: str, frame: Any) -> Any:
    """Return a frame of polars with integers of 128 bits, which are its own, as decimals."""
    for column, kind in dict(getattr(frame, "schema", {})).items():
        if str(kind) == "Object":  # its stream holds addresses
            raise _make_refusal(name, column, "Python objects", "give it as text, or as another type")
        if str(kind) in ("Int128", "UInt128"):
            import polars

            try:
                frame = frame.with_columns(polars.col(column).cast(polars.Decimal(_MOST_DIGITS, 0)))
            except polars.exceptions.PolarsError as error:
                how = "give it as text"
                raise _make_refusal(name, column, f"integers of more than {_MOST_DIGITS} digits", how) from error
    return frame


def _make_missing_error(name: str, table: Any, error: ImportError) -> MissingExtraError:
    """Say which package the library of a table lacks; ibis, which has its own catch that, does not name it."""
    of_ibis = type(table).__module__.startswith("ibis.") and find_spec("pyarrow_hotfix") is None
    package = "pyarrow_hotfix" if of_ibis else (error.name or type(table).__module__).partition(".")[0]
    purpose = f"the {type(table).__name__} {name!r}"
    return MissingExtraError(package, "", purpose, install=package.replace("_", "-"))


def _make_refusal(name: str, column: str, what: str, how: str) -> UsageError:
    return UsageError(f"the column {column!r} of {name!r} holds {what}, which no column here can: {how}")


def _readable(name: str, table: pa.Table) -> pa.Table:
    """Return a table in types that DuckDB reads: no half floats, no decimals of 256 bits."""
    columns = [_readable_column(name, field, column) for field, column in zip(table.schema, table.columns, strict=True)]
    if all(new is old for new, old in zip(columns, table.columns, strict=True)):
        return table
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(table.schema, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def _readable_column(name: str, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    for type_ in _parts(field.type):
        _check_type(name, field.name, type_)
    target = _readable_type(field.type)
    if target == field.type:
        return column
    try:
        return column.cast(target)
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"the column {field.name!r} of {name!r} cannot be taken over as {target}, the widest type that a database "
            f"has for {field.type}: give it as text ({first_line(error)})"
        ) from error


def _parts(type_: pa.DataType) -> list[pa.DataType]:
    return [type_, *(part for i in range(type_.num_fields) for part in _parts(type_.field(i).type))]


def _check_type(name: str, column: str, type_: pa.DataType) -> None:
    extension = getattr(type_, "extension_name", "")
    if pa.types.is_union(type_) and type_.mode == "dense":
        raise _make_refusal(name, column, "a dense union", "give it as a column for each of its types")
    if extension == "pandas.period":
        how = "give it as text, or as their first moments: .dt.to_timestamp()"
        raise _make_refusal(name, column, "periods", how)
    if extension == "arrow.opaque" and type_.storage_type not in (pa.string(), pa.large_string()):
        raise _make_refusal(name, column, "values of a type that only its own library knows", "give it as text")


def _readable_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal256(type_):
        return pa.decimal128(_MOST_DIGITS, type_.scale)
    inner = [_readable_type(type_.field(i).type) for i in range(type_.num_fields)]
    if all(new == type_.field(i).type for i, new in enumerate(inner)):
        return type_
    if pa.types.is_struct(type_):
        return pa.struct([type_.field(i).with_type(new) for i, new in enumerate(inner)])
    if pa.types.is_map(type_):
        return pa.map_(_readable_type(type_.key_type), _readable_type(type_.item_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(inner[0], type_.list_size)
    return pa.large_list(inner[0]) if pa.types.is_list(type_) or pa.types.is_large_list(type_) else type_


# --- tables of text that a search has found ---------------------------------------------------------------------------


def find_table(value: object) -> Table | None:
    """Return the table that a value is, or that it found (a hit of `find`)."""
    table = value if isinstance(value, Table) else getattr(value, "table", None)
    return table if isinstance(table, Table) else None


def type_table(table: Table) -> pa.Table:
    """Return a table of text as Arrow: typed where all cells of a column can be, an empty cell as NULL."""
    names = clean_header(list(table.header), table.id.table).names
    cells = list(zip(*table.rows, strict=True)) or [()] * len(names)
    columns = {}
    for name, column in zip(names, cells, strict=True):
        written = pa.chunked_array([pa.array([cell or None for cell in column], pa.large_string())])
        typed, report = type_column(name, written)
        columns[name] = written if report.failures or report.missing else typed
    return pa.table(columns)
