"""What the columns of a result are called: as written, else as PostgreSQL would call them."""

from __future__ import annotations

from collections import Counter

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify_columns import qualify_columns
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.schema import MappingSchema

from almanaq.suql.catalog.relations import Catalog

_APART = "\u2063"
"""Stands between a number and the name of an output that shares its name with another: nobody sees it."""


def tell_outputs_apart(tree: exp.Query, schema: MappingSchema) -> None:
    """Give outputs of an ordered query that share a name aliases of their own, in place: positions are kept by name.

    `SELECT x.a, y.a … ORDER BY 1` means x.a, although the result has two columns named a.
    """
    _expand_ordered_stars(tree, schema)
    ordered = [query for query in tree.find_all(exp.Query) if query.args.get("order") or query.args.get("distinct")]
    for select in map(_first_select, ordered):
        shared = Counter(item.alias_or_name for item in select.expressions if not item.is_star)
        for i, item in enumerate(list(select.expressions)):
            if item.alias_or_name and shared[item.alias_or_name] > 1 and not isinstance(item, exp.Subquery):
                name = exp.to_identifier(f"_{i}{_APART}{item.alias_or_name}", quoted=True)
                item.replace(exp.Alias(this=item.unalias().copy(), alias=name))


def _expand_ordered_stars(tree: exp.Query, schema: MappingSchema) -> None:
    """Write the columns of each star under an ORDER BY by position, in place; what is at fault is left as it is."""
    starred = [s.is_star and any(o.this.is_int for o in _order(s)) for s in tree.find_all(exp.Select)]
    if any(starred):
        try:
            known = qualify_columns(qualify_tables(tree.copy(), dialect="postgres"), schema, dialect="postgres")
        except OptimizeError:
            return
        for select, expanded, star in zip(
            list(tree.find_all(exp.Select)), list(known.find_all(exp.Select)), starred, strict=True
        ):
            if star:
                select.set("expressions", [item.copy() for item in expanded.expressions])


def _order(select: exp.Select) -> list[exp.Expr]:
    order = select.args.get("order")
    return order.expressions if order is not None else []


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
        return item.alias.rpartition(_APART)[2]
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
    name = name.rpartition(_APART)[2]
    for relation in catalog.relations:
        column = relation.column(name)
        if column is not None:
            return column.name
    return name
