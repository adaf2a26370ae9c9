"""Compute text that only the output shows for the rows that are returned."""

from __future__ import annotations

from dataclasses import replace

from almanaq.suql.plan.stages import TextBlock


def late_projection(block: TextBlock) -> TextBlock:
    """Evaluate text functions of the SELECT list after ORDER BY, OFFSET and LIMIT.

    Before: `SELECT summary(reviews) FROM r ORDER BY rating DESC LIMIT 3` summarises every row.
    After: three rows are summarised.

    The values decide neither which rows are returned nor in what order, so computing them last changes nothing.
    """
    undecided = block.where_sites and not block.filtered
    unlimited = block.limit is None and block.offset is None
    if undecided or unlimited or block.order_sites or not block.output_sites:
        return block
    return replace(block, late=True)
