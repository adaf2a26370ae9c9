"""What the columns of a result are called: as written, else as PostgreSQL would call them."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.relations import Catalog


def output_names(spelled: exp.Query, bound: exp.Query, catalog: Catalog) -> tuple[str, ...]:
    """Give one name per output column, given the query as written and after its stars were expanded."""
    written = list(_first_select(spelled).expressions)
    expanded = list(_first_select(bound).expressions)
    stars = [item for item in written if item.is_star]
    if not stars:
        return tuple(_name(item, catalog) for item in written)
    if len(stars) == 1:
        at = next(i for i, item in enumerate(written) if item.is_star)
        width = len(expanded) - len(written) + 1
        middle = [_spelling(item.alias_or_name, catalog) for item in expanded[at : at + width]]
        return (*(_name(i, catalog) for i in written[:at]), *middle, *(_name(i, catalog) for i in written[at + 1 :]))
    return tuple(_name(item.unalias() if item.alias.startswith("_col_") else item, catalog) for item in expanded)


def _first_select(query: exp.Query) -> exp.Select:
    at: exp.Expr = query
    while not isinstance(at, exp.Select):
        at = at.this
    return at


def _name(item: exp.Expr, catalog: Catalog) -> str:
    if isinstance(item, exp.Alias):
        return item.alias
    at = item
    while isinstance(at, exp.Cast | exp.Paren):
        at = at.this
    if isinstance(at, exp.Column):
        return _spelling(at.name, catalog) if not at.this.args.get("quoted") else at.name
    if isinstance(at, exp.Anonymous):
        return at.name.lower()
    if isinstance(at, exp.Window | exp.Filter | exp.WithinGroup):
        return _name(at.this, catalog)
    if isinstance(at, exp.Case):
        return "case"
    if isinstance(at, exp.Func) and not isinstance(at, exp.Binary | exp.Connector):
        return at.sql_name().lower()
    if isinstance(at, exp.Subquery):
        return _name(_first_select(at).expressions[0], catalog)
    return "?column?"


def _spelling(name: str, catalog: Catalog) -> str:
    """Give a column's name as the catalog spells it."""
    for relation in catalog.relations:
        column = relation.column(name)
        if column is not None:
            return column.name
    return name
