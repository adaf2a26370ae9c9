"""The words of a language as data: what a phrase does in a question (`en/words.toml`), what columns and rows are called
(`en/names.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from almanaq.agent.local_old.words import PAST, stem

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """What the recognizers know of a language.

    Attributes:
        phrases: a phrase and what it does: (kind, detail).
        measures: an adjective and the words of columns that it measures, with the direction: (word, up).
        holdings: patterns of a column that is to hold a text, with the form of that, X for the text.
        verbs: forms of verbs that speak of a column, and the words of its name.
        people, person_columns: words for people, and the words of columns by which a table of them is known.
        compounds: names in one piece, and the words that they are made of.
        things: a noun and the words of columns by which a table of such things is known.
        grouping: verbs before "by" that make groups: "grouped by".
        linking: forms of verbs that say only that two things belong together: "placed an order", "speak Dutch".
        rows: nouns for the rows of any table.
        doing: verbs that say, after "did", only that something was done.
        telling: verbs that say which rows are meant, where no column or value does: "cancelled".
        abbreviations: parts of identifiers, and the words they stand for.
        synonyms: words of names, and the other words that may mean them.
    """

    silent: frozenset[str]
    phrases: Mapping[Phrase, tuple[str, Any]]
    measures: Mapping[str, tuple[tuple[str, bool], ...]]
    abbreviations: Mapping[str, str]
    synonyms: Mapping[str, frozenset[str]]
    holdings: tuple[tuple[re.Pattern[str], str], ...]
    verbs: Mapping[str, frozenset[str]]
    people: frozenset[str]
    person_columns: frozenset[str]
    compounds: Mapping[str, Phrase]
    things: Mapping[str, frozenset[str]]
    grouping: frozenset[str]
    doing: frozenset[str]
    telling: frozenset[str]
    rows: frozenset[str]
    linking: frozenset[str]
    units: frozenset[str]
    money: frozenset[str]
    additive: frozenset[str]
    rates: frozenset[str]
    converted: Mapping[str, tuple[str, float]]
    longest: int

    def measured(self, word: str) -> tuple[tuple[str, bool], ...] | None:
        """Return what a comparative or superlative of one word measures: "heaviest", "heavier".

        None for other words.
        """
        for ending in ("est", "er"):
            if word.endswith(ending) and len(word) > len(ending) + 2:
                base = word.removesuffix(ending)
                doubled = base[:-1] if base[-1:] == base[-2:-1] else base
                for form in (base, doubled, base + "e", base.removesuffix("i") + "y"):
                    if form in self.measures:
                        return self.measures[form]
        return self.measures[word] if word in DIRECTIONS else None


DIRECTIONS = ("north", "south", "east", "west")
_SECTIONS = {
    **{
        "aggregates": "A",
        "operators": "operator",
        "after_number": "after",
        "periods": "Y",
        "order": "F",
        "counts": "H",
    },
    **{"distinct": "U", "by": "B", "and": "&", "empty": "w", "descending": "E", "ascending": "E", "negation": "X"},
    **{"missing": "M", "share": "P", "average_reference": "average_reference", "extremes": "extreme"},
}
"""The lists of phrases, with what a phrase of each does: the letter of its span, or the name of its recognizer."""


@cache
def words() -> Words:
    """Return the words of English."""
    data, names = _read("words"), _read("names")
    measures = {word: tuple(map(_directed, meant)) for word, meant in data["measures"].items()}
    phrases = dict(_phrases(data, measures))
    converted = {unit: (to, factor) for unit, (to, factor) in data["units"]["kilo"].items()}
    return Words(
        frozenset(data["silent"].split()),
        phrases,
        measures,
        names["abbreviations"],
        _meaning(names["synonyms"]),
        tuple(
            (re.compile(pattern, re.IGNORECASE), form) for form, said in data["holdings"].items() for pattern in said
        ),
        {form: frozenset(meant) for verb, meant in data["verbs"].items() for form in _forms(verb)},
        frozenset(data["people"]["nouns"]),
        frozenset(data["people"]["columns"]),
        {name: tuple(parts.split()) for name, parts in data["compounds"].items()},
        {noun: frozenset(columns.split()) for noun, columns in names["things"].items()},
        frozenset(data["grouping"]["verbs"]),
        frozenset(data["doing"]["verbs"]),
        frozenset(data["telling"]["verbs"]),
        frozenset(data["rows"]["nouns"]),
        frozenset(form for verb in data["linking"]["verbs"].split() for form in _all_forms(verb)),
        frozenset(data["units"]["plain"]),
        frozenset(data["units"]["money"]),
        frozenset(data["sums"]["additive"]),
        frozenset(data["sums"]["rates"]),
        converted,
        max(map(len, phrases)),
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("almanaq.agent.local_old").joinpath(f"en/{name}.toml").read_text("utf-8"))


def _meaning(synonyms: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return, for each word of a column's name, the other words that may mean it."""
    found: dict[str, set[str]] = {}
    for word, meant in synonyms.items():
        for each in meant.split():
            found.setdefault(stem(each), set()).add(stem(word))
    return {word: frozenset(others) for word, others in found.items()}


def _forms(verb: str) -> tuple[str, ...]:
    return verb, verb + "s", verb + "ed", verb.removesuffix("e") + "ing"


def _all_forms(verb: str) -> Iterator[str]:
    """Yield the forms of a verb, those of the past included."""
    bare = verb.removesuffix("e")
    past = [form for form, plain in PAST.items() if plain == verb]
    yield from (*_forms(verb), bare + "ed", bare + "es", verb[:-1] + "ied", verb[:-1] + "ies", *past)
    yield from (verb + verb[-1] + "ing", verb + verb[-1] + "ed")


def _directed(word: str) -> tuple[str, bool]:
    return word.removeprefix("-"), not word.startswith("-")


def _phrases(data: Mapping[str, Any], measures: Mapping[str, Any]) -> Iterator[tuple[Phrase, tuple[str, Any]]]:
    for section, kind in _SECTIONS.items():
        for detail, listed in data[section].items():
            # In a section of phrases alone, each says its own detail.
            yield from ((tuple(each.split()), (kind, each if detail == "phrases" else detail)) for each in listed)
    for phrase, adjective in data["superlatives"].items():
        turned = adjective.startswith("-")
        meant = tuple((word, up is not turned) for word, up in measures[adjective.removeprefix("-")])
        yield tuple(phrase.split()), ("superlative", meant)
