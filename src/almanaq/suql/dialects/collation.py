"""Text compared and ordered by its bytes, in databases that would follow a language's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from almanaq.suql.syntax.nodes import nodes

_ORDERING = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Min, exp.Max, exp.Greatest, exp.Least)


def compare_by_bytes(tree: exp.Expr, columns: Mapping[str, Mapping[str, str]]) -> None:
    """Write `COLLATE "C"` wherever the order of text matters, in place.

    Equality needs none: texts that differ in a byte differ under every collation that a database has by default.

    Args:
        columns: the types of the columns of each relation and temporary table, all names in lower case.
    """
    schema = MappingSchema(dict(columns), dialect="postgres", normalize=False)
    annotate_types(tree, schema=schema, dialect="postgres")
    for node in nodes(tree):
        if isinstance(node, exp.Ordered):
            named = isinstance(node.this, exp.Column) and not node.this.table
            for target in list(_outputs(node, node.this.name)) if named else [*_same_output(node), node.this]:
                _collate(target)
        elif isinstance(node, _ORDERING):
            other = node.args.get("expression") or node.args.get("low")
            if not _collate(node.this) and isinstance(other, exp.Expr):
                _collate(other)


def collate_column(column: exp.Column, collation: str) -> None:
    """Write a column of text with a collation, in place: in MySQL whatever is made of it is then compared so.

    There, unlike in PostgreSQL, a database's own collation takes texts for equal that differ, as "a" and "A".
    """
    characters = exp.DataType(this=exp.DataType.Type.CHARACTER_SET, kind=exp.Var(this="utf8mb4"))
    named = exp.Collate(this=exp.Cast(this=column.copy(), to=characters), expression=exp.Var(this=collation))
    column.replace(exp.paren(named, copy=False))


def _collate(node: exp.Expr) -> bool:
    """Collate an expression that is text; say whether it is."""
    if not node.is_type(*exp.DataType.TEXT_TYPES):
        return False
    inner = node.copy()
    inner.type = node.type
    collated = exp.Collate(this=exp.paren(inner, copy=False), expression=exp.to_identifier("C", quoted=True))
    collated.type = node.type
    node.replace(collated)
    return True


def _outputs(ordered: exp.Ordered, name: str) -> Iterator[exp.Expr]:
    """Yield the output expressions, one for each branch of a set operation, that ORDER BY names."""
    query = ordered.find_ancestor(exp.Query)
    pending = [query] if query is not None else []
    while pending:
        branch = pending.pop()
        if isinstance(branch, exp.SetOperation):
            pending += [branch.this, branch.expression]
        elif isinstance(branch, exp.Subquery):
            pending.append(branch.this)
        elif isinstance(branch, exp.Select):
            yield from (item.unalias() for item in branch.expressions if item.alias_or_name == name)


def _same_output(ordered: exp.Ordered) -> list[exp.Expr]:
    """Return the output of a SELECT DISTINCT that an ORDER BY repeats: PostgreSQL wants both written alike."""
    query = ordered.find_ancestor(exp.Query)
    if not isinstance(query, exp.Select) or not query.args.get("distinct"):
        return []
    return [item.unalias() for item in query.expressions if item.unalias() == ordered.this]
