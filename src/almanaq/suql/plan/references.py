"""References of a block to its own FROM: finding them, and pointing them at another table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp, parse_one

from almanaq.suql.catalog.sources import find_source, from_items
from almanaq.suql.syntax.nodes import aliased, ancestors, column, is_within, nodes_of, quoted
from almanaq.suql.text_functions import has_text, nested_queries

CLAUSES_OF_FROM = ("from_", "joins", "laterals")
CLAUSES_OF_ROWS = (*CLAUSES_OF_FROM, "where")
"""The clauses of a SELECT that make its rows, before grouping."""


def qualified(expression: str, alias: str) -> exp.Expr:
    """Return a SQL expression over a relation (in PostgreSQL's dialect) with its columns qualified."""
    tree = _parse(expression).copy()
    for reference in nodes_of(tree, exp.Column):
        reference.set("table", quoted(alias))
    return tree


@lru_cache(maxsize=64)
def _parse(expression: str) -> exp.Expr:
    return parse_one(expression, read="postgres")


def own_columns(block: exp.Select, *parts: exp.Expr) -> list[exp.Column]:
    """Return the columns in parts of a block (all of it by default), nested queries included, that belong
    to its FROM.
    """
    items = {id(item) for item in from_items(block)}
    found = [c for part in (parts or (block,)) for c in nodes_of(part, exp.Column)]
    return [c for c in found if c.table and id(find_source(c.table, c)) in items]


def outer_columns(query: exp.Expr) -> list[exp.Column]:
    """Return the columns of a nested query that belong to a FROM outside of it."""
    found = []
    for c in nodes_of(query, exp.Column):
        item = find_source(c.table, c) if c.table else None
        if item is not None and not is_within(item, query):
            found.append(c)
    return found


def is_correlated(query: exp.Expr) -> bool:
    """Return whether a nested query refers to a FROM outside of it."""
    return bool(outer_columns(query))


def is_of_block(part: exp.Expr, block: exp.Select) -> bool:
    """Return whether a part of a block refers to nothing outside of the block."""
    return len(outer_columns(part)) == len(own_columns(block, part))


def carried_name(reference: exp.Column) -> str:
    """Return the name under which a column is carried in an intermediate table."""
    return f"{reference.table}.{reference.name}"


def references_from_above(block: exp.Select, cut: int) -> list[exp.Column]:
    """Return the columns of a block's FROM items up to its join number `cut` that are named outside those items."""
    items = list(from_items(block))[: cut + 1]
    kept = {id(item) for item in items}
    before = [*items, *(block.args.get("joins") or [])[:cut]]
    inside = {id(c) for item in before for c in nodes_of(item, exp.Column)}
    return [c for c in own_columns(block) if id(find_source(c.table, c)) in kept and id(c) not in inside]


def carry(references: list[exp.Column], item: str) -> dict[str, exp.Expr]:
    """Point columns, in place, at an item of FROM that has them under their carried names; return what these are."""
    carried: dict[str, exp.Expr] = {carried_name(reference): reference.copy() for reference in references}
    for reference in references:
        reference.replace(column(item, carried_name(reference)))
    return carried


def parts_beside(block: exp.Select, clauses: Sequence[str]) -> list[exp.Expr]:
    """Return what stands in the clauses of a block but some."""
    return [part for part in block.iter_expressions() if part.arg_key not in clauses]


def where_of(block: exp.Select) -> exp.Expr | None:
    """Return the condition of a block's WHERE."""
    clause = block.args.get("where")
    return clause.this if clause is not None else None


def in_where(node: exp.Expr, block: exp.Select) -> bool:
    """Return whether a node stands in a block's WHERE."""
    return any(at is block.args.get("where") for at in ancestors(node, block))


def take_rows(block: exp.Select) -> exp.Select:
    """Move the clauses that make a block's rows into a new SELECT without outputs; the block keeps the others."""
    inner = exp.Select()
    for clause in CLAUSES_OF_ROWS:
        value = block.args.get(clause)
        if value is not None:
            block.set(clause, None)
            inner.set(clause, value)
    return inner


def hand_down(block: exp.Select, inner: exp.Select, rows: str) -> None:
    """Let the nested queries of a block find the columns of the rows around it in its derived table, its only FROM."""
    derived = block.args["from_"].this
    nested = [query for query in nested_queries(block) if query is not derived and has_text(query)]
    references = [c for query in nested for c in nodes_of(query, exp.Column) if c.table == rows]
    for name, reference in carry(references, derived.alias).items():
        inner.append("expressions", aliased(reference, name))
