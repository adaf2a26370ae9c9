"""Blocks that show one row of each group: which rows are chosen before text is read, and where reading may stop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.suql.catalog.sources import find_cte, from_items
from almanaq.suql.plan.blocks import derive, is_aggregated, sets_in
from almanaq.suql.plan.joins import keeps_rows
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import where_of
from almanaq.suql.plan.stages import TextBlock
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance, own_nodes

_FIRST_ONLY = "first_only"
"""What a block is marked by of whose rows only those numbered 1 are read."""


def split_first_rows(block: exp.Select, name: str) -> bool:
    """Let QUALIFY or DISTINCT ON choose rows in a derived table where no answer decides it; say whether they do.

    `SELECT f(a) FROM t QUALIFY row_number() OVER w = 1` becomes
    `SELECT f(d.a) FROM (SELECT a, row_number() OVER w AS u0 FROM t) AS d WHERE d.u0 = 1`: other rows are not asked.
    `SELECT DISTINCT ON (k) f(a) FROM t ORDER BY k, b` becomes
    `SELECT f(d.a) FROM (SELECT DISTINCT ON (k) a, k, b FROM t ORDER BY k, b) AS d ORDER BY d.k, d.b`.
    """
    qualify, distinct, order = (block.args.get(clause) for clause in ("qualify", "distinct", "order"))
    windows = _windows(block)
    choosing = windows if qualify is not None else [*_keys_of_distinct(block), *([order] if order else []), *windows]
    asked = [part for part in (*block.expressions, qualify) if part is not None and has_text(part)]
    chooses = bool(windows) if qualify is not None else bool(_keys_of_distinct(block))
    if not chooses or not asked or any(map(has_text, choosing)) or is_aggregated(block) or sets_in(block.expressions):
        return False
    if qualify is not None:
        shows_first = _is_first(block)
        inner = derive(block, name, [node for node in windows if node.find_ancestor(exp.Window, exp.Query) is block])
        block.where(block.args.pop("qualify").this, copy=False)
        inner.meta[_FIRST_ONLY] = shows_first
        return True
    chosen = {clause: part.copy() for clause, part in (("distinct", distinct), ("order", order)) if part is not None}
    inner = derive(block, name, [])
    for clause, part in chosen.items():
        inner.set(clause, part)
    block.set("distinct", None)
    return True


def mark_first_rows(tree: exp.Query) -> None:
    """Mark derived tables and members of WITH whose only reader takes the rows that their `row_number()` calls 1.

    So does `SELECT … FROM (SELECT *, row_number() OVER w AS n FROM t WHERE f(a)) AS d WHERE d.n = 1`.
    """
    read = [cte for table in nodes_of(tree, exp.Table) if (cte := find_cte(table)) is not None]
    for block in nodes_of(tree, exp.Select):
        ones = [each for part in conjuncts(where_of(block)) if (each := _is_one(part)) is not None]
        for item in from_items(block) if ones else ():
            holder = item if isinstance(item, exp.Subquery) else find_cte(item) if isinstance(item, exp.Table) else None
            inner = holder.this if holder is not None else None
            if holder is None or not isinstance(inner, exp.Select) or sum(cte is holder for cte in read) > 1:
                continue
            renamed = bool(item.alias_column_names or holder.alias_column_names)
            cut = renamed or any(inner.args.get(clause) for clause in ("distinct", "limit", "offset"))
            numbers = {one.name for one in ones if isinstance(one, exp.Column) and one.table == item.alias_or_name}
            outputs = [output.unalias() for output in inner.expressions if output.alias_or_name in numbers]
            if not cut and keeps_rows(block, item.alias_or_name) and any(map(_is_row_number, outputs)):
                inner.meta[_FIRST_ONLY] = True


@dataclass(frozen=True, slots=True)
class FirstRows:
    """A block of which the first row of each group of equal keys, in an order, will do.

    Attributes:
        keys: outputs of the block, by name.
        order: other outputs, with their directions.
    """

    block: exp.Select
    keys: tuple[str, ...]
    order: tuple[tuple[str, exp.Ordered], ...]

    def apply_to(self, stage: TextBlock, labels: list[str]) -> TextBlock:
        """Return the stage that the block became, which may stop at the first row of each group that passes."""
        outputs = dict(zip(labels, stage.outputs, strict=False))
        order = []
        for label, key in self.order:
            order.append(key.copy())
            order[-1].set("this", outputs[label].copy())
        # A number for each group: keys may be several, NULL, or equal by a collation.
        keys = [exp.Ordered(this=outputs[label].copy()) for label in self.keys]
        number = exp.Window(this=exp.DenseRank(), order=exp.Order(expressions=keys))
        return replace(stage, semi_join_key=number, first_by=tuple(order))


def derive_first_rows(block: exp.Select, name: str) -> FirstRows | None:
    """Move the rows of a block, decided by text in WHERE, into a derived table; None where it needs all of them.

    It needs the first of each group where it has DISTINCT ON, or reads of `row_number()` only the rows numbered 1.
    """
    windows, order = _windows(block), block.args.get("order")
    keys = _keys_of_distinct(block)
    if is_aggregated(block) or sets_in(block.expressions):
        return None
    ordered = order.expressions if order is not None else []
    if windows:
        first, *others = windows
        if not (block.meta.get(_FIRST_ONLY) or _is_first(block)) or not _is_row_number(first):
            return None
        if any(other != first for other in others):
            return None
        keys = first.args.get("partition_by") or []
        ordered = first.args["order"].expressions if first.args.get("order") is not None else []
    parts = [*keys, *ordered]
    constant = any(not part.find(exp.Column) for part in parts)
    if not keys or constant or any(has_text(part) or is_by_chance(part) for part in parts):
        return None
    units = [*keys, *(key.this for key in ordered)]
    labels: dict[str, str] = {}
    for unit in units:
        labels.setdefault(unit.sql(), f"u{len(labels)}")
    by = tuple((labels[key.this.sql()], key.copy()) for key in ordered)
    names = tuple(labels[key.sql()] for key in keys)
    return FirstRows(derive(block, name, units), names, by)


def _windows(block: exp.Select) -> list[exp.Expr]:
    return [node for node in own_nodes(block) if isinstance(node, exp.Window)]


def _keys_of_distinct(block: exp.Select) -> list[exp.Expr]:
    distinct = block.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    return [] if on is None else on.expressions if isinstance(on, exp.Tuple) else [on]


def _is_first(block: exp.Select) -> bool:
    """Return whether QUALIFY keeps only rows that a `row_number()` calls 1."""
    qualify = block.args.get("qualify")
    ones = [_is_one(part) for part in conjuncts(qualify.this)] if qualify is not None else []
    return any(one is not None and _is_row_number(one) for one in ones)


def _is_row_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber) and node.args.get("spec") is None


def _is_one(part: exp.Expr) -> exp.Expr | None:
    """Return what a condition holds to be 1, the least of its values."""
    if not isinstance(part, exp.EQ | exp.LTE | exp.LT) or not isinstance(part.expression, exp.Literal):
        return None
    left: exp.Expr = part.this
    return left if part.expression.name == ("2" if isinstance(part, exp.LT) else "1") else None
