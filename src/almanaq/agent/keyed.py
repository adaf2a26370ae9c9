"""Finds the keys of the rows that a reply shows, by asking for them along with the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from almanaq.agent.history import Shown, Value
from almanaq.agent.query_tree import query_tree
from almanaq.suql.catalog.relations import Catalog, Relation

if TYPE_CHECKING:
    from almanaq.suql.result import Result

_KEY = "row_key_"
_MOST = 20


@dataclass(frozen=True, slots=True)
class Keyed:
    """A query that also gives the key of each row.

    Attributes:
        suql: the query with the key's columns after its own.
        relation: the relation whose rows it gives.
        columns: names of the key's columns.
    """

    suql: str
    relation: str
    columns: tuple[str, ...]


def main_relation(tree: exp.Expr, catalog: Catalog) -> Relation | None:
    """Give the relation of FROM when each row of the query is a row of it; None for groups, sets and aggregates."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("group", "distinct", "with_")):
        return None
    if any(node.find_ancestor(exp.Window, exp.Subquery) is None for item in tree.expressions for node in _sums(item)):
        return None
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        return None
    named = [part.name for part in source.this.parts]
    return catalog.find(".".join(named)) or catalog.find(named[-1])


def _sums(item: exp.Expr) -> list[exp.Expr]:
    return list(item.find_all(exp.AggFunc))


def with_keys(suql: str, catalog: Catalog) -> Keyed | None:
    """Give the query with the key of each row added; None where its rows have none, or are rows of no relation."""
    tree = query_tree(suql)
    relation = main_relation(tree, catalog)
    if relation is None or not relation.key or not isinstance(tree, exp.Select):
        return None
    if any(column.private for column in map(relation.column, relation.key) if column is not None):
        return None
    table = tree.args["from_"].this.alias_or_name
    added = [
        exp.alias_(
            exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True)), f"{_KEY}{i}"
        )
        for i, name in enumerate(relation.key)
    ]
    keyed = tree.copy()
    keyed.set("expressions", [*keyed.expressions, *added])
    return Keyed(keyed.sql("postgres", normalize_functions=False, copy=False), relation.name, relation.key)


def without_keys(result: Result, keyed: Keyed, suql: str) -> tuple[Result, Shown]:
    """Give the result of the query as it was written, and the rows that it shows."""
    count = len(keyed.columns)
    table = result.table.select(list(range(result.table.num_columns - count)))
    rows = result.rows[:_MOST]
    keys = tuple(tuple(_value(v) for v in row[-count:]) for row in rows)
    names = tuple(str(row[0]) for row in rows)
    return type(result)(table, result.evidence, result.trace, suql), Shown(keyed.relation, keyed.columns, keys, names)


def _value(value: Any) -> Value:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def named_rows(suql: str, result: Result, catalog: Catalog) -> Shown | None:
    """Give the rows of a relation without a key by their first column, when that is one of the relation's own."""
    tree = query_tree(suql)
    relation = main_relation(tree, catalog)
    first = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else None
    if relation is None or not isinstance(first, exp.Column) or relation.column(first.name) is None:
        return None
    kept = [row[0] for row in result.rows[:_MOST] if row[0] is not None]
    return Shown(relation.name, (first.name,), tuple((_value(v),) for v in kept), tuple(map(str, kept)))
