"""What is worth showing of a row: its name, its key facts, what a question word asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from almanaq.agent.local_old.lexicon import ASKED_BY
from almanaq.agent.local_old.recognize.tokens import Token
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import relation_stems

_DOING = re.compile(r"what (?:does|do|did) .+ do(?: for a living)?[?. ]*$", re.IGNORECASE)
_FACTS = ("rating", "price", "address", "phone", "year")


def name_place(places: Sequence[Place]) -> Place:
    """Return the column that names a row of a relation: the one that is said to, else the likeliest."""
    said = next((p for p in places if p.column.name == p.relation.named_by), None)
    if said is not None:
        return said
    own = relation_stems(places[0].relation) if places else ()
    for wanted in (("name",), ("title",), ("company",)):
        called = next((place for place in places if place.stems in (wanted, own, (*own, *wanted))), None)
        if called is not None:
            return called
    texts = [p for p in places if p.kind == "text" and not p.column.array and not p.identifier]
    named = [p for p in texts if "name" in p.roles]
    first = [p for p in places[:1] if p.identifier]
    return (named or first or texts or list(places))[0]


def whole_name(places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the column that names a row, and beside a first name the last one."""
    named = name_place(places)
    last = [p for p in places if named.stems[:1] == ("first",) and p.stems == ("last", *named.stems[1:])]
    return (named, *last)


def facts(places: Sequence[Place], mentioned: Iterable[Place], most: int = 5) -> tuple[Place, ...]:
    """Return the columns worth showing of a row that was searched for: its name, what was spoken of,
    key facts, links.
    """
    shown = {place.column.name: place for place in whole_name(places)}
    for place in mentioned:
        if place.relation is places[0].relation and place.kind != "prose":
            shown.setdefault(place.column.name, place)
    for role in _FACTS:
        best = next((p for p in places if role in p.roles and p.kind != "prose" and not p.identifier), None)
        if best is not None and len(shown) < most:
            shown.setdefault(best.column.name, best)
    for place in places:
        if len(shown) < most and place.kind != "prose" and not place.identifier:
            shown.setdefault(place.column.name, place)
    for place in places:
        if "site" in place.roles and place.kind == "text":
            shown.setdefault(place.column.name, place)
    return tuple(shown.values())


def wh_places(question: str, tokens: Sequence[Token], places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the column that a question word asks for: "where" an address, "how much" a price."""
    folded = [token.folded for token in tokens]
    for cue, roles in ASKED_BY:
        if tuple(folded[: len(cue)]) == cue and not (
            cue == ("where",) and len(folded) > 1 and folded[1] in ("can", "should", "could", "to", "do", "would")
        ):
            for role in roles:
                found = [p for p in places if role in p.roles and p.kind != "prose" and not p.identifier]
                if found:
                    return (min(found, key=lambda p: (p.stems[-1] != role, len(p.stems))),)
    if _DOING.match(question):
        return tuple(p for p in places if "job" in p.roles and p.kind == "text")[:1]
    return ()
