"""What a Spark session sees: tables and views of the schemas of a catalog, their comments as descriptions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from almanaq.errors import SourceError
from almanaq.suql.catalog.infer import ColumnSample, infer_kind
from almanaq.suql.catalog.reading import declared_column, flatten, relation_names, shown_samples, written_name
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.databases.spark_driver import Remote
from almanaq.suql.databases.spark_folder import PREFIX, named
from almanaq.suql.databases.spark_types import pg_type, to_plain
from almanaq.suql.databases.spark_url import SparkURL

_MOST_ENUM_VALUES = 10_000
_SAMPLED_ROWS, _SAMPLED_CHARACTERS = 200, 400
_AT_ONCE = 8
_SYSTEM = ("information_schema", "sys", "global_temp")
Rows = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class SparkCatalogReader:
    """Reads the catalog that an address names."""

    remote: Remote
    url: SparkURL

    def read(self) -> Catalog:
        """Give every table and view, with kinds inferred where no comment declares any."""
        catalog, current = self.rows("SELECT current_catalog(), current_schema()")[0]
        catalog = self.url.catalog or catalog
        schemas = self.url.schemas or self._schemas(catalog)
        places = [(schema, table) for schema in schemas for table in self._tables(catalog, schema)]
        names = relation_names(places, (*self.url.schemas, current))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            relations = list(pool.map(lambda place: self._relation(names[place], (catalog, *place)), places))
            declared = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
            sampled = list(pool.map(lambda relation: self._sampled(relation, infer=not declared), relations))
        return Catalog(tuple(sorted(sampled, key=lambda relation: relation.name)))

    def key_holds(self, relation: Relation, key: tuple[str, ...]) -> bool:
        """Tell whether a key is unique and never null."""
        names, place = ", ".join(map(named, key)), named(*relation.location)
        null = " OR ".join(f"{named(name)} IS NULL" for name in key)
        if self.rows(f"SELECT 1 FROM {place} WHERE {null} LIMIT 1"):
            return False
        return not self.rows(f"SELECT 1 FROM {place} GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1")

    def completed(self, relation: Relation) -> Relation:
        """Give a relation with the values of ENUMs declared without, and rows named by a key of one column."""
        columns = tuple(self._with_values(relation, column) for column in relation.columns)
        row_id = written_name(relation.key, "postgres") if len(relation.key) == 1 else None
        return replace(relation, columns=columns, row_id=row_id)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement of our own and give its rows."""
        found = to_plain(self.remote.table(sql, "almanaq-catalog"))
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def _schemas(self, catalog: str) -> tuple[str, ...]:
        found = [row[0] for row in self.rows(f"SHOW SCHEMAS IN {named(catalog)}")]
        return tuple(name for name in found if name.lower() not in _SYSTEM and not name.startswith(PREFIX))

    def _tables(self, catalog: str, schema: str) -> list[str]:
        rows = self.rows(f"SHOW TABLES IN {named(catalog, schema)}")
        return [table for _, table, temporary in rows if not temporary]

    def _relation(self, name: str, location: tuple[str, ...]) -> Relation:
        columns = []
        for field in self.remote.schema(named(*location)).fields:
            type_, array = pg_type(field.dataType)
            comment = str((field.metadata or {}).get("comment", ""))
            columns.append(declared_column(field.name, type_, array=array, values=(), comment=comment))
        return Relation(name, location, tuple(columns), description=self._comment(location))

    def _comment(self, location: tuple[str, ...]) -> str:
        for key, value, *_ in self.rows(f"DESCRIBE TABLE EXTENDED {named(*location)}"):
            if key == "Comment":
                return str(value)
        return ""

    def _sampled(self, relation: Relation, *, infer: bool) -> Relation:
        names = ", ".join(named(column.name) for column in relation.columns)
        rows = self.rows(f"SELECT {names} FROM {named(*relation.location)} LIMIT {_SAMPLED_ROWS}")
        columns = []
        for position, column in enumerate(relation.columns):
            values = tuple(str(value)[:_SAMPLED_CHARACTERS] for value in flatten(row[position] for row in rows))
            inferred = infer_kind(column, ColumnSample(values)) if infer else column
            columns.append(replace(inferred, samples=shown_samples(values)))
        return replace(relation, columns=tuple(columns))

    def _with_values(self, relation: Relation, column: Column) -> Column:
        if column.kind is not ColumnKind.ENUM or column.values:
            return column
        if column.array:
            raise SourceError(f"{relation.name}.{column.name} is declared ENUM[]: list its values in the schema file")
        name, place = named(column.name), named(*relation.location)
        rows = self.rows(
            f"SELECT {name} FROM {place} WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY COUNT(*) DESC, {name} "
            f"LIMIT {_MOST_ENUM_VALUES + 1}"
        )
        if len(rows) > _MOST_ENUM_VALUES:
            raise SourceError(
                f"{relation.name}.{column.name} is declared ENUM and has more than {_MOST_ENUM_VALUES:,} distinct "
                "values: declare it structured, or list its values in the schema file"
            )
        return replace(column, values=tuple(str(value) for (value,) in rows))
