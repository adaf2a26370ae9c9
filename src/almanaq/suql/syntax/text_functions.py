"""The text functions of SUQL, `answer`, `summary` and `similarity`, as they stand in a syntax tree.

The first two ask a model; the third compares the vectors of an embedder.

sqlglot reads them as anonymous functions; nothing here subclasses its nodes.
"""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.syntax.nodes import nodes

SIMILARITY = "similarity"
_ASKED = ("answer", "summary")
TEXT_FUNCTIONS = (*_ASKED, SIMILARITY)
_DRAWN = ("clock_timestamp", "nextval", "random_normal", "timeofday")
SUMMARY_QUESTION = "What is the summary of this document?"


def is_text_call(node: object) -> bool:
    """Return whether a node is a call of a text function."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in TEXT_FUNCTIONS


def is_model_call(node: object) -> bool:
    """Return whether a node is a call of `answer` or `summary`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _ASKED


def is_similarity(node: object) -> bool:
    """Return whether a node is a call of `similarity`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == SIMILARITY


def has_text(node: exp.Expr) -> bool:
    """Return whether a text function stands anywhere in a tree, nested queries included."""
    return any(map(is_text_call, nodes(node)))


def is_drawn(node: exp.Expr) -> bool:
    """Return whether a node is a call that comes to something else each time: `random()`, a new UUID, the clock."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in _DRAWN
    return named or isinstance(node, exp.Rand | exp.Randn | exp.Uuid)


def is_by_chance(node: exp.Expr) -> bool:
    """Return whether an expression must not be computed at two places: it would be true at one and false
    at the other.
    """
    return any(map(is_drawn, nodes(node)))


def own_nodes(node: exp.Expr) -> list[exp.Expr]:
    """Return the nodes of an expression or a SELECT block in pre-order; nested queries are given, but not gone into."""
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        at = pending.pop()
        found.append(at)
        if not isinstance(at, exp.Query) or (at is node and not isinstance(at, exp.Subquery)):
            pending += at.iter_expressions(reverse=True)
    return found


def own_text_calls(node: exp.Expr) -> list[exp.Anonymous]:
    """Return the text calls of an expression or a block that do not stand in a nested query, outermost first."""
    return [child for child in own_nodes(node) if isinstance(child, exp.Anonymous) and is_text_call(child)]


def outermost_text_calls(node: exp.Expr) -> list[exp.Anonymous]:
    """Return the text calls of an expression or a block that are not arguments of others."""
    calls = own_text_calls(node)
    inner = {id(child) for call in calls for argument in call.expressions for child in own_text_calls(argument)}
    return [call for call in calls if id(call) not in inner]


def nested_queries(node: exp.Expr) -> list[exp.Query]:
    """Return the outermost queries nested in an expression or a block, in order."""
    found = [child for child in own_nodes(node) if isinstance(child, exp.Query)]
    return [query for query in found if query is not node or isinstance(query, exp.Subquery)]
