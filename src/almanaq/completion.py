"""Completes SUQL and questions while they are typed: tables, columns, values and keywords; no model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from almanaq.suql.catalog.reading import written_name
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.text.sql_literals import is_plain

if TYPE_CHECKING:
    from almanaq.agent.linking.index import CatalogIndex
    from almanaq.connection import Connection

KEYWORDS = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT JOIN LEFT USING UNION WITH AND OR NOT NULL
    LIKE ILIKE BETWEEN CASE WHEN THEN ELSE END CAST answer( classify( summary( similarity( count( sum( avg( min( max("""
_MOST, _VALUES = 20, 5_000
_SHORTEST_PART, _LONGEST_PART = 2, 3
"""Letters of a part of a question that is completed, and words."""
_NAME = r'(?:[^\W\d]\w*|"[^"]*")'
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_PART = re.compile(rf"(?:(?P<owner>{_PATH})\.)?(?P<part>\w*|\"[^\"]*)$")
_SOURCE = re.compile(rf"\b(?:from|join)\s+(?P<table>{_PATH})(?:\s+(?:as\s+)?(?P<alias>{_NAME}))?", re.IGNORECASE)
_WANTS_TABLE = re.compile(rf"\b(?:from|join)\s+(?:{_PATH}\s*,\s*)*$", re.IGNORECASE)
_TEXT = r"'(?:[^']|'')*"
_WHOLE = re.compile(r"(?:['\)]|(?<![\w.])\d[\w.]*)$")
"""The end of a text, a call or a number: no word begins right after it."""
_VALUE = re.compile(
    rf"(?P<column>{_PATH})\s*(?:=|<>|!=|(?:not\s+)?i?like|(?:not\s+)?in\s*\((?:\s*{_TEXT}'\s*,)*)\s*'(?P<part>[^']*)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Completion:
    """One text that may stand at the place; `detail`: the type of a column, the columns of a table."""

    text: str
    kind: Literal["table", "column", "value", "keyword"]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Completions:
    """What may replace the text from `start` to the cursor, the likeliest first."""

    start: int
    items: tuple[Completion, ...] = ()


def complete(connection: Connection, text: str, at: int) -> Completions:
    """Return what may stand before position `at` of a query; values of private columns and of prose are never given.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, 3]}})
    >>> [item.text for item in complete(con, "SELECT na FROM dogs", 9).items]
    ['name']
    >>> [item.text for item in complete(con, "SELECT age FROM dogs WHERE name = 'b", 36).items]
    ['Bella']
    """
    before, catalog = text[:at], connection.catalog
    scope = dict(_find_sources(text, catalog))
    outside = re.sub(_TEXT + "'", "", before)
    if outside.count("'"):
        found = _VALUE.search(before)
        return Completions(at) if found is None else _complete_value(connection, scope, found, at)
    if _WHOLE.search(before) or (before.endswith('"') and outside.count('"') % 2 == 0):
        return Completions(at)
    match = _PART.search(before)
    assert match is not None  # an empty part matches
    owner, part = match["owner"], match["part"].strip('"')
    if owner is not None:
        relation = scope.get(_plain(owner)) or catalog.find(_plain(owner))
        items = () if relation is None else _columns([relation], catalog.dialect)
        return Completions(match.start("part"), _matching(part, items))
    tables = (
        Completion(_write(r.name, catalog.dialect), "table", ", ".join(c.name for c in r.columns[:8]))
        for r in catalog.relations
    )
    if _WANTS_TABLE.search(before[: match.start()]):
        return Completions(match.start(), _matching(part, tables))
    columns = _columns(dict.fromkeys(scope.values() or catalog.relations), catalog.dialect)
    words = (Completion(word, "keyword") for word in KEYWORDS.split() if part and _begins(word, part))
    return Completions(match.start(), (*_matching(part, [*columns, *tables]), *words)[:_MOST])


def complete_question(index: CatalogIndex, question: str, at: int) -> Completions:
    """Return tables, columns and values that begin with the last words before position `at` of a question.

    Values of private columns and of prose are never given.
    """
    before = question[:at]
    for start in [found.start() for found in re.finditer(r"\b\w", before)][-_LONGEST_PART:]:
        part = before[start:].casefold()
        if len(part) < _SHORTEST_PART or not part[-1].isalnum():
            continue
        tables = (Completion(_speak(r.name), "table") for r in index.catalog.relations)
        columns = (Completion(_speak(c.name), "column", c.relation.name) for c in index.all_columns())
        named = [each for each in (*tables, *columns) if each.text.casefold().startswith(part)]
        values = (
            Completion(each.value, "value", f"{each.column.relation.name}.{each.column.name}")
            for each in index.values_beginning(part, _MOST)
        )
        once = {each.text.casefold(): each for each in reversed([*named, *values])}
        if items := [each for each in reversed(once.values()) if each.text.casefold() != part]:
            return Completions(start, tuple(items[:_MOST]))
    return Completions(at)


def _speak(name: str) -> str:
    return name.replace("_", " ")


def _find_sources(text: str, catalog: Catalog) -> Iterator[tuple[str, Relation]]:
    for found in _SOURCE.finditer(text):
        relation = catalog.find(_plain(found["table"]))
        if relation is not None:
            yield _plain(found["table"]), relation
            alias = _plain(found["alias"] or "")
            if alias and alias.upper() not in KEYWORDS.split():
                yield alias, relation


def _columns(relations: Iterable[Relation], dialect: str) -> list[Completion]:
    return [
        Completion(_write(column.name, dialect), "column", column.type + ("[]" if column.array else ""))
        for relation in relations
        for column in relation.columns
    ]


def _complete_value(connection: Connection, scope: dict[str, Relation], found: re.Match[str], at: int) -> Completions:
    owner, _, name = _plain(found["column"]).rpartition(".")
    owners = [scope[owner]] if owner in scope else scope.values()
    for relation in owners:
        column = relation.column(name)
        if column is not None and not column.private and column.kind is not ColumnKind.FREE_TEXT:
            values = column.values or connection.engine.values(relation.name, column.name, _VALUES)
            written = (value.replace("'", "''") for value in values)
            return Completions(found.start("part"), _matching(found["part"], (Completion(v, "value") for v in written)))
    return Completions(at)


def _matching(part: str, items: Iterable[Completion]) -> tuple[Completion, ...]:
    """Return the items that begin with a text, then those that hold it, each once."""
    folded = part.casefold()
    held = [item for item in dict.fromkeys(items) if folded in item.text.casefold()]
    return tuple(sorted(held, key=lambda item: not _begins(item.text, part))[:_MOST])


def _begins(text: str, part: str) -> bool:
    return text.casefold().strip('"`').startswith(part.casefold())


def _plain(name: str) -> str:
    """Return a name without its quotation marks, as the catalog has it."""
    return name.replace('"', "").casefold()


def _write(name: str, dialect: str) -> str:
    parts = name.split(".")
    return name if all(map(is_plain, parts)) else written_name(parts, dialect)
