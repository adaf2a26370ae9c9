"""Stop asking when LIMIT is satisfied."""

from __future__ import annotations

from dataclasses import replace

from almanaq.suql.plan.matches_wanted import number_in
from almanaq.suql.plan.stages import TextBlock


def limit_stop(block: TextBlock) -> TextBlock:
    """Stop the text filter after LIMIT + OFFSET rows (paper, section 5.3, lazy evaluation).

    Before: `WHERE answer(…) = 'Yes' ORDER BY rating DESC LIMIT 3` asks every candidate.
    After: candidates come in the order of `rating DESC`, and asking stops at the third that passes.

    A block holds no grouping, DISTINCT or window (those stay above it), so each row that passes is a row of the result.
    Under an ORDER BY on columns, candidates come in that order and the first that pass are the ones LIMIT keeps; an
    ORDER BY on answers needs them all, so the rule does not apply.
    """
    limit = number_in(block.limit)
    offset = number_in(block.offset) if block.offset is not None else 0
    if not block.filtered or limit is None or offset is None or block.order_sites:
        return block
    return replace(block, stop_after=limit + offset)
