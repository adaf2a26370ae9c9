"""What a schema file says, in place of what was found in the source: descriptions, kinds, keys, vectors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from almanaq.errors import SourceError, suggest
from almanaq.suql.catalog.naming import naming_column
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import ColumnSchema, RelationSchema, Schema

_VECTOR = re.compile(r"(?:vector|halfvec)\(\d+\)")


def apply_schema(catalog: Catalog, schema: Schema) -> Catalog:
    """Return the catalog with what the schema says in place of what was found; raises SourceError for unknown names.

    Keys are taken over unchecked: the database checks them against its rows. The values of an ENUM without declared
    ones are left empty: the database reads them.
    """
    declared: dict[str, RelationSchema] = {}
    for name, entry in schema.relations.items():
        found = catalog.find(name)
        if found is None:
            raise SourceError(f"{schema.name}: {catalog.unknown(name).replace('relation named', 'table', 1)}")
        declared[found.name] = entry
    nothing = RelationSchema()
    relations = tuple(_named(_apply(r, declared.get(r.name, nothing), schema.name)) for r in catalog.relations)
    return replace(catalog, relations=relations)


def keep_private(catalog: Catalog, schema: Schema) -> Catalog:
    """Return the catalog in which each column is private that a schema calls so; what it says of others is left out."""
    marked = {
        (found.name, name.casefold())
        for table, entry in schema.relations.items()
        if (found := catalog.find(table)) is not None
        for name, column in entry.columns.items()
        if column.private
    }
    return replace(
        catalog,
        relations=tuple(
            replace(
                relation,
                columns=tuple(
                    replace(column, private=column.private or (relation.name, column.name.casefold()) in marked)
                    for column in relation.columns
                ),
            )
            for relation in catalog.relations
        ),
    )


def check_keys(catalog: Catalog, schema: Schema, holds: Callable[[Relation, tuple[str, ...]], bool]) -> None:
    """Check the keys that the schema declares against the rows; raises SourceError for one that does not hold.

    Args:
        holds: whether columns of a relation are unique and not null together, as the database finds.
    """
    for name, declared in schema.relations.items():
        relation = catalog.relation(name)
        if declared.key and not holds(relation, relation.key):
            raise SourceError(
                f"{schema.name}, [{relation.name}]: the key ({', '.join(relation.key)}) is not unique or has nulls; "
                "name columns that tell every row apart, or leave the key out"
            )


def _apply(relation: Relation, said: RelationSchema, where: str) -> Relation:
    place = f"{where}, [{relation.name}]"
    known = {column.name.casefold(): column.name for column in relation.columns}
    own = [name for names, _, _ in said.foreign_keys for name in names]
    for name in filter(None, (*said.columns, *said.key, said.named_by, *own)):
        if name.casefold() not in known:
            raise SourceError(f"{place}: no column {name!r}{suggest(name, known.values())}")
    columns = {name.casefold(): entry for name, entry in said.columns.items()}
    return replace(
        relation,
        description=relation.description if said.description is None else said.description,
        key=tuple(known[name.casefold()] for name in said.key) or relation.key,
        foreign_keys=said.foreign_keys or relation.foreign_keys,
        named_by=known.get(said.named_by.casefold(), relation.named_by),
        columns=tuple(
            _apply_column(c, columns.get(c.name.casefold(), ColumnSchema()), place, relation) for c in relation.columns
        ),
    )


def _named(relation: Relation) -> Relation:
    """Return the relation with the column that names its rows, where its columns' names tell it."""
    return relation if relation.named_by else replace(relation, named_by=naming_column(relation))


def _apply_column(column: Column, said: ColumnSchema, where: str, relation: Relation) -> Column:
    kind = said.kind or column.kind
    if kind is not ColumnKind.STRUCTURED and column.type != "text":
        raise SourceError(f"{where}, column {column.name!r}: {kind.value} needs text, and the column is {column.type}")
    values = (said.values or column.values) if kind is ColumnKind.ENUM else ()
    description = column.description if said.description is None else said.description
    private = column.private if said.private is None else said.private
    vectors = column.vectors if said.vectors is None else _vectors(column, said.vectors, where, relation)
    ordered = bool(said.values) or (column.ordered and bool(values))
    return replace(
        column,
        kind=kind,
        values=values,
        ordered=ordered,
        description=description,
        private=private,
        vectors=vectors,
        written=said.written or column.written,
    )


def _vectors(column: Column, name: str, where: str, relation: Relation) -> str:
    """Return the name of the column that holds a column's vectors; raises SourceError when it cannot."""
    found = relation.column(name)
    if found is None:
        raise SourceError(
            f"{where}, column {column.name!r}: no column {name!r}{suggest(name, [c.name for c in relation.columns])}"
        )
    if not _VECTOR.fullmatch(found.type):
        raise SourceError(
            f"{where}, column {column.name!r}: vectors need pgvector's type with its dimensions, such as vector(384), "
            f"and {found.name!r} is {found.type}"
        )
    return found.name
