"""The type that each text call is expected to give (semantics 3): from a cast, or from what it is compared with."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from almanaq.models.protocols import AnswerType
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import is_model_call, is_text_call

_TYPES: dict[AnswerType, tuple[str, ...]] = {
    "integer": ("int", "bigint", "smallint", "tinyint", "uint", "ubigint", "usmallint", "utinyint", "int128"),
    "number": ("decimal", "double", "float", "bigdecimal", "udouble", "decimal32", "decimal64", "decimal128"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamptz", "timestampltz", "timestampntz", "datetime"),
    "time": ("time",),
    "boolean": ("boolean",),
}
_TEXTS = ("text", "varchar")
_BY_NAME: dict[str, AnswerType] = {name: answer for answer, names in _TYPES.items() for name in names}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def answer_type(data_type: exp.DataType | None) -> AnswerType:
    """Return the answer type for a SQL type; "text" for all that is not read in a stricter way."""
    if data_type is None:
        return "text"
    return "list" if is_list(data_type) else _BY_NAME.get(data_type.this.value.lower(), "text")


def is_list(data_type: exp.DataType) -> bool:
    """Return whether a SQL type is a list of texts, of one dimension."""
    items = data_type.expressions if data_type.this is exp.DType.ARRAY else []
    return any(isinstance(item, exp.DataType) and item.this.value.lower() in _TEXTS for item in items)


def is_whole_text(data_type: exp.DataType) -> bool:
    """Return whether a cast to a SQL type leaves a text as it is."""
    return data_type.this.value.lower() in _TEXTS and not data_type.expressions


_INTEGERS = {"smallint": 2**15, "int": 2**31}
_WIDEST = 29
"""Digits before the point that a number may have in every engine."""


def bound_of(data_type: exp.DataType) -> Decimal | None:
    """Return what the size of a number of a SQL type stays below; None where any number that is read fits.

    An answer beyond it is none that can be read as the type asked for, and no reason to fail the query.
    """
    name = data_type.this.value.lower()
    if name in _INTEGERS:
        return Decimal(_INTEGERS[name])
    if answer_type(data_type) != "number" or name == "double":
        return None
    if name == "float":
        return Decimal("3.4e38")
    precision, scale, *_ = [*(int(part.name) for part in data_type.expressions), 0, 0]
    if not precision:
        return Decimal(10) ** _WIDEST
    return Decimal(10) ** (precision - scale) - Decimal(5).scaleb(-scale - 1)


def cast_answers(tree: exp.Query) -> exp.Query:
    """Write the implied cast of each `answer` that is compared or computed with something typed.

    `answer(t, q) > 3` becomes `answer(t, q)::bigint > 3`: what an answer may say is not bounded by what it is compared
    with; a `CASE answer(t, q) WHEN 'a' …` becomes comparisons.
    """
    for case in nodes_of(tree, exp.Case):
        if case.this is not None and is_text_call(case.this.unnest()):
            _search_case(case)
    for call in nodes_of(tree, exp.Anonymous):
        if is_text_call(call) and call.name.lower() == "answer":
            wanted = implied_type(call)
            kind = answer_type(wanted)
            if wanted is not None and kind != "text":
                call.replace(exp.cast(call.copy(), "bigint" if kind == "integer" else wanted.copy()))
    return tree


def _search_case(case: exp.Case) -> None:
    subject = case.this
    for branch in case.args["ifs"]:
        branch.set("this", exp.EQ(this=subject.copy(), expression=branch.this))
    case.set("this", None)


def implied_type(call: exp.Expr) -> exp.DataType | None:
    """Return the type that an answer takes from what it is compared or computed with, None where there is none."""
    node, parent = call, call.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, (*_COMPARISONS, *_ARITHMETIC)):
        other = parent.expression if parent.this is node else parent.this
        return _type_of(other)
    if isinstance(parent, exp.Between):
        others = [parent.args["low"], parent.args["high"]] if parent.this is node else [parent.this]
        return _type_of(others[0])
    if isinstance(parent, exp.In) and parent.this is node:
        query = parent.args.get("query")
        return _type_of(query if query is not None else parent.expressions[0])
    return None


def _type_of(node: exp.Expr) -> exp.DataType | None:
    bare = node.unnest()
    if isinstance(bare, exp.Any | exp.All) and not isinstance(bare.this.unnest(), exp.Query):
        array = bare.this.unnest().type
        return array.expressions[0] if array is not None and array.expressions else None
    while isinstance(bare, exp.Any | exp.All | exp.Query):
        bare = (bare.selects[0].unalias() if isinstance(bare, exp.Query) else bare.this).unnest()
    return None if is_model_call(bare) else bare.type
