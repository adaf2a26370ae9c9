"""A catalog by the words that people use for it: relations, columns and values, each with how surely words name it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from functools import cached_property
from typing import Any

from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.partners import Partners
from almanaq.agent.local_old.recognize.called import (
    OWN,
    WHOLES,
    Named,
    agents_of,
    means,
    spelled_out,
    thing_of,
    whole_names,
    whole_of,
)
from almanaq.agent.local_old.recognize.facts import facts, shared_codes, shared_numbers
from almanaq.agent.local_old.recognize.known_values import KnownValues
from almanaq.agent.local_old.recognize.other_forms import OtherForms, place_names
from almanaq.agent.local_old.recognize.verbs import Verbs
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Meaning, Place, SchemaIndex
from almanaq.agent.local_old.spoken import also_called, relation_stems
from almanaq.agent.local_old.words import stem
from almanaq.suql.catalog.relations import Column, Relation
from almanaq.text.spelling import edit_distance

_TIMES = ("year", "date", "founded", "released")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_SHORTEST_MISSPELT = 7
"""Shortest word that may be a name misspelt: a shorter one is too often another word, county for country."""
_MOST_KINDS = 60
"""Most values of a column of kinds, of which one may be misspelt."""
_SPOKEN = ("average", "percentage", "minimum", "maximum", "different", "highest", "lowest", "largest", "smallest")
"""Words of the language that are often misspelt."""
_COUNTING_NONE = frozenset("number week level year month day hour rank code score age temperature".split())
"""What ends the names of whole numbers that count nothing."""
_KEYED = 0.995
"""How surely a key is named by what it is of: the manufacturers of `manufacturer_id`, more surely than a brand."""
_OTHER_WORD = 0.01
"""How much less surely a column is named by another word than by one of its own."""


class Vocabulary(KnownValues):
    """A catalog's names and values, searchable by tokens.

    Attributes:
        of_years: by years, the vocabulary in which columns that there are of each are called without them.
        yearly: the columns of which a question with a year has to mean one.
    """

    def __init__(self, index: SchemaIndex) -> None:
        super().__init__(index)
        self.kept: dict[tuple[str, str, date], Any] = {}
        self.of_years: dict[tuple[str, ...], Vocabulary] = {}
        self.yearly: frozenset[Column] = frozenset()
        self.partners = Partners(index.finds)
        self.facts = facts(index.places, self._known, self.names_rows)
        self._keys = [(key.relation.name, key.column.name) for each in self.facts for key in each.members]
        spoken_of = [p for p in index.all_places() if (p.relation.name, p.column.name) not in self._keys]
        known = self._words_of_names()
        self.columns = tuple(spelled_out(place, known) for place in spoken_of)
        self._by_word: dict[str, list[Named]] = defaultdict(list)
        self._whole: dict[str, list[Named]] = defaultdict(list)
        for named in self.columns:
            for word in {word for part in named.parts for word in part}:
                self._by_word[word].append(named)
            called = {"".join(name) for name in also_called(named.place.column.description)}
            for word in whole_names(named) | self._called_as_fact(named.place) | called | agents_of(named.place):
                self._whole[word].append(named)

    def _words_of_names(self) -> frozenset[str]:
        """Return the words that stand by themselves in names: with them a name in one piece is cut in two."""
        said = {part for place in self.index.all_places() for part in place.stems}
        said |= {part for relation in self.index.catalog.relations for part in relation_stems(relation)}
        return frozenset(part for part in (*said, *WHOLES, *words().abbreviations.values()) if len(part) > 3)

    def _known(self, place: Place) -> frozenset[str]:
        return frozenset(self.values_of(place))

    def _called_as_fact(self, place: Place) -> set[str]:
        """Return how the one value of a relation of facts is called: as the relation is."""
        member = any(place.relation == each.relation for group in self.facts for each in (group.key, *group.members))
        alone = member and len(place.relation.columns) == 2 and "".join(place.stems) != "".join(self.facts[0].key.stems)
        return {"".join(relation_stems(place.relation))} if alone else set()

    @cached_property
    def hops(self) -> dict[str, list[Hop]]:
        """The steps from every relation to others: by keys, else by what their columns hold."""
        found = {name: list(hops) for name, hops in self.index.hops.items()}
        codes = shared_codes(self.index.places, self._known, self.names_rows, self.partners)
        for hop in (*codes, *shared_numbers(self.index.places, self.partners)):
            if not any(each.right == hop.right for each in self.index.hops.get(hop.left, ())):
                found[hop.left].append(hop)
        members = {place.relation.name for each in self.facts for place in (each.key, *each.members)}
        for name in members:
            found[name] = [hop for hop in found[name] if hop.right not in members]
        for each in self.facts:
            for hop in each.hops():
                found[hop.left].append(hop)
        return found

    def of_facts(self, names: set[str]) -> set[str]:
        """Return the relations that hold facts of the same things as some of these do."""
        groups = [{each.hub.name, *(m.relation.name for m in each.members)} for each in self.facts]
        return set().union(*(group for group in groups if group & names))

    def columns_named(self, said: Sequence[str]) -> tuple[tuple[Place, float], ...]:
        """Return the columns that stems name, with how much of their name is said, the surest first.

        Every stem has to be a word of the name. The last word of a name is the one that says what it holds.
        """
        found = [(named.place, 1.0) for named in self._whole.get("".join(said), ())]
        found = found or [(place, _KEYED) for place in self._others.get(tuple(said), ())]
        shortest = {word: 3 if len(said) > 1 and (word,) not in self._relations else 4 for word in said}
        for named in self._holding(said[0]):
            known = (
                next((i for i, part in enumerate(named.parts) if means(word, part, shortest[word])), None)
                for word in said
            )
            places = [i for i in known if i is not None]
            if len(set(places)) < len(said) or any(named.place is place for place, _ in found):
                continue
            if (quality := _quality(named, said, places)) is not None:
                found.append((named.place, round(quality, 3)))
        return tuple(sorted(found, key=lambda f: -f[1]))

    def _holding(self, word: str) -> list[Named]:
        """Return the columns of whose name a word is a part, or which shorten it: "indep" for independence."""
        short = [word[:size] for size in range(len(word) - 2, 3, -1)]
        return [*self._by_word.get(word, ()), *(named for each in short for named in self._by_word.get(each, ()))]

    def measured_by(self, meant: Sequence[tuple[str, bool]], relations: set[str]) -> tuple[Place, bool] | None:
        """Return the one column of some relations that an adjective measures, with the direction; None for several."""
        for word, up in meant:
            fit = [n for n in self._by_word.get(word, ()) if n.place.relation.name in relations and _is_amount(n.place)]
            if fit:
                nearest = _nearest(word, fit)
                return None if nearest is None else (nearest, up)
        timed = [up for word, up in meant if word in _TIMES]
        aged = bool(meant) and meant[0][0] != "date"  # "the oldest" may be by a year, "the latest" is by a day
        days = [n.place for n in self.columns if n.place.kind == "date" or (aged and is_year(n.place))]
        days = [place for place in days if place.relation.name in relations]
        days = days if len(days) < 2 else [p for p in days if set(p.stems) & set(relation_stems(p.relation))]
        return (days[0], timed[0]) if timed and len(days) == 1 else None

    def counts_things(self, place: Place) -> bool:
        """Return whether a column says of how many things there are for each row: none for some, several for others."""
        named = place.kind == "number" and not place.identifier and place.stems[-1:] and place.stems[-1]
        return bool(named) and named not in _COUNTING_NONE and self.partners.has_none_and_many(place)

    def in_unit(self, unit: str, relations: set[str]) -> tuple[Place, ...]:
        """Return the number columns of some relations whose name says a unit."""
        return tuple(n.place for n in self.columns if unit in n.unit and n.place.relation.name in relations)

    def unit_of(self, place: Place) -> frozenset[str]:
        """Return the unit that a column's name says."""
        return next((n.unit for n in self.columns if n.place is place), frozenset())

    @cached_property
    def units(self) -> frozenset[str]:
        """The units that names of columns say."""
        return frozenset(unit for named in self.columns for unit in named.unit)

    @cached_property
    def _relations(self) -> dict[tuple[str, ...], list[tuple[Relation, float]]]:
        found: dict[tuple[str, ...], list[tuple[Relation, float]]] = defaultdict(list)
        members = self.of_facts({each.hub.name for each in self.facts})
        for each in self.facts:
            found[each.key.stems].append((each.hub, 1.0))
        for relation in self.index.catalog.relations:
            if relation.name in members:
                continue
            name = relation_stems(relation)
            found[name].append((relation, 1.0))
            for other in also_called(relation.description):
                found[other].append((relation, 1.0))
            if len(name) > 1:
                found[name[-1:]].append((relation, 0.85))
                if "of" in name[1:-1]:  # "use of force", of `police_use_of_force`
                    found[_said(name[name.index("of") - 1 :])].append((relation, 0.9))
                found[name[:1]].append((relation, 0.7))
        for relation in self.index.catalog.relations:
            called = self.row_name(relation) if relation.name not in members else None
            words_of_it = called.stems[:-1] if called is not None and called.stems[-1:] == ("name",) else ()
            if words_of_it and words_of_it not in found:  # "products", of rows with a product name
                found[words_of_it].append((relation, 0.95))
        for place in self.index.all_places():
            thing = thing_of(place)
            if thing and thing not in found and self.partners.is_unique(place.relation, [place.column.name]):
                found[thing].append((place.relation, 0.95))  # "sessions", of rows with a session_id of their own
        return found

    @cached_property
    def _others(self) -> dict[tuple[str, ...], list[Place]]:
        """The keys of things that have no table, by what they are called: the users of `user_id`."""
        found: dict[tuple[str, ...], list[Place]] = defaultdict(list)
        for place in self.index.all_places():
            thing = thing_of(place)
            if thing and thing not in self._relations and thing[-1:] not in self._relations:
                found[thing].append(place)
        return found

    @cached_property
    def _things(self) -> dict[str, list[tuple[Relation, float]]]:
        """The relations by what their rows evidently are, though they are not called so: `omdb` holds movies."""
        found: dict[str, list[tuple[Relation, float]]] = defaultdict(list)
        for relation in self.index.catalog.relations:
            own = {word for n in self.columns if n.place.relation is relation for part in n.parts for word in part}
            for noun, told in words().things.items():
                if len({stem(word) for word in told} & own) > 1:
                    found[noun].append((relation, 0.9))
        return found

    def relations_named(self, said: tuple[str, ...]) -> tuple[tuple[Relation, float], ...]:
        """Return the relations whose rows stems name."""
        found = self._relations.get(said, [])
        if not found and len(said) == 1:
            near = [r for r in self.index.relations_named(said[0]) if r.name not in self.of_facts({r.name})]
            found = [(r, 0.8) for r in near if said[0] not in relation_stems(r)]
            found = found or self._things.get(said[0], [])
            found = found or [(r, 0.8) for r in self.forms.relations(said[0])]
            every = self.index.catalog.relations
            found = found or [(r, 0.8) for r in every if len(every) == 1 and said[0] in words().rows]
        best = max((quality for _, quality in found), default=0.0)
        return tuple((relation, quality) for relation, quality in found if quality == best)

    @cached_property
    def people(self) -> tuple[Relation, ...]:
        """The relations whose rows are evidently people."""
        known = {stem(word) for word in words().person_columns}
        return tuple(
            relation
            for relation in self.index.catalog.relations
            if self.called(relation) and any(known & set(place.stems) for place in self.index.places[relation.name])
        )

    def misspelt(self, word: str) -> str | None:
        """Return the one word of names, values or the language of which a long word is one slip of the hand away."""
        if len(word) < _SHORTEST_MISSPELT - 1 or word != word.casefold():
            return None
        names = {word for n in self.columns for part in n.own for word in part}
        names |= {part for name in self._relations for part in name}
        names |= {value.casefold() for value in self._values_of_kinds if value.isalpha()}
        known = [*_SPOKEN, *(names if len(word) >= _SHORTEST_MISSPELT else ())]
        forms = {word, stem(word)}
        near = {each for each in known if each[:1] == word[:1] and any(edit_distance(f, each, 1) == 1 for f in forms)}
        return next(iter(near)) if len(near) == 1 else None

    @cached_property
    def _values_of_kinds(self) -> frozenset[str]:
        """The values of the columns that hold few of them."""
        kinds = [n.place for n in self.columns if n.place.kind == "text" and 0 < self.distinct(n.place) <= _MOST_KINDS]
        return frozenset(value for p in kinds for value in self.values_of(p))

    def values_named(self, text: str, said: tuple[str, ...]) -> tuple[tuple[Meaning, float], ...]:
        """Return the values that words spell, whole, or in part where a column has few values."""
        listed = [m for m in self._items.get(said, ()) if m[0] not in self._keywords]
        items = [(m, 1.0) for m in (*listed, *self._turned.get(said, ()))]
        held = [m for m in self.index.meanings(said) if (m[0].relation.name, m[0].column.name) not in self._keys]
        held = [m for m in held if m[0] not in self._keywords]
        whole = [m for m in held if not self.is_list(m[0])]
        exact = items + [(m, 1.0) for m in whole if not (self._is_foreign_code(m, text) or self._is_chance(m, text))]
        as_written = [(m, quality) for m, quality in exact if m[1] == text]
        if exact:
            return tuple(as_written if len(as_written) < len(exact) and text != text.lower() else exact) or tuple(exact)
        if len(alike := self._in_other_order.get(tuple(sorted(said)), [])) == 1 and len(said) > 1:
            return ((alike[0], 0.9),)
        if countries := self.forms.countries(text):
            return tuple((m, 0.95) for m in countries)
        named = self.columns_named(said) or self.relations_named(said) or (len(said) == 1 and self.forms.columns(text))
        # "coffees" are no Coffee Institute, and "independent" is no Independent Church, beside `independence`
        return () if named else tuple((m, 0.8) for m in self._parts.get(said, ()))

    def is_whole(self, place: Place) -> bool:
        """Return whether the name of a column of numbers speaks of the whole: `sleep_total`."""
        return place.kind == "number" and whole_of(self.parts_of(place))

    def of_place(self, place: Place) -> bool:
        """Return whether the name of a column begins with the code of a place: `JP_sales`."""
        own = self.parts_of(place)
        return len(own) > 1 and bool(own[0] & place_names(place.stems[0]))

    def parts_of(self, place: Place) -> tuple[frozenset[str], ...]:
        """Return the words of a column's name, an abbreviation with what it stands for."""
        return next((named.own for named in self.columns if named.place is place), ())

    @cached_property
    def verbs(self) -> Verbs:
        """Columns and relations by the verbs that speak of them."""
        return Verbs(self.columns, self.index)

    @cached_property
    def forms(self) -> OtherForms:
        """Columns and values by other forms of words than their own."""
        return OtherForms((n.place for n in self.columns), self._values)


def is_year(place: Place) -> bool:
    """Return whether a column holds numbers that are evidently years."""
    samples = place.column.samples
    return place.kind == "number" and bool(samples) and all(_YEAR.fullmatch(each) for each in samples)


def _quality(named: Named, said: Sequence[str], places: Sequence[int]) -> float | None:
    """Return how surely stems mean a column, each of which is one of the words of its name; None where they do not."""
    share, head = len(said) / len(named.parts), len(named.parts) - 1 in places
    exactly = all(word in named.parts[i] for word, i in zip(said, places, strict=True))
    literally = all(word in named.own[i] for word, i in zip(said, places, strict=True))
    if share < 1 and not literally and named.place.kind == "text":
        return None  # the revenue of `Sales Rep`
    own = set(relation_stems(named.place.relation))
    left = {i for i, part in enumerate(named.parts) if not part & own}
    if share < 1 and set(places) == left:
        return OWN  # "name", of Document_Name
    quality = (1.0 if exactly else 0.93) if share == 1 else 0.45 + 0.4 * share + (0.1 if head else -0.1)
    return quality - (0 if literally or not exactly else _OTHER_WORD)


def _nearest(word: str, fit: Sequence[Named]) -> Place | None:
    """Return the one of several columns that a word means: the one that is called so alone, the whole, the one whose
    name ends so, or, of days, that of the rows themselves.
    """
    only = [n for n in fit if n.place.stems == (word,)]
    exact = [n for n in fit if n.place.stems[-1:] == (word,)]
    own = [n for n in fit if {*n.place.stems} & {*relation_stems(n.place.relation)}]  # order_date of orders
    for near in (fit, only, [n for n in fit if whole_of(n.parts)], exact, own if word == "date" else ()):
        if len(near) == 1:
            return near[0].place
    return None


def _said(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name as questions are read: without articles and "of"."""
    return tuple(part for part in name if part not in ("of", "the"))


def _is_amount(place: Place) -> bool:
    return place.kind in ("number", "date") and not place.identifier
