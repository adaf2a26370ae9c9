"""The type that each text call is expected to give (semantics 3): from a cast, or from what it is compared with."""

from __future__ import annotations

from sqlglot import exp

from almanaq.models.protocols import AnswerType
from almanaq.suql.syntax.text_functions import is_text_call

_TYPES: dict[AnswerType, tuple[str, ...]] = {
    "integer": ("int", "bigint", "smallint", "tinyint", "uint", "ubigint", "usmallint", "utinyint", "int128"),
    "number": ("decimal", "double", "float", "bigdecimal", "udouble", "decimal32", "decimal64", "decimal128"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamptz", "timestampltz", "timestampntz", "datetime"),
    "time": ("time",),
    "boolean": ("boolean",),
}
_BY_NAME: dict[str, AnswerType] = {name: answer for answer, names in _TYPES.items() for name in names}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def answer_type(data_type: exp.DataType | None) -> AnswerType:
    """Give the answer type for a SQL type; "text" for all that is not read in a stricter way."""
    return _BY_NAME.get(data_type.this.value.lower(), "text") if data_type is not None else "text"


def cast_answers(tree: exp.Query) -> exp.Query:
    """Write the implied cast of each `answer` that is compared or computed with something typed.

    `answer(t, q) > 3` becomes `answer(t, q)::int > 3`; a `CASE answer(t, q) WHEN 'a' …` becomes comparisons.
    """
    for case in list(tree.find_all(exp.Case)):
        if case.this is not None and is_text_call(_bare(case.this)):
            _search_case(case)
    for call in list(tree.find_all(exp.Anonymous)):
        if is_text_call(call) and call.name.lower() == "answer":
            wanted = _implied_type(call)
            if wanted is not None and answer_type(wanted) != "text":
                call.replace(exp.cast(call.copy(), wanted.copy()))
    return tree


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _search_case(case: exp.Case) -> None:
    subject = case.this
    for branch in case.args["ifs"]:
        branch.set("this", exp.EQ(this=subject.copy(), expression=branch.this))
    case.set("this", None)


def _implied_type(call: exp.Expr) -> exp.DataType | None:
    node, parent = call, call.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, (*_COMPARISONS, *_ARITHMETIC)):
        other = parent.expression if parent.this is node else parent.this
        return _type_of(other)
    if isinstance(parent, exp.Between):
        others = [parent.args["low"], parent.args["high"]] if parent.this is node else [parent.this]
        return _type_of(others[0])
    if isinstance(parent, exp.In) and parent.this is node and parent.expressions:
        return _type_of(parent.expressions[0])
    return None


def _type_of(node: exp.Expr) -> exp.DataType | None:
    bare = _bare(node)
    if isinstance(bare, exp.Any):
        array = _bare(bare.this).type
        return array.expressions[0] if array is not None and array.expressions else None
    return None if is_text_call(bare) else bare.type
