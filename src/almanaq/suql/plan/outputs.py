"""The columns of the result: numbered, with hidden ones that lead to the evidence."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan import blocks
from almanaq.suql.plan.references import aliased, column
from almanaq.suql.plan.stages import ROW


def number_outputs(query: exp.Query, text_blocks: set[str]) -> tuple[exp.Query, tuple[tuple[str, str], ...]]:
    """Number the result's columns and add a hidden one that leads to the evidence, where rows can be told apart."""
    at: exp.Expr = query
    while isinstance(at, exp.Subquery):
        at = at.this
    if not isinstance(at, exp.Select):
        return query, ()
    blocks.expand_output_names(at)
    at.set("expressions", [aliased(item.unalias(), f"c{i}") for i, item in enumerate(at.expressions)])
    evidence: list[tuple[str, str]] = []
    for item in from_items(at):
        name = _block_read(item, text_blocks)
        if name is None:
            continue
        if at.args.get("distinct"):  # which a hidden column would take part in
            continue
        hidden = f"e{len(evidence)}"
        row = _expose_row(item, name)
        gathered = exp.ArrayAgg(this=row) if blocks.is_aggregated(at) else row
        at.append("expressions", aliased(gathered, hidden))
        evidence.append((name, hidden))
    return query, tuple(evidence)


def _block_read(item: exp.Expr, names: set[str]) -> str | None:
    """Return the text block that a FROM item reads row by row, directly or through a derived table."""
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and blocks.is_plain(item.this):
        source = item.this.args.get("from_")
        item = source.this if source is not None and not item.this.args.get("joins") else item
    return item.name if isinstance(item, exp.Table) and item.name in names else None


def _expose_row(item: exp.Expr, name: str) -> exp.Expr:
    """Return the expression for a block's row id above a FROM item, passing it through a derived table."""
    if isinstance(item, exp.Subquery):
        item.this.append("expressions", aliased(column(name, ROW), ROW))
    return column(item.alias_or_name, ROW)
