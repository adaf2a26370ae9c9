"""What a DuckDB database holds, read from its own catalog, its comments and a sample of its rows."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import duckdb

from almanaq.engines.common import RelationQueries
from almanaq.errors import first_line
from almanaq.suql.catalog.reading import (
    ENUM_VALUES,
    SAMPLE_ROWS,
    ColumnSample,
    declared_column,
    flat,
    holds_value,
    infer_kind,
    relation_names,
    shown_samples,
)
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import ForeignKey
from almanaq.text.sql_literals import quote

_SAMPLE_CHARACTERS = 400
_LOOK_SECONDS = 2.0
"""The longest that a view is waited for when the catalog takes samples."""
_SPELLED_ALIKE = ("bigint", "integer", "smallint", "double precision")
"""Types whose values Python writes as DuckDB does."""
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
class _Declarations:
    """What is declared of a database's relations.

    Attributes:
        places: schema, name, comment, and whether it is a table, of each.
        constraints: by schema and name: (kind, own columns, other table, its columns).
        comments: by schema and name, then by column.
    """

    places: Sequence[tuple[str, str, str | None, bool]]
    constraints: dict[tuple[str, str], list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    comments: dict[tuple[str, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))


@dataclass(frozen=True, slots=True)
class CatalogReader:
    """Reads the catalog of one attached database.

    Attributes:
        connection: a connection of the reader's own.
        database: the name under which DuckDB knows the database.
        infer_enums: whether columns of text may be found to be ENUM: only where the source declares no types (CSV).
        typed: (schema, name) of tables among them whose types are declared all the same (Parquet).
        made: rows by (schema, name) of every relation, where we made them all as plain tables; None: DuckDB is asked.
    """

    connection: duckdb.DuckDBPyConnection
    database: str
    infer_enums: bool = False
    typed: frozenset[tuple[str, str]] = frozenset()
    made: Mapping[tuple[str, str], int] | None = None

    def read(self) -> Catalog:
        """Return every table and view with columns, kinds, keys, foreign keys, row counts and samples."""
        declared = (
            self._read_declarations()
            if self.made is None
            else _Declarations([(*place, None, True) for place in sorted(self.made)])
        )
        names = relation_names([(schema, table) for schema, table, _, _ in declared.places], ["main"])
        relations: list[Relation] = []
        broken: list[tuple[str, str]] = []
        for schema, table, comment, is_table in declared.places:
            try:
                relations.append(self._relation(names, (schema, table), declared, comment, is_table=is_table))
            except duckdb.Error as error:
                if is_table:
                    raise
                broken.append((f"{schema}.{table}", _explain_broken_view(error)))
        has_prose = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
        sampled = tuple(self._add_samples(relation, infer_prose=not has_prose) for relation in relations)
        return Catalog(sampled, broken=tuple(broken))

    def values(self, relation: Relation, column: Column, limit: int) -> tuple[str, ...]:
        """Return at most `limit` distinct values (elements, of an array) of a column of text, the commonest first."""
        name = quote(column.name)
        source = f"SELECT {f'unnest({name})' if column.array else name} AS v FROM {quote(*relation.location)}"
        rows = self._rows(
            f"SELECT v FROM ({source}) WHERE v IS NOT NULL GROUP BY v ORDER BY count(*) DESC, v LIMIT {limit}",
            bare=True,
        )
        return tuple(value for (value,) in rows)

    def key_holds(self, relation: Relation, key: tuple[str, ...]) -> bool:
        """Tell whether a key is unique and never null in the rows of a relation."""
        return RelationQueries(partial(self._rows, bare=True), "duckdb").key_holds(relation, key)

    def _rows(self, sql: str, *, bare: bool = False) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, [] if bare else [self.database]).fetchall()

    def _read_declarations(self) -> _Declarations:
        """Return what DuckDB's own catalog says: the relations, and by their places the constraints and comments."""
        places = self._rows(
            "SELECT schema_name, table_name, comment, true FROM duckdb_tables()"
            " WHERE database_name = $1 AND NOT internal UNION ALL SELECT schema_name, view_name, comment, false"
            " FROM duckdb_views() WHERE database_name = $1 AND NOT internal ORDER BY ALL"
        )
        declared = _Declarations(places)
        for schema, table, *constraint in self._rows(
            "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table,"
            " referenced_column_names FROM duckdb_constraints() WHERE database_name = $1 ORDER BY constraint_index"
        ):
            declared.constraints[schema, table].append(tuple(constraint))
        for schema, table, column, comment in self._rows(
            "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns()"
            " WHERE database_name = $1 AND comment IS NOT NULL"
        ):
            declared.comments[schema, table][column] = comment
        return declared

    def _relation(
        self,
        names: dict[tuple[str, str], str],
        place: tuple[str, str],
        declared: _Declarations,
        comment: str | None,
        *,
        is_table: bool,
    ) -> Relation:
        location = (self.database, *place)
        comments, constraints = declared.comments[place], declared.constraints[place]
        described = self.connection.execute(f"SELECT * FROM {quote(*location)} LIMIT 0").description or []
        columns = tuple(_column(entry[0], entry[1], comments.get(entry[0])) for entry in described)
        relation = Relation(names[place], location, columns, description=comment or "")
        if not is_table:
            return relation
        if self.made is not None:
            rows = self.made[place]
        else:
            ((rows,),) = self._rows(f"SELECT count(*) FROM {quote(*location)}", bare=True)
        foreign = tuple(_foreign_key(names, place[0], c) for c in constraints if c[0] == "FOREIGN KEY")
        return replace(
            relation,
            row_id="rowid",
            numbered=self._is_numbered(location, int(rows)),
            rows=rows,
            key=self._key(relation, constraints),
            foreign_keys=foreign,
        )

    def _is_numbered(self, location: tuple[str, ...], rows: int) -> bool:
        """Tell whether row ids count the rows from 0: where some were deleted, ids go beyond their number."""
        if self.made is not None:  # by loading alone
            return True
        try:
            return not self._rows(f"SELECT 1 FROM {quote(*location)} WHERE rowid >= {rows} LIMIT 1", bare=True)
        except duckdb.Error:  # a table of another kind of database that is attached
            return False

    def _key(self, relation: Relation, constraints: list[tuple[Any, ...]]) -> tuple[str, ...]:
        """Return the primary key, else the first unique one that is never null (UNIQUE admits nulls)."""
        for kind in ("PRIMARY KEY", "UNIQUE"):
            for constraint in constraints:
                key = tuple(constraint[1])
                if constraint[0] == kind and (kind == "PRIMARY KEY" or self.key_holds(relation, key)):
                    return key
        return ()

    def _add_samples(self, relation: Relation, *, infer_prose: bool) -> Relation:
        """Return the relation with samples, and with inferred kinds where nothing was declared."""
        if relation.rows == 0:
            return relation
        picked = ", ".join(_sample_expression(column) for column in relation.columns)
        sql = f"SELECT {picked} FROM {quote(*relation.location)} LIMIT {SAMPLE_ROWS}"
        try:
            rows = self._rows(sql, bare=True) if relation.row_id is not None else self._query_view(sql)
        except duckdb.Error as error:
            if relation.row_id is not None:
                raise
            rows, relation = [], replace(relation, unread=first_line(error))
        columns = []
        for position, column in enumerate(relation.columns):
            values: Iterable[str] = map(str, flat(row[position] for row in rows))
            if column.type == "text" and column.kind is ColumnKind.STRUCTURED:
                values = tuple(values)
                # Where the first rows say nothing of the column, others may.
                if relation.row_id is not None and not any(map(holds_value, values)):
                    values = (*values, *self.values(relation, column, ENUM_VALUES))
                column = self._infer_kind(relation, column, values, infer_prose=infer_prose)
            columns.append(replace(column, samples=shown_samples(values)))
        return replace(relation, columns=tuple(columns))

    def _query_view(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a view, which may take any time to compute, or none at all to begin with."""
        timer = threading.Timer(_LOOK_SECONDS, self.connection.interrupt)
        timer.start()
        try:
            return self._rows(sql, bare=True)
        finally:
            timer.cancel()
            timer.join()

    def _infer_kind(self, relation: Relation, column: Column, values: tuple[str, ...], *, infer_prose: bool) -> Column:
        distinct = None
        if self.infer_enums and relation.location[1:] not in self.typed and len(set(values)) <= ENUM_VALUES:
            distinct = self.values(relation, column, ENUM_VALUES + 1)
        total = (relation.rows or 0) if not column.array else len(values)
        found = infer_kind(column, ColumnSample(values, distinct, total))
        return column if found.kind is ColumnKind.FREE_TEXT and not infer_prose else found


def _explain_broken_view(error: duckdb.Error) -> str:
    """Say why a view cannot be read, and of one that reads a file what to do."""
    if isinstance(error, duckdb.PermissionException):
        return "it reads a file, which no query may do here; keep its rows in a table (CREATE TABLE … AS SELECT)"
    return first_line(error)


def _column(name: str, duck_type: Any, comment: str | None) -> Column:
    array = duck_type.id in ("list", "array")
    element = duck_type.children[0][1] if array else duck_type
    values = tuple(element.children[0][1]) if element.id == "enum" else ()
    return declared_column(name, _pg_type(element), array=array, values=values, comment=comment or "")


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


def _foreign_key(names: dict[tuple[str, str], str], schema: str, constraint: tuple[Any, ...]) -> ForeignKey:
    _, own, other, theirs = constraint
    return tuple(own), names.get((schema, other), other), tuple(theirs)


def _sample_expression(column: Column) -> str:
    name = quote(column.name)
    if column.array and column.type == "text":
        return f"list_transform({name}[:20], lambda x: left(CAST(x AS VARCHAR), {_SAMPLE_CHARACTERS}))"
    if column.type in _SPELLED_ALIKE and not column.array:  # planning a cast of each of many columns takes long
        return name
    return f"left(CAST({name} AS VARCHAR), {_SAMPLE_CHARACTERS})" if column.type != "bytea" else "NULL"
