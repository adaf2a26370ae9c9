"""Intervals as text in DuckDB, as PostgreSQL writes them: `1 mon`, `-1 days`, `-2 mons +1 day`."""

from __future__ import annotations

from sqlglot import exp

_WRITTEN = (
    ("month", "mon"),
    (r"-1 (year|mon|day)\b", r"-1 \1s"),
    (r"(-\d+ (?:year|mon|day)s) (\d)", r"\1 +\2"),
)
"""What DuckDB writes ⇒ what PostgreSQL writes, one after the other."""


def is_interval(node: exp.Expr) -> bool:
    """Return whether an expression is known to be a span of time."""
    node = node.unnest()
    if isinstance(node, exp.Interval) or node.is_type("interval"):
        return True
    if isinstance(node, exp.Anonymous):
        return node.name.lower() == "age"
    if isinstance(node, exp.Neg | exp.Sum | exp.Avg | exp.Min | exp.Max):
        return is_interval(node.this)
    if isinstance(node, exp.Mul | exp.Div):
        return is_interval(node.this) or is_interval(node.expression)
    return isinstance(node, exp.Add | exp.Sub) and is_interval(node.this) and is_interval(node.expression)


def interval_text(node: exp.Expr) -> exp.Expr:
    """Return an interval as PostgreSQL writes it."""
    written: exp.Expr = exp.Cast(this=node.copy(), to=exp.DataType.build("text"))
    for pattern, there in _WRITTEN:
        arguments = [exp.Literal.string(text) for text in (pattern, there, "g")]
        written = exp.Anonymous(this="regexp_replace", expressions=[written, *arguments])
    return written
