"""An `answer` that stands where a boolean is expected is read as one; a summary there is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from almanaq.errors import QueryTypeError
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import columns_of, find_cte, find_source
from almanaq.suql.text_functions import is_text_call, place_of
from almanaq.values.typed import parse_boolean

_PLACES: dict[type[exp.Expr], str] = {exp.Not: "NOT", exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or"}


def read_conditions(found: list[exp.Expr], catalog: Catalog, text: str) -> None:
    """Cast each `answer` that stands where a boolean is expected to one; the typed tree is changed.

    `WHERE answer(t, q)` becomes `WHERE answer(t, q)::boolean`, and so in ON, HAVING, FILTER, CASE WHEN, IS TRUE, and
    under AND, OR and NOT.

    Args:
        found: the nodes of a typed query.

    Raises:
        QueryTypeError: text, a number or a date stands there; points at it.
    """
    for node in found:
        for place, condition in _conditions(node):
            _Reading(place, catalog, text).read(condition)


def _conditions(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the parts of a node that are conditions, each with what PostgreSQL calls its place."""
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


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads what stands in one place as a boolean."""

    place: str
    catalog: Catalog
    text: str

    def read(self, node: exp.Expr) -> None:
        """Cast the answers that an expression's value is, and refuse what is no boolean."""
        if isinstance(node, exp.Anonymous) and is_text_call(node):
            self._read_call(node)
        elif isinstance(node, exp.Column) and _is_answer(node, self.catalog):
            named, here = f"answer(…)::boolean AS {node.name}", f"write {_written(node)} = 'Yes'"
            self._refuse(node, "text", f"{here}, or make it a boolean where it is made: {named}")
        elif parts := _values(node):
            for part in parts:
                self.read(part)

    def _read_call(self, call: exp.Anonymous) -> None:
        name = call.name.lower()
        if name != "answer":
            kind = "double precision" if name == "similarity" else "text"
            self._refuse(call, kind, f"write {name}(…) {'> 0.5' if name == 'similarity' else 'IS NOT NULL'}")
        if len(call.expressions) > 2:
            options = [node.name for node in call.expressions[2].find_all(exp.Literal)]
            if not options or any(parse_boolean(option) is None for option in options):
                shown = options[0] if options else "…"
                self._refuse(call, "text", f"compare it with one of its options: answer(…) = '{shown}'")
        read = exp.cast(call.copy(), "boolean")
        read.type = exp.DataType.build("boolean")
        call.replace(read)

    def _refuse(self, node: exp.Expr, kind: str, hint: str) -> NoReturn:
        message = f"argument of {self.place} must be type boolean, not type {kind}: {_written(node)}"
        raise QueryTypeError(message + (f"; {hint}" if hint else ""), **place_of(node, self.text))


def _written(node: exp.Expr) -> str:
    """Return an expression as text, without the relations of its columns."""
    plain = node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return plain.sql("duckdb", normalize_functions=False).replace('"', "")


def _values(node: exp.Expr) -> list[exp.Expr]:
    """Return the expressions that one of gives an expression's value; none where it is made otherwise."""
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


def _is_answer(column: exp.Column, catalog: Catalog, depth: int = 50) -> bool:
    """Return whether a column shows what `answer` or `summary` gives, through derived tables and WITH."""
    item = find_source(column.table, column) if column.table else None
    made = find_cte(item) if isinstance(item, exp.Table) else item
    query = made.this if made is not None and item is not None else None
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    names = columns_of(item, catalog) or [] if item is not None else []
    if not isinstance(query, exp.Select) or column.name not in names[: len(query.selects)] or not depth:
        return False
    shown = query.selects[names.index(column.name)].unalias().unnest()
    if isinstance(shown, exp.Column):
        return _is_answer(shown, catalog, depth - 1)
    return isinstance(shown, exp.Anonymous) and is_text_call(shown)
