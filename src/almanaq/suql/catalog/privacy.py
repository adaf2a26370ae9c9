"""Which private columns a query would show to a model: those that what a model sees is made of (semantics 16)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from almanaq.suql.catalog.lineage import Origin, origins, output_origins
from almanaq.suql.catalog.linking import Link
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.syntax.text_functions import is_text_call


def private_columns_read(tree: exp.Query, links: tuple[Link, ...], catalog: Catalog) -> tuple[str, ...]:
    """Give the private columns that the arguments of a query's text functions, or what its links ask, are made of."""
    if not _any_private(tree, catalog):
        return ()
    linked = [catalog.relation(link.relation) for link in links]
    found = [
        (relation, column)
        for relation, link in zip(linked, links, strict=True)
        if (column := relation.column(link.column)) is not None
    ]
    calls = [call for call in tree.find_all(exp.Anonymous) if is_text_call(call)]
    return _private([*(origin for call in calls for origin in origins(call, catalog)), *found])


def private_columns_shown(tree: exp.Query, catalog: Catalog) -> tuple[str, ...]:
    """Give the private columns that a query's rows, or the quotes that they rest on, are made of."""
    if not _any_private(tree, catalog):
        return ()
    return tuple(dict.fromkeys((*_private(output_origins(tree, catalog)), *private_columns_read(tree, (), catalog))))


def _any_private(tree: exp.Query, catalog: Catalog) -> bool:
    relations = {table.name: catalog.find(table.name) for table in tree.find_all(exp.Table)}
    return any(column.private for relation in relations.values() if relation is not None for column in relation.columns)


def _private(found: Iterable[Origin]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{relation.name}.{column.name}" for relation, column in found if column.private))
