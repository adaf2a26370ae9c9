"""Which rows shown earlier a turn speaks of: "the second one", "it", "that airport", "those"."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sqlglot import exp

from almanaq.agent.history import Shown, Turn
from almanaq.agent.linking.columns import LinkedColumn, relation_words
from almanaq.agent.linking.english import english
from almanaq.agent.linking.joins import column_of
from almanaq.agent.linking.words import fold, is_plural, stem
from almanaq.agent.local.phrases import search_words
from almanaq.agent.local.spec import number, one_of, text
from almanaq.agent.local.texts import is_searched
from almanaq.agent.local.world import World
from almanaq.text.hours import find_hours

_LISTED = ("first second third fourth fifth", "1st 2nd 3rd 4th 5th", "one two three four five")
_PLACES = {word: i for words in _LISTED for i, word in enumerate(words.split())} | {"last": -1}
_SEVERAL = frozenset(("these", "those", "both", "either"))
"""Words that one row is never called by; "they" are also who works there."""
_POSSESSIVE = frozenset(("its", "their", "his", "her", "the two", "the three", "the four", "the five"))


@cache
def turn_pattern(name: str) -> re.Pattern[str]:
    """Return one of the patterns of `turns.toml`."""
    data = tomllib.loads(files("almanaq.agent.local").joinpath("turns.toml").read_text("utf-8"))
    return re.compile("|".join(each.replace("\n", "") for each in data[name]), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows that were shown before.

    Attributes:
        shown: these rows alone; `single` that one row is meant.
        words: the words that mean them, as they stand in the turn.
    """

    shown: Shown
    single: bool
    words: str

    @property
    def condition(self) -> exp.Expr:
        """The condition that a row is one of them."""
        return keys_condition(self.shown)


def keys_condition(shown: Shown) -> exp.Expr:
    """Return the condition that a row is one of those shown."""
    columns = [column_of(shown.relation, name) for name in shown.columns]
    if len(columns) == 1:
        return one_of(columns[0], [_literal(key[0]) for key in shown.keys])
    rows = [
        exp.and_(*(exp.EQ(this=c.copy(), expression=_literal(v)) for c, v in zip(columns, key, strict=True)))
        for key in shown.keys
    ]
    return exp.or_(*rows)


def _literal(value: str | int | float) -> exp.Expr:
    return text(value) if isinstance(value, str) else number(value)


def refers(question: str, history: Sequence[Turn] = (), world: World | None = None) -> bool:
    """Return whether a turn speaks of rows or figures before it: by a pronoun, a place in a list, "that airport"."""
    said = turn_pattern("expletive").sub(" ", fold(question))
    shown = latest_shown(history, 1)
    if shown is not None and world is not None and (_noun(said, world) is not None or _asks_columns(question, world)):
        return True
    return any(pattern.search(said) for pattern in map(turn_pattern, ("ordinal", "numbered", "one", "all", "among")))


def _asks_columns(question: str, world: World) -> bool:
    """Return whether a turn of a search names columns alone: "address and phone?", not "what cuisines are there?"."""
    links = world.link(question)
    spans = () if find_hours(question) else links.covers[0] if links.covers else ()
    polite = english().silent | search_words().ignored
    named = [s for s in spans if s.kind not in ("silent", "and") and links.text(s).casefold() not in polite]
    columns = [getattr(span.meanings[0], "thing", None) for span in named if span.kind == "column"]
    kinds = any(
        isinstance(c, LinkedColumn)
        and (c.column.array or (c.is_category and not c.name.casefold().endswith(links.tokens[span.last - 1].folded)))
        and is_plural(links.tokens[span.last - 1])
        for c, span in zip(columns, named, strict=False)
    )
    searched = all(isinstance(c, LinkedColumn) and is_searched(world, c.relation) for c in columns)
    return bool(columns) and len(columns) == len(named) and searched and not kinds


def _noun(said: str, world: World) -> str | None:
    """Return the words by which a turn speaks of a row by its noun: "that airport", "the place" after a verb."""
    for name in ("that", "the"):
        for match in turn_pattern(name).finditer(said):
            own = any(stem(match[1]) in relation_words(relation) for relation in world.catalog.relations)
            if own or (name == "the" and match[1] in search_words().entity_words):
                return match[0] if name == "that" else f"the {match[1]}"
    return None


def refers_within(question: str, world: World) -> bool:
    """Return whether all that a turn speaks of is named in it before: "countries with the peso as their currency"."""
    links = world.link(question)
    said = turn_pattern("expletive").sub(lambda match: " " * len(match[0]), fold(question))
    if (
        len(said) != len(question)
        or _noun(said, world) is not None
        or _asks_columns(question, world)
        or any(pattern.search(said) for pattern in map(turn_pattern, ("numbered", "among", "that")))
    ):
        return False
    named = [s for s in (links.covers[0] if links.covers else ()) if s.kind in ("table", "value", "noun", "column")]
    nouns = [s for s in named if s.kind in ("table", "noun", "value")]
    for pattern in map(turn_pattern, ("one", "all")):
        for match in pattern.finditer(said):
            ends = [end for s in nouns if (end := links.tokens[s.last - 1].end) <= match.start()]
            apart = bool(ends) and (
                match[0] in _POSSESSIVE or turn_pattern("opens").search(said, ends[0], match.start()) is not None
            )
            if not apart:
                return False
    for match in turn_pattern("ordinal").finditer(said):
        alone = match[0].split()[-1] == match[1]  # "the first order", not "the first one"
        if not alone or not any(0 < links.tokens[s.first].start - match.end() < 2 for s in named):
            return False
    return True


def resolve(question: str, history: Sequence[Turn], world: World) -> Reference | None:
    """Return the rows that a turn speaks of; None where nothing was shown that it could mean."""
    said = turn_pattern("expletive").sub(lambda match: " " * len(match[0]), fold(question))
    found = numbered = turn_pattern("numbered").search(said)
    place = None
    if numbered:
        place = int(numbered[1]) - 1 if numbered[1].isdigit() else _PLACES[numbered[1]]
    elif ordinal := turn_pattern("ordinal").search(said):
        found, place = ordinal, _PLACES[ordinal[1]]
    if place is not None and found is not None:
        shown = latest_shown(history, max(place + 1, 2)) or latest_shown(history, max(place + 1, 1))
        return Reference(_rows(shown, [place]), True, found[0]) if shown else None
    shown = latest_shown(history, 1)
    if shown is None:
        return None
    if (that := _noun(said, world)) is not None:
        return Reference(_rows(shown, [0]), True, that)
    if one := turn_pattern("one").search(said):
        return Reference(_rows(shown, [0]), True, one[0])
    if every := turn_pattern("all").search(said):
        several = every[0].split()[-1] in _SEVERAL
        shown = (latest_shown(history, 2) if several else None) or shown
        return Reference(shown, len(shown.keys) == 1, every[0])
    if _asks_columns(question, world):
        return Reference(shown, len(shown.keys) == 1, "")
    if among := turn_pattern("among").search(said):
        shown = latest_shown(history, 2) or shown
        return Reference(shown, len(shown.keys) == 1, among[0])
    return None


def latest_shown(history: Sequence[Turn], least: int) -> Shown | None:
    """Return the rows last shown, at least so many; None where there are none."""
    return next((t.shown for t in reversed(history) if t.shown and len(t.shown.keys) >= least), None)


def _rows(shown: Shown, places: Sequence[int]) -> Shown:
    keys, names = tuple(shown.keys[i] for i in places), tuple(shown.names[i] for i in places)
    return Shown(shown.relation, shown.columns, keys, names)
