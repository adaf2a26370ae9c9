"""How a relation or a column is spoken of: by its name; by its description where the name is a code."""

from __future__ import annotations

import re

from almanaq.agent.local_old.words import identifier_stems, stems, word_set
from almanaq.suql.catalog.relations import Relation

_CODE = re.compile(r"\d|^[^aeiouy]+$|^.{1,2}$")
_ENDS = re.compile(r"\b(?:of|in|on|at|for|from|by|per|to|that|which|who|with|when|where|whether|is|as)\b|[.,;:()/]")
_ALSO = re.compile(r"\balso (?:called|known as|named)\b:? ([^.;()]+)", re.IGNORECASE)
_EMPTY = word_set("the a an this all each list table column contain contains holds hold give gives of one row every")
_CALLED = 2
"""Words of a description that can be what a thing is called; more are said of it."""
_NUMBERING = word_set("number id identifier code key reference")


def spoken(identifier: str, description: str) -> tuple[str, ...]:
    """Return the stems by which a name is spoken of: `unit_price` of unit and price, `k3` as its description begins."""
    words = identifier_stems(identifier)
    if not description or words == ("id",) or not all(_CODE.search(word) for word in words):
        return words
    said = _head(description)
    if said and said[-1] in _NUMBERING:
        return (*said[:-1], "id")
    return said or words


def relation_stems(relation: Relation) -> tuple[str, ...]:
    """Return the stems by which the rows of a relation are spoken of."""
    return spoken(relation.name, relation.description)


def described_stems(relation: Relation) -> tuple[str, ...]:
    """Return the stems by which a relation's description calls its rows: "Films shown in town" calls them films."""
    return _head(relation.description)[:_CALLED]


def _head(description: str) -> tuple[str, ...]:
    """Return the first words of a description that say what a thing is: "Price" of "Price per pack in francs"."""
    for part in _ENDS.split(description):
        said = tuple(word for word in stems(part) if word not in _EMPTY)
        if said:
            return said
    return ()


def also_called(description: str) -> tuple[tuple[str, ...], ...]:
    """Return the stems of the other names that a description gives: "Before tax; also called turnover, revenue"."""
    found = _ALSO.search(description)
    return tuple(filter(None, (stems(name) for name in re.split(r",| or | and ", found[1])))) if found else ()
