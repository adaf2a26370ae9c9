"""Calls of `similarity`: which of them a block can have computed, and the stages that compute them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.joins import conditions_about, rows_to_cut
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import CLAUSES_OF_FROM, is_of_block, own_columns, parts_beside, where_of
from almanaq.suql.plan.stages import ROW, SimilarityCall, SimilarityJoin, SimilarityStage
from almanaq.suql.syntax.nodes import aliased, column, side_of, table
from almanaq.suql.text_functions import has_text, is_by_chance, is_similarity, own_text_calls

_ACROSS_ROWS = (exp.AggFunc, exp.Window, exp.Query, exp.Explode, exp.ExplodingGenerateSeries)


def computable(block: exp.Select) -> list[exp.Anonymous]:
    """Return the calls of a block, outside of its FROM, that compare texts of its rows as they come from FROM."""
    within = {id(call) for part in parts_beside(block, CLAUSES_OF_FROM) for call in own_text_calls(part)}
    return [
        call
        for call in own_text_calls(block)
        if id(call) in within
        and is_similarity(call)
        and is_of_block(call, block)
        and not any(has_text(part) or is_by_chance(part) or part.find(*_ACROSS_ROWS) for part in call.expressions)
    ]


def joining(block: exp.Select, calls: Sequence[exp.Anonymous]) -> tuple[exp.Anonymous, float] | None:
    """Return a call that compares texts of two FROM items, with the bound that WHERE sets it from below."""
    items = {item.alias_or_name: item for item in from_items(block)}
    joins = block.args.get("joins") or ()
    if block.args.get("laterals") or any(side_of(join) or join.args.get("using") for join in joins):
        return None
    if not all(isinstance(item, exp.Table | exp.Subquery) for item in items.values()):
        return None
    bounds = _bounds(block)
    for call in calls:
        sides = [{reference.table for reference in own_columns(block, part)} for part in call.expressions]
        if call.sql() in bounds and all(len(side) == 1 for side in sides) and sides[0] != sides[1]:
            return call, bounds[call.sql()]
    return None


def sides_of(block: exp.Select, call: exp.Anonymous) -> list[tuple[exp.Expr, list[exp.Expr]]]:
    """Return the FROM items whose texts a joining call compares, each with what WHERE says of it alone."""
    items = {item.alias_or_name: item for item in from_items(block)}
    sides = [items[own_columns(block, text)[0].table] for text in call.expressions]
    return [(item, conditions_about(block, item.alias_or_name)) for item in sides]


def _bounds(block: exp.Select) -> dict[str, float]:
    return dict(filter(None, map(_find_bound, conjuncts(where_of(block)))))


def _top(block: exp.Select) -> tuple[str, int] | None:
    """Return the call that orders a block from its highest on, and how many rows are wanted; None: all are."""
    order, rows = block.args.get("order"), rows_to_cut(block)
    if order is None or rows is None or not is_plain(block) or is_by_chance(block):
        return None
    where = where_of(block)
    first = order.expressions[0]
    if not first.args.get("desc") or not is_similarity(first.this) or (where is not None and has_text(where)):
        return None
    return first.this.sql(), rows


def _find_bound(part: exp.Expr) -> tuple[str, float] | None:
    """Return the call that a condition bounds from below by a number, and the number."""
    node = part.unnest()
    if isinstance(node, exp.Between):
        sides = (node.this, node.args["low"])
    elif isinstance(node, exp.GT | exp.GTE):
        sides = (node.this, node.expression)
    elif isinstance(node, exp.LT | exp.LTE):
        sides = (node.expression, node.this)
    else:
        return None
    call, bound = (side.unnest() for side in sides)
    if is_similarity(call) and isinstance(bound, exp.Literal) and not bound.is_string:
        return call.sql(), float(bound.name)
    return None


def join_stage(
    block: exp.Select, name: str, call: exp.Anonymous, tables: Sequence[str], bound: float
) -> SimilarityJoin:
    """Join a block's two tables, made of the items that a call compares, on the pairs that the stage finds."""
    left, right = (
        exp.Select(expressions=[aliased(column(rows, ROW), ROW), aliased(text.copy(), "d")]).from_(
            table(rows), copy=False
        )
        for rows, text in zip(tables, call.expressions, strict=True)
    )
    matches = [
        exp.EQ(this=column(name, side), expression=column(rows, ROW)) for side, rows in zip("lr", tables, strict=True)
    ]
    block.append("joins", exp.Join(this=table(name), on=exp.and_(*matches)))
    written = call.sql()
    for one in computable(block):
        if one.sql() == written:
            one.replace(column(name, "score"))
    return SimilarityJoin(name, left, right, bound)


def rows_stage(
    block: exp.Select, name: str, source: exp.Select, row: exp.Expr, calls: Sequence[exp.Anonymous]
) -> SimilarityStage:
    """Put columns of the stage's table, which the block joins on `row`, in the place of calls.

    `source` is a SELECT without outputs of the rows, in whose FROM the calls and `row` have a meaning.
    """
    source.set("expressions", [aliased(row.copy(), ROW)])
    texts: dict[str, str] = {}
    made: dict[str, SimilarityCall] = {}
    bounds, top = _bounds(block), _top(block)

    def label(node: exp.Expr) -> str:
        written = node.sql()
        if written not in texts:
            texts[written] = f"d{len(texts)}"
            source.append("expressions", aliased(node.copy(), texts[written]))
        return texts[written]

    for call in calls:
        written = call.sql()
        if written not in made:
            document, other = sorted(call.expressions, key=_is_text)
            words = other.name if _is_text(other) else None
            second = None if words is not None else label(other)
            most = top[1] if top is not None and top[0] == written else None
            made[written] = SimilarityCall(
                f"t{len(made)}", label(document), second, words or "", bounds.get(written), most
            )
        call.replace(column(name, made[written].column))
    if block.args.get("from_") is None:
        block.set("from_", exp.From(this=table(name)))
    else:
        on = exp.EQ(this=column(name, ROW), expression=row.copy())
        block.append("joins", exp.Join(this=table(name), on=on))
    return SimilarityStage(name, source, tuple(made.values()))


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)
