"""Results that are just the rows that pass a text filter."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.plan.sites import FROM_ALIAS
from almanaq.suql.plan.stages import ORDINAL, ROW, Output, TextBlock


def shown_columns(output: Output, block: TextBlock) -> tuple[exp.Expr, ...] | None:
    """Return the columns of a block's FROM that a result shows, one row for each that passes the block's filter.

    They can be brought along with the candidates, of which a LIMIT lets few be fetched: when it is satisfied, the rows
    of the result are there, and no statement is left to run.

    Returns:
        None where the result is anything else: computed, asked for, joined, cut by OFFSET, or without a LIMIT.
    """
    stops = block.direct and block.filtered and block.stop_after is not None and block.offset is None
    if not stops or block.output_sites or len(output.evidence) != 1 or not isinstance(output.select, exp.Select):
        return None
    select, visible = output.select, len(output.names)
    clauses = {name for name, clause in select.args.items() if clause}
    from_ = select.args.get("from_")
    if from_ is None or not clauses <= {"from_", "expressions", "order"} or not _is(from_.this, block.name):
        return None
    order = select.args.get("order")
    if order is not None and [node.this.name for node in order.expressions] != [ORDINAL]:
        return None
    read = [item.unalias() for item in select.expressions]
    if not all(isinstance(node, exp.Column) for node in read) or [node.name for node in read[visible:]] != [ROW]:
        return None
    outputs = {f"c{i}": node for i, node in enumerate(block.outputs)}
    shown = tuple(outputs[node.name] for node in read[:visible] if node.name in outputs)
    plain = all(isinstance(node, exp.Column) and node.table == FROM_ALIAS for node in shown)
    return shown if plain and len(shown) == visible else None


def _is(item: exp.Expr, name: str) -> bool:
    return isinstance(item, exp.Table) and item.name == name
