"""Ask only for what a row looks at."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from almanaq.suql.plan.predicates import any_of, looked_at_under
from almanaq.suql.plan.sites import is_text_column, site_of, text_columns
from almanaq.suql.plan.stages import TextBlock
from almanaq.suql.syntax.nodes import nodes_of


def lazy_branches(block: TextBlock) -> TextBlock:
    """Leave out the text of CASE branches, COALESCE arguments and sides of AND and OR that a row does not look at.

    Before: `SELECT CASE WHEN city = 'Rome' THEN answer(…) END` asks for every row.
    After: it asks for the rows in Rome; `coalesce(phone, answer(…))` asks where there is no phone; in
    `CASE WHEN answer(…) = 'Yes' THEN answer(…) END` the second is asked where the first came to 'Yes'.

    A value that is asked for elsewhere in the output without such a condition is asked for every row, as before. SQL
    never looks at the value of a branch that is not taken, so what stands there does not matter.
    """
    uses: dict[str, list[list[exp.Expr]]] = {}
    for node in (*block.outputs, *block.order):
        for column in nodes_of(node, exp.Column):
            if is_text_column(column):
                uses.setdefault(site_of(column.name), []).append(looked_at_under(column))
    needed: dict[str, exp.Expr | None] = {}
    uses = {site: found if all(found) else [[]] for site, found in uses.items()}
    waiting = [site.id for site in block.output_sites]
    while waiting:
        at = next((site for site in waiting if not _asked_first(uses[site]) & {*waiting}), None)
        if at is None:  # each waits for another: the first does no longer
            at = waiting[0]
            uses[at] = [[part for part in use if not _asked_first([[part]])] for use in uses[at]]
        needed[at] = any_of(uses[at])
        waiting.remove(at)
    return replace(block, sites=tuple(replace(site, needed=needed.get(site.id)) for site in block.sites))


def _asked_first(uses: list[list[exp.Expr]]) -> set[str]:
    """Return the sites that conditions refer to."""
    return {site_of(name) for use in uses for part in use for name in text_columns(part)}
