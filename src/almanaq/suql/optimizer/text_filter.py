"""Decide rows one by one, asking only what still matters."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from almanaq.suql.plan.predicates import And, Predicate, PredicateBuilder, conjuncts
from almanaq.suql.plan.sites import text_columns
from almanaq.suql.plan.stages import TextBlock


def text_filter(block: TextBlock) -> TextBlock:
    """Evaluate WHERE as a tree in three-valued logic, cheapest decisive text first, until each row is decided.

    Before: every text function of WHERE is asked for every fetched row, then the database filters.
    After: for `city = 'Paris' OR answer(a, …) = 'Yes'` no row in Paris is asked; for two text conditions under AND the
    second is asked only where the first held.

    The tree gives TRUE exactly when SQL does: skipped parts could not have changed that. Conjuncts without text are
    left out when the rows were fetched under them already.
    """
    if not block.where_sites:
        return block
    parts = conjuncts(block.where)
    if block.condition is not None:
        parts = [part for part in parts if text_columns(part)]
    builder = PredicateBuilder()
    residual: Predicate = builder.build(exp.and_(*parts))
    if isinstance(residual, And) and len(residual.children) == 1:
        residual = residual.children[0]
    return replace(block, residual=residual, filtered=True)
