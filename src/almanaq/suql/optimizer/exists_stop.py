"""Stop asking when an EXISTS is satisfied."""

from __future__ import annotations

from dataclasses import replace

from almanaq.suql.plan.stages import TextBlock


def exists_stop(block: TextBlock) -> TextBlock:
    """Stop the text filter of a correlated EXISTS, or of IN, at the first row that passes for what is looked for.

    Before: `FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.t = t.id AND answer(r.body, …) = 'Yes')` asks of every r.
    After: for each t, it asks until one passes; under a LIMIT of 3 until three have one (the first three, by ORDER BY).

    The block is read by that EXISTS alone, which is true by one row as by many. So is `IN (SELECT y …)`: of each y one
    row will do.
    """
    return replace(block, first_only=True) if block.filtered and block.semi_join_key is not None else block
