"""Which rows shown earlier a turn speaks of: "the second one", "it", "that airport", "those"."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import islice

from sqlglot import exp

from almanaq.agent.history import Shown, Turn
from almanaq.agent.linking.columns import LinkedColumn, relation_words
from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import fold, is_plural, stem
from almanaq.agent.local.phrases import search_words
from almanaq.agent.local.spec import number, one_of, plain, read_spec, text, write_spec
from almanaq.agent.local.texts import is_searched
from almanaq.agent.local.world import World
from almanaq.agent.queries import MOST_ROWS
from almanaq.suql.text_functions import has_text
from almanaq.text.hours import find_hours

_LISTED = ("first second third fourth fifth", "1st 2nd 3rd 4th 5th", "one two three four five")
PLACES = {word: i for words in _LISTED for i, word in enumerate(words.split())} | {"last": -1}
"""The places in a list that words name."""
_MOST_KEPT = 100
"""Rows that a query lists by their keys at most."""
_SEVERAL = frozenset(("these", "those", "both", "either"))
"""Words that one row is never called by; "they" are also who works there."""
_POSSESSIVE = frozenset(("its", "their", "his", "her", "the two", "the three", "the four", "the five"))


@cache
def turn_pattern(name: str) -> re.Pattern[str]:
    """Return one of the patterns of `turns.toml`."""
    data = tomllib.loads(files("almanaq.agent.local.turns").joinpath("turns.toml").read_text("utf-8"))
    return re.compile("|".join(each.replace("\n", "") for each in data[name]), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows that were shown before.

    Attributes:
        relation: the relation whose rows they are; `single` that one of them is meant.
        words: the words that mean them, as they stand in the turn.
        conditions: what holds of these rows alone; None where nothing tells them from others.
        guessed: one is meant, the first, though several were shown.
    """

    relation: str
    single: bool
    words: str
    conditions: tuple[exp.Expr, ...] | None
    guessed: bool = False


def _refer(turn: Turn, place: int | None, words: str, world: World, *, guessed: bool = False) -> Reference:
    """Return what words mean: one row that a turn showed, by its place, or all that its query gave."""
    assert turn.shown is not None
    single = place is not None or len(turn.shown.keys) == 1
    spec = None if single else read_spec(turn.suql or "", world.dialect)
    if spec is not None and spec.limit is None and not spec.offset:
        return Reference(turn.shown.relation, single, words, spec.conditions)
    found = find_again(turn, world, place)
    conditions = None if found is None else (found,)
    return Reference(turn.shown.relation, single, words, conditions, guessed and len(turn.shown.keys) > 1)


def find_again(turn: Turn, world: World, place: int | None = None) -> exp.Expr | None:
    """Return the condition that a row is one that a turn showed; None where nothing tells these from other rows.

    A key tells rows apart, or a column whose values do not repeat. Where the turn kept none, or not of all its rows,
    its query is asked for it.

    Args:
        place: the place of the one row that is meant; all rows where None.
    """
    shown = turn.shown
    relation = world.catalog.find(shown.relation) if shown is not None else None
    if shown is None or relation is None:
        return None
    columns = [c for name in shown.columns if (c := world.index.column(shown.relation, name)) is not None]
    keys: Sequence[Sequence[object]] = shown.keys
    known = relation.key == shown.columns or any(map(world.tells_apart, columns))
    if not known or len(keys) >= MOST_ROWS:
        columns = columns if known else [*islice(filter(world.tells_apart, world.columns(relation.name)), 1)]
        keys = _ask_keys(turn, shown, columns, world)
        if not columns or not keys or (len(keys) > _MOST_KEPT and (place is None or place < 0)):
            return None
    if place is not None:
        keys = [keys[place]]
    if len(columns) == 1:
        return one_of(plain(columns[0]), [literal(key[0]) for key in keys])
    tests = ([exp.EQ(this=plain(c), expression=literal(v)) for c, v in zip(columns, key, strict=True)] for key in keys)
    return exp.paren(exp.or_(*(exp.and_(*each) for each in tests)))


def _ask_keys(turn: Turn, shown: Shown, columns: Sequence[LinkedColumn], world: World) -> list[list[object]]:
    """Return the values of columns in the rows that a turn showed; [] where its query now gives others."""
    spec = read_spec(turn.suql or "", world.dialect)
    if spec is None or world.run is None or any(map(has_text, spec.expressions())):
        return []
    asked = [*dict.fromkeys((*spec.columns[:1], *map(plain, columns)))]
    whole = replace(spec, columns=tuple(asked), limit=min(spec.limit or _MOST_KEPT + 1, _MOST_KEPT + 1))
    rows = world.run(write_spec(whole, world.graph, world.dialect))
    same = tuple(str(row[0]) for row in rows[:MOST_ROWS]) == shown.names
    return [[row[asked.index(plain(c))] for c in columns] for row in rows] if same else []


def literal(value: object) -> exp.Expr:
    """Return a value of a result as SQL."""
    return number(value) if isinstance(value, int | float) else text(str(value))


def refers(question: str, history: Sequence[Turn], world: World) -> bool:
    """Return whether a turn speaks of rows or figures before it: by a pronoun, a place in a list, "that airport".

    It does not where a pronoun stands for what the turn itself names: "countries with the peso as their currency".
    """
    said, links = _without_expletives(question, history, world), world.link(question)
    turn = latest_shown(history, 1)
    shown = world.catalog.find(turn.shown.relation) if turn is not None and turn.shown is not None else None
    if shown is not None and (_noun(said, world) is not None or _asks_columns(question, world)):
        return True
    searched = shown is not None and is_searched(world, shown)
    if searched and (turn_pattern("opinions").search(said) or _asks_row(question, history, world)):
        return True
    if turn_pattern("numbered").search(said):
        return True
    named = [s for s in (links.covers[0] if links.covers else ()) if s.kind in ("table", "value", "noun", "column")]
    among = turn_pattern("among").search(said)
    if among and (searched or among[0].endswith(" of") or all(span.kind != "table" for span in named)):
        return True  # "which is the largest", but not "which is the largest station"
    starts = [links.tokens[span.first].start for span in named]
    ends = [links.tokens[span.last - 1].end for span in named if span.kind != "column"]
    same_length = len(said) == len(question) and turn_pattern("that").search(said) is None  # else places say nothing
    for match in (m for name in ("one", "all") for m in turn_pattern(name).finditer(said)):
        before = [end for end in ends if end <= match.start()]
        apart = match[0] in _POSSESSIVE or turn_pattern("opens").search(said, min(before, default=0), match.start())
        if not (same_length and before and apart):
            return True
    for match in turn_pattern("ordinal").finditer(said):
        alone = match[0].split()[-1] == match[1]  # "the first order", not "the first one"
        if not (same_length and alone and any(0 < start - match.end() < 2 for start in starts)):
            return True
    return False


def resolve(question: str, history: Sequence[Turn], world: World) -> Reference | None:
    """Return the rows that a turn speaks of; None where nothing was shown that it could mean."""
    said = _without_expletives(question, history, world)
    for name in ("numbered", "ordinal"):
        if found := turn_pattern(name).search(said):
            place = int(found[1]) - 1 if found[1].isdigit() else PLACES[found[1]]
            turn = latest_shown(history, max(place + 1, 2)) or latest_shown(history, max(place + 1, 1))
            return _refer(turn, place, found[0], world) if turn else None
    turn, list_shown = latest_shown(history, 1), latest_shown(history, 2)
    if turn is None:
        return None
    one = turn_pattern("one").search(said)
    if single := _noun(said, world) or (one and one[0]):
        return _refer(turn, 0, single, world, guessed=True)
    if every := turn_pattern("all").search(said):
        ranks = any(span.kind == "superlative" for span in next(iter(world.link(question).covers), ()))
        several = ranks or every[0].split()[-1] in _SEVERAL
        return _refer((list_shown if several else None) or turn, None, every[0], world)
    if _asks_columns(question, world) or _asks_row(question, history, world):
        return _refer(turn, None, "", world)
    among = turn_pattern("among").search(said)
    return _refer(list_shown or turn, None, among[0], world) if among else None


def _without_expletives(question: str, history: Sequence[Turn], world: World) -> str:
    """Return a turn in lower case, with blanks for "there", "it" and, in a search, "she", which mean no row."""

    def blank(name: str, said: str) -> str:
        return turn_pattern(name).sub(lambda match: " " * len(match[0]), said)

    said = blank("expletive", fold(question))
    if not any(is_searched(world, relation) for relation in world.catalog.relations):
        return said
    said = blank("people", said)
    said = blank("place", said) if latest_shown(history, 2) is latest_shown(history, 1) else said
    # What asks for nothing of rows shown narrows the search: "with bread they bake themselves".
    return said if turn_pattern("asks_of").search(said) else blank("pronoun", said)


def _asks_row(question: str, history: Sequence[Turn], world: World) -> bool:
    """Return whether a turn asks on about the one row of a search that the turn before was about: "is it loud?"."""
    shown = history[-1].shown if history and history[-1].kind == "detail" else None
    if shown is None or len(shown.keys) != 1 or not turn_pattern("asks_row").search(fold(question)):
        return False
    links = world.link(re.sub(r"\b(can|could|may|must|should) one\b", r"\1 we", question, flags=re.IGNORECASE))
    spans = {s.kind for s in next(iter(links.covers), ()) if s.how != "part"} & {"table", "value", "number", "compare"}
    return not spans and not any(t.folded in search_words().entity_words | {"any"} for t in links.tokens)


def latest_shown(history: Sequence[Turn], least: int) -> Turn | None:
    """Return the turn that showed rows last, at least so many; None where none did."""
    return next((t for t in reversed(history) if t.shown and len(t.shown.keys) >= least), None)


def last_rows(history: Sequence[Turn], world: World, least: int = 1) -> Reference | None:
    """Return all rows last shown, at least so many; None where there are none."""
    turn = latest_shown(history, least)
    return None if turn is None else _refer(turn, None, "", world)


def _asks_columns(question: str, world: World) -> bool:
    """Return whether a turn of a search names columns alone: "address and phone?", not "what cuisines are there?"."""
    links = world.link(question)
    spans = () if find_hours(question) else links.covers[0] if links.covers else ()
    polite = english().silent | search_words().ignored
    named = [s for s in spans if s.kind not in ("silent", "and") and links.text(s).casefold() not in polite]
    for span in named:
        column = getattr(span.meanings[0], "thing", None) if span.kind == "column" else None
        if not isinstance(column, LinkedColumn) or not is_searched(world, column.relation):
            return False
        last = links.tokens[span.last - 1]
        kinds = column.column.array or (column.is_category and not column.name.casefold().endswith(last.folded))
        if kinds and is_plural(last):
            return False
    return bool(named)


def _noun(said: str, world: World) -> str | None:
    """Return the words by which a turn speaks of a row by its noun: "that airport", "the place" after a verb."""
    for name in ("that", "the"):
        for match in turn_pattern(name).finditer(said):
            own = any(stem(match[1]) in relation_words(relation) for relation in world.catalog.relations)
            if own or (name == "the" and match[1] in search_words().entity_words):
                return match[0] if name == "that" else f"the {match[1]}"
    return None
