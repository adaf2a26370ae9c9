"""Finds the keys of the rows that a reply shows, by asking for them along with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from almanaq.agent.history import Key, Shown, Value
from almanaq.agent.query_tree import query_tree
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation

if TYPE_CHECKING:
    from almanaq.suql.result import Result

_KEY, _BESIDE = "row_key_", "row_value_"
_MOST = 20
_MOST_BESIDE, _MOST_VALUES, _VALUE = 4, 6, 60


@dataclass(frozen=True, slots=True)
class Keyed:
    """A query that also gives the key of each row.

    Attributes:
        suql: the query with the key's columns after its own.
        relation: the relation whose rows it gives.
        columns: names of the key's columns.
        beside: names of columns that come after these: what the query compares or sorts by, and does not show.
    """

    suql: str
    relation: str
    columns: tuple[str, ...]
    beside: tuple[str, ...] = ()


def main_relation(tree: exp.Expr, catalog: Catalog) -> Relation | None:
    """Return the relation of FROM when each row of the query is a row of it; None for groups, sets and aggregates."""
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


def with_keys(suql: str, catalog: Catalog, *, compared: bool = False) -> Keyed | None:
    """Return the query with the key of each row added; None where its rows have none, or are rows of no relation.

    Args:
        compared: add the columns too that the query compares or sorts by.
    """
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
    beside = _compared(tree, table, relation) if compared else ()
    added += [exp.alias_(node.copy(), f"{_BESIDE}{i}") for i, node in enumerate(beside)]
    keyed = tree.copy()
    keyed.set("expressions", [*keyed.expressions, *added])
    written = keyed.sql("postgres", normalize_functions=False, copy=False)
    return Keyed(written, relation.name, relation.key, tuple(node.name for node in beside))


def _compared(tree: exp.Select, table: str, relation: Relation) -> tuple[exp.Column, ...]:
    """Return the plain columns of a relation that a query compares or sorts by, and does not show."""
    shown = {item.unalias().name.casefold() for item in tree.expressions if isinstance(item.unalias(), exp.Column)}
    shown |= {name.casefold() for name in relation.key}
    found: dict[str, exp.Column] = {}
    for clause in (tree.args.get("where"), tree.args.get("order")):
        for node in clause.find_all(exp.Column) if clause is not None else ():
            column = relation.column(node.name) if node.table in ("", table) else None
            own = node.find_ancestor(exp.Select) is tree and node.name.casefold() not in shown
            if own and column is not None and not column.private and column.kind is not ColumnKind.FREE_TEXT:
                found.setdefault(column.name, node)
    return tuple(found.values())[:_MOST_BESIDE]


def without_keys(result: Result, keyed: Keyed, suql: str) -> tuple[Result, Shown]:
    """Return the result of the query as it was written, and the rows that it shows."""
    first = result.table.num_columns - len(keyed.columns) - len(keyed.beside)
    last = first + len(keyed.columns)
    table = result.table.select(list(range(first)))
    rows = result.rows[:_MOST]
    keys = tuple(tuple(_value(v) for v in row[first:last]) for row in rows)
    names = tuple(str(row[0]) for row in rows)
    values = _values((*result.columns[1:first], *keyed.beside), [(*row[1:first], *row[last:]) for row in rows])
    shown = Shown(keyed.relation, keyed.columns, keys, names, values)
    return type(result)(table, result.evidence, result.trace, suql), shown


def _values(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[tuple[Key, ...], ...]:
    """Return the short cells of each row with their columns, those that come last at any rate."""
    found = []
    for row in rows:
        cells = [(column, " ".join(str(v).split())) for column, v in zip(columns, row, strict=True) if v is not None]
        found.append(tuple((column, text) for column, text in cells if len(text) <= _VALUE)[-_MOST_VALUES:])
    return tuple(found) if any(found) else ()


def _value(value: Any) -> Value:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def named_rows(suql: str, result: Result, catalog: Catalog) -> Shown | None:
    """Return the rows of a relation without a key by their first column, when that is one of the relation's own."""
    tree = query_tree(suql)
    relation = main_relation(tree, catalog)
    first = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else None
    if relation is None or not isinstance(first, exp.Column) or relation.column(first.name) is None:
        return None
    rows = [row for row in result.rows[:_MOST] if row[0] is not None]
    keys, names = tuple((_value(row[0]),) for row in rows), tuple(str(row[0]) for row in rows)
    return Shown(relation.name, (first.name,), keys, names, _values(result.columns[1:], [row[1:] for row in rows]))
