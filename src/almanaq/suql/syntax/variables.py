"""Databricks' `${…}`, which stands for a setting or a variable of the server's environment wherever it is written."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.syntax.nodes import nodes_of

_OPENING = "${"


def without_variables(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, that writes no `${`: a text with one is written in two.

    Raises:
        UnsupportedError: a name has one.
    """
    for name in nodes_of(tree, exp.Identifier):
        if _OPENING in name.name:
            raise UnsupportedError(f"the name {name.name!r} cannot be written for databricks")
    for text in [node for node in nodes_of(tree, exp.Literal) if node.is_string and _OPENING in node.name]:
        first, *others = text.name.split(_OPENING)
        pieces = [exp.Literal.string(piece) for other in others for piece in ("$", "{" + other)]
        written = exp.func("concat", exp.Literal.string(first), *pieces)
        if text is tree:
            return written
        text.replace(written)
    return tree
