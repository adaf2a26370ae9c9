"""What a PostgreSQL database has that queries may name and no listing shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from almanaq.suql.catalog.relations import Column, Relation

Ask = Callable[..., list[tuple[Any, ...]]]

_SEQUENCES = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND n.nspname NOT LIKE 'pg\\_%' AND has_schema_privilege(n.oid, 'USAGE')
      AND has_table_privilege(c.oid, 'SELECT') AND NOT EXISTS (
          SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
              AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))
    ORDER BY 1, 2"""
_SEQUENCE = (Column("last_value", "bigint"), Column("log_cnt", "bigint"), Column("is_called", "boolean"))


def unlisted_relations(ask: Ask, columnless: list[Relation], path: list[str]) -> tuple[Relation, ...]:
    """Return sequences and tables without columns."""
    found = list(columnless)
    for schema, name in ask(_SEQUENCES):
        bare = schema in path and all(other.name != name for other in found)
        found.append(Relation(name if bare else f"{schema}.{name}", (schema, name), _SEQUENCE))
    return tuple(found)
