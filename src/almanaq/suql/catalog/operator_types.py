"""Operators over values that they do not take, found before anything runs, so that the error has a place."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from almanaq.errors import QueryTypeError
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.normal_forms import COMPARISONS

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_OF_ARRAYS: dict[type[exp.Expr], str] = {
    **{exp.Any: "ANY", exp.Unnest: "unnest", exp.Explode: "unnest"},
    **{exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@", exp.ArrayOverlaps: "&&"},
}
_FAMILIES = {
    "a number": exp.DataType.NUMERIC_TYPES,
    "text": exp.DataType.TEXT_TYPES,
    "a date": {exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ},
    "a boolean": {exp.DType.BOOLEAN},
}


def check_operators(found: list[exp.Expr], text: str) -> None:
    """Check the operators of a typed query whose operands' types are certain; others are left to the database.

    Args:
        found: the query's nodes.

    Raises:
        QueryTypeError: arithmetic on text, an average of dates, a number compared with a date, LIKE on a number, ANY
            of no array and the like; points at it.
    """
    for kinds, check in _CHECKS:
        for node in found:
            if isinstance(node, kinds):
                check(node, text)


def _check_operands(node: exp.Expr, text: str) -> None:
    left = _family(node.this)
    for name in ("expression", "low", "high"):
        other = node.args.get(name)
        right = _family(other) if other is not None else None
        if other is not None and _misfit(node, left, right):
            named = len({column.table for column in nodes_of(node, exp.Column)}) > 1
            known = [
                f"{written(part, named=named)} is {kind}" for part, kind in ((node.this, left), (other, right)) if kind
            ]
            start, end = extent(node)
            sign = _NAMES.get(type(node), node.key.upper())
            message = f"{sign} does not take this: {', '.join(known)}; cast it if that is what you mean"
            raise QueryTypeError(message, query=text, start=start, end=end)


def _check_aggregate(node: exp.Expr, text: str) -> None:
    if _family(node.this) == "a date":
        start, end = extent(node.this)
        message = f"{node.key} takes numbers: {written(node.this)} is a date"
        raise QueryTypeError(message, query=text, start=start, end=end)


def _check_array(node: exp.Expr, text: str) -> None:
    if isinstance(node, exp.Binary) and not any(part.is_type("array") for part in node.args.values()):
        return  # ranges, JSON and shapes have these operators too
    for operand in [*node.args.values()] if isinstance(node, exp.Binary) else [node.this, *node.expressions]:
        kind = _family(operand) if isinstance(operand, exp.Expr) else None
        if kind is not None:
            start, end = extent(operand)
            message = f"{_OF_ARRAYS[type(node)]} takes an array: {written(operand.unnest())} is {kind}"
            raise QueryTypeError(message, query=text, start=start, end=end)


_CHECKS: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr, str], None]], ...] = (
    (tuple(_OF_ARRAYS), _check_array),
    ((exp.Avg, exp.Sum), _check_aggregate),
    ((*_ARITHMETIC, *COMPARISONS, exp.Between, exp.Like, exp.ILike), _check_operands),
)
"""What is checked, in this order."""


_NAMES: dict[type[exp.Expr], str] = {
    **{exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "/", exp.Mod: "%"},
    **{exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="},
}


def _misfit(node: exp.Expr, left: str | None, right: str | None) -> bool:
    families = {left, right}
    if isinstance(node, exp.Like | exp.ILike):
        return left not in (None, "text")
    if isinstance(node, _ARITHMETIC):
        dates = left == right == "a date" and not isinstance(node, exp.Sub)
        scaled = families == {"a date", "a number"} and not isinstance(node, exp.Add | exp.Sub)
        return (None not in families and "text" in families) or dates or scaled
    constant = any(isinstance(part, exp.Literal) for part in node.args.values())
    return families == {"a date", "a number"} or (families == {"text", "a number"} and not constant)


def _family(node: exp.Expr) -> str | None:
    """Return what kind of value an expression certainly is; a bare literal in quotes may be anything."""
    if isinstance(node, exp.Paren | exp.Neg | exp.Max | exp.Min):
        return _family(node.this)
    if isinstance(node, exp.Literal):
        return None if node.is_string else "a number"
    kind = node.to if isinstance(node, exp.Cast) else node.type if isinstance(node, exp.Column) else None
    return next((name for name, types in _FAMILIES.items() if kind is not None and kind.is_type(*types)), None)


def written(node: exp.Expr, *, named: bool = False) -> str:
    """Return an expression as text; the relations of its columns only where there are several."""
    plain = node.copy()
    for column in nodes_of(plain, exp.Column) if not named else ():
        column.set("table", None)
    return plain.sql("postgres").replace('"', "")


def extent(node: exp.Expr) -> tuple[int | None, int | None]:
    """Return where the names of an expression start and end in the query's text."""
    places = [i.meta for i in nodes_of(node, exp.Identifier) if "start" in i.meta]
    return min((p["start"] for p in places), default=None), max((p["end"] for p in places), default=None)
