"""Pieces of SQL as trees: columns, literals, aggregates, parts of dates. Trees are shared: copy before a change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.joins import column_of

TEXT_FUNCTIONS = ("answer", "summary", "similarity")


def plain(column: LinkedColumn) -> exp.Column:
    """Return a linked column as it is shown."""
    return column_of(column.relation.name, column.name)


def compared(column: LinkedColumn) -> exp.Expr:
    """Return a linked column as numbers are compared with it: cast where it holds them as text."""
    own: exp.Expr = plain(column)
    if column.scale:
        steps = exp.Case(this=own)
        for rank, step in enumerate(column.scale, 1):
            steps = steps.when(text(step), exp.Literal.number(rank))
        return steps
    if column.minutes:
        return exp.Div(this=exp.Extract(this=exp.var("epoch"), expression=own), expression=number(60))
    if column.missing is not None:
        own = exp.func("NULLIF", own, text(column.missing))
    return exp.cast(own, "double") if column.cast else own


def text(value: str) -> exp.Literal:
    """Return a text literal."""
    return exp.Literal.string(value)


def number(value: float) -> exp.Expr:
    """Return a number without a needless fraction."""
    return (
        exp.Literal.number(int(value) if value == int(value) else repr(value))
        if value >= 0
        else exp.Neg(this=exp.Literal.number(int(-value) if value == int(value) else repr(-value)))
    )


def day(value: date, column: LinkedColumn) -> exp.Expr:
    """Return a day as it is compared with a column."""
    return text(value.isoformat()) if column.kind != "date" else exp.cast(text(value.isoformat()), "date")


def count() -> exp.Expr:
    """Return the number of rows."""
    return exp.Count(this=exp.Star())


def aggregate(function: str, column: LinkedColumn) -> exp.Expr:
    """Return AVG, SUM, MIN, MAX, MEDIAN or COUNT (of distinct values) of a column."""
    if function == "COUNT":
        return exp.Count(this=exp.Distinct(expressions=[plain(column)]))
    kinds = {"AVG": exp.Avg, "SUM": exp.Sum, "MIN": exp.Min, "MAX": exp.Max, "MEDIAN": exp.Median}
    return kinds[function](this=compared(column))


def part(name: str, column: LinkedColumn, dialect: str) -> exp.Expr:
    """Return the year, month, quarter, week, hour, decade or weekday of a column of dates, or of one of years."""
    own: exp.Expr = compared(column)
    if name == "weekday":
        return (
            exp.func("dayname", own)
            if dialect == "duckdb"
            else exp.Anonymous(this="to_char", expressions=[own, text("FMDay")])
        )
    if name == "decade":
        year = own if column.kind == "number" else exp.Extract(this=exp.var("year"), expression=own)
        return exp.Sub(this=year, expression=exp.Mod(this=year.copy(), expression=number(10)))
    return exp.Extract(this=exp.var(name), expression=own)


def one_of(column: exp.Expr, values: Sequence[exp.Expr]) -> exp.Expr:
    """Return the condition that a column has one of some values."""
    if len(values) == 1:
        return exp.EQ(this=column, expression=values[0])
    return exp.In(this=column, expressions=list(values))


def is_missing(column: exp.Expr) -> exp.Expr:
    """Return the condition that there is no value."""
    return exp.Is(this=column, expression=exp.Null())


def is_there(column: exp.Expr) -> exp.Expr:
    """Return the condition that there is a value."""
    return exp.Not(this=is_missing(column))


def like(column: exp.Expr, form: str, value: str) -> exp.Expr:
    """Return the condition that a text holds a value as a form says, X for the value: "%X%", "X%"."""
    escaped = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    tree: exp.Expr = exp.ILike(this=column, expression=text(form.replace("X", escaped)))
    # PostgreSQL escapes by a backslash where nothing is said, DuckDB by nothing.
    return tree if escaped == value else exp.Escape(this=tree, expression=text("\\"))


def has_item(column: LinkedColumn, item: str) -> exp.Expr:
    """Return the condition that an array, or a text that is a list, has an item."""
    if column.column.array:
        return exp.EQ(this=text(item), expression=exp.Any(this=exp.paren(plain(column))))
    mark = column.mark
    escaped = item.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    around = exp.DPipe(this=exp.DPipe(this=text(mark), expression=plain(column)), expression=text(mark))
    return exp.Like(this=exp.paren(around), expression=text(f"%{mark}{escaped}{mark}%"))


def tables_in(expression: exp.Expr) -> list[str]:
    """Return the relations whose columns an expression reads, those of its subqueries aside."""
    return list(
        dict.fromkeys(
            column.table for column in expression.find_all(exp.Column) if column.find_ancestor(exp.Select) is None
        )
    )


def columns_in(expression: exp.Expr) -> frozenset[tuple[str, str]]:
    """Return the columns that an expression speaks of as (relation, name), those of subqueries included."""
    return frozenset((column.table, column.name) for column in expression.find_all(exp.Column))


def reads_text(expression: exp.Expr) -> bool:
    """Return whether an expression calls a text function."""
    calls = expression.find_all(exp.Anonymous)
    return any(isinstance(call.this, str) and call.this.casefold() in TEXT_FUNCTIONS for call in calls)


def answer(column: LinkedColumn, question: str) -> exp.Expr:
    """Return the call that asks a text."""
    return exp.Anonymous(this="answer", expressions=[plain(column), text(question)])
