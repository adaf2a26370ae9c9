"""Keys that files do not declare: a column that tells rows apart, and columns elsewhere whose values all lie in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import duckdb

from almanaq.suql.catalog.infer import singular, words_of
from almanaq.suql.catalog.schema_file import RelationSchema
from almanaq.text.sql_literals import quote

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
    that the key lacks.
    """
    tables = [
        _with_key(connection, database, table, declared[table.place])
        for table in _tables(connection, database, declared)
    ]
    found, referred = dict(declared), set()
    for table in tables:
        foreign = list(declared[table.place].foreign_keys)
        for other in tables:
            column = _referring(table, other)
            if column and not any(own == (column,) for own, _, _ in foreign):
                if _fits(connection, database, (table, column), other):
                    foreign.append(((column,), other.place[1], (other.key,)))
                    referred.add(other.place)
        found[table.place] = replace(declared[table.place], foreign_keys=tuple(foreign))
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


def _fits(connection: duckdb.DuckDBPyConnection, database: str, own: tuple[_Table, str], other: _Table) -> bool:
    """Tell whether a column holds values, and none that a key lacks."""
    table, column = own
    here, there = quote(database, *table.place), quote(database, *other.place)
    ((values, strange),) = connection.execute(
        f"SELECT count({quote(column)}), count(*) FILTER ({quote(column)} IS NOT NULL AND k IS NULL) FROM {here} AS a "
        f"LEFT JOIN (SELECT {quote(other.key)} AS k FROM {there}) AS b ON a.{quote(column)} = b.k"
    ).fetchall()
    return bool(values and not strange)
