"""The text functions of SUQL: each is one declaration here, and is found in a syntax tree by what stands below.

The binder, the planner, EXPLAIN, the readers and the docs read the declaration; nothing else knows their names. sqlglot
reads their calls as anonymous functions; nothing here subclasses its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from almanaq.errors import QueryTypeError
from almanaq.suql.syntax.nodes import nodes

SUMMARY_QUESTION = "What is the summary of this document?"
_CLASS_QUESTION = "Which of these describes the text best?"
_DRAWN = ("clock_timestamp", "nextval", "random_normal", "timeofday", "uuidv4", "uuidv7", "gen_random_uuid")


@dataclass(frozen=True, slots=True)
class TextFunction:
    """One text function.

    Attributes:
        name: as queries call it, in lower case.
        usage: how it is called, for messages and docs.
        arguments: least and most of them; the first is the document.
        asks_model: whether a language model answers; else an embedder compares.
        question: what is asked of every document; None: the second argument says.
        options: the place of the argument that lists the allowed answers; None: there is none.
        type: the type of its value, as sqlglot calls it; a cast asks the model for another.
        question_of: what it is called in a message about its second argument.
        expand: gives the call of another text function that it is short for; None: it is none.
    """

    name: str
    usage: str
    arguments: tuple[int, int]
    asks_model: bool = True
    question: str | None = None
    options: int | None = None
    type: str = "text"
    question_of: str = "the question of"
    expand: Callable[[Sequence[exp.Expr]], exp.Expr] | None = None


def _classify(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """`classify(text, options)` is short for `answer(text, 'Which …?', options)`."""
    document, options = arguments
    return exp.Anonymous(this="answer", expressions=[document, exp.Literal.string(_CLASS_QUESTION), options])


DECLARED: Mapping[str, TextFunction] = {
    function.name: function
    for function in (
        TextFunction("answer", "answer(text, question [, options])", (2, 3), options=2),
        TextFunction("summary", "summary(text)", (1, 1), question=SUMMARY_QUESTION),
        TextFunction(
            "similarity",
            "similarity(text, text)",
            (2, 2),
            asks_model=False,
            type="double",
            question_of="what it is compared with in",
        ),
        TextFunction("classify", "classify(text, options)", (2, 2), expand=_classify),
    )
}
TEXT_FUNCTIONS = tuple(DECLARED)


def declared(call: exp.Expr) -> TextFunction:
    """Return the declaration of a text call."""
    return DECLARED[call.name.lower()]


def check_arity(name: str, count: int, **place: Any) -> None:
    """Raise QueryTypeError for a text function with fewer or more arguments than it takes."""
    function = DECLARED[name.lower()]
    least, most = function.arguments
    if not least <= count <= most:
        raise QueryTypeError(f"{function.name} takes {function.usage}; {count} argument(s) given", **place)


def place_of(node: exp.Expr, text: str) -> dict[str, Any]:
    """Return where a text call, or what else a node is called, first stands in the text of a query."""
    name = node.name.lower()
    start = text.lower().find(f"{name}(" if is_text_call(node) else name) if name else -1
    return {"query": text, "start": start, "end": start + len(name) - 1} if start >= 0 else {}


def is_text_call(node: object) -> bool:
    """Return whether a node is a call of a text function."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in DECLARED


def is_model_call(node: object) -> bool:
    """Return whether a node is a call of a text function that a language model answers."""
    return isinstance(node, exp.Anonymous) and is_text_call(node) and declared(node).asks_model


def is_similarity(node: object) -> bool:
    """Return whether a node is a call of a text function that compares texts by an embedder."""
    return isinstance(node, exp.Anonymous) and is_text_call(node) and not declared(node).asks_model


def has_text(node: exp.Expr) -> bool:
    """Return whether a text function stands anywhere in a tree, nested queries included."""
    return any(map(is_text_call, nodes(node)))


def is_drawn(node: exp.Expr) -> bool:
    """Return whether a node is a call that comes to something else each time: `random()`, a new UUID, the clock."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in _DRAWN
    return named or isinstance(node, exp.Rand | exp.Randn | exp.Uuid)


def is_by_chance(node: exp.Expr) -> bool:
    """Return whether an expression must be computed once: computed at two places, it may be true at one alone."""
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
