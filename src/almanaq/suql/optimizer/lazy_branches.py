"""Ask only for the branches that a row takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from almanaq.suql.plan.sites import is_text_column, site_of, text_columns
from almanaq.suql.plan.stages import TextBlock


def lazy_branches(block: TextBlock) -> TextBlock:
    """Leave out the text of CASE branches and COALESCE arguments that a row's columns rule out.

    Before: `SELECT CASE WHEN city = 'Rome' THEN answer(…) END` asks for every row.
    After: it asks for the rows in Rome; `coalesce(phone, answer(…))` asks where there is no phone.

    A value that is asked for elsewhere in the output without such a condition is asked for every row, as before. SQL
    never looks at the value of a branch that is not taken, so what stands there does not matter.
    """
    conditions: dict[str, list[exp.Expr | None]] = {}
    for node in (*block.outputs, *block.order):
        for name, condition in _looked_at(node, ()):
            conditions.setdefault(name, []).append(condition)
    sites = []
    for site in block.sites:
        found = conditions.get(site.id, [None])
        known = [condition for condition in found if condition is not None]
        sites.append(replace(site, needed=exp.or_(*known)) if len(known) == len(found) else site)
    return replace(block, sites=tuple(sites))


def _looked_at(node: exp.Expr, under: tuple[exp.Expr, ...]) -> Iterator[tuple[str, exp.Expr | None]]:
    """Yield each use of a site with the condition under which it is looked at; None: always."""
    if is_text_column(node):
        yield site_of(node.name), exp.and_(*under) if under else None
    elif isinstance(node, exp.Case) and node.this is None:
        passed = under
        for branch in node.args["ifs"]:
            yield from _looked_at(branch.this, passed)
            yield from _looked_at(branch.args["true"], (*passed, *_known(_is_true(branch.this))))
            passed = (*passed, *_known(exp.not_(_is_true(branch.this))))
        if node.args.get("default") is not None:
            yield from _looked_at(node.args["default"], passed)
    elif isinstance(node, exp.Coalesce):
        passed = under
        for argument in (node.this, *node.expressions):
            yield from _looked_at(argument, passed)
            passed = (*passed, *_known(exp.Is(this=exp.paren(argument.copy()), expression=exp.null())))
    else:
        for child in node.iter_expressions():
            yield from _looked_at(child, under)


def _is_true(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.paren(node.copy()), expression=exp.true())


def _known(condition: exp.Expr) -> tuple[exp.Expr, ...]:
    """Give a condition if it can be told before any text is asked."""
    return () if text_columns(condition) else (condition,)
