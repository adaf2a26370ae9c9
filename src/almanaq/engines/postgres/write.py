"""A planned tree as PostgreSQL is told it."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.syntax.nodes import nodes_of


def write_for_postgres(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed: conditions of joins see all items before them, row ids are found by address."""
    for join in nodes_of(tree, exp.Join):
        if not any(join.args.get(key) for key in ("kind", "side", "on", "using", "method")):
            join.set("kind", "CROSS")  # a comma binds less than JOIN: later conditions would not see the item before it
    for node in nodes_of(tree, exp.EQ):
        _compare_addresses(node)
    return tree


def _compare_addresses(node: exp.EQ) -> None:
    """Write `x = t.ctid::text` so that PostgreSQL goes to the row instead of reading the relation through."""
    for other, cast in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(cast, exp.Cast) and isinstance(cast.this, exp.Column) and cast.this.name == "ctid":
            address = exp.Cast(this=other, to=exp.DataType.build("tid", dialect="postgres", udt=True))
            node.set("this", cast.this)
            node.set("expression", address)
            return
