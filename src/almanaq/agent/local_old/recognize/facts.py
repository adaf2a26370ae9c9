"""Tables that belong together by what they hold, where no key says so: facts of the same things, and shared codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.partners import Partners
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import stem
from almanaq.suql.catalog.relations import Relation

Known = Callable[[Place], frozenset[str]]
"""Gives the values of a column as far as they are known."""
_FEWEST = 3
"""Relations that have to share a column before they are taken for facts of the same things."""
_WIDEST = 3
"""Most columns of a relation that holds one fact."""
_WITHIN = 0.9
"""Share of the values of a column that another one has to hold to be what it refers to."""
_MANY, _ALL = 20, 0.98
"""How many values, and what share of them, two columns called "name" have to share before one refers to the other."""
_SHORTEST = 3
"""A shorter end of a relation's name says little."""
_KEYS = ("id", "nr", "no", "number", "code", "key")
"""How names of numbers end that identify."""
_GENERIC = ("name", "title", "type", "kind", "status", "category", "description")


@dataclass(frozen=True, slots=True)
class Facts:
    """Relations that each hold a fact of the same things: a city's population, a city's mayor.

    Attributes:
        key: the column that names the things in `hub`, the relation that holds most of them.
        members: the other relations, each with its own such column.
    """

    key: Place
    members: tuple[Place, ...]

    @property
    def hub(self) -> Relation:
        return self.key.relation

    def hops(self) -> Iterator[Hop]:
        """Yield the steps between the hub and the others; each has at most one row of a thing."""
        for member in self.members:
            own, theirs = (self.hub.name, self.key.column.name), (member.relation.name, member.column.name)
            yield Hop(*own, *theirs, True)
            yield Hop(*theirs, *own, True)


def facts(places: Mapping[str, Sequence[Place]], known: Known, tells_rows: Callable[[Place], bool]) -> list[Facts]:
    """Return the groups of relations that hold facts of the same things."""
    shared: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    for own in places.values():
        if 1 < len(own) <= _WIDEST:
            for place in own:
                if place.kind == "text" and tells_rows(place):
                    shared[place.stems].append(place)
    found = []
    for members in shared.values():
        if len(members) >= _FEWEST:
            hub = max(members, key=lambda place: len(known(place)))
            near = [place for place in members if place is not hub and _overlap(known(place), known(hub)) > 1 / 2]
            found += [Facts(hub, tuple(near))] if len(near) + 1 >= _FEWEST else []
    return found


def shared_codes(
    places: Mapping[str, Sequence[Place]], known: Known, tells_rows: Callable[[Place], bool], partners: Partners
) -> list[Hop]:
    """Return the steps along columns of text that hold nothing but names or codes of another relation's rows, each of
    which one row alone has.
    """
    targets = [place for own in places.values() for place in own if place.kind == "text" and tells_rows(place)]
    found = []
    for own in places.values():
        for place in own:
            if place.kind != "text" or (place.stems[-1:] and place.stems[-1] in _GENERIC and place.stems != ("name",)):
                continue
            fit = [p for p in targets if p.relation is not place.relation and _refers(place, p, known)]
            fit = [p for p in fit if partners.is_unique(p.relation, [p.column.name])]
            other = max(fit, key=lambda p: _overlap(known(place), known(p)), default=None)
            if other is not None:
                left, right = (place.relation.name, place.column.name), (other.relation.name, other.column.name)
                found += [Hop(*left, *right, True), Hop(*right, *left, False)]
    return found


def shared_numbers(places: Mapping[str, Sequence[Place]], partners: Partners) -> list[Hop]:
    """Return the steps along numbers that identify, each once in one relation, all of them there: of one name, or
    called as the rows that they are the key of.
    """
    columns = [place for own in places.values() for place in own if place.kind == "number"]
    keys = [place for place in columns if place.column.name.casefold().endswith(_KEYS)]
    single = [place for place in columns if place.relation.key == (place.column.name,)]
    alike = [(p, other) for p in keys for other in keys if other.column.name == p.column.name]
    alike += [(p, other) for p in columns for other in single if p.stems == relation_stems(other.relation)]
    found = []
    for place, other in alike:
        if other.relation is not place.relation:
            hop = Hop(place.relation.name, place.column.name, other.relation.name, other.column.name, True)
            mine, theirs = ([each.column.name] for each in (place, other))
            once = partners.is_unique(other.relation, theirs) and not partners.is_unique(place.relation, mine)
            found += [hop, hop.back] if once and partners.all_have(hop) else []
    return found


def _refers(place: Place, other: Place, known: Known) -> bool:
    """Return whether a column holds the names or codes of another relation's rows, by its name and by its values."""
    whole = "".join(place.stems)
    named = place.stems == other.stems or whole.startswith(_called(other.relation, place.relation))
    least, most = (_MANY, _ALL) if place.stems == ("name",) else (1, _WITHIN)
    return named and len(known(place)) > least and _overlap(known(place), known(other)) >= most


def _called(relation: Relation, beside: Relation) -> tuple[str, ...]:
    """Return what a relation's rows may be called: its name, and what follows a beginning that both names share.

    The sheets of a workbook are called after their file and themselves: report_Orders, report_Customers.
    """
    *before, last = relation.name.casefold().split("_")
    parts, others = [*before, stem(last)], beside.name.casefold().split("_")
    shared = next((at for at, (own, other) in enumerate(zip(parts, others, strict=False)) if own != other), 0)
    rest = "".join(parts[shared:])
    return ("".join(parts), *([rest] if len(rest) >= _SHORTEST else []))


def _overlap(own: frozenset[str], other: frozenset[str]) -> float:
    return len(own & other) / len(own) if own else 0.0
