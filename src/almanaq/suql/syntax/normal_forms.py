"""Chains of AND and OR: joined, and as trees that are not as deep as the chains are long."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from almanaq.suql.syntax.nodes import nodes_of

LONG_CHAIN = 16
"""Operands of AND or OR from which on they are written as a balanced tree."""


def joined(parts: list[exp.Expr], kind: type[exp.Connector] = exp.And) -> exp.Expr:
    """Return parts joined by AND or OR, in parentheses; what is joined by the other of the two gets some of its own."""
    apart = [exp.paren(part, copy=False) if isinstance(part, exp.Connector) else part for part in parts]
    return exp.paren(balanced(apart, kind), copy=False)


def balanced(parts: Sequence[exp.Expr], kind: type[exp.Connector]) -> exp.Expr:
    """Return parts joined by AND or OR in their order, as a tree whose depth grows with the logarithm
    of their number.
    """
    while len(parts) > 1:
        pairs = [kind(this=a, expression=b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]


def balance_chains(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, in which no long `a AND b AND c …` or OR is as deep as it is long."""
    for top in nodes_of(tree, exp.And, exp.Or):
        kind = type(top)
        if type(top.parent) is kind:
            continue
        parts: list[exp.Expr] = []
        pending: list[exp.Expr] = [top]
        while pending:
            node = pending.pop()
            if type(node) is kind:
                pending += [node.expression, node.this]
            else:
                parts.append(node)
        if len(parts) > LONG_CHAIN:
            chain = balanced(parts, kind)
            if top is tree:
                tree = chain
            else:
                top.replace(chain)
    return tree
