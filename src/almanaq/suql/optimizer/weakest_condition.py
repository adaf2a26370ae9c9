"""Let the database drop the rows that no answer could save."""

from __future__ import annotations

from dataclasses import replace

from almanaq.suql.plan.predicates import weakest
from almanaq.suql.plan.stages import TextBlock


def weakest_condition(block: TextBlock) -> TextBlock:
    """Fetch only rows that meet the weakest structured condition implied by WHERE (paper, section 5.3).

    Before: `WHERE (city = 'Paris' OR answer(…) = 'Yes') AND price < 20` fetches every row.
    After: it fetches the rows with `price < 20`.

    A row that fails the implied condition fails WHERE whatever the answers are, so the rows stay the same. The paper's
    disjunctive normal form reaches the same rows but may grow exponentially; this is linear in the query.
    """
    return block if block.where is None else replace(block, condition=weakest(block.where))
