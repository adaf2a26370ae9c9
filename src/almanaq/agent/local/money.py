"""Sums of money that a question asks for without naming the column: "total sales", "what did we earn last month"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from almanaq.agent.local import targets
from almanaq.agent.local.links import ColumnLink, Links, NumberLink, RelationLink, ValueLink
from almanaq.agent.local.persons import holds_people
from almanaq.agent.local.reading import Item
from almanaq.agent.local.schema_index import Place, SchemaIndex
from almanaq.agent.local.words import word_set
from almanaq.suql.catalog.relations import Relation

_SPEAKS = re.compile(
    r"""\b(?:(?P<plain>sales|revenues?|turnover|takings)
    |(?:total|overall|how\ much|what\ (?:is|was|were|are)(?:\ the|\ our|\ their)?)\ (?P<noun>value|income|earnings
        |spend(?:ing)?|expenses)
    |(?:how\ much|what)(?:\ money)?\ (?:has|have|had|did|do|does)\ (?:\S+\ ){1,5}?(?P<verb>spen[dt]|earn(?:ed)?|ma[dk]e
        |s[oe]ll?d?|paid|pay|bring\ in|take\ in|took\ in|brought\ in)
    |(?:by|of)(?:\ their|\ the)?(?:\ total)?\ (?P<ranked>spend(?:ing)?|earnings)
    |(?P<most>spen[dt]|paid|bought\ for)\ (?:us\ )?(?:the\ )?(?:most|least)(?:\ money)?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MONEY = word_set("total amount revenue sale turnover value sum price cost fee charge paid payment gross")
_ALTOGETHER = re.compile(r"\b(?:altogether|in total|combined|overall|in all|all together)\b", re.IGNORECASE)
_PER_PIECE = word_set("unit list retail")
NOUNS = word_set("fine payment expense sale donation invoice bill refund deposit purchase transaction fee")
"""Nouns of which the total is one of money rather than a number of rows."""


def money_place(places: Sequence[Place]) -> Place | None:
    """Give the column of a relation that holds what each row brought or cost, None where none does."""
    found = [
        p
        for p in places
        if p.kind == "number" and not p.identifier and (_MONEY & set(p.stems)) and not _PER_PIECE & set(p.stems)
    ]
    ranks = [*("total", "amount", "revenue"), ""]
    return min(found, key=lambda p: next(i for i, r in enumerate(ranks) if r in p.stems or not r), default=None)


def link_money(links: Links, index: SchemaIndex) -> None:
    """Link words that speak of money taken or spent to the relations whose rows have a day and an amount."""
    match = _SPEAKS.search(links.question)
    if match is None:
        return
    named = {r.name for link in links.relations for r in link.relations}
    events = [r for r in index.catalog.relations if money_place(index.places[r.name])]
    dated = [
        r
        for r in events
        if any(p.kind == "date" for p in index.places[r.name]) and not holds_people(r, index.places[r.name])
    ]
    chosen = [r for r in events if r.name in named and not holds_people(r, index.places[r.name])] or dated
    if not chosen:
        return
    start = next(match.start(name) for name in ("plain", "noun", "verb", "ranked", "most") if match[name])
    at = next((i for i, word in enumerate(links.words) if word.start == start), None)
    if at is None or links.used[at] == "value":
        return
    links.money = at
    first = at if match["verb"] else next(i for i, word in enumerate(links.words) if word.start >= match.start())
    last = max(i for i, word in enumerate(links.words) if word.start < match.end())
    links.columns = [c for c in links.columns if not first <= c.first <= last]
    links.relations = [r for r in links.relations if not first <= r.first <= last]
    links.relations.append(RelationLink(at, tuple(chosen), verb=True))
    links.take(first, last + 1, "money")


class _Placed(Protocol):
    """What is read of the links of a question over its main relation."""

    @property
    def links(self) -> Links: ...
    @property
    def own(self) -> Sequence[Place]: ...
    @property
    def main(self) -> Relation: ...
    @property
    def having(self) -> tuple[Relation, NumberLink] | None: ...
    @property
    def entity(self) -> ValueLink | None: ...
    @property
    def placed(self) -> Sequence[tuple[ColumnLink, Place]]: ...


def summed(placed: _Placed) -> Item | None:
    """Give the sum that a question asks for, None where it asks for none.

    One of money of the main relation; or of a column of numbers, as in "how many copies do we have" of all rows.
    """
    links, own = placed.links, placed.own
    money = money_place(own)
    spoken = links.money is not None and any(
        r.first == links.money and placed.main in r.relations for r in links.relations
    )
    for link in links.relations:
        total = links.folded(link.first - 1) in ("total", "overall") and links.stem(link.first) in NOUNS
        spoken = spoken or (total and placed.main in link.relations)
    if money is not None and spoken and not any(o.superlative for o in links.orders):
        return Item(money, "SUM({})")
    at = targets.counted(links)
    ranked = any(o.superlative for o in links.orders) or placed.having is not None
    grouped = any(word.folded in ("each", "every", "per") for word in links.words)
    if at is None or ranked or grouped or placed.entity is not None:
        return None
    numbers = [
        (c, p) for c, p in placed.placed if p.kind == "number" and not p.identifier and p.relation == placed.main
    ]
    named = [p for c, p in numbers if c.first == at and c.exact]
    if not named and _ALTOGETHER.search(links.question):
        named = [p for c, p in numbers if c.exact][-1:]
    return Item(named[0], "SUM({})") if named else None
