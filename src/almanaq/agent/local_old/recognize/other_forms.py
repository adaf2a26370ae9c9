"""Columns and values by other forms than their own: `weakness` of "weak", "REG" of "regular", "DE" of Germany."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from almanaq.agent.local_old.schema_index import Meaning, Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import derived, stem, stems
from almanaq.suql.catalog.relations import Relation

_FEW, _LONGEST_CODE = 30, 7
"""Most values of a column of codes, and letters of the longest of them."""
_SHORTEST_CODE, _SHORTEST_WORD = 3, 5
"""Letters of the shortest code that a word may begin with, and of such a word."""
_OF_CODES = 0.9
"""Share of a column's values that are codes of countries, or of states, where it holds these."""
_CONTINENTS = 7
_LANGUAGE = "language"
_OF_LANGUAGES = 0.6
"""Share of a column's values that are codes of languages, where it is called after these: films have rare ones, too."""
_OF_THINGS = ("ee", "ial", "ism", "ist")
_OF_VALUES, _MOST = 0.3, 200
"""Share of a column's values that hold a word by which people call it, "party", and most of such values."""
_NAMED = 3
"""Names of countries that a column holds at least that is one of countries."""
OTHER_FORM = 0.9
"""How surely a column is named by another form of its word."""

_AFTER_WORDS = ("by", "at", "on", "in", "date", "year")
"""What may stand in a name after its one word."""

Values = Mapping[tuple[str, str], Iterable[str]]
"""The values of columns, by relation and column."""


class OtherForms:
    """Finds the one column or value of which a word is another form.

    Args:
        places: the columns.
        values: the values of columns of text.
    """

    def __init__(self, places: Iterable[Place], values: Values) -> None:
        self._places = tuple(places)
        self._codes: dict[str, set[Meaning]] = defaultdict(set)
        self._countries: dict[tuple[str, ...], list[Meaning]] = defaultdict(list)
        self._derived: dict[str, set[Meaning]] = defaultdict(set)
        self._repeated: dict[str, set[Place]] = defaultdict(set)
        self._kinds: dict[str, set[Place]] = defaultdict(set)
        for place in self._places:
            own = {value for value in values.get((place.relation.name, place.column.name), ()) if value}
            if place.kind == "text" and own:
                self._add_codes(place, own)
                self._add_words(place, own)
                self._add_countries(place, own)

    def columns(self, word: str) -> tuple[tuple[Place, float], ...]:
        """Return the one column of whose name a word is another form, or that holds what it says: countries, states."""
        said = derived(stem(word))
        found = [place for place in self._places if said & derived(place.stems[0]) and _is_one_word(place)]
        found = found or [place for place in self._places if place.stems == ("name",) and _does(word, place.relation)]
        found = found or [*(self._repeated.get(stem(word)) or self._kinds.get(stem(word), set()))]
        return tuple((place, OTHER_FORM) for place in found if len(found) == 1)

    def relations(self, word: str) -> tuple[Relation, ...]:
        """Return the one relation of whose name a noun or an adjective is another form: the exonerees of
        `exonerations`; no verb, which tells what was done.
        """
        said = derived(stem(word)) if stem(word).endswith(_OF_THINGS) else frozenset()
        found = {place.relation.name: place.relation for place in self._places if said & _forms(place.relation)}
        return tuple(found.values()) if len(found) == 1 else ()

    def values(self, word: str) -> tuple[Meaning, ...]:
        """Return the one value of which a word is another form: "Retirement" of retired."""
        said = derived(stem(word)) if len(word) >= _SHORTEST_WORD else frozenset()
        found = {meaning for form in said for meaning in self._derived.get(form, ())}
        return tuple(found) if len(found) == 1 else ()

    def codes(self, word: str) -> tuple[Meaning, ...]:
        """Return the one code with which a word begins: "REG" of "regular", "Mon" of Monday."""
        sizes = range(_SHORTEST_CODE, len(word)) if len(word) >= _SHORTEST_WORD else ()
        found = {meaning for size in sizes for meaning in self._codes.get(word[:size], ())}
        return tuple(found) if len(found) == 1 else ()

    def countries(self, text: str) -> tuple[Meaning, ...]:
        """Return the values that mean a country or a state by another name, a code or what is called after it."""
        return tuple(self._countries.get(stems(text), ()))

    def _add_codes(self, place: Place, values: set[str]) -> None:
        named = "name" in place.roles or 2 * len(values) > (place.relation.rows or 0)
        if named or len(values) > _FEW or not all(value.isalpha() and len(value) <= _LONGEST_CODE for value in values):
            return
        for value in values:
            if len(value) >= _SHORTEST_CODE:
                self._codes[value.casefold()].add((place, value))

    def _add_words(self, place: Place, values: set[str]) -> None:
        """Add the values of one word by its other forms, and the words that many values of a column share."""
        if len(values) > _MOST or "name" in place.roles:
            return
        for value in values if len(values) <= _FEW else ():
            for form in derived(stem(value)) if value.isalpha() and len(value) >= _SHORTEST_WORD else ():
                self._derived[form].add((place, value))
        held = Counter(part for value in values for part in {*stems(value)} if part.isalpha() and len(part) > 3)
        for part, count in held.items():
            if count >= max(_OF_VALUES * len(values), _NAMED):
                self._repeated[part].add(place)

    def _add_countries(self, place: Place, values: set[str]) -> None:
        kinds = [each for each in _codes() if each[0] != _LANGUAGE or _LANGUAGE in place.stems]
        kind, coded = max(kinds, key=lambda each: (len(values & {*each[1]}), each[0] in "".join(place.stems)))
        places = [names for each in ("country", "continent") for _, names in _places()[each]]
        listed = {name: names for names in places for name in (names[0], *names[2:])}  # "Italian" is a kitchen, too
        least = _OF_LANGUAGES if kind == _LANGUAGE else _OF_CODES
        if len(values & {*coded}) >= max(least * len(values), 1):
            called = coded
        elif len(values & {*listed}) >= _NAMED:
            called, kind = listed, "continent" if len(values & {*listed}) <= _CONTINENTS else "country"
        else:
            return
        if len(values & {*called}) >= _OF_CODES * len(values):
            self._kinds[kind].add(place)
        for value in values & {*called}:
            for name in called[value]:
                if (place, value) not in self._countries[stems(name)]:
                    self._countries[stems(name)].append((place, value))


def _does(word: str, relation: Relation) -> bool:
    """Return whether a noun is of those who do what rows are called: the lifters of `lifts`."""
    doer = stem(word)
    done = {doer.removesuffix(ending) for ending in ("er", "or", "r")} if doer.endswith(("er", "or")) else set()
    return bool({part for part in done if len(part) > 3} & {*relation_stems(relation)[-1:]})


def _forms(relation: Relation) -> frozenset[str]:
    """Return the other forms of what a relation is called, in one word."""
    called = relation_stems(relation)
    return derived(called[0]) if len(called) == 1 else frozenset()


def _is_one_word(place: Place) -> bool:
    """Return whether one word of a name says it all: `Directed_by`, `density_2021`."""
    return all(part in _AFTER_WORDS or part.isdigit() for part in place.stems[1:])


@cache
def _places() -> Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    """Return the codes and the names of each country, state and continent."""
    data = tomllib.loads(files("almanaq.agent.local_old").joinpath("en/places.toml").read_text("utf-8"))
    return {kind: tuple(map(_called, filter(None, lines.split("\n")))) for kind, lines in data.items()}


def _called(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    codes, names = line.split(":")
    return tuple(codes.split()), tuple(name.strip() for name in names.split(","))


@cache
def place_names(code: str) -> frozenset[str]:
    """Return the names, in small letters, of the countries and continents that a code stands for."""
    listed = [names for kind in ("country", "continent") for codes, names in _places()[kind] if code.upper() in codes]
    return frozenset(name.casefold() for names in listed for name in names if " " not in name)


@cache
def _codes() -> tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...]:
    """Return for each kind of place, and each kind of its codes, what these stand for."""
    return tuple(
        (kind, {codes[i]: names for codes, names in places})
        for kind, places in _places().items()
        for i in range(len(places[0][0]))
    )
