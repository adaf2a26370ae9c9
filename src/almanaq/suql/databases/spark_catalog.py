"""What a Spark session sees: tables and views of the schemas of a catalog, their comments as descriptions."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from almanaq.suql.catalog.reading import declared_column, relation_names
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.databases.relation_queries import RelationQueries
from almanaq.suql.databases.spark_driver import Remote
from almanaq.suql.databases.spark_folder import PREFIX, named
from almanaq.suql.databases.spark_types import pg_type, to_plain
from almanaq.suql.databases.spark_url import SparkURL

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
            sampled = list(pool.map(lambda relation: self.relations.sampled(relation, infer=not declared), relations))
        return Catalog(tuple(sorted(sampled, key=lambda relation: relation.name)))

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
        comment, rows = self._said(location)
        return Relation(name, location, tuple(columns), description=comment, rows=rows)

    def _said(self, location: tuple[str, ...]) -> tuple[str, int | None]:
        """Return the comment of a table, and its rows where somebody has had them counted."""
        described = self.rows(f"DESCRIBE TABLE EXTENDED {named(*location)}")
        properties = {key: str(value) for key, value, *_ in described}
        counted = re.search(r"(\d+) rows", properties.get("Statistics", ""))
        return properties.get("Comment", ""), None if counted is None else int(counted[1])
