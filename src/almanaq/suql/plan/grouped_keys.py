"""The keys of GROUP BY, and what is read of an answer that is one of them."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.answer_types import answer_type, is_whole_text
from almanaq.suql.catalog.grouping import keys_of_grouping_sets
from almanaq.suql.plan.references import in_where
from almanaq.suql.plan.sites import text_unit

AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup)


def keep_grouped_readings(block: exp.Select, calls: list[exp.Anonymous]) -> None:
    """`… GROUP BY answer(a, q)` with `answer(a, q) = 'x'` or `answer(a, q)::boolean` above it: one in a whole group.

    Under ROLLUP and its like the key, and so what is read from it, is NULL in the groups that it does not tell apart.
    """
    group = block.args.get("group") or exp.Group()
    sometimes = keys_of_grouping_sets(group)
    keys = [*group.expressions, *sometimes]
    for call in calls:
        unit = text_unit(call)
        key = next((key for key in keys if is_read_from(unit, call, key)), None)
        if key is None or any(unit == key.unnest() for key in keys) or in_where(unit, block):
            continue
        if unit.find_ancestor(exp.Group, *AGGREGATES, exp.Query) is block:
            of_truth = unit.to.this is exp.DType.BOOLEAN if isinstance(unit, exp.Cast) else unit is not call
            reading: exp.Expr = exp.LogicalOr(this=unit.copy()) if of_truth else exp.Max(this=unit.copy())
            if key in sometimes:
                told_apart = exp.EQ(this=exp.Grouping(expressions=[key.copy()]), expression=exp.Literal.number(0))
                reading = exp.Case(ifs=[exp.If(this=told_apart, true=reading)])
            unit.replace(reading)


def is_read_from(unit: exp.Expr, call: exp.Expr, key: exp.Expr) -> bool:
    """Return whether a group's key decides what is read of a call: it is the answer itself, or is read as that type."""
    key = key.unnest()
    if key == call:
        return True
    if not isinstance(key, exp.Cast) or key.this.unnest() != call:
        return False
    return is_whole_text(key.to) or answer_type(key.to) == (
        answer_type(unit.to) if isinstance(unit, exp.Cast) else "text"
    )
