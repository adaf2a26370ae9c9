"""Which replies must not reach a language model: those whose rows show private columns (semantics 16)."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.suql.catalog.binder import bind
from almanaq.suql.catalog.privacy import private_columns_shown
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.syntax.parse import parse


def shows_private(suql: str, catalog: Catalog, links: Sequence[tuple[str, str, tuple[str, ...]]] = ()) -> bool:
    """Return whether the rows of a query that ran, the quotes they rest on, or its links show values of private
    columns.

    Args:
        links: the trace's: column, literal, and the values that it was taken for.
    """
    if not any(column.private for relation in catalog.relations for column in relation.columns):
        return False
    private = {f"{r.name}.{c.name}" for r in catalog.relations for c in r.columns if c.private}
    linked = any(column in private for column, _, _ in links)
    return linked or bool(private_columns_shown(bind(parse(suql, ()), catalog, suql).tree, catalog))
