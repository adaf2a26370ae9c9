"""Blocks that show one row of each group: which rows are chosen before text is read, and where reading may stop."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items, holder_of, readers_in
from almanaq.suql.plan.blocks import aggregates_in, derive, is_aggregated, keys_of_groups, sets_in, windows_in
from almanaq.suql.plan.joins import keeps_rows, rows_to_cut
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import where_of
from almanaq.suql.plan.stages import FIRST_ROWS, FirstRows
from almanaq.suql.syntax.nodes import nodes_of, quoted
from almanaq.suql.text_functions import has_text, is_by_chance

_FIRST_ONLY = "first_only"
"""What a block is marked by of whose rows only those numbered 1 are read."""


def split_first_rows(block: exp.Select, name: str) -> bool:
    """Let QUALIFY, DISTINCT ON, or LIMIT above windows choose rows where no answer decides it; say whether they do.

    `SELECT f(a) FROM t QUALIFY row_number() OVER w = 1` becomes
    `SELECT f(d.a) FROM (SELECT a, row_number() OVER w AS u0 FROM t) AS d WHERE d.u0 = 1`: other rows are not asked.
    `SELECT DISTINCT ON (k) f(a) FROM t ORDER BY k, b` becomes
    `SELECT f(d.a) FROM (SELECT DISTINCT ON (k) a, k, b FROM t ORDER BY k, b) AS d ORDER BY d.k, d.b`.
    """
    qualify, distinct, order = (block.args.get(clause) for clause in ("qualify", "distinct", "order"))
    asked = [part for part in (*block.expressions, qualify) if part is not None and has_text(part)]
    if not asked or is_aggregated(block) or sets_in(block.expressions):
        return False
    windows, keys = windows_in(block), _keys_of_distinct(block)
    if windows and not any(map(has_text, windows)) and (qualify is not None or block.args.get("limit") is not None):
        shows_first = _is_first(block)
        inner = derive(block, name, [node for node in windows if node.find_ancestor(exp.Window, exp.Query) is block])
        if qualify is not None:
            block.where(block.args.pop("qualify").this, copy=False)
        inner.meta[_FIRST_ONLY] = shows_first
        return True
    if not keys or windows or any(map(has_text, [*keys, *([order] if order is not None else [])])):
        return False
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
    readers = readers_in(tree)
    for block in nodes_of(tree, exp.Select):
        ones = [each for part in conjuncts(where_of(block)) if (each := _is_one(part)) is not None]
        for item in from_items(block) if ones else ():
            holder = holder_of(item)
            inner = holder.this if isinstance(holder, exp.CTE | exp.Subquery) else None
            if holder is None or not isinstance(inner, exp.Select) or len(readers.get(id(holder), ())) > 1:
                continue
            renamed = bool(item.alias_column_names or holder.alias_column_names)
            cut = renamed or any(inner.args.get(clause) for clause in ("distinct", "limit", "offset"))
            numbers = {one.name for one in ones if isinstance(one, exp.Column) and one.table == item.alias_or_name}
            outputs = [output.unalias() for output in inner.expressions if output.alias_or_name in numbers]
            if not cut and keeps_rows(block, item.alias_or_name) and any(map(_is_row_number, outputs)):
                inner.meta[_FIRST_ONLY] = True


def first_rows_of(block: exp.Expr) -> FirstRows | None:
    found: FirstRows | None = block.meta.get(FIRST_ROWS)
    return found


def derive_first_rows(block: exp.Select, name: str) -> exp.Select | None:
    """Move the rows of a block, decided by text in WHERE, into a derived table; None where it needs all of them.

    It needs one row of each group where it has DISTINCT or GROUP BY without aggregates, and the first in an order where
    it has DISTINCT ON, `max` or `min` of one value, or reads of `row_number()` only the rows numbered 1.

    `SELECT max(day) FROM t WHERE f(a)` becomes `SELECT max(d.u0) FROM (SELECT day AS u0 FROM t WHERE f(a) AND NOT day
    IS NULL ORDER BY day DESC LIMIT 1) AS d`.
    """
    found = None if sets_in(block.expressions) else _find_keys(block)
    if found is None:
        return None
    keys = [key.copy() for key in found[0] if key.find(exp.Column)]
    order = [key.copy() for key in found[1] if key.find(exp.Column)]
    parts = [*keys, *(key.this for key in order)]
    if not parts or any(has_text(part) or is_by_chance(part) or part.find(exp.Query) for part in parts):
        return None
    by_key, wanted, ordered = _wanted(block, keys)
    labels: dict[str, str] = {}
    for part in parts:
        labels.setdefault(part.sql(), f"u{len(labels)}")
    inner = derive(block, name, [part.copy() for part in parts])  # the block goes on to name them as it did
    if not keys:
        if is_aggregated(block) and block.args.get("group") is None:  # of no rows, as of NULLs alone, it is NULL
            known = (exp.Not(this=exp.Is(this=exp.paren(key.this), expression=exp.null())) for key in order)
            inner.where(*known, copy=False)
        inner.set("order", exp.Order(expressions=order))
        return inner.limit(1, copy=False)

    def labelled(key: exp.Ordered) -> exp.Ordered:
        return exp.Ordered(**{**key.args, "this": exp.column(quoted(labels[key.this.sql()]))})

    # A number for each group: keys may be several, NULL, or equal by a collation.
    number = exp.Window(this=exp.DenseRank(), order=exp.Order(expressions=list(map(labelled, by_key))))
    FirstRows(number, tuple(map(labelled, order)), wanted, ordered).mark(inner)
    return inner


def _find_keys(block: exp.Select) -> tuple[list[exp.Expr], list[exp.Ordered]] | None:
    """Return what tells the groups of a block apart, and the order whose first row it shows of each."""
    windows, distinct, order = windows_in(block), block.args.get("distinct"), block.args.get("order")
    if is_aggregated(block):
        return _find_groups(block) if not windows else None
    if not windows and distinct is not None:
        keys = _keys_of_distinct(block)
        if keys:
            return keys, order.expressions if order is not None else []
        return [item.unalias() for item in block.expressions], []
    shows_first = block.meta.get(_FIRST_ONLY) or _is_first(block)
    if not windows or not shows_first or not _is_row_number(windows[0]) or any(w != windows[0] for w in windows):
        return None
    first = windows[0].args.get("order")
    return windows[0].args.get("partition_by") or [], first.expressions if first is not None else []


def _find_groups(block: exp.Select) -> tuple[list[exp.Expr], list[exp.Ordered]] | None:
    keys = keys_of_groups(block)
    clauses = (block.args.get(clause) for clause in ("having", "order"))
    parts = [*block.expressions, *(clause for clause in clauses if clause is not None)]
    found = [node for part in parts for node in aggregates_in(part)]
    if block.args.get("group") is not None and not keys:
        return None
    if not found:
        return keys, []
    aggregate = found[0]
    if any(other != aggregate for other in found) or aggregate.expressions:
        return None
    if isinstance(aggregate, exp.Max | exp.Min) and not isinstance(aggregate.this, exp.Distinct):
        descending = isinstance(aggregate, exp.Max)
        return keys, [exp.Ordered(this=aggregate.this.copy(), desc=descending, nulls_first=False)]
    if isinstance(aggregate, exp.Count) and isinstance(aggregate.this, exp.Distinct) and not keys:
        return list(aggregate.this.expressions), []
    return None


def _wanted(block: exp.Select, keys: list[exp.Expr]) -> tuple[list[exp.Ordered], int | None, bool]:
    """Return the order of a block's groups, how many of them its LIMIT shows, and whether these are the first in it."""
    listed = [exp.Ordered(this=key) for key in keys]
    order, rows = block.args.get("order"), rows_to_cut(block)
    decided = windows_in(block) or _keys_of_distinct(block) or block.args.get("having") is not None
    if rows is None or decided:
        return listed, None, False
    if order is None:
        return listed, rows, False
    if any(key.this not in keys for key in order.expressions):
        return listed, None, False
    first = [key.copy() for key in order.expressions]
    return [*first, *(key for key in listed if all(key.this != other.this for other in first))], rows, True


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
