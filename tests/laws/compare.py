"""Right or wrong, by semantics 7 and 8: what the oracle says a result must hold, and whether it does."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from .oracle import Oracle, OracleError, linked, parse, translate

Row = tuple[Any, ...]
RANK = "oracle_rank"


@dataclass(frozen=True)
class Expected:
    """The full result in groups of rows that ORDER BY does not tell apart, and the window that LIMIT and OFFSET cut.

    Attributes:
        columns: names as the oracle gives them, None where the query leaves the name to the engine.
        limit: None without LIMIT.
    """

    columns: tuple[str | None, ...]
    groups: tuple[tuple[Row, ...], ...]
    limit: int | None
    offset: int

    @property
    def size(self) -> int:
        """Number of rows that a right result has."""
        full = max(0, sum(len(g) for g in self.groups) - self.offset)
        return full if self.limit is None else min(self.limit, full)


def expect(oracle: Oracle, sql: str, *, fold: bool = False, link: bool = False) -> Expected:
    """Evaluate a query on the oracle.

    Args:
        fold: text is compared without case and white space (semantics 4).
        link: literals that are no value of an ENUM stand for those that they mean (semantics 11).
    """
    parsed = parse(sql, oracle.dialect)
    tree = linked(parsed) if link else parsed
    limit, offset = _number(tree.args.get("limit")), _number(tree.args.get("offset")) or 0
    order = tree.args.get("order")
    plain = tree.copy()
    for clause in ("order", "limit", "offset"):
        plain.set(clause, None)
    columns = _names(oracle, plain)
    if _is_distinct_on(plain):  # the generator gives these a total order, which decides what the rows are
        plain.set("order", order.copy() if order is not None else None)
        rows = _normal(oracle.rows(translate(plain, oracle.dialect)), fold)
        return Expected(columns, tuple((row,) for row in rows), limit, offset)
    if order is None:
        rows = oracle.rows(translate(plain, oracle.dialect))
        return Expected(columns, (_normal(rows, fold),) if rows else (), limit, offset)
    ranked = oracle.rows(translate(_ranked(plain, order), oracle.dialect))
    by_rank: dict[int, list[Row]] = {}
    for *row, rank in ranked:
        by_rank.setdefault(rank, []).append(tuple(row))
    return Expected(columns, tuple(_normal(by_rank[r], fold) for r in sorted(by_rank)), limit, offset)


def difference(expected: Expected, columns: Sequence[str], rows: Iterable[Row], *, fold: bool = False) -> str | None:
    """Say what is wrong with a result, or None."""
    if len(columns) != len(expected.columns):
        return f"{len(columns)} columns, not {len(expected.columns)}: {list(columns)}"
    for given, named in zip(columns, expected.columns, strict=True):
        if named is not None and given.lower() != named.lower():
            return f"column {given!r} should be {named!r}"
    actual = list(_normal(rows, fold))
    if len(actual) != expected.size:
        return f"{len(actual)} rows, not {expected.size}; {_contrast(expected, actual)}"
    position, skip = 0, expected.offset
    for group in expected.groups:
        inside = len(group) - min(skip, len(group))
        skip -= len(group) - inside
        taken = actual[position : position + inside]
        position += len(taken)
        wrong = Counter(taken) - Counter(group)
        if wrong:
            row = next(iter(wrong))
            place = (
                "in the wrong place or too often"
                if any(row in g for g in expected.groups)
                else "not in the full result"
            )
            return f"row {row!r} is {place}; {_contrast(expected, actual)}"
    return None


def _contrast(expected: Expected, actual: list[Row]) -> str:
    full = Counter(row for group in expected.groups for row in group)
    extra, missing = Counter(actual) - full, full - Counter(actual)
    text = f"extra {_few(extra)}"
    return text if expected.limit is not None else f"{text}, missing {_few(missing)}"


def _few(rows: Counter[Row]) -> str:
    return repr(list(rows.elements())[:4])


def _ranked(plain: exp.Query, order: exp.Expr) -> exp.Query:
    """Add the rank of each row under ORDER BY as a last column."""
    if isinstance(plain, exp.Select) and not plain.args.get("distinct"):
        ranked = plain.copy()
        items = [_resolved(item, plain) for item in order.expressions]
        ranked.append("expressions", _rank(items))
        return ranked
    with_ = plain.args.get("with_") or plain.args.get("with")
    body = plain.copy()
    for name in ("with_", "with"):
        if name in body.args:
            body.set(name, None)
    names = [s.alias_or_name or None for s in _leftmost(plain).selects]
    items = [_by_name(item, names) for item in order.expressions]
    outer = exp.select("*", _rank(items)).from_(exp.Subquery(this=body, alias=exp.to_identifier("full_result")))
    if with_ is not None:
        outer.set("with_" if "with_" in exp.Select.arg_types else "with", with_.copy())
    return outer


def _is_distinct_on(tree: exp.Query) -> bool:
    distinct = tree.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None


def _rank(items: list[exp.Expr]) -> exp.Expr:
    window = exp.Window(this=exp.DenseRank(), order=exp.Order(expressions=items), over="OVER")
    return exp.alias_(window, RANK)


def _resolved(item: exp.Expr, select: exp.Select) -> exp.Expr:
    """Replace an ordinal or an output alias by the expression it stands for."""
    item = item.copy()
    target = item.this
    found: exp.Expr | None = None
    if isinstance(target, exp.Literal) and not target.is_string:
        found = select.selects[int(target.this) - 1]
    elif isinstance(target, exp.Column) and not target.table:
        found = next((s for s in select.selects if isinstance(s, exp.Alias) and s.alias == target.name), None)
    if found is not None:
        item.set("this", found.unalias().copy())
    return item


def _by_name(item: exp.Expr, names: list[str | None]) -> exp.Expr:
    item = item.copy()
    if isinstance(item.this, exp.Literal) and not item.this.is_string:
        name = names[int(item.this.this) - 1]
        if name is None:
            raise OracleError("an ordinal of a column without a name")
        item.set("this", exp.column(name, quoted=True))
    return item


def _leftmost(tree: exp.Expr) -> exp.Select:
    while not isinstance(tree, exp.Select):
        tree = tree.this
    return tree


def _names(oracle: Oracle, plain: exp.Query) -> tuple[str | None, ...]:
    described = oracle.columns(translate(plain, oracle.dialect))
    selects = _leftmost(plain).selects
    if len(selects) != len(described):
        return tuple(name for name, _ in described)
    known = [isinstance(s, exp.Alias | exp.Column) for s in selects]
    return tuple(name if k else None for (name, _), k in zip(described, known, strict=True))


def _number(clause: exp.Expr | None) -> int | None:
    return None if clause is None else int(clause.expression.this)


def _normal(rows: Iterable[Row], fold: bool) -> tuple[Row, ...]:
    return tuple(tuple(_value(v, fold) for v in row) for row in rows)


def _value(value: Any, fold: bool) -> Any:
    """Return a form in which values equal in SQL are equal, whatever Python type they came in."""
    if value is None or isinstance(value, bool):
        return ("bool", value) if value is not None else None
    if isinstance(value, int | float | decimal.Decimal):
        return ("number", float(f"{float(value):.9g}"))
    if isinstance(value, datetime.datetime):
        return ("date", value.date()) if value.time() == datetime.time() else ("timestamp", value)
    if isinstance(value, datetime.date):
        return ("date", value)
    if isinstance(value, list | tuple):
        return tuple(_value(v, fold) for v in value)
    if isinstance(value, str) and fold:
        return "".join(value.split()).casefold()
    return value
