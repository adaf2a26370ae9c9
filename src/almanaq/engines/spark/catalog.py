"""What a Spark session sees: tables and views of the schemas of a catalog; types as PostgreSQL's and as Arrow's."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from almanaq.engines.common import RelationQueries
from almanaq.engines.spark.driver import Remote, SparkURL
from almanaq.engines.spark.folder import PREFIX, quote_name
from almanaq.suql.catalog.reading import declared_column, relation_names
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation

# --- types ------------------------------------------------------------------------------------------------------------

_NAMES = {
    "byte": "smallint",
    "short": "smallint",
    "integer": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "string": "text",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
}


def pg_type(type_: Any) -> tuple[str, bool]:
    """Return the PostgreSQL name of a Spark type, or of an array's elements, and whether it is an array.

    Structs, maps and arrays of arrays have none: they are taken for JSON.
    """
    kind = type_.typeName()
    if kind == "array":
        inner, nested = pg_type(type_.elementType)
        return ("jsonb", False) if nested or inner == "jsonb" else (inner, True)
    if kind == "decimal":
        return f"numeric({type_.precision},{type_.scale})", False
    if kind in ("varchar", "char"):
        return "text", False
    if kind in ("struct", "map", "variant"):
        return "jsonb", False
    if "interval" in kind:
        return "interval", False
    return _NAMES.get(kind, kind), False


def to_spark(table: pa.Table) -> pa.Table:
    """Return a table with types that Spark has: of others, text."""
    columns = []
    for column in table.columns:
        target = _spark_type(column.type)
        columns.append(column if target == column.type else _cast(column, target))
    return pa.Table.from_arrays(columns, names=table.column_names)


def _spark_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _spark_type(type_.value_type)
    if pa.types.is_null(type_) or pa.types.is_large_string(type_) or pa.types.is_time(type_):
        return pa.string()
    if pa.types.is_unsigned_integer(type_):
        return pa.int64() if type_.bit_width < 64 else pa.decimal128(20, 0)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz="UTC" if type_.tz else None)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_spark_type(type_.value_type))
    if pa.types.is_decimal256(type_):
        return pa.decimal128(38, min(type_.scale, 38))
    if pa.types.is_date64(type_):
        return pa.date32()
    return type_


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(target)
    except pa.ArrowNotImplementedError:
        return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()], target)])


# --- the catalog ------------------------------------------------------------------------------------------------------

_AT_ONCE = 8
_SYSTEM = ("information_schema", "sys", "global_temp")


@dataclass(frozen=True, slots=True)
class SparkCatalogReader:
    """Reads the catalog that an address names."""

    remote: Remote
    url: SparkURL

    @property
    def relations(self) -> RelationQueries:
        """What is asked about one table or view."""
        return RelationQueries(self.rows, "spark")

    def read(self) -> Catalog:
        """Return every table and view, with kinds inferred where no comment declares any."""
        catalog, current = self.rows("SELECT current_catalog(), current_schema()")[0]
        catalog = self.url.catalog or catalog
        schemas = self.url.schemas or self._schemas(catalog)
        places = [(schema, table) for schema in schemas for table in self._tables(catalog, schema)]
        names = relation_names(places, (*self.url.schemas, current))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            relations = list(pool.map(lambda place: self._relation(names[place], (catalog, *place)), places))
            declared = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
            relations = list(
                pool.map(lambda relation: self.relations.add_samples(relation, infer=not declared), relations)
            )
        return Catalog(tuple(sorted(relations, key=lambda relation: relation.name)))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement of our own and give its rows."""
        found = self.remote.table(sql, "almanaq-catalog")
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def _schemas(self, catalog: str) -> tuple[str, ...]:
        found = [row[0] for row in self.rows(f"SHOW SCHEMAS IN {quote_name(catalog)}")]
        return tuple(name for name in found if name.lower() not in _SYSTEM and not name.startswith(PREFIX))

    def _tables(self, catalog: str, schema: str) -> list[str]:
        rows = self.rows(f"SHOW TABLES IN {quote_name(catalog, schema)}")
        return [table for _, table, temporary in rows if not temporary]

    def _relation(self, name: str, location: tuple[str, ...]) -> Relation:
        columns = []
        for field in self.remote.schema(quote_name(*location)).fields:
            type_, array = pg_type(field.dataType)
            comment = str((field.metadata or {}).get("comment", ""))
            columns.append(declared_column(field.name, type_, array=array, values=(), comment=comment))
        comment, rows = self._read_statistics(location)
        return Relation(name, location, tuple(columns), description=comment, rows=rows)

    def _read_statistics(self, location: tuple[str, ...]) -> tuple[str, int | None]:
        """Return the comment of a table, and its rows where somebody has had them counted."""
        described = self.rows(f"DESCRIBE TABLE EXTENDED {quote_name(*location)}")
        properties = {key: str(value) for key, value, *_ in described}
        counted = re.search(r"(\d+) rows", properties.get("Statistics", ""))
        return properties.get("Comment", ""), None if counted is None else int(counted[1])
