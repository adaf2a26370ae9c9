"""Changes to a query that ran: conditions taken out or put in, rows counted or ordered. Trees are copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from almanaq.agent.history import Shown, Value
from almanaq.agent.local_old import sql

_AGGREGATE = (exp.AggFunc,)


def read(suql: str) -> exp.Select | None:
    """Return the tree of a query, None when it is no plain SELECT that later turns can change."""
    tree = sqlglot.parse_one(suql, read="postgres")
    changeable = isinstance(tree, exp.Select) and not tree.args.get("with_") and tree.args.get("from_") is not None
    return tree if changeable and isinstance(tree, exp.Select) else None


def parsed(text: str) -> exp.Expr:
    """Return the tree of an expression."""
    return sqlglot.parse_one(text, read="postgres")


def write(tree: exp.Expr) -> str:
    """Return the query of a tree, or a part of one, as text."""
    return tree.sql("postgres", normalize_functions=False)


def table_name(tree: exp.Select) -> str:
    """Return the name by which the query calls its main table."""
    return str(tree.args["from_"].this.alias_or_name)


def qualifier(tree: exp.Select) -> str | None:
    """Return the main table's name where columns must be qualified: the query joins others."""
    return table_name(tree) if tree.args.get("joins") else None


def conditions(tree: exp.Select) -> list[exp.Expr]:
    """Return the conditions that all must hold."""
    where = tree.args.get("where")
    if where is None:
        return []
    found = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    return [
        each.unnest() if isinstance(each, exp.Paren) and not isinstance(each.this, exp.Or) else each for each in found
    ]


def with_conditions(tree: exp.Select, kept: Sequence[exp.Expr]) -> exp.Select:
    """Return the query with these conditions instead of its own, each once."""
    unique = {each.sql("postgres"): each for each in kept}
    wrapped = [exp.Paren(this=e.copy()) if isinstance(e, exp.Or) else e.copy() for e in unique.values()]
    changed = tree.copy()
    changed.set("where", exp.Where(this=exp.and_(*wrapped, wrap=False)) if wrapped else None)
    return changed


def columns(condition: exp.Expr) -> frozenset[str]:
    """Return the names of the columns that a condition speaks of, those of subqueries included."""
    return frozenset(column.name for column in condition.find_all(exp.Column))


def reads_text(condition: exp.Expr) -> bool:
    """Return whether a condition calls a text function."""
    return condition.find(exp.Anonymous) is not None


def aggregates(tree: exp.Select) -> bool:
    """Return whether a query gives figures of rows rather than rows."""
    return tree.args.get("group") is not None or any(item.find(*_AGGREGATE) for item in tree.expressions)


def only(shown: Shown, table: str | None = None) -> exp.Expr:
    """Return the condition that a row is one of those shown."""
    return _listed(shown.columns, shown.keys, table)


def none_of(shown: Shown, table: str | None = None) -> exp.Expr:
    """Return the condition that a row is none of those shown."""
    return exp.Not(this=_listed(shown.columns, shown.keys, table))


def one_of(column: exp.Expr, values: Sequence[Value]) -> exp.Expr:
    """Return the condition that a column has one of some values."""
    literals = [literal(value) for value in values]
    if len(literals) == 1:
        return exp.EQ(this=column, expression=literals[0])
    return exp.In(this=column, expressions=literals)


def _listed(names: Sequence[str], keys: Sequence[tuple[Value, ...]], table: str | None) -> exp.Expr:
    if len(names) == 1:
        return one_of(_column(names[0], table), [key[0] for key in keys])
    rows = [
        exp.and_(*(exp.EQ(this=_column(n, table), expression=literal(v)) for n, v in zip(names, key, strict=True)))
        for key in keys
    ]
    return exp.Paren(this=exp.or_(*rows))


def _column(name: str, table: str | None) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=not sql.plain(name)), table=table)


def literal(value: Any) -> exp.Expr:
    """Return a literal; of what is neither text nor a number, such as a day, its text."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return exp.Literal.number(str(value)) if is_number else exp.Literal.string(str(value))


def leaves_out_rows(condition: exp.Expr, keys: Iterable[str]) -> bool:
    """Return whether a condition only leaves out rows by their key, as "another one" makes it."""
    if isinstance(condition, exp.NEQ):
        return columns(condition) <= frozenset(keys) and isinstance(condition.expression, exp.Literal)
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    return isinstance(inner, exp.In | exp.EQ | exp.Or) and columns(inner) <= frozenset(keys)


def counting(tree: exp.Select) -> exp.Select:
    """Return the query that counts the rows of another, whatever its LIMIT."""
    changed = tree.copy()
    changed.set("expressions", [exp.Count(this=exp.Star())])
    for part in ("order", "limit", "offset", "group", "having", "distinct"):
        changed.set(part, None)
    return changed


def showing(tree: exp.Select, items: Sequence[str]) -> exp.Select:
    """Return the query with another SELECT list, each item once."""
    listed = [parsed(item) for item in dict.fromkeys(items)]
    changed = tree.copy()
    for part in ("group", "having", "distinct"):
        changed.set(part, None)
    changed.set("expressions", listed)
    return changed


def ordered(tree: exp.Select, keys: Sequence[tuple[str, bool]], limit: int | None) -> exp.Select:
    """Return the query with its rows in another order (expression, descending), at most `limit` of them."""
    text = ", ".join(f"{key} {'DESC' if down else 'ASC'}" for key, down in keys)
    changed = limited(tree, limit)
    changed.set("order", parsed(f"SELECT 1 ORDER BY {text}").args["order"] if keys else None)
    changed.set("offset", None)
    return changed


def limited(tree: exp.Select, limit: int | None) -> exp.Select:
    """Return the query with at most `limit` rows, None for all of them."""
    changed = tree.copy()
    changed.set("limit", exp.Limit(expression=exp.Literal.number(limit)) if limit is not None else None)
    return changed


def limit_of(tree: exp.Select) -> int | None:
    """Return the LIMIT of a query, None when it has none."""
    limit = tree.args.get("limit")
    amount = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression") if limit is not None else None
    return int(amount.name) if isinstance(amount, exp.Literal) else None


def without(tree: exp.Select, drop: Callable[[exp.Expr], bool]) -> exp.Select:
    """Return the query without the conditions that `drop` names."""
    return with_conditions(tree, [c for c in conditions(tree) if not drop(c)])


def without_text(tree: exp.Select) -> exp.Select:
    """Return the query without the conditions, of its own or of its subqueries, that call a
    text function themselves.
    """
    changed = tree.copy()
    for select in [node for node in changed.find_all(exp.Select) if node is not changed]:
        kept = [c for c in conditions(select) if not reads_text(c)]
        select.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    return without(changed, reads_text)
