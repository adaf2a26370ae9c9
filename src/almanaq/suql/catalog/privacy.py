"""Private columns (semantics 16): which of them what a model would see is made of."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from almanaq.suql.catalog.lineage import Origin, is_enum_call, origins, output_origins
from almanaq.suql.catalog.linking import Link
from almanaq.suql.catalog.relations import ENUM_LABELS, Catalog
from almanaq.suql.catalog.sources import relations_in
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import is_model_call, is_similarity


def private_columns_read(tree: exp.Query, links: tuple[Link, ...], catalog: Catalog) -> tuple[str, ...]:
    """Return the private columns that what a query asks a model, also to link its literals, is made of."""
    if not _any_private(tree, catalog):
        return ()
    linked = [catalog.relation(link.relation) for link in links]
    found = [
        (relation, column)
        for relation, link in zip(linked, links, strict=True)
        if (column := relation.column(link.column)) is not None
    ]
    calls = [call for call in nodes_of(tree, exp.Anonymous) if is_model_call(call)]
    return _private([*(origin for call in calls for origin in origins(call, catalog)), *found])


def private_columns_compared(tree: exp.Query, catalog: Catalog) -> tuple[str, ...]:
    """Return the private columns that the arguments of `similarity` are made of, which an embedder sees."""
    if not _any_private(tree, catalog):
        return ()
    calls = [call for call in nodes_of(tree, exp.Anonymous) if is_similarity(call)]
    return _private(origin for call in calls for origin in origins(call, catalog))


def private_columns_shown(tree: exp.Query, catalog: Catalog) -> tuple[str, ...]:
    """Return the private columns that a query's rows, or the quotes that they rest on, are made of."""
    if not _any_private(tree, catalog):
        return ()
    return tuple(dict.fromkeys((*_private(output_origins(tree, catalog)), *private_columns_read(tree, (), catalog))))


def _reads_labels(tree: exp.Query, catalog: Catalog) -> bool:
    return any(relation.location == ENUM_LABELS for relation in relations_in(tree, catalog))


def _any_private(tree: exp.Query, catalog: Catalog) -> bool:
    lists = any(map(is_enum_call, nodes_of(tree, exp.Anonymous, exp.Typeof))) or _reads_labels(tree, catalog)
    relations = catalog.relations if lists else relations_in(tree, catalog)
    return any(column.private for relation in relations for column in relation.columns)


def _private(found: Iterable[Origin]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{relation.name}.{column.name}" for relation, column in found if column.private))
