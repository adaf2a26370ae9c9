"""What an answer is read as (semantics 3): the type that a query expects, a truth, or the key of a GROUP BY."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import NoReturn

from sqlglot import exp

from almanaq.errors import QueryTypeError
from almanaq.models.protocols import AnswerType
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import columns_of, find_source, holder_of
from almanaq.suql.syntax.nodes import column, in_parentheses, nodes_of, quoted
from almanaq.suql.text_functions import has_text, is_model_call, is_text_call, place_of
from almanaq.values import parse_boolean

_SIGNED = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64, "int128": 128}
_BITS = _SIGNED | {f"u{name}": bits for name, bits in _SIGNED.items()}
"""Of the integers, as sqlglot calls them."""
_TYPES: dict[AnswerType, tuple[str, ...]] = {
    "integer": tuple(_BITS),
    "number": ("decimal", "double", "float", "bigdecimal", "udouble", "decimal32", "decimal64", "decimal128"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamptz", "timestampltz", "timestampntz", "datetime"),
    "time": ("time",),
    "boolean": ("boolean",),
}
_TEXTS = ("text", "varchar")
_BY_NAME: dict[str, AnswerType] = {name: answer for answer, names in _TYPES.items() for name in names}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def _name(data_type: exp.DataType) -> str:
    return str(getattr(data_type.this, "value", data_type.this)).lower()  # of `oid` and its like sqlglot has a text


def answer_type(data_type: exp.DataType | None) -> AnswerType:
    """Return the answer type for a SQL type; "text" for all that is not read in a stricter way."""
    if data_type is None:
        return "text"
    return "list" if is_list(data_type) else _BY_NAME.get(_name(data_type), "text")


def is_list(data_type: exp.DataType) -> bool:
    items = data_type.expressions if data_type.this is exp.DType.ARRAY else []
    return any(isinstance(item, exp.DataType) and _name(item) in _TEXTS for item in items)


def is_whole_text(data_type: exp.DataType) -> bool:
    """Return whether a cast to a SQL type leaves a text as it is."""
    return _name(data_type) in _TEXTS and not data_type.expressions


_WIDEST = 29
"""Digits before the point that a number may have in every engine."""


def bounds_of(data_type: exp.DataType) -> tuple[Decimal, Decimal] | None:
    """Return what numbers of a SQL type lie between; None where any number that is read fits.

    An answer beyond it is none that can be read as the type asked for, and no reason to fail the query.
    """
    name = _name(data_type)
    if name in _BITS:
        first = 0 if name.startswith("u") else -(2 ** (_BITS[name] - 1))
        return Decimal(first - 1), Decimal(first + 2 ** _BITS[name])
    if answer_type(data_type) != "number" or name == "double":
        return None
    if name == "float":
        most = Decimal("3.4e38")
    else:
        precision, scale, *_ = [*(int(part.name) for part in data_type.expressions), 0, 0]
        most = Decimal(10) ** (precision - scale) - Decimal(5).scaleb(-scale - 1)
        most = most if precision else Decimal(10) ** _WIDEST
    return -most, most


def cast_answers(tree: exp.Query) -> exp.Query:
    """Write the implied cast of each `answer` that is compared or computed with something typed.

    `answer(t, q) > 3` becomes `answer(t, q)::bigint > 3`: what an answer may say is not bounded by what it is compared
    with; a `CASE answer(t, q) WHEN 'a' …` becomes comparisons.
    """
    for case in nodes_of(tree, exp.Case):
        if case.this is not None and is_text_call(case.this.unnest()):
            for branch in case.args["ifs"]:
                branch.set("this", exp.EQ(this=case.this.copy(), expression=branch.this))
            case.set("this", None)
    for call in nodes_of(tree, exp.Anonymous):
        if is_text_call(call) and call.name.lower() == "answer":
            wanted = implied_type(call)
            kind = answer_type(wanted)
            if wanted is not None and kind != "text":
                call.replace(exp.cast(call.copy(), "bigint" if kind == "integer" else wanted.copy()))
    return tree


def implied_type(call: exp.Expr) -> exp.DataType | None:
    """Return the type that an answer takes from what it is compared or computed with, None where there is none.

    An answer that a query gives alone, as `n IN (SELECT answer(…))`, takes it from what that is compared with.
    """
    node = in_parentheses(call)
    while isinstance(parent := node.parent, exp.Alias | exp.Select | exp.Subquery | exp.Any | exp.All):
        if isinstance(parent, exp.Select) and (node.arg_key != "expressions" or len(parent.selects) > 1):
            return None
        node = in_parentheses(parent)
    if isinstance(parent, (*_COMPARISONS, *_ARITHMETIC)):
        return _type_of(parent.expression if parent.this is node else parent.this)
    if isinstance(parent, exp.Between):
        return _type_of(parent.args["low"] if parent.this is node else parent.this)
    if isinstance(parent, exp.In):
        listed = parent.args.get("query") or parent.expressions[0]
        return _type_of(listed if parent.this is node else parent.this)
    return None


def _type_of(node: exp.Expr) -> exp.DataType | None:
    bare = node.unnest()
    if isinstance(bare, exp.Any | exp.All) and not isinstance(bare.this.unnest(), exp.Query):
        array = bare.this.unnest().type
        return array.expressions[0] if array is not None and array.expressions else None
    while isinstance(bare, exp.Any | exp.All | exp.Query):
        bare = (bare.selects[0].unalias() if isinstance(bare, exp.Query) else bare.this).unnest()
    return None if is_model_call(bare) else bare.type


_EQUALS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Contains, exp.ArrayContains)


def fold_compared(tree: exp.Query, catalog: Catalog) -> exp.Query:
    """Compare answers with columns of text as answers are compared with each other, whatever their case.

    `answer(t, q) = k` becomes `lower(trim(answer(t, q))) = lower(trim(k))`, and so in IN, in a join, through COALESCE
    and derived tables. Literals need none of it: replies that equal one are spelled as it is.
    """
    for node in nodes_of(tree, *_EQUALS):
        sides = [side for side in _sides(node) if side is not None]
        kinds = [_kinds(each, catalog, set()) for each in sides]
        between = any("answer" in a and "text" in b for a, b in itertools.permutations(kinds, 2))
        if between and set().union(*kinds) <= {"answer", "literal", "text"}:
            for each in sides:
                _fold(each)
    return tree


def _sides(node: exp.Expr) -> list[exp.Expr | None]:
    if isinstance(node, exp.In):
        return [node.this, node.args.get("query"), node.args.get("unnest"), *node.expressions]
    if isinstance(node, exp.Contains | exp.ArrayContains):  # x IN [a, b]
        return [node.expression, *node.this.expressions] if isinstance(node.this, exp.Array) else []
    some = node.expression.this.unnest() if isinstance(node.expression, exp.Any) else None
    return [node.this, *(some.expressions if isinstance(some, exp.Array) else [node.expression])]


def _kinds(node: exp.Expr, catalog: Catalog, seen: set[int]) -> set[str]:
    """Return what a value may be: an answer, made of one, a literal, another text, or something else.

    Args:
        seen: the columns that were followed, by their ids: a member of WITH RECURSIVE shows itself.
    """
    bare = node.unnest()
    if isinstance(bare, exp.Any):
        return _kinds(bare.this, catalog, seen) if isinstance(bare.this.unnest(), exp.Query) else {"other"}
    if isinstance(bare, exp.Select) and (len(bare.selects) != 1 or bare.is_star):
        return {"other"}
    if id(bare) in seen:
        return set()
    seen.add(id(bare))
    if parts := _values(bare) or (_shown_by(bare, catalog) if isinstance(bare, exp.Column) else []):
        return {kind for part in parts for kind in _kinds(part, catalog, seen)}
    if isinstance(bare, exp.Cast) and is_whole_text(bare.to):
        return {"text" if kind == "other" else kind for kind in _kinds(bare.this, catalog, seen)}
    if is_model_call(bare):
        return {"answer"}
    if isinstance(bare, exp.Null) or (isinstance(bare, exp.Literal) and bare.is_string):
        return {"literal"}
    named = [] if isinstance(bare, exp.Column) else nodes_of(bare, exp.Column)
    if has_text(bare) or any(_kinds(each, catalog, seen) & {"answer", "made"} for each in named):
        return {"made"}  # as upper(answer(…)), which is compared as it is
    return {"text"} if bare.type is not None and _name(bare.type) in (*_TEXTS, "enum") else {"other"}


def _fold(node: exp.Expr) -> None:
    """Write a value, or the one column of a query, in lower case and without white space around it."""
    inner = node.this if isinstance(node, exp.Any) else node
    query = inner.unnest()
    if not isinstance(query, exp.Query):
        node.replace(_folded(node.copy()))
        return
    shown = query.selects[0].unalias()
    if isinstance(query, exp.Select) and not any(query.args.get(clause) for clause in _AROUND_OUTPUTS):
        shown.replace(_folded(shown.copy()))
        return
    rows = exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=quoted("folded"), columns=[quoted("c0")]))
    query.replace(exp.Select(expressions=[_folded(column("folded", "c0"))], from_=exp.From(this=rows)))


_AROUND_OUTPUTS = ("distinct", "group", "having", "qualify", "order", "limit", "offset")


def _folded(value: exp.Expr) -> exp.Expr:
    enum = value.type is not None and _name(value.type) == "enum"
    made = exp.Lower(this=exp.Trim(this=exp.cast(value, "text", copy=False) if enum else value))
    made.type = exp.DataType.build("text")
    return made


_PLACES: dict[type[exp.Expr], str] = {exp.Not: "NOT", exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or"}


def read_conditions(found: list[exp.Expr], catalog: Catalog, text: str) -> None:
    """Cast each `answer` that stands where a boolean is expected to one; the typed tree is changed.

    `WHERE answer(t, q)` becomes `WHERE answer(t, q)::boolean`, and so in ON, HAVING, FILTER, CASE WHEN, IS TRUE, and
    under AND, OR and NOT.
    """
    for node in found:
        for place, condition in _conditions(node):
            for part in _values_of(condition):
                _read_condition(part, place, catalog, text)


def _conditions(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    if isinstance(node, exp.Where):
        yield ("FILTER" if isinstance(node.parent, exp.Filter) else "WHERE"), node.this
    elif isinstance(node, exp.Having):
        yield "HAVING", node.this
    elif isinstance(node, exp.Join) and node.args.get("on") is not None:
        yield "JOIN/ON", node.args["on"]
    elif isinstance(node, exp.Case) and node.this is None:
        yield from (("CASE/WHEN", branch.this) for branch in node.args["ifs"])
    elif isinstance(node, exp.And | exp.Or):
        yield from ((node.key.upper(), part) for part in (node.this, node.expression))
    elif isinstance(node, exp.Not | exp.LogicalAnd | exp.LogicalOr):
        yield _PLACES[type(node)], node.this
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        yield f"IS {node.expression.sql()}", node.this


def _values_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the text calls and columns that a condition may come to, and what else it may."""
    parts = [] if is_text_call(node) else _values(node)
    return [value for part in parts for value in _values_of(part)] or [node]


def _read_condition(node: exp.Expr, place: str, catalog: Catalog, text: str) -> None:
    def refuse(kind: str, hint: str) -> NoReturn:
        message = f"argument of {place} must be type boolean, not type {kind}: {_write_unqualified(node)}; {hint}"
        raise QueryTypeError(message, **place_of(node, text))

    name = node.name.lower()
    if isinstance(node, exp.Column) and "answer" in _kinds(node, catalog, set()):
        named, here = f"answer(…)::boolean AS {node.name}", f"write {_write_unqualified(node)} = 'Yes'"
        refuse("text", f"{here}, or make it a boolean where it is made: {named}")
    if not is_text_call(node):
        return
    if name != "answer":
        kind = "double precision" if name == "similarity" else "text"
        refuse(kind, f"write {name}(…) {'> 0.5' if name == 'similarity' else 'IS NOT NULL'}")
    if len(node.expressions) > 2:
        options = [option.name for option in node.expressions[2].find_all(exp.Literal)]
        if not options or any(parse_boolean(option) is None for option in options):
            refuse("text", f"compare it with one of its options: answer(…) = '{options[0] if options else '…'}'")
    read = exp.cast(node.copy(), "boolean")
    read.type = exp.DataType.build("boolean")
    node.replace(read)


def _write_unqualified(node: exp.Expr) -> str:
    plain = node.copy()
    for each in plain.find_all(exp.Column):
        each.set("table", None)
    return plain.sql("duckdb", normalize_functions=False).replace('"', "")


def _values(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Case):
        results = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        return results if default is None else [*results, default]
    if isinstance(node, exp.Paren | exp.Nullif | exp.Subquery):
        return [node.this]
    if isinstance(node, exp.Distinct):
        return list(node.expressions)
    if isinstance(node, exp.SetOperation):
        return [node.this, node.expression]
    if isinstance(node, exp.Select):
        return [shown.unalias() for shown in node.selects if not shown.is_star]
    return []


def _shown_by(column: exp.Column, catalog: Catalog) -> list[exp.Expr]:
    """Return what a column shows of a derived table or a member of WITH, by each side of a UNION; [] of any other."""
    item = find_source(column.table, column) if column.table else None
    made = holder_of(item) if item is not None else None
    names = columns_of(item, catalog) or [] if item is not None else []
    return [] if made is None or column.name not in names else _outputs_at(names.index(column.name), made.this)


def _outputs_at(place: int | str, query: exp.Expr) -> list[exp.Expr]:
    """Return the outputs at a place of a query, or of a name, where sides of a UNION go by it."""
    if isinstance(query, exp.Subquery):
        return _outputs_at(place, query.this)
    if isinstance(query, exp.SetOperation):
        if query.args.get("by_name") and isinstance(place, int):
            place = query.named_selects[place]
        return _outputs_at(place, query.this) + _outputs_at(place, query.expression)
    outputs = query.selects if isinstance(query, exp.Select) else []
    return [shown.unalias() for i, shown in enumerate(outputs) if place in (i, shown.alias_or_name)]


def is_read_from(call: exp.Expr, key: exp.Expr, used: exp.DataType | None) -> bool:
    """Return whether a group's key decides a call that is read as a type: it is the answer, or is read as that type."""
    key = key.unnest()
    if key == call or not isinstance(key, exp.Cast) or key.this.unnest() != call:
        return key == call
    return is_whole_text(key.to) or answer_type(key.to) == answer_type(used)
