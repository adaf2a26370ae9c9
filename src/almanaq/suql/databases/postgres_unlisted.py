"""What a PostgreSQL database has that queries may name and no listing shows, and how its views are defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from almanaq.suql.catalog.relations import ENUM_LABELS, Column, Definition, Relation

Ask = Callable[..., list[tuple[Any, ...]]]

_SEQUENCES = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND n.nspname NOT LIKE 'pg\\_%' AND has_schema_privilege(n.oid, 'USAGE')
      AND has_table_privilege(c.oid, 'SELECT') AND NOT EXISTS (
          SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
              AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))
    ORDER BY 1, 2"""
_SEQUENCE = (Column("last_value", "bigint"), Column("log_cnt", "bigint"), Column("is_called", "boolean"))
_ENUMS = Relation(
    "pg_enum",
    ENUM_LABELS,
    (
        *(Column("oid", "oid"), Column("enumtypid", "oid"), Column("enumsortorder", "real")),
        Column("enumlabel", "name"),
    ),
)
_TYPES = Relation(
    "pg_type",
    ("pg_catalog", "pg_type"),
    (
        *(Column("oid", "oid"), Column("typname", "name"), Column("typlen", "smallint")),
        *(Column("typbyval", "boolean"), Column("typtype", '"char"'), Column("typcategory", '"char"')),
        *(Column("typelem", "oid"), Column("typarray", "oid"), Column("typbasetype", "oid")),
    ),
    withheld=("typdefault", "typdefaultbin", "typacl"),
)
_DEFINITIONS = """
    SELECT c.oid, pg_get_viewdef(c.oid), pg_get_viewdef(c.oid, true), ARRAY(
        SELECT DISTINCT d.refobjid FROM pg_rewrite r
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass
        WHERE r.ev_class = c.oid AND d.refobjid <> c.oid)
    FROM pg_class c WHERE c.relkind IN ('v', 'm') AND c.oid = ANY(%s) ORDER BY c.oid"""


def unlisted_relations(ask: Ask, columnless: list[Relation], path: list[str], *, hidden: bool) -> tuple[Relation, ...]:
    """Return sequences, tables without columns, and what catalogs tell of types.

    Args:
        hidden: whether there are relations that the role may not read: their rows' types and ENUMs would be told of.
    """
    found = list(columnless)
    for schema, name in ask(_SEQUENCES):
        bare = schema in path and all(other.name != name for other in found)
        found.append(Relation(name if bare else f"{schema}.{name}", (schema, name), _SEQUENCE))
    return (*(() if hidden else (_ENUMS, _TYPES)), *found)


def view_definitions(ask: Ask, names: Mapping[int, str]) -> tuple[Definition, ...]:
    """Return the definitions of views by the names of the relations that may be read."""
    definitions = []
    for oid, plain, pretty, read in ask(_DEFINITIONS, [list(names)]) if names else ():
        known = all(other in names for other in read)
        definitions.append(
            Definition(names[oid], (plain, pretty), tuple(names[other] for other in read) if known else None)
        )
    return tuple(definitions)
