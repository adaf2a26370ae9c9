"""Years, months and days by which rows are counted or summed: "orders per month", "which year had the most"."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.local.links import ColumnLink, Links
from almanaq.agent.local.reading import Item
from almanaq.agent.local.schema_index import Place

_BY = {"per", "by", "each", "every", "which", "what"}
PERIODS = {
    "year": "EXTRACT(YEAR FROM {})",
    "quarter": "CAST(date_trunc('quarter', {}) AS date)",
    "month": "CAST(date_trunc('month', {}) AS date)",
    "week": "CAST(date_trunc('week', {}) AS date)",
    "day": "CAST(date_trunc('day', {}) AS date)",
}
"""Words for stretches of time, and the expression that rows of one have in common."""


def period(links: Links, placed: Sequence[tuple[ColumnLink, Place]], own: Sequence[Place]) -> Item | None:
    """Give the expression of the years, months or days that a question asks rows by; None where it asks by none.

    Args:
        placed: what the words name; a date among them is the one meant, else the relation's first that is no birthday.
        own: the columns of the main relation.
    """
    for i, word in enumerate(links.words):
        form = PERIODS.get(word.stem)
        asks = links.folded(i - 1) in _BY and (links.folded(i - 1) not in ("which", "what") or bool(links.orders))
        if form is None or not asks or links.used[i] not in (None, "order", "relation"):
            continue
        dates = [p for _, p in placed if p.kind == "date" and p in own] or [p for p in own if p.kind == "date"]
        dates.sort(key=lambda p: "birth" in p.roles)
        return Item(dates[0], form) if dates else None
    return None
