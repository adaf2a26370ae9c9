"""English as data: what phrases do in a question, what adjectives measure, what columns and rows are called."""

from __future__ import annotations

import calendar
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from almanaq.agent.linking.words import fold, roots, stem, word_set

Phrase = tuple[str, ...]
Measured = tuple[tuple[str, bool], ...]
"""Words that the name of a column may hold, the likeliest first, each with whether more of it is "more"."""

MAGNITUDES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9}
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
SPELLED = {
    **{word: float(i) for i, word in enumerate(f"{_ONES} eighteen nineteen".split())},
    **{word: 10.0 * i for i, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)},
    **{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "dozen": 12.0},
}
"""Numbers as words."""

SHORTEST_CORRECTED = 5
"""Letters of the shortest word that may be a misspelt one."""

_SECTIONS = {
    **{"aggregates": "aggregate", "operators": "operator", "after_number": "after", "periods": "part"},
    **{"order": "order", "counts": "count", "distinct": "distinct", "by": "by", "and": "and", "empty": "silent"},
    **{"descending": "direction", "ascending": "direction", "negation": "not", "missing": "missing", "share": "share"},
    **{"average_reference": "average", "extremes": "extreme"},
}
"""The lists of phrases, with the kind of span that a phrase of each makes."""


@dataclass(frozen=True, slots=True)
class English:
    """What linking knows of the language.

    Attributes:
        silent: words that ask for nothing by themselves; `verbs_of_having` say only that two things belong together.
        phrases: what a phrase does: (kind, detail).
        measures: an adjective and the words of columns that it measures.
        verbs: verbs that speak of a column, and the words of its name.
        abbreviations, compounds, synonyms: parts of identifiers, and what they stand for.
        things: a noun and the words of columns by which a table of such things is known; `people` likewise.
        roles: what a column is about, by the words of its name.
        unit_roles: words beside a number and the roles of the columns that it is of.
        same_values: groups of words that name one value; the first four are a scale of prices.
        vocabulary: the longer words that do something in a question, by which misspelt ones are known.
        additive, rates: words of columns whose sum means something, and of those that only an average puts together.
    """

    silent: frozenset[str]
    verbs_of_having: frozenset[str]
    phrases: Mapping[Phrase, tuple[str, Any]]
    longest: int
    measures: Mapping[str, Measured]
    verbs: Mapping[str, frozenset[str]]
    abbreviations: Mapping[str, str]
    compounds: Mapping[str, Phrase]
    synonyms: Mapping[str, frozenset[str]]
    things: Mapping[str, frozenset[str]]
    people: frozenset[str]
    person_columns: frozenset[str]
    row_nouns: frozenset[str]
    holdings: tuple[tuple[re.Pattern[str], str], ...]
    roles: Mapping[str, frozenset[str]]
    unit_roles: Mapping[str, tuple[str, ...]]
    units: frozenset[str]
    sizes: Mapping[str, Mapping[str, float]]
    same_units: Mapping[str, str]
    additive: frozenset[str]
    rates: frozenset[str]
    same_values: tuple[tuple[str, ...], ...]
    vocabulary: frozenset[str]

    def measured_by(self, word: str) -> Measured | None:
        """Return what a comparative or superlative of one word measures ("heaviest", "heavier"); None for others."""
        for ending in ("est", "er"):
            if word.endswith(ending) and len(word) > len(ending) + 2:
                base = word.removesuffix(ending)
                doubled = base[:-1] if base[-1:] == base[-2:-1] else base
                for form in (base, doubled, base + "e", base.removesuffix("i") + "y", base.removesuffix("i") + "ey"):
                    if form in self.measures:
                        return self.measures[form]
        return None

    def is_common(self, word: str) -> bool:
        """Return whether a word is one that names of tables are commonly asked by: it is not misspelt."""
        plain = stem(word)
        of_calendar = word.capitalize() in (*calendar.day_name, *calendar.month_name)
        common = plain in self.synonyms or plain in self.things or word in self.silent or plain in self.people
        return common or of_calendar

    def unit_of(self, word: str) -> str:
        """Return the unit that a word is a name of; "" for other words."""
        unit = self.same_units.get(word, word)
        return unit if any(unit in sizes for sizes in self.sizes.values()) else ""

    def factor(self, said: str, held: str) -> float | None:
        """Return how many of one unit another is; 1 where either is unknown, None where they measure other things."""
        said = self.unit_of(said) or self.unit_of(stem(said))
        if not said or not held or said == held:
            return 1.0
        return next((s[said] / s[held] for s in self.sizes.values() if said in s and held in s), None)

    def is_row_noun(self, word: str) -> bool:
        """Return whether a word may be what one row is called: in the singular, and no measure, unit, rate or time."""
        roles = set().union(*(names for role, names in self.roles.items() if role != "job"))
        plain = stem(word) == word and (word,) not in self.phrases
        return plain and not {word, word + "s"} & (measured_words() | roles | self.units | self.rates)

    def sums(self, words: tuple[str, ...]) -> bool | None:
        """Return whether a column of that name is summed up (True), averaged (False), or may be either (None)."""
        if set(words) & self.rates:
            return False
        return True if set(words) & self.additive else None


@cache
def english() -> English:
    """Return the words of English."""
    data, names = read_data("english"), read_data("names")
    measures = {word: tuple(map(_directed, meant)) for word, meant in data["measures"].items()}
    phrases = dict(_phrases(data, measures))
    return English(
        word_set(data["silent"]),
        frozenset(form for verb in data["linking"]["verbs"].split() for form in verb_forms(verb)),
        phrases,
        max(map(len, phrases)),
        measures,
        {form: frozenset(meant) for verb, meant in data["verbs"].items() for form in verb_forms(verb)},
        names["abbreviations"],
        {name: tuple(parts.split()) for name, parts in data["compounds"].items()},
        _symmetric(names["synonyms"]),
        {noun: frozenset(columns.split()) for noun, columns in names["things"].items()},
        frozenset(data["people"]["nouns"]),
        frozenset(data["people"]["columns"]),
        frozenset(data["rows"]["nouns"]),
        tuple((re.compile(each, re.IGNORECASE), form) for form, said in data["holdings"].items() for each in said),
        {role: word_set(said) for role, said in data["roles"].items()},
        {word: tuple(roles.split()) for word, roles in data["unit_roles"].items()},
        frozenset((*data["units"]["plain"], *data["units"]["money"])),
        data["units"]["sizes"],
        data["units"]["same"],
        frozenset(data["sums"]["additive"]),
        frozenset(data["sums"]["rates"]),
        tuple(tuple(group.split(",")) for group in data["value_synonyms"]),
        frozenset(
            word
            for phrase, (kind, _) in phrases.items()
            if kind in ("aggregate", "count", "distinct", "missing", "share", "superlative", "direction")
            for word in phrase
            if len(word) >= SHORTEST_CORRECTED
        ),
    )


def read_data(name: str) -> dict[str, Any]:
    """Return one of the files of words."""
    return tomllib.loads(files("almanaq.agent.linking").joinpath(f"{name}.toml").read_text("utf-8"))


def _phrases(data: Mapping[str, Any], measures: Mapping[str, Measured]) -> Iterator[tuple[Phrase, tuple[str, Any]]]:
    for section, kind in _SECTIONS.items():
        for detail, phrases in data[section].items():
            if isinstance(phrases, list):
                detail = section if detail == "phrases" else detail
                yield from ((tuple(phrase.split()), (kind, detail)) for phrase in phrases)
    for word, meant in data["superlatives"].items():
        yield tuple(word.split()), ("superlative", _measured(meant, measures))


def _measured(word: str, measures: Mapping[str, Measured]) -> Measured:
    """Return what an adjective measures; after "-" the other way round."""
    found = measures[word.removeprefix("-")]
    return tuple((name, not up) for name, up in found) if word.startswith("-") else found


def _directed(word: str) -> tuple[str, bool]:
    return word.removeprefix("-"), not word.startswith("-")


def _symmetric(groups: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """Return each word with those that it stands for, and those that stand for it."""
    pairs = {
        pair for word, meant in groups.items() for other in meant.split() for pair in ((word, other), (other, word))
    }
    return {word: frozenset(other for each, other in pairs if each == word) for word, _ in pairs}


@cache
def measured_words() -> frozenset[str]:
    """Return the words of columns that adjectives measure."""
    return frozenset(name for measured in english().measures.values() for name, _ in measured)


@cache
def verb_forms(verb: str) -> frozenset[str]:
    """Return a verb with its regular forms: "stop", "stops", "stopped", "stopping"."""
    doubled = verb + verb[-1]
    ends = (verb, verb + "s", verb + "es", verb + "ed", verb + "d", verb + "ing", doubled + "ed", doubled + "ing")
    forms = {*ends, verb.removesuffix("e") + "ing", verb.removesuffix("y") + "ies", verb.removesuffix("y") + "ied"}
    return frozenset(map(fold, forms))


def share_root(one: str, other: str) -> bool:
    """Return whether two words share a root: "directed" and "director"."""
    return stem(one) == stem(other) or bool(roots(one) & roots(other))
