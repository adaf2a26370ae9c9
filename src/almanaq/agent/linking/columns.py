"""LinkedColumn: a column with what its name, its type and its values say to someone who asks of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import identifier_stems, stems, word_set
from almanaq.corpus.inference import find_code
from almanaq.suql.catalog.relations import Column, ColumnKind, Relation
from almanaq.values import MISSING

ValueKind = Literal["number", "date", "boolean", "text", "prose"]

NO_VALUE = MISSING | {"unknown"}
"""Texts that say there is no value."""
_NUMBERS = ("int", "numeric", "decimal", "float", "double", "real", "money", "hugeint", "number", "serial")
_YES_NO = (
    *(("yes y", "no n"), ("true t", "false f"), ("1", "0"), ("ja j", "nein n"), ("oui", "non"), ("si sí", "no")),
    *(("on", "off"), ("x", ""), ("active", "inactive"), ("wahr", "falsch")),
    ("yes y true t ja j wahr oui si sí", "no n false f nein falsch non"),  # typed in several languages
)
_SO_OR_NOT = ("ed", "able", "ible", "active", "flag", "paid", "sold", "al", "ous", "ic", "ive", "less", "free")
_COUNT = re.compile(r"-?(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?")
_LASTING = re.compile(r"\d ?(?:h|hr|hrs|hours?|m|mins?|minutes?|s|secs?|seconds?)\b", re.IGNORECASE)
_LIST_MARKS = (", ", "; ", " | ", ";", "|", ",")
_LISTS, _ITEMS = 0.15, 0.7
_CALLING = re.compile(r"(?!.*(?:://|\bwww\.|\w@\w))(?=.*[^\W\d_]{3})(?!(?:.*\d){5})(?!(?:\S+\s+){8})")
"""What a name is like: with a word, but no address, long number or sentence."""
_TALLIES = (("count",), ("number",), ("frequency",), ("freq",), ("n",))
_CALLED_BY, _MOST_COMPARED = 0.8, 2000
_CODE = re.compile(r"\d|^[^aeiouy]+$|^.{1,2}$")
_ENDS = re.compile(r"\b(?:of|in|on|at|for|from|by|per|to|that|which|who|with|when|where|whether|is|as)\b|[.,;:()/]")
_ALSO = re.compile(r"\balso (?:called|known as|named)\b:? ([^.;()]+)", re.IGNORECASE)
_EMPTY = word_set("the a an this all each list table column contain contains holds hold give gives of one row every")
_NUMBERING = (("no",), ("number",), ("nr",), ("num",), ("id",))
_MOST_FACTS = 8
_FACTS = ("rating", "price", "address", "phone", "year")


@dataclass(frozen=True, slots=True)
class LinkedColumn:
    """A column of a relation.

    Attributes:
        words: the stems of the words by which it is spoken of.
        about: the stems of its description.
        roles: what it is about ("price", "name"), by the words of its name.
        kind: what its values are: a text column that only says yes or no is a boolean, of which `yes` and `no` are
            the spellings (`no` is () where only a missing value says it).
        cast: it is of text, and all its values are numbers, except `missing`.
        minutes: it holds how long something takes, and is compared in minutes.
        mark: what sets the items apart where its texts are lists; "" elsewhere.
        scale: its values from the least to the most, where they are steps of one ("cheap", "moderate").
        distinct: how many values of it are known; 0 where they were not read. Of dates, days, if each has one row.
        numbers: it numbers the rows, and its name is their noun: `trip`, `order_no`.
        calls: its values are what people call things by: words, rather than codes, addresses or sentences.
    """

    relation: Relation = field(hash=False)  # the words alone tell columns apart well enough, and in a tenth of the time
    column: Column = field(hash=False)
    words: tuple[str, ...]
    about: frozenset[str]
    roles: frozenset[str]
    kind: ValueKind
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    cast: bool = False
    missing: str | None = None
    minutes: bool = False
    mark: str = ""
    distinct: int = 0
    scale: tuple[str, ...] = ()
    numbers: bool = False
    calls: bool = False

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def is_identifier(self) -> bool:
        """Whether it only identifies or refers: a key that nobody asks about by its amount."""
        folded = self.column.name.casefold()
        refers = any(
            folded in map(str.casefold, own)
            and not (self.column.type == "text" and folded in map(str.casefold, theirs))
            for own, _, theirs in self.relation.foreign_keys
        )
        is_key = self.relation.key == (self.column.name,) and self.kind == "number"
        first = self.relation.columns[0].name == self.column.name
        numbered = first and set(self.words) == set(relation_words(self.relation)) and self.kind == "number"
        ends = bool(self.words) and self.words[-1] in ("id", "uuid", "key", "identifier", "guid")
        return refers or ends or is_key or numbered or self.numbers or folded in ("rowid", "index")

    @property
    def row_noun(self) -> tuple[str, ...]:
        """What one row is called by a name that may number the rows ("order" of `order_no`); () by other names."""
        first = self.relation.columns[0].name == self.column.name and "int" in self.column.type.casefold()
        if not first or self.column.private:
            return ()
        if self.words[-1:] in _NUMBERING:
            return self.words[:-1]
        return self.words if len(self.words) == 1 and english().is_row_noun(self.name.casefold()) else ()

    @property
    def names_rows(self) -> bool:
        """Whether hardly two rows share a value."""
        rows = self.relation.rows
        if self.relation.key == (self.column.name,):
            return True
        if self.kind not in ("text", "date") or self.distinct < 2:
            return False
        return self.distinct >= 0.8 * min(rows, 5000) if rows else "name" in self.roles

    @property
    def is_category(self) -> bool:
        """Whether it says of what kind rows are: few values for many rows."""
        return self.kind in ("text", "boolean") and 0 < self.distinct <= 60 and not self.names_rows

    @property
    def may_be_flag(self) -> bool:
        """Whether it is of whole numbers of which only 0 and 1 were seen: they may say no and yes."""
        plain = self.kind == "number" and not (self.is_identifier or self.cast or self.column.private)
        return plain and set(self.column.samples) == {"0", "1"} and "int" in self.column.type.casefold()

    @property
    def is_measurable(self) -> bool:
        """Whether its numbers can be compared and put together."""
        return self.kind == "number" and not self.is_identifier

    @property
    def tallies(self) -> bool:
        """Whether it says how many cases a row stands for, by its name."""
        return self.is_measurable and self.words in _TALLIES

    @property
    def numbers_things(self) -> bool:
        """Whether it is the number or key of something that its name begins with."""
        return len(self.words) > 1 and self.words[-1:] in _NUMBERING

    @property
    def sums(self) -> bool | None:
        """Whether its numbers are summed up (True) or averaged (False), as far as its name says; else None."""
        if self.numbers_things:
            return None  # an `order_number` is no amount of orders
        known, plural = english().sums(self.words), f"{self.words[-1]}s" if self.words else ""
        things = self.name.casefold().endswith(plural or "-") and "int" in self.column.type.casefold()
        return True if known is None and things and plural not in english().units else known

    @property
    def unit(self) -> str:
        """The unit that its name, or else its description, says that its numbers are in; "" where none does."""
        if self.minutes or "runtime" in self.words:
            return "minute"
        known = english()
        said = (*self.words[:0:-1], *(word for word in self.words if len(word) > 1), *sorted(self.about))
        return next((unit for word in said if (unit := known.unit_of(word))), "")

    @property
    def is_ranked(self) -> bool:
        """Whether its values have an order that people ask for."""
        return self.is_measurable or self.kind == "date" or bool(self.scale)


def link_column(relation: Relation, column: Column) -> LinkedColumn:
    """Return a column with what its name, type and description say."""
    words = spoken_words(column.name, column.description)
    roles = frozenset(role for role, names in english().roles.items() if names & set(words))
    kind = _kind(column)
    minutes = column.type.casefold().startswith("time") and bool(_LASTING.search(column.written))
    yes, no = (("1",), ("0",)) if kind == "boolean" and not column.type.casefold().startswith("bool") else ((), ())
    about = frozenset(stems(column.description))
    return LinkedColumn(relation, column, words, about, roles, "number" if minutes else kind, yes, no, minutes=minutes)


def with_values(column: LinkedColumn, values: Sequence[str]) -> LinkedColumn:
    """Return a text column with what its values say of its kind."""
    told = [value for value in values if value.casefold() not in NO_VALUE]
    column = replace(column, distinct=len(told), scale=_price_scale(told), calls=_call_things(told))
    pair = _yes_no(column, values)
    if pair is not None:
        return replace(column, kind="boolean", yes=pair[0], no=pair[1])
    counts = not column.column.array and told and all(_COUNT.fullmatch(v) for v in told)
    if counts and len(values) - len(told) < 2 and not find_code(told):
        missing = next((value for value in values if value not in told), None)
        return replace(column, kind="number", cast=True, missing=missing)
    return replace(column, mark="" if column.column.array else _list_mark(told))


def _price_scale(values: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a scale of prices in order; () for other values."""
    steps = english().same_values[:4]
    ranked = {value: i for value in values for i, step in enumerate(steps) if value.casefold() in step}
    return tuple(sorted(ranked, key=lambda v: ranked[v])) if len(ranked) == len(values) > 1 else ()


def _call_things(values: Sequence[str]) -> bool:
    """Return whether people may call things by such values; codes are in capitals of one length, and in one piece."""
    some = values[:_MOST_COMPARED]
    coded = len({len(value) for value in some}) == 1 and all(v.isupper() and len(v.split()) == 1 for v in some)
    return not coded and sum(bool(_CALLING.match(value)) for value in some) >= _CALLED_BY * len(some)


def _yes_no(column: LinkedColumn, values: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the texts by which a column says yes and no; None for other columns."""
    for says_yes, says_no in _YES_NO:
        spelled = (said.split() or [""] for said in (says_yes, says_no))
        yes, no = ([v for v in values if v.strip().casefold() in said] for said in spelled)
        held = {value.strip().casefold() for value in (*yes, *no)}
        if not yes or not {*yes, *no, ""} >= {*values}:
            continue
        if says_yes == "active" and "active" not in column.words:
            continue
        if len(held) == 1 and held <= {"1", "t", "on", "j"} and not _is_named_so(column.words):
            continue
        return tuple(yes), tuple(no)
    return None


def _kind(column: Column) -> ValueKind:
    if column.kind is ColumnKind.FREE_TEXT:
        return "prose"
    type_name = column.type.casefold()
    if column.kind is ColumnKind.ENUM:
        return "text"
    if type_name.startswith("bool"):
        return "boolean"
    if any(word in type_name for word in _NUMBERS) and "interval" not in type_name:
        words = identifier_stems(column.name)
        told = bool(column.samples) and set(column.samples) <= {"0", "1"}
        return "boolean" if told and _is_named_so(words) else "number"
    return "date" if type_name.startswith(("date", "timestamp", "time")) else "text"


def _is_named_so(words: Sequence[str]) -> bool:
    """Return whether a name says that something is so or not: "is_open", "returned", "active"."""
    return tuple(words[:1]) in (("is",), ("has",), ("can",)) or (bool(words) and words[-1].endswith(_SO_OR_NOT))


def _list_mark(values: Sequence[str]) -> str:
    """Return the mark between the items where texts are lists ("stove; radio"); "" where they are not."""
    for mark in _LIST_MARKS:
        lists = [value.split(mark) for value in values if mark in value]
        if len(lists) < max(2, _LISTS * len(values)):
            continue
        items = [item for items in lists for item in items]
        if max(len(item.split()) for item in items) > 5 and mark != ", ":
            continue
        items = [item for item in items if not item.strip().isdigit()] or items  # "1,3-Butadiene" is one thing
        alone = {value for value in values if mark not in value}
        repeated = sum(items.count(item) > 1 or item in alone for item in items[:400])
        if repeated >= _ITEMS * len(items[:400]) * 0.6 and sum(len(i.split()) <= 4 for i in items) > 0.9 * len(items):
            two = all(len(each) == 2 for each in lists)
            first, second = {each[0] for each in lists}, {each[-1] for each in lists}
            if not (two and len(first & second) < 0.1 * len(second)):  # "Bern, Switzerland" is one place
                return mark
    return ""


def spoken_words(identifier: str, description: str) -> tuple[str, ...]:
    """Return the stems by which a name is spoken of: `unit_price` of unit and price, `k3` as its description begins."""
    words = identifier_stems(identifier)
    if not description or words == ("id",) or not all(_CODE.search(word) for word in words):
        return words
    said = head_words(description)
    if said and said[-1] in ("number", "id", "identifier", "code", "key", "reference"):
        return (*said[:-1], "id")
    return said or words


def relation_words(relation: Relation) -> tuple[str, ...]:
    """Return the stems by which the rows of a relation are spoken of; trailing numbers and years are left out."""
    words = spoken_words(relation.name, relation.description)
    while len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    return words


def head_words(description: str) -> tuple[str, ...]:
    """Return the first words of a description that say what a thing is: "Price" of "Price per pack in francs"."""
    for part in _ENDS.split(description):
        said = tuple(word for word in stems(part) if word not in _EMPTY)
        if said:
            return said
    return ()


def other_names(description: str) -> tuple[tuple[str, ...], ...]:
    """Return the stems of the other names that a description gives: "Before tax; also called turnover, revenue"."""
    found = _ALSO.search(description)
    return tuple(filter(None, (stems(name) for name in re.split(r",| or | and ", found[1])))) if found else ()


def name_column(columns: Sequence[LinkedColumn]) -> LinkedColumn:
    """Return the column that names a row of a relation: the one that is said to, else the likeliest."""
    said = next((c for c in columns if c.name == c.relation.named_by), None)
    if said is not None:
        return said
    own = relation_words(columns[0].relation)
    texts = [c for c in columns if c.kind == "text" and not c.column.array and not c.is_identifier]
    for wanted in (("name",), ("title",), (*own, "name"), (*own, "title"), own, ("full", "name"), ("company",)):
        called = next((c for c in texts if c.words == wanted), None)
        if called is not None:
            return called
    named = [c for c in texts if ("name" in c.roles or c.words[-1].endswith("name")) and not c.is_category]
    named.sort(key=lambda c: not c.names_rows)
    telling = sorted((c for c in texts if c.names_rows), key=lambda c: not c.calls)
    telling = [c for c in telling if _says_more(c, telling[0])] + telling
    first = [c for c in columns[:1] if c.is_identifier] or [c for c in columns if c.kind == "date" and c.names_rows]
    return (named or telling or first or texts or list(columns))[0]


def _says_more(column: LinkedColumn, name: LinkedColumn) -> bool:
    """Return whether a column holds what another does and more: "Lutra Panther", where the other says "Panther"."""
    pairs = [*zip(column.column.samples, name.column.samples, strict=False)]
    return column.calls and len(pairs) > 1 and all(len(own) > len(other) and other in own for own, other in pairs)


def name_columns(columns: Sequence[LinkedColumn]) -> tuple[LinkedColumn, ...]:
    """Return the columns that name a row: beside a first name the last one."""
    named = name_column(columns)
    other = {"first": "last", "forename": "surname", "given": "family"}.get(named.words[0])
    last = [c for c in columns if other and c.words == (other, *named.words[1:])]
    full = [c for c in columns if "full" in c.words and c.kind == "text" and c is not named]
    return (named, *last, *full[:1])


def fact_columns(columns: Sequence[LinkedColumn], mentioned: Iterable[LinkedColumn]) -> tuple[LinkedColumn, ...]:
    """Return the columns worth showing of a row that was searched for: its name, what was spoken of, key facts."""
    shown = {c.name: c for c in name_columns(columns)}
    for column in mentioned:
        if column.relation is columns[0].relation and column.kind != "prose":
            shown.setdefault(column.name, column)
    for role in _FACTS:
        best = next((c for c in columns if role in c.roles and c.kind != "prose" and not c.is_identifier), None)
        if best is not None and len(shown) < _MOST_FACTS:
            shown.setdefault(best.name, best)
    for column in columns:
        says_number = column.numbers and column.words[-1:] != ("id",)
        if len(shown) < _MOST_FACTS and column.kind != "prose" and (says_number or not column.is_identifier):
            shown.setdefault(column.name, column)
    for column in columns:
        if "site" in column.roles and column.kind == "text":
            shown.setdefault(column.name, column)
    return tuple(shown.values())
