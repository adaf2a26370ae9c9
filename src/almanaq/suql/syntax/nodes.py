"""The nodes of a tree as a list: planning looks at each tree many times, and sqlglot's walk is four generators deep."""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

E = TypeVar("E", bound=exp.Expr)


def nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return all nodes of a tree, the tree first, each before what it is made of and level by level, as `walk` does.

    The list is what there is now: the tree may be changed while the list is gone through.
    """
    found = [tree]
    for node in found:  # which grows meanwhile
        for part in node.args.values():
            if isinstance(part, exp.Expr):
                found.append(part)
            elif isinstance(part, list):
                found += [item for item in part if isinstance(item, exp.Expr)]
    return found


def nodes_of(tree: exp.Expr, *kinds: type[E]) -> list[E]:
    """Return the nodes of a tree that are of some classes, in the order of `nodes`."""
    return [node for node in nodes(tree) if isinstance(node, kinds)]
