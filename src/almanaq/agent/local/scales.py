"""Columns whose words are a scale: price levels are ranked by what they mean, not by their letters."""

from __future__ import annotations

from almanaq.agent.local.lexicon import PRICE_SCALE
from almanaq.agent.local.schema_index import Place


def ranks(place: Place) -> dict[str, int]:
    """Return the rank of each word of a scale, the lowest first."""
    found = {value: _rank(value, i) for i, value in enumerate(place.column.values)}
    return dict(sorted(found.items(), key=lambda each: each[1]))


def is_scale(place: Place) -> bool:
    """Return whether the values of a column are listed in an order that means something: price levels."""
    return "price" in place.roles and place.kind == "text" and bool(place.column.values)


def _rank(value: str, position: int) -> int:
    folded = value.casefold()
    if set(folded) <= set("$€£"):
        return len(folded)
    return next((i for i, group in enumerate(PRICE_SCALE, 1) if folded in group), position + 1)
