"""Which replies must not reach a language model: those whose rows show private columns (semantics 16)."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from almanaq.agent.tables import tables_of
from almanaq.suql.catalog.relations import Catalog


def shows_private(suql: str, catalog: Catalog) -> bool:
    """Say whether a query may show a private column: one stands in a SELECT list, or a star over its relation."""
    relations = [r for r in map(catalog.find, tables_of(suql)) if r is not None]
    private = {column.name.casefold() for r in relations for column in r.columns if column.private}
    if not private:
        return False
    selects = sqlglot.parse_one(suql, read="postgres").find_all(exp.Select)
    items = [item for select in selects for item in select.expressions]
    columns = {column.name.casefold() for item in items for column in item.find_all(exp.Column)}
    return bool(columns & private) or any(item.is_star for item in items)
