"""Rows that a reply does not show: those beyond a LIMIT that tie with the last, and those without a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from almanaq.agent.describe import join_words, resolve_output, words
from almanaq.agent.queries import query_tree, to_sql
from almanaq.agent.responder import cell
from almanaq.suql.text_functions import has_text, is_text_call

_NAMED = 3


def ties_query(suql: str, found: int, dialect: str) -> str | None:
    """Return the query for the rows up to the last place of a query that found as many rows as its LIMIT.

    A row is its first output and how many rows there are, the last place first, then by name. None where no order and
    LIMIT cut the rows, or texts would have to be read.
    """
    tree = query_tree(suql, dialect)
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if not isinstance(tree, exp.Select) or order is None or not isinstance(limit, exp.Limit) or has_text(tree):
        return None
    names = [item.output_name for item in tree.expressions]
    cut = limit.text("expression") == str(found)
    unlike = any(map(tree.args.get, ("distinct", "offset", "qualify")))
    if not cut or unlike or names[0] in ("", "*") or len(set(names)) < len(names):
        return None
    keys = [key.copy() for key in order.expressions]
    for key in keys:
        key.set("this", resolve_output(tree, key.this).copy())
    place = exp.Window(this=exp.Anonymous(this="rank"), order=exp.Order(expressions=keys))
    ranked = tree.copy().select(exp.alias_(place, "tie_place"))
    ranked.set("order", None)
    ranked.set("limit", None)
    item = tree.expressions[0]
    first = exp.column((item.args.get("alias") or item.this).copy(), "ranked")
    query = exp.select(first, "count(*) OVER () AS tied").from_(ranked.subquery("ranked"))
    query = query.where(f"ranked.tie_place <= {found}").order_by("ranked.tie_place DESC", first).limit(found + _NAMED)
    return to_sql(query, dialect)


def say_ties(tied: Sequence[Sequence[Any]], shown: Sequence[Any], *, named: bool) -> tuple[str, ...]:
    """Return the note on the rows that tie with the last of those shown; none where there are none.

    Args:
        tied: the rows of `ties_query`.
        shown: the first cells of the rows shown.
        named: whether the note may name them.
    """
    more = tied[0][1] - len(shown) if tied else 0
    if more <= 0:
        return ()
    names = [cell(row[0]) for row in tied if named and isinstance(row[0], str) and row[0] not in shown][:_NAMED]
    names += [f"{more - len(names):,} more"] if names and len(names) < more else []
    said = f"{more:,} more {'ties' if more == 1 else 'tie'} with {'it' if len(shown) == 1 else 'the last'}"
    return (f"{said}{': ' if names else ''}{join_words(names) if names else ''}.",)


def missing_texts_query(suql: str, dialect: str) -> str | None:
    """Return the query for how many rows have no text to be asked, and in which column; None where that is not plain.

    It is where one SELECT without a LIMIT asks about one column.
    """
    tree = query_tree(suql, dialect).copy()
    texts = {call.expressions[0] for call in tree.find_all(exp.Anonymous) if is_text_call(call) and call.expressions}
    plain = isinstance(tree, exp.Select) and tree.args.get("limit") is None and len([*tree.find_all(exp.Select)]) == 1
    if not plain or len(texts) != 1 or not isinstance(text := texts.pop(), exp.Column):
        return None
    where = tree.args.get("where")
    parts = [] if where is None else [*where.this.flatten()] if isinstance(where.this, exp.And) else [where.this]
    query = exp.select("COUNT(*)", exp.Literal.string(text.name)).where(*(part for part in parts if not has_text(part)))
    empty = f"COALESCE(CAST({to_sql(text, dialect)} AS TEXT), '') IN ('', '[]', '{{}}')"
    query = query.where(empty, dialect=dialect)
    for part in ("from_", "joins"):
        query.set(part, tree.args.get(part))
    return to_sql(query, dialect)


def say_missing_texts(counted: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Return the note on rows that have no text, by the row of `missing_texts_query`; none where all have one."""
    if not counted or not counted[0][0]:
        return ()
    count, column = counted[0]
    return (f"{count:,} {'row has' if count == 1 else 'rows have'} no {words(column)} that could be asked.",)
