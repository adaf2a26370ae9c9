"""What the columns of loaded tables are: the types that their cells have, keys that no file declares, repeated rows."""

from __future__ import annotations

import json
import operator
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
_HALF = re.compile("[\ud800-\udfff]")
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
    return convert_cells(cells, found).take(encoded.indices), found.report


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
    return convert_cells(cells, found), found.report


def convert_cells(cells: list[Any], found: TypedColumn) -> Any:
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
    """Return a column of JSON's or a workbook's values: of their type, of lists as arrays, all else as text."""
    nans = sum(isinstance(value, float) and value != value for value in values)
    if nans:
        values = [None if isinstance(value, float) and value != value else value for value in values]
    notes: tuple[str, ...] = (f"{nans:,} cells are NaN and read as NULL",) if nans else ()
    try:
        column, report = _value_column(name, values, hints)
    except UnicodeEncodeError:  # JSON can spell half a character
        mended = json.loads(_HALF.sub("\ufffd", json.dumps(values, ensure_ascii=False)))
        notes += (f"{sum(map(operator.ne, values, mended)):,} cells hold half a character, read as \ufffd",)
        column, report = _value_column(name, mended, hints)
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
            if pa.types.is_timestamp(type_):  # days among moments are their midnights
                values = [datetime(v.year, v.month, v.day) if type(v) is date else v for v in values]
            return _report(name, pa.array(values, type_), cells)
        except (pa.ArrowException, OverflowError):  # an integer beyond 64 bits, or one beside fractions beyond 53
            pass
    texts = pa.chunked_array([pa.array([_text(value) for value in values], pa.large_string())])
    # Strings that are digits only were quoted on purpose and stay text.
    return type_column(name, texts, ColumnHints(kinds != {str}, hints.file, hints.said, hints.type))


def _arrow_type(kinds: set[type]) -> pa.DataType | None:
    if kinds <= {str}:
        return pa.large_string()
    if kinds <= {int, float} and float in kinds:
        return pa.float64()
    if kinds <= {date, datetime}:
        return pa.timestamp("us") if datetime in kinds else pa.date32()
    single = {bool: pa.bool_(), int: pa.int64(), time: pa.time64("us"), timedelta: pa.duration("us")}
    return single.get(next(iter(kinds))) if len(kinds) == 1 else None


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
_NEARLY = 0.9
_TYPES = {"BIGINT": "number", "INTEGER": "number", "VARCHAR": "text"}


@dataclass(frozen=True, slots=True)
class _Table:
    place: Place
    name: str
    """As SQL names it."""
    columns: Mapping[str, str]
    words: tuple[str, ...]
    key: str = ""

    @property
    def single(self) -> tuple[str, ...]:
        return (*self.words[:-1], singular(self.words[-1])) if self.words else ()

    def has_key_called(self, name: str) -> bool:
        """Tell whether a column is called as the key of its table: `id`, or `order_id` of `orders`."""
        words = words_of(name)
        return words[-1:] in _TELLING and words[:-1] in ((), self.words, self.single)


def infer_keys(
    connection: duckdb.DuckDBPyConnection, database: str, declared: Mapping[Place, RelationSchema]
) -> dict[Place, RelationSchema]:
    """Return what is declared of some tables with the keys that their names suggest and their rows bear out.

    A key is a column called so (`id`, `order_id` of `orders`), or a first column that another table has under the same
    name, unique and never null. A column refers to it that is called `order_id` too, or `order`, and holds no value
    that the key lacks; where it holds few such values, it is a near reference.
    """
    columns: dict[Place, dict[str, str]] = {}
    for schema, name, column, type_ in connection.execute(  # of no view: looking for keys would read all of it
        "SELECT c.schema_name, c.table_name, column_name, c.data_type FROM duckdb_columns() c JOIN duckdb_tables() t"
        " USING (database_name, schema_name, table_name) WHERE database_name = ? ORDER BY column_index",
        [database],
    ).fetchall():
        columns.setdefault((schema, name), {})[column] = _TYPES.get(type_, "")
    tables = []
    for place in filter(columns.__contains__, declared):
        table = _Table(place, quote(database, *place), columns[place], words_of(place[1]))
        tables.append(replace(table, key=_find_key(connection, table, declared[place].key)))
    found, referred = dict(declared), set()
    for table in tables:
        foreign, near = list(declared[table.place].foreign_keys), []
        for other in tables:
            column = _find_reference(table, other)
            if column and not any(own == (column,) for own, _, _ in foreign):
                values, strays = _count_strays(connection, table, column, other)
                if 0 < strays <= (1 - _NEARLY) * values:
                    near.append(NearReference(column, other.place[1], other.key, values, strays))
                if values and not strays:
                    foreign.append(((column,), other.place[1], (other.key,)))
                    referred.add(other.place)
        found[table.place] = replace(declared[table.place], foreign_keys=tuple(foreign), near_references=tuple(near))
    for table in tables:
        if table.key and not found[table.place].key and (table.has_key_called(table.key) or table.place in referred):
            found[table.place] = replace(found[table.place], key=(table.key,))
    return found


def _find_key(connection: duckdb.DuckDBPyConnection, table: _Table, declared: tuple[str, ...]) -> str:
    """Return the column that may be the key of a table: one called so, else its first; "" for none."""
    if declared:
        return declared[0] if len(declared) == 1 else ""
    for name in (*filter(table.has_key_called, table.columns), *list(table.columns)[:1]):
        column = quote(name)
        counts = f"SELECT count(*), count({column}), count(DISTINCT {column}) FROM {table.name}"
        if table.columns[name]:
            ((rows, values, distinct),) = connection.execute(counts).fetchall()
            if rows and rows == values == distinct:
                return name
    return ""


def _find_reference(table: _Table, other: _Table) -> str:
    """Return the column of a table that is called as the key of another is, "" where there is none."""
    if not other.key or other is table or len(other.columns) < 2 or other.place[0] != table.place[0]:
        return ""
    key = words_of(other.key)
    wanted = {(*other.single, *key), (*other.words, *key)}
    if key in _TELLING:
        wanted.add(other.single)
    elif key not in _COMMON:
        wanted.add(key)
    for name, type_ in table.columns.items():
        if words_of(name) in wanted and type_ and type_ == other.columns[other.key] and name != table.key:
            return name
    return ""


def _count_strays(connection: duckdb.DuckDBPyConnection, table: _Table, column: str, other: _Table) -> tuple[int, int]:
    """Return how many values a column has, and how many of them a key lacks."""
    ((values, strays),) = connection.execute(
        f"SELECT count({quote(column)}), count(*) FILTER ({quote(column)} IS NOT NULL AND k IS NULL) "
        f"FROM {table.name} AS a LEFT JOIN (SELECT {quote(other.key)} AS k FROM {other.name}) AS b "
        f"ON a.{quote(column)} = b.k"
    ).fetchall()
    return values, strays


# --- repeated rows, which counts and sums count each time -------------------------------------------------------------

MOST_ROWS = 2_000_000
"""Of more rows than this, repeated ones are not looked for: it takes as much memory as the rows."""


def count_repeated(connection: duckdb.DuckDBPyConnection, place: Sequence[str], rows: int, columns: int) -> int:
    """Return how many rows of a table repeat an earlier one; in one of one column values may well come again."""
    if columns < 2 or not 1 < rows <= MOST_ROWS:
        return 0
    row = quote("\x1frow")  # no column is called so
    query = f"SELECT count(DISTINCT hash({row})) FROM {quote(*place)} AS {row}"
    ((different,),) = connection.execute(query).fetchall()
    return rows - int(different)
