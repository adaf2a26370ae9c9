"""Functions in FROM that are made of answers: rows are asked in a query, so they become one."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.references import aliased, quoted
from almanaq.suql.text_functions import has_text


def derive_functions(block: exp.Select) -> None:
    """Write each function in FROM with text functions in its arguments as a LATERAL query, in place.

    `t, unnest(f(answer(t.x, q))) AS d(v)` becomes `t, LATERAL (SELECT unnest(f(answer(t.x, q))) AS v) AS d`.
    """
    for item in list(from_items(block)):
        function = item if isinstance(item, exp.Unnest) else item.this
        kinds = (exp.Unnest, exp.GenerateSeries, exp.ExplodingGenerateSeries)
        if not isinstance(function, kinds) or not has_text(function):
            continue
        alias = item.alias
        names = item.alias_column_names or [alias]
        if isinstance(function, exp.Unnest):
            if function.args.get("offset") or len(function.expressions) != 1:
                raise UnsupportedError(
                    "unnest of answers WITH ORDINALITY, or of several lists, is not supported in FROM; SELECT takes it"
                )
            function = exp.Explode(this=function.expressions[0])
        elif isinstance(function, exp.GenerateSeries):
            function = exp.Explode(this=function)
        query = exp.Subquery(this=exp.Select(expressions=[aliased(function, names[0])]))
        item.replace(exp.Lateral(this=query, alias=exp.TableAlias(this=quoted(alias))))
