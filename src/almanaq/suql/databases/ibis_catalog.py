"""What an engine that ibis reaches holds: tables and types from ibis, kinds from comments and a sample of rows."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from almanaq.suql.catalog.reading import declared_column
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.databases.relation_queries import RelationQueries, Rows

_TYPES = {
    "Int8": "smallint",
    "Int16": "smallint",
    "Int32": "integer",
    "Int64": "bigint",
    "UInt8": "smallint",
    "UInt16": "integer",
    "UInt32": "bigint",
    "UInt64": "numeric(20,0)",
    "Float32": "real",
    "Float64": "double precision",
    "Boolean": "boolean",
    "String": "text",
    "Date": "date",
    "Time": "time",
    "JSON": "jsonb",
    "UUID": "uuid",
    "Binary": "bytea",
    "Interval": "interval",
    "Unknown": "unknown",
}
_MYSQL_COLUMNS = (
    "SELECT table_name, column_name, column_comment, column_type FROM information_schema.columns "
    "WHERE table_schema = DATABASE()"
)
_MYSQL_KEYS = (
    "SELECT table_name, column_name FROM information_schema.key_column_usage "
    "WHERE constraint_name = 'PRIMARY' AND table_schema = DATABASE() ORDER BY table_name, ordinal_position"
)
_MYSQL_TABLES = (
    "SELECT table_name, CASE WHEN table_type = 'BASE TABLE' THEN table_comment ELSE '' END, table_rows "
    "FROM information_schema.tables WHERE table_schema = DATABASE()"
)
_CLICKHOUSE_COLUMNS = "SELECT table, name, comment, type FROM system.columns WHERE database = currentDatabase()"
_LABEL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True)
class Facts:
    """What an engine's own catalog tells beside ibis, by table: comments, ENUM values, keys, rows."""

    comments: dict[tuple[str, str], str] = field(default_factory=dict)
    labels: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tables: dict[str, tuple[str, int | None]] = field(default_factory=dict)


def read_facts(dialect: str, rows: Rows) -> Facts:
    """Return what the catalogs of MySQL and ClickHouse tell; of other engines the schema file has to."""
    columns = {"mysql": _MYSQL_COLUMNS, "clickhouse": _CLICKHOUSE_COLUMNS}.get(dialect)
    if columns is None:
        return Facts()
    found = rows(columns)
    comments = {(table, column): comment for table, column, comment, _ in found if comment}
    labels = {
        (table, column): tuple(label.replace("''", "'") for label in _LABEL.findall(type_))
        for table, column, _, type_ in found
        if type_.lower().startswith("enum")
    }
    if dialect != "mysql":  # ClickHouse's keys need not be unique
        return Facts(comments, labels)
    keys: dict[str, list[str]] = defaultdict(list)
    for table, column in rows(_MYSQL_KEYS):
        keys[table].append(column)
    tables = {table: (comment or "", None if n is None else int(n)) for table, comment, n in rows(_MYSQL_TABLES)}
    return Facts(comments, labels, {table: tuple(key) for table, key in keys.items()}, tables)


@dataclass(frozen=True, slots=True)
class IbisCatalogReader:
    """Reads the catalog of the current database of an ibis backend.

    Attributes:
        rows: runs a SELECT and gives its rows.
    """

    backend: Any
    dialect: str
    rows: Rows

    @property
    def relations(self) -> RelationQueries:
        """What is asked about one table or view."""
        return RelationQueries(self.rows, self.dialect)

    def read(self) -> Catalog:
        """Return every table and view, with kinds inferred where no comment declares any."""
        facts = read_facts(self.dialect, self.rows)
        relations = [self._relation(name, facts) for name in sorted(self.backend.list_tables())]
        declared = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
        return Catalog(tuple(self.relations.sampled(relation, infer=not declared) for relation in relations))

    def _relation(self, name: str, facts: Facts) -> Relation:
        columns = []
        for column, type_ in self.backend.get_schema(name).items():
            array = type(type_).__name__ == "Array"
            labels = facts.labels.get((name, column), ())
            comment = facts.comments.get((name, column), "")
            written = pg_type(type_.value_type if array else type_)
            columns.append(declared_column(column, written, array=array, values=labels, comment=comment))
        description, rows = facts.tables.get(name, ("", None))
        key = facts.keys.get(name, ())
        return Relation(name, (name,), tuple(columns), key=key, rows=rows, description=description)


def pg_type(type_: Any) -> str:
    """Return the PostgreSQL name of an ibis type; of one that has none, ibis's own name, whose values come as text."""
    kind = type(type_).__name__
    if kind == "Decimal":
        return f"numeric({type_.precision},{type_.scale or 0})" if type_.precision else "numeric"
    if kind == "Timestamp":
        return "timestamp with time zone" if type_.timezone else "timestamp"
    return _TYPES.get(kind, str(type_).lower())
