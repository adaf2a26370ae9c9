"""What a column is called: the words of its name, with what they stand for, and the unit that it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from almanaq.agent.local_old.recognize.other_forms import place_names
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import identifier_stems, roots, stem

_PARENTHESES = re.compile(r"\(([^)]*)\)")
_UNIT = re.compile(r"(?P<rest>.+) (?P<unit>kg|mg|mm|cm|km|ft|lb|usd|eur|ha|mph)(?: ?(?P<power>[23]?))")
_GLUED_UNIT = re.compile(r"(?P<rest>[a-z]{4,})(?P<unit>kg|mm|cm|km|ft|usd|eur|mph)(?P<power>[23]?)")
_HEADS = ("wt", "amt", "qty", "pct", "num", "cnt", "name", "score", "price", "code")
"""What the last piece of a name without any sign between its words may be."""
_COUNTS = ("number", "no", "num", "nr", "count", "total", "amount", "percentage", "percent", "share")
"""What stands before "of" in the name of a column of numbers: it is called as what is counted."""
HEADED = 0.66
"""How surely words at least name a column that end its name; words that only begin it are less sure."""
OWN = 0.98
"""How surely the rest of a column's name means it where its relation's name is left away."""
WHOLES = ("total", "overall", "body", "global")
"""Of several columns that one word means, the one of the whole."""
_TIMES = ("time", "date", "day", "hour", "minute", "duration")
"""What ends the names of times."""
_MINUTES = frozenset(("minute", "minutes", "min", "mins"))
_AMOUNTS = ("value", "amount", "total", "sum")
"""What ends the name of a column of numbers and says nothing of what they are."""
_OF_KEYS = ("id", "uuid", "key", "no", "nr", "number")
"""How names of keys end."""
_SO = (("has",), ("have",), ("is",))
"""What begins the names of columns that say whether something is so: `hasParking` is called parking."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a column is called.

    Attributes:
        parts: its words, each with the other words that mean it; `own` without these.
        unit: the spellings of the unit that the name says.
    """

    place: Place
    parts: tuple[frozenset[str], ...]
    own: tuple[frozenset[str], ...]
    unit: frozenset[str]


def spelled_out(place: Place, known: frozenset[str]) -> Named:
    """Return what a column is called: `Body Mass (g)` of body and mass, in g; `dep_delay` of departure and delay."""
    unit = frozenset(w.casefold() for m in _PARENTHESES.findall(place.column.name) for w in re.findall(r"[^\s,;/]+", m))
    bare = _PARENTHESES.sub(" ", place.column.name)
    names = identifier_stems(bare) if not place.coded else place.stems
    if (ending := _UNIT.fullmatch(" ".join(names)) or _GLUED_UNIT.fullmatch("".join(names))) is not None:
        names, unit = tuple(ending["rest"].split()), unit | {ending["unit"], ending["unit"] + ending["power"]}
    unit |= _MINUTES if place.minutes else frozenset()
    names = names[1:] if names[:1] in _SO and len(names) > 1 and place.kind in ("boolean", "text") else names
    whole = words().compounds.get("".join(names))
    names = whole or tuple(part for name in names for part in words().compounds.get(name) or _pieces(name, known))
    coded = place_names(names[0]) if _is_of_places(place) else frozenset[str]()
    own = tuple(_own(part) for part in _head_last(names) or identifier_stems(place.column.name))
    own = (own[0] | coded, *own[1:])
    timed = names[-1:] and names[-1] in _TIMES  # the charge of `charge_time` is no cost
    meant = [*own[:-1], _meant(own[-1])] if timed else map(_meant, own)
    return Named(place, tuple(meant), own, unit)


def _is_of_places(place: Place) -> bool:
    """Return whether a name begins with the code of a place, as other names beside it do: `JP_sales`, `EU_sales`."""
    first, *rest = identifier_stems(place.column.name)
    if not rest or not place_names(first):
        return False
    others = [identifier_stems(column.name) for column in place.relation.columns if column.name != place.column.name]
    return any(list(other[1:]) == rest and place_names(other[0]) for other in others)


def _head_last(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name with the one that says what it holds last: the country of `country_of_origin`, and
    the bags of `number_of_bags`.
    """
    at = names.index("of") if "of" in names[1:-1] else 0
    rest, kind = tuple(part for part in names[at + 1 :] if part != "the"), names[:at]
    if not at:
        return names
    return (*kind, *rest) if kind[-1] in _COUNTS else (*rest, *kind)


def _pieces(name: str, known: frozenset[str]) -> tuple[str, ...]:
    """Cut a name in one piece before what it holds: `bodywt` is a body's weight, `candidatevotes` beside `candidate`
    are votes.
    """
    ending = next((e for e in _HEADS if name.endswith(e) and len(name) >= len(e) + 4), "")
    ending = ending or next((name[i:] for i in range(4, len(name) - 3) if name[:i] in known), "")
    return (name.removesuffix(ending), stem(ending)) if ending else (name,)


def means(word: str, part: frozenset[str], shortest: int) -> bool:
    """Return whether a word is a part of a name or begins with it; beside other words three letters say enough."""
    return word in part or any(shortest <= len(each) <= len(word) - 2 and word.startswith(each) for each in part)


def whole_names(named: Named) -> set[str]:
    """Return a column's name in one piece, and what its abbreviation stands for."""
    called = identifier_stems(named.place.column.name)
    bare = "".join(called[called[:1] in _SO :])
    meant = {"".join(part) for part in named.own} if len(named.own) == 1 else set()
    of_rows = called[:-1] == relation_stems(named.place.relation)  # the loans of `loan_amount` are rows
    if named.place.kind == "number" and len(called) > 1 and called[-1] in _AMOUNTS and not of_rows:
        meant.add("".join(called[:-1]))  # the sales of `sales_value`
    return {bare, *meant, *(word for part in named.own for word in part if len(named.own) == 1)}


def agents_of(place: Place) -> set[str]:
    """Return how those are called who did what a column says: the director of `Directed_by`."""
    deed = place.stems[0] if len(place.stems) == 2 and place.stems[1] == "by" else ""
    return {root + ending for root in roots(deed) for ending in ("or", "er", "r")} if deed else set()


def thing_of(place: Place) -> tuple[str, ...]:
    """Return what a key is of: the sessions of `session_id`; () for other columns."""
    return place.stems[:-1] if place.identifier and place.stems[-1:] and place.stems[-1] in _OF_KEYS else ()


def _own(part: str) -> frozenset[str]:
    return frozenset(map(stem, (part, words().abbreviations.get(part, part))))


def _meant(own: frozenset[str]) -> frozenset[str]:
    return own.union(*(words().synonyms.get(word, ()) for word in own))


def whole_of(parts: Iterable[frozenset[str]]) -> bool:
    """Return whether a name speaks of the whole: the total sleep, the weight of the body."""
    return any(word in part for part in parts for word in WHOLES)
