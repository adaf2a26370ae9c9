"""A catalog made searchable by words: names, descriptions, roles and values of its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal

from almanaq.agent.local_old.calendar_spans import Span as Days
from almanaq.agent.local_old.joins import Hop, edges
from almanaq.agent.local_old.lexicon import ROLE_WORDS, SYNONYMS
from almanaq.agent.local_old.spoken import described_stems, relation_stems, spoken
from almanaq.agent.local_old.words import identifier_stems, stem, stems
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.text.spelling import edit_distance, tolerance

Values = Callable[[str, str, int], Sequence[str]]
"""(relation, column, limit) → distinct values, the most frequent first."""

Finds = Callable[[str], bool]
"""Says whether a query finds any row."""

MOST_VALUES = 5000
MOST_NAMES = 20_000
"""Most values that are known of a column of names: what people ask for by name is any of them."""
MISSING = ("na", "n/a", "nan", "null", "none", "unknown", "-", "?")
"""Texts that say there is no value."""
_YEAR, _FEW_YEARS = 366, 2
_LONGEST_VALUE = 10
_TIES = "SELECT 1 AS one ORDER BY length('a') FETCH FIRST 1 ROWS WITH TIES"
_NUMBERS = ("int", "numeric", "decimal", "float", "double", "real", "money", "hugeint", "number", "serial")
_AFFIRMING, _DENYING = frozenset(("yes", "true", "y", "t")), frozenset(("no", "false", "n", "f"))
_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d)")
_SO_OR_NOT = ("ed", "able", "ible", "active", "flag", "paid", "sold", "al", "ous", "ic", "ive", "less", "free")
_COUNT = re.compile(r"-?(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?")
_LASTING = re.compile(r"\d ?(?:h|hr|hrs|hours?|m|mins?|minutes?|s|secs?|seconds?)\b", re.IGNORECASE)
_DATES = ("date", "timestamp", "time")
_SYNONYMS = {word: group for group in SYNONYMS for word in group}


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a relation, with what its name and type say.

    Attributes:
        stems: the words of its name; `about` those of its description.
        roles: keys of ROLE_WORDS that its name fits.
        kind: what its values are; a text column that only says yes or no is a boolean, `affirms` its yes; where it
            never says no, but nothing, it does not `denies`.
        cast: it is of text, and all its values are numbers: it is compared as numbers are; `missing` the one text
            that says there is none.
        minutes: it holds how long something takes; it is compared, and put together, in minutes.
    """

    relation: Relation
    column: Column
    stems: tuple[str, ...]
    about: frozenset[str]
    roles: frozenset[str]
    kind: Literal["number", "date", "boolean", "text", "prose"]
    affirms: str | None = None
    denies: bool = True
    cast: bool = False
    missing: str | None = None
    minutes: bool = False

    @property
    def coded(self) -> bool:
        """Whether its name is a code, and only its description says what it holds."""
        return self.stems != identifier_stems(self.column.name)

    @property
    def identifier(self) -> bool:
        """Whether the column only identifies or refers: a key that nobody asks about by value."""
        folded = self.column.name.casefold()
        # A text that stands in both tables under one name, as a city, is spoken of by value all the same.
        refers = any(
            folded in map(str.casefold, own)
            and not (self.column.type == "text" and folded in map(str.casefold, theirs))
            for own, _, theirs in self.relation.foreign_keys
        )
        return refers or (bool(self.stems) and self.stems[-1] in ("id", "uuid", "key")) or folded in ("rowid", "index")


Meaning = tuple[Place, str]
"""A value and the column it stands in."""


def place(relation: Relation, column: Column) -> Place:
    """Return a column with what its name, type and description say."""
    words = spoken(column.name, column.description)
    roles = frozenset(role for role, names in ROLE_WORDS.items() if names & set(words))
    kind = _kind(column)
    affirms = "1" if kind == "boolean" and not column.type.casefold().startswith("bool") else None
    minutes = _is_duration(column)
    kind = "number" if minutes else kind
    return Place(relation, column, words, frozenset(stems(column.description)), roles, kind, affirms, minutes=minutes)


def _kind(column: Column) -> Literal["number", "date", "boolean", "text", "prose"]:
    if column.kind is ColumnKind.FREE_TEXT:
        return "prose"
    type_name = column.type.casefold()
    if column.kind is ColumnKind.ENUM:
        return "text"
    if type_name.startswith("bool"):
        return "boolean"
    if any(word in type_name for word in _NUMBERS) and "interval" not in type_name:
        return "boolean" if _told_by_digits(column) else "number"
    return "date" if type_name.startswith(_DATES) else "text"


def _is_duration(column: Column) -> bool:
    """Return whether times are written as how long something takes: "1h 30m"."""
    return column.type.casefold().startswith("time") and bool(_LASTING.search(column.written))


def _counts(values: Sequence[str]) -> bool:
    """Return whether texts are numbers that can be compared: no codes like "00417", nor the digits of a telephone."""
    return bool(values) and len(values) < MOST_VALUES and all(_COUNT.fullmatch(value) for value in values)


def _told_by_digits(column: Column) -> bool:
    """Return whether a column of numbers holds 1 for yes and 0 for no: only these, under a name of what is
    so or not.
    """
    words = identifier_stems(column.name)
    named = words[:1] in (("is",), ("has",), ("can",)) or (words[-1:][0:1] and words[-1].endswith(_SO_OR_NOT))
    return bool(named) and bool(column.samples) and set(column.samples) <= {"0", "1"}


class SchemaIndex:
    """The relations of a catalog by the words that name them, and the values of their columns.

    Args:
        catalog: the relations to index.
        values: gives the values of a column; columns of prose, numbers and keys are not asked for.
        today: gives the date that "last year" refers to.
        finds: says whether a query finds a row, where that can be asked.
    """

    def __init__(
        self,
        catalog: Catalog,
        values: Values,
        today: Callable[[], date] = date.today,
        finds: Finds | None = None,
    ) -> None:
        self.catalog, self.today, self.finds = catalog, today, finds
        self.kept: dict[Any, Any] = {}
        self._read = values
        self.places = {r.name: tuple(place(r, c) for c in r.columns) for r in catalog.relations}
        self._meanings: dict[tuple[str, ...], list[Meaning]] = {}
        self._spellings: dict[str, list[tuple[str, ...]]] = {}
        self._parts: dict[str, set[Meaning]] = {}
        self._options: dict[str, list[Meaning]] = {}
        for name, places in self.places.items():
            self.places[name] = tuple(self._add(one, values) for one in places)

    @cached_property
    def hops(self) -> dict[str, list[Hop]]:
        """The hops from every relation to others."""
        return edges(self.catalog)

    def all_places(self) -> Iterable[Place]:
        """Yield every column of every relation."""
        for places in self.places.values():
            yield from places

    def latest(self, one: Place) -> date | None:
        """Return the latest day that a column holds, as far as its values were read; None where it holds none."""
        days = (value[:10] for value in self._read(one.relation.name, one.column.name, MOST_VALUES))
        return max((date.fromisoformat(day) for day in days if _DAY.fullmatch(day)), default=None)

    def nearest_days(self, one: Place, yearless: Days) -> tuple[date, date]:
        """Return the days of a span without a year that lie nearest to the latest day of a column."""
        return yearless.nearest(min(filter(None, (self.latest(one), self.today()))))

    def is_history(self, one: Place) -> bool:
        """Return whether a column holds days of many years that are all over: no month of them is the one just past."""
        latest, years = self.latest(one), self.years(one)
        return latest is not None and len(years) > _FEW_YEARS and (self.today() - latest).days > _YEAR

    def years(self, one: Place) -> list[int]:
        """Return the years of the days that a column holds, as far as its values were read, in order."""
        days = (value[:10] for value in self._read(one.relation.name, one.column.name, MOST_VALUES))
        return sorted({int(day[:4]) for day in days if _DAY.fullmatch(day)})

    def has_blank(self, one: Place) -> bool:
        """Return whether a column of texts says by an empty one that there is none."""
        return one.kind == "text" and "" in self._read(one.relation.name, one.column.name, MOST_VALUES)

    @cached_property
    def gives_ties(self) -> bool:
        """Whether what is asked can give all rows that rank alike; some databases cannot."""
        try:
            return self.finds is not None and self.finds(_TIES)
        except AlmanaqError:
            return False

    def _add(self, one: Place, values: Values) -> Place:
        """Make a column's values findable; give the column with what they tell of its kind."""
        if one.kind != "text" or one.column.private or (one.identifier and one.column.kind is not ColumnKind.ENUM):
            return one
        most = MOST_NAMES if "name" in one.roles else MOST_VALUES
        listed = one.column.values or tuple(values(one.relation.name, one.column.name, most))
        affirms = next((v for v in listed if v.casefold() in _AFFIRMING), None)
        if affirms is not None and {v.casefold() for v in listed} <= _AFFIRMING | _DENYING:
            denies = any(value.casefold() in _DENYING for value in listed)
            return replace(one, kind="boolean", affirms=affirms, denies=denies)
        told = [value for value in listed if value.casefold() not in MISSING]
        if not one.column.array and _counts(told) and len(listed) - len(told) < 2:
            missing = next((value for value in listed if value not in told), None)
            one = replace(one, kind="number", cast=True, missing=missing)
        for value in listed:
            self._add_value(one, value)
        return one

    def _add_value(self, one: Place, value: str) -> None:
        parts = stems(value)
        if not 0 < len(parts) <= _LONGEST_VALUE:
            return
        known = self._meanings.setdefault(parts, [])
        if not known:
            self._spellings.setdefault(parts[0][0], []).append(parts)
        known.append((one, value))
        for part in parts if "name" in one.roles else ():
            self._parts.setdefault(part, set()).add((one, value))
        for part in parts if one.column.kind is ColumnKind.ENUM and len(parts) > 1 else ():
            self._options.setdefault(part, []).append((one, value))

    def meanings(self, parts: tuple[str, ...]) -> tuple[Meaning, ...]:
        """Return the values that these words spell, or that a synonym of theirs spells."""
        found = self._meanings.get(parts)
        if found:
            return tuple(found)
        group = _SYNONYMS.get(" ".join(parts), frozenset())
        return tuple(m for word in sorted(group) for m in self._meanings.get(stems(word), ()))

    def known_meanings(self) -> Iterable[Sequence[Meaning]]:
        """Yield the values of columns with where they stand, those of one spelling together."""
        return self._meanings.values()

    def options_with(self, *parts: str) -> tuple[Meaning, ...]:
        """Return the values of ENUMs that hold these words in a row: "coffee" is in "coffee & tea"."""
        return tuple(m for m in self._options.get(parts[0], ()) if _holds(stems(m[1]), parts))

    def misspelt(self, parts: tuple[str, ...]) -> tuple[Meaning, ...]:
        """Return the values nearest in spelling to these words, within the tolerance for their length."""
        written = " ".join(parts)
        limit = tolerance(written)
        best: list[tuple[str, ...]] = []
        for known in self._spellings.get(written[:1], ()) if limit else ():
            if len(known) != len(parts):
                continue
            edits = edit_distance(written, " ".join(known), limit)
            if edits < limit or (edits == limit and not best):
                best = [known] if edits < limit else [*best, known]
                limit = edits
        return tuple(m for known in best[:1] for m in self._meanings[known])

    def named_like(self, parts: tuple[str, ...]) -> tuple[Meaning, ...]:
        """Return the names that hold these words in a row."""
        sets = [self._parts.get(part, set()) for part in parts]
        shared = set.intersection(*sets) if sets else set()
        found = [m for m in shared if _holds(stems(m[1]), parts)]
        return tuple(sorted(found, key=lambda m: (m[0].relation.name, m[0].column.name, m[1])))

    def relations_named(self, word: str) -> tuple[Relation, ...]:
        """Return the relations that a noun names, by their names or a synonym, else by what is said of them."""
        group = {stem(w) for w in _SYNONYMS.get(word, frozenset())} | {word}
        exact = tuple(r for r in self.catalog.relations if set(relation_stems(r)) <= group)
        if exact:
            return exact
        named = tuple(r for r in self.catalog.relations if group & set(relation_stems(r)))
        return named or tuple(r for r in self.catalog.relations if group & set(described_stems(r)))


def _holds(value: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return any(value[i : i + len(parts)] == parts for i in range(len(value) - len(parts) + 1))
