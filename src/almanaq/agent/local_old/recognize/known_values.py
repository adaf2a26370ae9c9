"""The values that columns hold, and which of them name rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from functools import cached_property

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.schema_index import MISSING, MOST_NAMES, MOST_VALUES, Meaning, Place, SchemaIndex
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import stems
from almanaq.suql.catalog.relations import Relation

_TURNED = re.compile(r"(?P<last>[^\W\d_][^,\d]*), (?P<first>[^,\d]+)")
_MARKS = (", ", "; ", " | ", ";", "|", ",")
"""What sets the items of a list apart."""
_PARTS, _SHARED = 2, 0.1
"""How many parts a text has that names a place and what it lies in; share of places that are also such parts."""
_BESIDE = r"[,;/&|]|\band\b"
_FEWEST = 3
"""Columns of names that are looked at, to tell whether a list repeats them."""
_FEW = 60
_KINDS = 6
"""Most values of a column that says yes, no, or something between."""
_CODE = 4
"""Longest value that has to be written as it is, capitals included, in a column where every row has its own."""


class KnownValues:
    """The values of a catalog's columns, by the words that spell them."""

    def __init__(self, index: SchemaIndex) -> None:
        self.index = index

    def of_same_rows(self, meanings: Sequence[Meaning]) -> list[Meaning]:
        """Return one of several values of one relation where the same rows have all of them: a name also in the
        language of the country; the column that names rows goes first. Return [] where other rows have one.
        """
        (first, value), *others = sorted(meanings, key=lambda m: ("name" not in m[0].roles, len(m[0].stems)))
        elsewhere = any(m[0].relation != first.relation or self.is_list(m[0]) for m in (*others, (first, value)))
        if self.index.finds is None or not others or elsewhere:
            return []
        same = f"{sql.column(first, False)} = {sql.text(value)}"
        for place, spelled in others:
            other = f"{sql.column(place, False)} = {sql.text(spelled)}"
            apart = f"COALESCE({same}, FALSE) <> COALESCE({other}, FALSE)"
            if self.index.finds(f"SELECT 1 FROM {sql.name(first.relation.name)} WHERE {apart} LIMIT 1"):
                return []
        return [(first, value)]

    def values_of(self, place: Place) -> Set[str]:
        """Return the values of a text column, as far as they are known."""
        return self._values.get((place.relation.name, place.column.name), set())

    def _is_foreign_code(self, meaning: Meaning, text: str) -> bool:
        """Return whether a value is a short code that only capitals tell from a word: SEA of "below sea level"."""
        value = meaning[1]
        return len(value) <= _CODE and value.isupper() and text != value and not self._few(meaning[0])

    def _is_chance(self, meaning: Meaning, text: str) -> bool:
        """Return whether one word may be one of so many names by chance: "Western" of "westerns"."""
        return meaning[1] != text and " " not in text and self.distinct(meaning[0]) >= MOST_VALUES

    def spellings(self, place: Place, value: str) -> list[str]:
        """Return a value with those of its column that differ in capitals, white space or a last point alone."""
        plain = _plain(value)
        return sorted({value} | {each for each in self.values_of(place) if _plain(each) == plain})

    def is_kind(self, place: Place) -> bool:
        """Return whether a column says of what kind rows are: it has few values for many rows."""
        return 1 < self.distinct(place) <= _FEW and (place.relation.rows or 0) > self.distinct(place)

    def numbered(self, place: Place, number: float) -> str | None:
        """Return the one text of a column of few that has a number in it: "S07" of 7; None where several have it."""
        held = {value: re.findall(r"\d+", value) for value in self.values_of(place)}
        fit = [value for value, numbers in held.items() if len(numbers) == 1 and int(numbers[0]) == number]
        return fit[0] if len(fit) == 1 and len(held) <= _FEW and all(len(n) == 1 for n in held.values()) else None

    def is_of_parts(self, place: Place) -> bool:
        """Return whether the texts of a column are of two parts each, "Bern, Switzerland", rather than lists."""
        values = self.values_of(place)
        parts = [value.split(", ") for value in values if ", " in value]
        first, second = ({part[i] for part in parts} for i in (0, 1)) if parts else (set(), set())
        return all(len(part) == _PARTS for part in parts) and len(first & second) < _SHARED * len(second)

    def distinct(self, place: Place) -> int:
        """Return how many values of a text column are known."""
        return len(self.values_of(place))

    def written_missing(self, place: Place) -> str | None:
        """Return the text by which a column says that its value is not known: "NA"; None where there is none."""
        values = self.values_of(place)
        return next((value for value in sorted(values) if value.casefold() in MISSING), None)

    def written_no(self, place: Place) -> str | None:
        """Return the "no" that a column of texts holds among others: "yes", "no", "in part"."""
        values = self.values_of(place)
        return next((v for v in sorted(values) if v.casefold() == "no"), None) if len(values) <= _KINDS else None

    def is_one_of_several(self, place: Place, value: str) -> bool:
        """Return whether other texts of a column list a value beside others: "Ray & Davy" of "Davy"."""
        if self.is_list(place) or "name" in place.roles or self.names_rows(place):
            return False
        listed = re.compile(rf"(?:^|{_BESIDE}) *{re.escape(value)} *(?:$|{_BESIDE})", re.IGNORECASE)
        others = self.values_of(place) - {value}
        return len(others) >= _FEW and any(listed.search(other) for other in others if len(other) > len(value))

    def names_rows(self, place: Place) -> bool:
        """Return whether a column tells rows apart: hardly two of them share a value."""
        rows = place.relation.rows
        if place.relation.key == (place.column.name,):
            return True
        if rows is None:
            return "name" in place.roles
        most = MOST_NAMES if "name" in place.roles else MOST_VALUES
        return place.kind == "text" and self.distinct(place) >= 0.8 * min(rows, most) and rows > 1

    def row_name(self, relation: Relation) -> Place | None:
        """Return the column by which people call the rows of a relation; None where they have no names."""
        places = self.index.places[relation.name]
        named = [p for p in places if "name" in p.roles and not p.identifier and self.names_rows(p)]
        texts = [p for p in places if p.kind == "text" and not p.identifier]
        alike = [p for p in texts if p.stems == relation_stems(relation)]  # "shop" of shops
        full = [p for p in texts if "full" in p.stems and {*p.stems} <= {"full", "name", *relation_stems(relation)}]
        if len(full) == 1 and self.names_rows(full[0]):
            return full[0]
        called = alike if len(alike) == 1 else texts
        if not named and len(called) == 1 and self.names_rows(called[0]):
            return called[0]
        said = next((p for p in texts if p.column.name == relation.named_by and self.names_rows(p)), None)
        return min(named, key=lambda p: len(p.stems), default=said)

    def whole_name(self, relation: Relation) -> tuple[Place, ...]:
        """Return the columns by which people call the rows of a relation: a first name goes with the last."""
        places = self.index.places[relation.name]
        first = next((p for p in places if p.stems[:1] == ("first",) and p.stems[-1:] == ("name",)), None)
        last = next((p for p in places if p.stems[:1] in (("last",), ("sur",)) and p.stems[-1:] == ("name",)), None)
        if first is not None and last is not None:
            return first, last
        named = self.row_name(relation)
        return () if named is None else (named,)

    def called(self, relation: Relation) -> tuple[Place, ...]:
        """Return what shows which rows are meant: their names, or a bare name that several of them may share."""
        own = self.index.places[relation.name]
        bare = tuple(p for p in own if p.kind == "text" and p.stems == ("name",))
        return self.whole_name(relation) or bare or tuple(p for p in own if p.stems == relation_stems(relation))

    def _few(self, place: Place) -> bool:
        return self.distinct(place) <= _FEW

    @cached_property
    def _values(self) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for meanings in self.index.known_meanings():
            for place, value in meanings:
                found[place.relation.name, place.column.name].add(value)
        return found

    def is_list(self, place: Place) -> bool:
        """Return whether the texts of a column are lists: "Drama, Horror", of items that come again and again."""
        return (place.relation.name, place.column.name) in self._lists

    def holds_item(self, place: Place, item: str) -> str:
        """Return the template of the condition that a text which is a list holds an item."""
        return sql.list_test(item, self._lists[place.relation.name, place.column.name][2])

    @cached_property
    def _lists(self) -> dict[tuple[str, str], tuple[Place, frozenset[str], str]]:
        """The columns of lists, each with its items and what sets them apart."""
        found = {}
        for place in self.index.all_places():
            values = self.values_of(place)
            marked = ((mark, _items(values, mark)) for mark in _MARKS) if not self._are_names(place) else ()
            mark, items = next(((mark, items) for mark, items in marked if items), ("", frozenset[str]()))
            if items:
                found[place.relation.name, place.column.name] = (place, items, mark)
        return found

    def _are_names(self, place: Place) -> bool:
        """Return whether texts are names that hardly two rows share, whatever marks they have in them: "Ray, Inc."."""
        return "name" in place.roles and self.names_rows(place)

    @cached_property
    def _keywords(self) -> tuple[Place, ...]:
        """The lists that repeat the names of their own rows: words to search by, which say nothing new of a row."""
        return tuple(place for place, _, _ in self._lists.values() if self._repeats_names(place))

    def _repeats_names(self, place: Place) -> bool:
        named = [p for p in self.index.places[place.relation.name] if "name" in p.roles and p is not place]
        alike = (f"{sql.column(place, False)} LIKE '%' || {sql.column(p, False)} || '%'" for p in named[:_FEWEST])
        most = " OR ".join(f"AVG(CASE WHEN {each} THEN 1 ELSE 0 END) > 0.5" for each in alike)
        counted = f"SELECT COUNT(*) FROM {sql.name(place.relation.name)} HAVING {most}"
        return bool(named) and self.index.finds is not None and self.index.finds(counted)

    @cached_property
    def _items(self) -> dict[tuple[str, ...], list[Meaning]]:
        """The items of columns that hold lists, by their words."""
        found: dict[tuple[str, ...], list[Meaning]] = defaultdict(list)
        for place, items, _ in self._lists.values():
            for item in items:
                found[stems(item)].append((place, item))
        return found

    @cached_property
    def _in_other_order(self) -> dict[tuple[str, ...], list[Meaning]]:
        """Values with a mark between their words, by these in any order: "TRUCK,UTILITY" of "utility truck"."""
        found: dict[tuple[str, ...], list[Meaning]] = defaultdict(list)
        for place in self.index.all_places():
            values = self.values_of(place)
            for value in values if len(values) <= _FEW and not self.is_list(place) else ():
                if any(mark in value for mark in _MARKS):
                    found[tuple(sorted(stems(value)))].append((place, value))
        return found

    @cached_property
    def _turned(self) -> dict[tuple[str, ...], list[Meaning]]:
        """Names that are written "Lee, Ann Mary" by how people say them: "Ann Lee", where only one is called so."""
        found: dict[tuple[str, ...], list[Meaning]] = defaultdict(list)
        for place in self.index.all_places():
            values = self.values_of(place)
            turned = {value: match for value in values if (match := _TURNED.fullmatch(value))}
            for value, match in turned.items() if 2 * len(turned) > len(values) and not self.is_list(place) else ():
                first, last = stems(match["first"]), stems(match["last"])
                for size in range(1, len(first) + 1):
                    found[(*first[:size], *last)].append((place, value))
        return {said: held for said, held in found.items() if len(held) == 1 or len({p.column for p, _ in held}) > 1}

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], list[Meaning]]:
        """Words with which one value alone begins of a column with few values."""
        found: dict[tuple[str, ...], list[Meaning]] = defaultdict(list)
        for place in self.index.all_places():
            values = self.values_of(place)
            if not 1 < len(values) <= _FEW or self.is_list(place):
                continue
            holders: dict[tuple[str, ...], set[str]] = defaultdict(set)
            for value in values:
                said = stems(value)
                for size in range(1, len(said)):
                    holders[said[:size]].add(value)
            for part, holding in holders.items():
                if len(holding) == 1 and len("".join(part)) > 3:
                    found[part].append((place, next(iter(holding))))
        return found


def _items(values: Set[str], mark: str) -> frozenset[str]:
    """Return the items of texts, where these are lists of items that come again and again; none where they are not."""
    lists = [value.split(mark) for value in values if mark in value]
    items = {item for items in lists for item in items}
    alone = frozenset(value for value in values if mark not in value)
    repeated = len(lists) >= 0.2 * len(values) and len(items) <= 0.7 * sum(map(len, lists))
    often = repeated or (len(lists) >= 0.1 * len(values) and len(items & alone) > 0.2 * len(items))
    return alone | items if len(lists) > 2 and often else frozenset()


def _plain(value: str) -> list[str]:
    return value.casefold().removesuffix(".").split()
