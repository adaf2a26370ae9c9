"""What the columns of loaded tables are: the types that their cells have, keys that no file declares, repeated rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.inference import ColumnHints, ColumnReport, TypedColumn, infer_column
from almanaq.suql.catalog.reading import singular, words_of
from almanaq.suql.catalog.relations import NearReference
from almanaq.suql.catalog.schema_file import RelationSchema
from almanaq.text.sql_literals import quote

# --- columns of text or of Python values as Arrow columns -------------------------------------------------------------

ARROW_TYPES = {
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "time": pa.time64("us"),
    "interval": pa.duration("us"),
}
SQL_TYPES = {arrow: name for name, arrow in ARROW_TYPES.items()}
_FEW = 500
"""So few cells are looked at one by one."""
_MANY = 20_000
"""Of more distinct cells than this so many, spread over all, are looked at first: text is told by them."""
_WHOLE, _POINT = r"(?:(?:0|-?[1-9][0-9]{0,17})\n)+", r"(?:-?(?:0|[1-9][0-9]{0,8})[.][0-9]{%d}\n)+"
"""Cells, a line each, that are numbers as queries write them: nothing else can be found out about such a column."""
_NO_HINTS = ColumnHints()


def type_column(name: str, column: Any, hints: ColumnHints = _NO_HINTS) -> tuple[Any, ColumnReport]:
    """Return an Arrow column of text typed by its distinct cells, and how it was read."""
    if len(column) <= _FEW:
        return _type_few(name, column, hints)
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    import pyarrow.compute as pc

    counted = pc.value_counts(encoded.indices.drop_null()).to_pylist()
    cells = encoded.dictionary.to_pylist()
    counts = {cells[c["values"]]: c["counts"] for c in counted}
    found = _infer(name, counts, hints)
    if found.values is None:
        return column, found.report
    return typed_cells(cells, found).take(encoded.indices), found.report


def _type_few(name: str, column: Any, hints: ColumnHints) -> tuple[Any, ColumnReport]:
    """Do the same for few cells, without what takes longer to be imported than they take to be read."""
    cells = column.to_pylist()
    present = [cell for cell in cells if cell is not None]
    if present and hints.plain_numbers and not hints.type and "," not in (hints.said.decimal, hints.file.decimal):
        lines, width = "\n".join((*present, "")), len(present[0].partition(".")[2])
        for pattern, read, type_ in ((_WHOLE, int, "bigint"), (_POINT % width, float, "double precision")):
            if lines.count("\n") == len(present) and re.fullmatch(pattern, lines):
                values = [None if cell is None else read(cell) for cell in cells]
                if type_ == "bigint" or any(value % 1 for value in values if value is not None):
                    return pa.array(values, ARROW_TYPES[type_]), ColumnReport(name, type_, len(present))
    found = _infer(name, Counter(present), hints)
    if found.values is None:
        return column, found.report
    return typed_cells(cells, found), found.report


def typed_cells(cells: list[Any], found: TypedColumn) -> Any:
    """Return the values of distinct cells, in their order, as an Arrow array."""
    values = [(found.values or {}).get(cell) for cell in cells]
    if found.report.type == "time":
        values = [None if span is None else (datetime.min + span).time() for span in values]
    if found.report.type == "double precision":
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, ARROW_TYPES[found.report.type])


def _infer(name: str, counts: dict[str, int], hints: ColumnHints) -> TypedColumn:
    if len(counts) > _MANY and not hints.type:
        picked = dict(list(counts.items())[:: len(counts) // _MANY + 1])
        if infer_column(name, picked, hints).values is None:
            return TypedColumn(ColumnReport(name, "text", sum(counts.values())))
    return infer_column(name, counts, hints)


def value_column(name: str, values: list[Any], hints: ColumnHints = _NO_HINTS) -> tuple[Any, ColumnReport]:
    """Return a column of JSON's or a workbook's values: of their type, lists of one type as arrays, all else as text.

    Strings that are digits only were quoted on purpose and stay text.
    """
    nans = sum(isinstance(value, float) and value != value for value in values)
    if nans:
        values = [None if isinstance(value, float) and value != value else value for value in values]
    notes = (f"{nans:,} cells are NaN and read as NULL",) if nans else ()
    column, report = _value_column(name, values, hints)
    return column, replace(report, notes=notes + report.notes)


def _value_column(name: str, values: list[Any], hints: ColumnHints) -> tuple[Any, ColumnReport]:
    kinds = {type(value) for value in values if value is not None}
    cells = sum(value is not None for value in values)
    if kinds == {list}:
        element = _arrow_type({type(e) for value in values if value for e in value if e is not None})
        if element is not None:
            return _report(name, pa.array(values, pa.list_(element)), cells)
    elif kinds and kinds != {str} and not hints.type and (type_ := _arrow_type(kinds)) is not None:
        try:
            return _report(name, pa.array(_alike(values, type_), type_), cells)
        except (pa.ArrowException, OverflowError):  # an integer beyond 64 bits
            return _report(name, pa.array([_text(value) for value in values], pa.large_string()), cells)
    texts = pa.chunked_array([pa.array([_text(value) for value in values], pa.large_string())])
    return type_column(name, texts, ColumnHints(kinds != {str}, hints.file, hints.said, hints.type))


def _arrow_type(kinds: set[type]) -> pa.DataType | None:
    """Return the Arrow type that holds values of these Python types, None when none does."""
    if kinds <= {str}:
        return pa.large_string()
    if kinds <= {int, float} and float in kinds:
        return pa.float64()
    if kinds <= {date, datetime}:
        return pa.timestamp("us") if datetime in kinds else pa.date32()
    single = {bool: pa.bool_(), int: pa.int64(), time: pa.time64("us"), timedelta: pa.duration("us")}
    return single.get(next(iter(kinds))) if len(kinds) == 1 else None


def _alike(values: list[Any], type_: pa.DataType) -> list[Any]:
    """Return days among moments as their midnights."""
    if not pa.types.is_timestamp(type_):
        return values
    return [datetime(v.year, v.month, v.day) if type(v) is date else v for v in values]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, date | time | timedelta):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _report(name: str, column: Any, cells: int) -> tuple[Any, ColumnReport]:
    type_ = column.type.value_type if pa.types.is_list(column.type) else column.type
    written = SQL_TYPES.get(type_, "text") + ("[]" if pa.types.is_list(column.type) else "")
    return column, ColumnReport(name, written, cells)


# --- keys: a column that tells rows apart, and columns elsewhere whose values all lie in it ---------------------------

Place = tuple[str, str]
"""A schema and a table."""
_TELLING = {("id",), ("uuid",), ("key",), ("code",)}
_COMMON = {(each,) for each in "name title date year number no index rank value type row position n".split()}
"""Names that columns of unrelated tables share."""
_TYPES = {"BIGINT": "number", "INTEGER": "number", "VARCHAR": "text"}


@dataclass(frozen=True, slots=True)
class _Table:
    place: Place
    columns: Mapping[str, str]
    words: tuple[str, ...]
    key: str = ""


def infer_keys(
    connection: duckdb.DuckDBPyConnection, database: str, declared: Mapping[Place, RelationSchema]
) -> dict[Place, RelationSchema]:
    """Return what is declared of some tables with the keys that their names suggest and their rows bear out.

    A key is a column called so (`id`, `order_id` of `orders`), or a first column that another table has under the same
    name, unique and never null. A column refers to it that is called `order_id` too, or `order`, and holds no value
    that the key lacks; where it holds few such values, it is a near reference.
    """
    tables = [
        _with_key(connection, database, table, declared[table.place])
        for table in _tables(connection, database, declared)
    ]
    found, referred = dict(declared), set()
    for table in tables:
        foreign, near = list(declared[table.place].foreign_keys), []
        for other in tables:
            column = _referring(table, other)
            if column and not any(own == (column,) for own, _, _ in foreign):
                values, strays = _count_strays(connection, database, (table, column), other)
                if 0 < strays <= (1 - _NEARLY) * values:
                    near.append(NearReference(column, other.place[1], other.key, values, strays))
                if values and not strays:
                    foreign.append(((column,), other.place[1], (other.key,)))
                    referred.add(other.place)
        found[table.place] = replace(declared[table.place], foreign_keys=tuple(foreign), near_references=tuple(near))
    for table in tables:
        if table.key and not found[table.place].key and (_tells(table.key, table) or table.place in referred):
            found[table.place] = replace(found[table.place], key=(table.key,))
    return found


def _tables(
    connection: duckdb.DuckDBPyConnection, database: str, declared: Mapping[Place, RelationSchema]
) -> list[_Table]:
    """Return the tables, no views: those are read in place, and looking for keys would read all of them."""
    columns: dict[Place, dict[str, str]] = {}
    for schema, table, column, type_ in connection.execute(
        "SELECT c.schema_name, c.table_name, column_name, c.data_type FROM duckdb_columns() c JOIN duckdb_tables() t"
        " USING (database_name, schema_name, table_name) WHERE database_name = ? ORDER BY column_index",
        [database],
    ).fetchall():
        columns.setdefault((schema, table), {})[column] = _TYPES.get(type_, "")
    return [_Table(place, columns[place], words_of(place[1])) for place in declared if place in columns]


def _with_key(connection: duckdb.DuckDBPyConnection, database: str, table: _Table, entry: RelationSchema) -> _Table:
    """Return a table with the column that may be its key: one called so, else its first."""
    if entry.key:
        return replace(table, key=entry.key[0] if len(entry.key) == 1 else "")
    called = [name for name in table.columns if _tells(name, table)]
    for name in (*called, *list(table.columns)[:1]):
        if table.columns[name] and _is_unique(connection, (database, *table.place), name):
            return replace(table, key=name)
    return table


def _tells(name: str, table: _Table) -> bool:
    """Tell whether a column is called as the key of its table: `id`, or `order_id` of `orders`."""
    words = words_of(name)
    single = (*table.words[:-1], singular(table.words[-1])) if table.words else ()
    return words[-1:] in _TELLING and words[:-1] in ((), table.words, single)


def _referring(table: _Table, other: _Table) -> str:
    """Return the column of a table that is called as the key of another is, "" where there is none."""
    if not other.key or other is table or len(other.columns) < 2 or other.place[0] != table.place[0]:
        return ""
    key, single = words_of(other.key), (*other.words[:-1], singular(other.words[-1])) if other.words else ()
    wanted = {(*single, *key), (*other.words, *key)}
    if key in _TELLING:
        wanted.add(single)
    elif key not in _COMMON:
        wanted.add(key)
    for name, type_ in table.columns.items():
        if words_of(name) in wanted and type_ and type_ == other.columns[other.key] and name != table.key:
            return name
    return ""


def _is_unique(connection: duckdb.DuckDBPyConnection, place: tuple[str, ...], name: str) -> bool:
    column = quote(name)
    ((rows, values, distinct),) = connection.execute(
        f"SELECT count(*), count({column}), count(DISTINCT {column}) FROM {quote(*place)}"
    ).fetchall()
    return bool(rows and rows == values == distinct)


_NEARLY = 0.9


def _count_strays(
    connection: duckdb.DuckDBPyConnection, database: str, own: tuple[_Table, str], other: _Table
) -> tuple[int, int]:
    """Return how many values a column has, and how many of them a key lacks."""
    table, column = own
    here, there = quote(database, *table.place), quote(database, *other.place)
    ((values, strays),) = connection.execute(
        f"SELECT count({quote(column)}), count(*) FILTER ({quote(column)} IS NOT NULL AND k IS NULL) FROM {here} AS a "
        f"LEFT JOIN (SELECT {quote(other.key)} AS k FROM {there}) AS b ON a.{quote(column)} = b.k"
    ).fetchall()
    return values, strays


# --- repeated rows, which counts and sums count each time -------------------------------------------------------------

MOST_ROWS = 2_000_000
"""Of more rows than this, repeated ones are not looked for: it takes as much memory as the rows."""


def repeated_rows(connection: duckdb.DuckDBPyConnection, place: Sequence[str], rows: int, columns: int) -> int:
    """Return how many rows of a table are equal to an earlier one.

    A table of one column is a list, in which values may well come again.
    """
    if columns < 2 or not 1 < rows <= MOST_ROWS:
        return 0
    row = quote("\x1frow")  # no column is called so
    query = f"SELECT count(DISTINCT hash({row})) FROM {quote(*place)} AS {row}"
    ((different,),) = connection.execute(query).fetchall()
    return rows - int(different)
