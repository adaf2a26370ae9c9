"""Which column names the rows of a relation: people by their names, not by their company."""

from __future__ import annotations

import re

from almanaq.suql.catalog.relations import Column, ColumnKind, Relation

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WHOLE = (("name",), ("title",), ("full", "name"), ("fullname",), ("display", "name"), ("complete", "name"))
_PARTLY = (
    ("first", "name"), ("firstname",), ("given", "name"), ("forename",), ("last", "name"), ("lastname",), ("surname",)
)  # fmt: skip
_LAST = (("label",), ("caption",), ("company",))


def naming_column(relation: Relation) -> str:
    """Return the column whose values name a relation's rows, by its own name; "" where none surely does.

    In order: `name`, `title`, a person's whole name; a column called as the relation is, or with "name" or "title"
    after it (`hotel_name`); a first or last name; at last a label or a company.
    """
    texts = {words_of(c.name): c.name for c in reversed(relation.columns) if _may_name(c)}
    own = words_of(relation.name.rpartition(".")[2])
    single = (*own[:-1], singular(own[-1])) if own else ()
    called = [each for each in (own, single) if each]
    named = [(*each, last) for each in called for last in ("name", "title")]
    for wanted in (*_WHOLE, *named, *called, *_PARTLY, *_LAST):
        if wanted in texts:
            return texts[wanted]
    return ""


def _may_name(column: Column) -> bool:
    return column.type in ("text", "varchar", "char") and not column.array and column.kind is not ColumnKind.FREE_TEXT


def words_of(identifier: str) -> tuple[str, ...]:
    """Return the words of an identifier in lower case: `fullName` and `full_name` are (full, name)."""
    return tuple(part.lower() for part in _PARTS.findall(identifier))


def singular(word: str) -> str:
    """Return a noun in the singular, as far as its ending shows it."""
    if word == "people":
        return "person"
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
