"""What a DuckDB database holds, and what names mean to a connection."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from almanaq.engines.common import RelationQueries
from almanaq.errors import UsageError, first_line
from almanaq.suql.catalog import reading
from almanaq.suql.catalog.reading import ColumnSample
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.text.sql_literals import quote

Place = tuple[str, str]
"""A schema and a table."""
_SAMPLE_CHARACTERS = 400
_LOOK_SECONDS = 2.0
"""The longest that a view is waited for when the catalog takes samples."""
_SPELLED_ALIKE = ("bigint", "integer", "smallint", "double precision")
"""Types whose values Python writes as DuckDB does."""
_READS_A_FILE = "it reads a file, which no query may do here; keep its rows in a table (CREATE TABLE … AS SELECT)"
_PG_TYPES = {
    "tinyint": "smallint",
    "utinyint": "smallint",
    "usmallint": "integer",
    "uinteger": "bigint",
    "ubigint": "numeric(20,0)",
    "hugeint": "numeric(38,0)",
    "uhugeint": "numeric(39,0)",
    "float": "real",
    "double": "double precision",
    "varchar": "text",
    "blob": "bytea",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp",
}


@dataclass(frozen=True, slots=True)
class CatalogReader:
    """Reads the catalog of one attached database.

    Attributes:
        connection: a connection of the reader's own.
        path: the schemas in which bare names are looked for, in order.
        infer_enums: whether columns of text may be found to be ENUM: only where the source declares no types (CSV).
        typed: (schema, name) of tables among them whose types are declared all the same (Parquet).
        made: rows by (schema, name) of every relation, where we made them all as plain tables; None: DuckDB is asked.
    """

    connection: duckdb.DuckDBPyConnection
    database: str
    path: Sequence[str] = ("main",)
    infer_enums: bool = False
    typed: frozenset[tuple[str, str]] = frozenset()
    made: Mapping[tuple[str, str], int] | None = None

    def read(self) -> Catalog:
        if self.made is None:
            places = self._rows(LISTS_TABLES, self.database)
        else:
            places = [(*place, None, True) for place in sorted(self.made)]
        names = reading.relation_names([(schema, table) for schema, table, _, _ in places], self.path)
        constraints, comments = self._read_declarations()
        relations: list[Relation] = []
        broken: list[tuple[str, str]] = []
        for schema, table, comment, is_table in places:
            try:
                place = (self.database, schema, table)
                described = self.connection.execute(f"SELECT * FROM {quote(*place)} LIMIT 0").description or []
                columns = tuple(_column(name, kind, comments[schema, table].get(name)) for name, kind, *_ in described)
                relation = Relation(names[schema, table], place, columns, description=comment or "")
                declared = constraints[schema, table]
                relations.append(self._read_rows(relation, names, declared) if is_table else relation)
            except duckdb.Error as error:
                if is_table:
                    raise
                outside = isinstance(error, duckdb.PermissionException)
                broken.append((f"{schema}.{table}", _READS_A_FILE if outside else first_line(error)))
        has_prose = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
        sampled = tuple(self._add_samples(relation, infer_prose=not has_prose) for relation in relations)
        return Catalog(sampled, broken=tuple(broken))

    @property
    def queries(self) -> RelationQueries:
        return RelationQueries(self._rows, "duckdb")

    def _rows(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()

    def _read_declarations(self) -> tuple[dict[Place, list[tuple[Any, ...]]], dict[Place, dict[str, str]]]:
        """Return by place the constraints (kind, own columns, other table, its columns), and comments by column."""
        constraints: dict[Place, list[tuple[Any, ...]]] = defaultdict(list)
        comments: dict[Place, dict[str, str]] = defaultdict(dict)
        if self.made is not None:
            return constraints, comments
        for schema, table, *constraint in self._rows(
            "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table,"
            " referenced_column_names FROM duckdb_constraints() WHERE database_name = $1 ORDER BY constraint_index",
            self.database,
        ):
            constraints[schema, table].append(tuple(constraint))
        for schema, table, column, comment in self._rows(
            "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns()"
            " WHERE database_name = $1 AND comment IS NOT NULL",
            self.database,
        ):
            comments[schema, table][column] = comment
        return constraints, comments

    def _read_rows(
        self, relation: Relation, names: Mapping[Place, str], constraints: list[tuple[Any, ...]]
    ) -> Relation:
        """Return a table with what tells of its rows: their number, keys and references."""
        location = relation.location
        if self.made is None:
            ((rows,),) = self._rows(f"SELECT count(*) FROM {quote(*location)}")
            numbered = self._is_numbered(location, int(rows))
        else:
            rows, numbered = self.made[location[1], location[2]], True  # made by loading alone
        foreign = tuple(
            (tuple(own), names.get((location[1], other), other), tuple(theirs))
            for kind, own, other, theirs in constraints
            if kind == "FOREIGN KEY"
        )
        key = self._key(relation, constraints)
        row_id = "rowid" if relation.column("rowid") is None else None  # a column of that name hides DuckDB's own
        numbered = numbered and row_id is not None
        return replace(relation, row_id=row_id, numbered=numbered, rows=rows, key=key, foreign_keys=foreign)

    def _is_numbered(self, location: tuple[str, ...], rows: int) -> bool:
        """Tell whether row ids count the rows from 0: where some were deleted, ids go beyond their number."""
        try:
            return not self._rows(f"SELECT 1 FROM {quote(*location)} WHERE rowid >= {rows} LIMIT 1")
        except duckdb.Error:  # a table of another kind of database that is attached
            return False

    def _key(self, relation: Relation, constraints: list[tuple[Any, ...]]) -> tuple[str, ...]:
        """Return the primary key, else the first unique one that is never null (UNIQUE admits nulls)."""
        for kind in ("PRIMARY KEY", "UNIQUE"):
            for constraint in constraints:
                key = tuple(constraint[1])
                if constraint[0] == kind and (kind == "PRIMARY KEY" or self.queries.key_holds(relation, key)):
                    return key
        return ()

    def _add_samples(self, relation: Relation, *, infer_prose: bool) -> Relation:
        if relation.rows == 0:
            return relation
        picked = ", ".join(_sample_expression(column) for column in relation.columns)
        sql = f"SELECT {picked} FROM {quote(*relation.location)} LIMIT {reading.SAMPLE_ROWS}"
        try:
            rows = self._rows(sql) if relation.row_id is not None else self._query_view(sql)
        except duckdb.Error as error:
            if relation.row_id is not None:
                raise
            rows, relation = [], replace(relation, unread=first_line(error))
        columns = []
        for position, column in enumerate(relation.columns):
            values: Iterable[str] = map(str, reading.flatten(row[position] for row in rows))
            if column.type == "text" and column.kind is ColumnKind.STRUCTURED:
                values = tuple(values)
                # Where the first rows say nothing of the column, others may.
                if relation.row_id is not None and not any(map(reading.holds_value, values)):
                    values = (*values, *self.queries.values(relation, column, reading.ENUM_VALUES))
                distinct = None
                typed = not self.infer_enums or relation.location[1:] in self.typed
                if not typed and len(set(values)) <= reading.ENUM_VALUES:
                    distinct = self.queries.values(relation, column, reading.ENUM_VALUES + 1)
                total = (relation.rows or 0) if not column.array else len(values)
                inferred = reading.infer_kind(column, ColumnSample(values, distinct, total))
                column = column if inferred.kind is ColumnKind.FREE_TEXT and not infer_prose else inferred
            columns.append(replace(column, samples=reading.shown_samples(values)))
        return replace(relation, columns=tuple(columns))

    def _query_view(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a view, which may take any time to compute, or none at all to begin with."""
        timer = threading.Timer(_LOOK_SECONDS, self.connection.interrupt)
        timer.start()
        try:
            return self._rows(sql)
        finally:
            timer.cancel()
            timer.join()


def _column(name: str, duck_type: Any, comment: str | None) -> Column:
    array = duck_type.id in ("list", "array")
    element = duck_type.children[0][1] if array else duck_type
    values = tuple(element.children[0][1]) if element.id == "enum" else ()
    return reading.declared_column(name, _pg_type(element), array=array, values=values, comment=comment or "")


def _pg_type(duck_type: Any) -> str:
    """Return the PostgreSQL name of a DuckDB type; nested types keep DuckDB's."""
    if duck_type.id == "enum":
        return "text"
    if duck_type.id == "decimal":
        (_, precision), (_, scale) = duck_type.children
        return f"numeric({precision},{scale})"
    if str(duck_type) == "JSON":
        return "json"
    if duck_type.id in ("list", "array"):
        return _pg_type(duck_type.children[0][1]) + "[]"
    name = str(duck_type.id)
    return _PG_TYPES.get(name, name)


def _sample_expression(column: Column) -> str:
    name = quote(column.name)
    if column.array and column.type == "text":
        return f"list_transform({name}[:20], lambda x: left(CAST(x AS VARCHAR), {_SAMPLE_CHARACTERS}))"
    if column.type in _SPELLED_ALIKE and not column.array:  # planning a cast of each of many columns takes long
        return name
    return f"left(CAST({name} AS VARCHAR), {_SAMPLE_CHARACTERS})" if column.type != "bytea" else "NULL"


# --- what names mean to a connection

LISTS_TABLES = (
    "SELECT schema_name, table_name, comment, true FROM duckdb_tables() WHERE database_name = $1 AND NOT internal"
    " UNION ALL SELECT schema_name, view_name, comment, false FROM duckdb_views()"
    " WHERE database_name = $1 AND NOT internal ORDER BY ALL"
)
"""Schema, name and comment of the tables (true) and views (false) of a database."""
CHANGE_ROWS = frozenset(
    """
    TimeZone Calendar disable_timestamptz_casts default_collation default_order default_null_order integer_division
    ieee_floating_point_ops error_on_division_by_zero order_by_non_integer_literal regex_match_operator_semantics
    scalar_subquery_error_on_multiple_rows
    """.split()
)
"""Settings of a connection by which a query means other rows; one that its owner sets later holds for queries too."""
_TELLS = """FROM query('SELECT 1 AS "' || replace(to_json([to_json(current_database()),
    to_json(current_setting('search_path')), to_json(current_schemas(false)), to_json([{}]::VARCHAR[])
])::VARCHAR, '"', '""') || '"')"""
_IN_PATH = re.compile(r'(?:^|,)(?:("(?:[^"]|"")*"|[^",.]+)\.)?("(?:[^"]|"")*"|[^",.]+)')
"""The database, where it is written, and the schema of each entry."""


def read_session(
    connection: duckdb.DuckDBPyConnection, settings: Iterable[str]
) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """Return the database of a connection, the schemas that it was told to look through, and values of its settings.

    It runs no statement: the answer is the name of a column, for which DuckDB only binds, so that a result that the
    connection's owner is reading stays open.
    """
    names = list(settings)
    (told,) = connection.sql(_TELLS.format(", ".join(f"current_setting('{name}')::VARCHAR" for name in names))).columns
    database, path, schemas, values = json.loads(told)
    if len(schemas) > 1:
        databases = {name.strip('"').replace('""', '"') for name, _ in _IN_PATH.findall(path)}
        if databases not in ({database}, {""}):
            raise UsageError(f"the connection looks for tables in several databases ({path}): USE one of them")
    return database, tuple(schemas), dict(zip(names, values, strict=True))
