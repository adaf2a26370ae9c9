"""The text functions of SUQL: each is one declaration here, and is found in a syntax tree by what stands below.

The binder, the planner, EXPLAIN, the readers and the docs read the declaration; nothing else knows their names. sqlglot
reads their calls as anonymous functions; nothing here subclasses its nodes. Last, several typed fields from one text:
`answer(text, question, {'price': 'INTEGER', 'mood': ['calm', 'loud']})`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.errors import QueryTypeError
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import in_parentheses, nodes, nodes_above

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
_CALL = re.compile(rf'\b(?:{"|".join(DECLARED)})"?\s*\(', re.IGNORECASE)


def may_read_texts(suql: str) -> bool:
    """Return whether a query seems to call a text function, without parsing it; a literal may look like a call.

    >>> may_read_texts("SELECT Summary (about) FROM dogs"), may_read_texts("SELECT summary FROM dogs")
    (True, False)
    """
    return _CALL.search(suql) is not None


def declared(call: exp.Expr) -> TextFunction:
    return DECLARED[call.name.lower()]


def check_arity(name: str, count: int, **place: Any) -> None:
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
    return nodes_above(node, lambda at: isinstance(at, exp.Query) and (at is not node or isinstance(at, exp.Subquery)))


def own_text_calls(node: exp.Expr) -> list[exp.Anonymous]:
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


_USAGE = (
    "answer(text, question, {'price': 'INTEGER', 'mood': ['calm', 'loud']}): a type, or the allowed values, for each"
)
_BUILDERS = {"duckdb": ("json_object", "json_object"), "postgres": ("json_build_object", "jsonb_build_object")}
_READERS = exp.Dot, exp.Bracket, exp.StructExtract, exp.JSONExtract, exp.JSONExtractScalar
_SIDE_BY_SIDE = (*_BUILDERS["postgres"], "named_struct")
_FIELDS = exp.Struct, exp.PropertyEQ, exp.JSONObject, exp.JSONKeyValue


def holds_fields(node: object) -> bool:
    """Return whether a node puts values side by side, as an answer of several fields is written."""
    return isinstance(node, _FIELDS) or (isinstance(node, exp.Anonymous) and node.name.lower() in _SIDE_BY_SIDE)


def expand_fields(text: str, dialect: str) -> str:
    """Return a query in which each answer of several fields is a STRUCT, or JSON, of one answer for each field.

    The fields are written in the engine's own terms: a STRUCT literal of names and types, or JSON with the same, as
    `'{"price": "integer"}'::jsonb`. A text without such an answer is returned as it is.

    >>> expand_fields("SELECT answer(body, 'what is offered?', {'price': 'INTEGER'}) FROM t", "duckdb")
    "SELECT {'price': CAST(ANSWER(body, 'what is offered?: price') AS INT)} FROM t"
    """
    if "{" not in text or "answer" not in text.lower():
        return text
    try:
        trees = sqlglot.parse(text, dialect=dialect)
    except (SqlglotError, RecursionError):
        return text  # whoever reads it says what is wrong
    if len(trees) != 1 or trees[0] is None:
        return text
    calls = [call for call in trees[0].find_all(exp.Anonymous) if call.name.lower() == "answer"]
    found = [(call, fields) for call in calls if (fields := _fields_of(call)) is not None]
    for call, fields in found:
        holder, name = _read_field(call)
        read = {each: kind for each, kind in fields.items() if each.lower() == name}  # the others are read by nobody
        if read and isinstance(holder, exp.Dot | exp.Bracket) and isinstance(call.expressions[2].unnest(), exp.Struct):
            holder.replace(_field(call, *next(iter(read.items())), dialect))
        else:
            call.replace(_expand_call(call, read or fields, dialect))
    return trees[0].sql(dialect=dialect) if found else text


def _read_field(call: exp.Expr) -> tuple[exp.Expr, str]:
    """Return `call.name`, `call['name']` or `call->>'name'` around a call, and the name in lower case; "" for none."""
    node = in_parentheses(call)
    holder = node.parent
    if not isinstance(holder, _READERS) or node.arg_key != "this":
        return call, ""
    named = holder.expressions[0] if isinstance(holder, exp.Bracket) else holder.expression
    if isinstance(named, exp.JSONPath):
        named = named.expressions[1] if len(named.expressions) > 1 else named
    is_name = isinstance(named, exp.Identifier | exp.JSONPathKey) or named.is_string
    return holder, named.name.lower() if is_name and len(holder.expressions) < 2 else ""


def _fields_of(call: exp.Anonymous) -> Mapping[str, exp.Expr] | None:
    named = call.expressions[2].unnest() if len(call.expressions) == 3 else None
    if isinstance(named, exp.Struct):
        pairs = [(item.this.name, item.expression) for item in named.expressions if isinstance(item, exp.PropertyEQ)]
    elif isinstance(named, exp.Cast) and named.to.is_type("json", "jsonb") and named.this.is_string:
        try:
            given = json.loads(named.this.name)
        except ValueError as error:
            raise QueryTypeError(f"the fields of answer() are no JSON ({error}); write {_USAGE}") from error
        if not isinstance(given, dict):
            raise QueryTypeError(f"the fields of answer() are a JSON object; write {_USAGE}")
        pairs = [(name, _as_sql(value)) for name, value in given.items()]
    else:
        return None
    if not pairs or any(isinstance(part, exp.Placeholder) and not part.name for part in call.find_all(exp.Placeholder)):
        raise QueryTypeError(f"answer() names one field or more, and has no ? beside them; write {_USAGE}")
    return dict(pairs)


def _as_sql(value: object) -> exp.Expr:
    return exp.Array(expressions=list(map(_as_sql, value))) if isinstance(value, list) else literal(value)


def _expand_call(call: exp.Anonymous, fields: Mapping[str, exp.Expr], dialect: str) -> exp.Expr:
    answers = {name: _field(call, name, kind, dialect) for name, kind in fields.items()}
    named = call.expressions[2].unnest()
    if isinstance(named, exp.Struct):
        pairs = [exp.PropertyEQ(this=exp.to_identifier(n, quoted=True), expression=a) for n, a in answers.items()]
        return exp.Struct(expressions=pairs)
    builder = _BUILDERS.get(dialect, ("json_object", "json_object"))[named.to.is_type("jsonb")]
    return exp.Anonymous(this=builder, expressions=[part for n, a in answers.items() for part in (literal(n), a)])


def _field(call: exp.Anonymous, name: str, kind: exp.Expr, dialect: str) -> exp.Expr:
    document, question = (argument.copy() for argument in call.expressions[:2])
    suffix = f": {name.replace('_', ' ')}"
    asked = (
        literal(question.name + suffix) if question.is_string else exp.DPipe(this=question, expression=literal(suffix))
    )
    options = [kind.copy()] if isinstance(kind, exp.Array) else []
    answer = exp.Anonymous(this=call.this, expressions=[document, asked, *options])
    if options:
        return answer
    try:
        type_ = exp.DataType.build(kind.name if kind.is_string else "", dialect=dialect)
    except (SqlglotError, ValueError) as error:
        raise QueryTypeError(f"the field {name!r} of answer() has no type; write {_USAGE}") from error
    return answer if type_.is_type("text", "varchar") else exp.Cast(this=answer, to=type_)
