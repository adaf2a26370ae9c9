"""Which private columns the text functions of a query read."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from almanaq.suql.catalog.linking import Link
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import catalog_column, find_cte, find_source
from almanaq.suql.syntax.text_functions import is_text_call


def private_columns_read(tree: exp.Query, links: tuple[Link, ...], catalog: Catalog) -> tuple[str, ...]:
    """Give the private columns whose cells a query's text functions, or whose values its links, would show to a model.

    A column of a derived table counts as all columns that the derived table reads: rather one refusal too many.
    """
    found = dict.fromkeys(
        name for call in tree.find_all(exp.Anonymous) if is_text_call(call) for name in _read(call, catalog)
    )
    for link in links:
        column = catalog.relation(link.relation).column(link.column)
        if column is not None and column.private:
            found[f"{link.relation}.{link.column}"] = None
    return tuple(found)


def _read(node: exp.Expr, catalog: Catalog, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    for column in node.find_all(exp.Column):
        item = find_source(column.table, column) if column.table else None
        known = catalog_column(column, catalog)
        if known is not None and isinstance(item, exp.Table):
            if known.private:
                yield f"{item.name}.{known.name}"
            continue
        source = find_cte(item) if isinstance(item, exp.Table) else item
        if source is not None and id(source) not in seen:
            yield from _read(source, catalog, seen | {id(source)})
