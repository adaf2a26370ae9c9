"""Look for one row where one will do."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.plan.blocks import is_cut_or_grouped
from almanaq.suql.plan.references import is_correlated
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text


def exists_limit(tree: exp.Query) -> exp.Query:
    """Return an EXISTS that does not look around itself a LIMIT 1.

    Before: `WHERE EXISTS (SELECT 1 FROM r WHERE answer(…) = 'Yes')` asks for every row of r.
    After: `WHERE EXISTS (SELECT 1 FROM r WHERE answer(…) = 'Yes' LIMIT 1)` stops at the first, as any LIMIT does.

    EXISTS is true by one row as by many. Blocks that group, or have a LIMIT of their own, are left alone.
    """
    for exists in nodes_of(tree, exp.Exists):
        block = exists.this
        if isinstance(block, exp.Select) and has_text(block) and not is_cut_or_grouped(block):
            block.set("distinct", None)
            if not is_correlated(block):
                block.limit(1, copy=False)
    return tree
