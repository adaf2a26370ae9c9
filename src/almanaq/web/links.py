"""Words of a question that mean something in the source, while the question is typed; no model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from almanaq.agent.linking.index import ValueMeaning
from almanaq.agent.linking.link import Links, link
from almanaq.agent.linking.spans import Span
from almanaq.completion import complete_question
from almanaq.connection import Connection
from almanaq.encode import plain
from almanaq.suql.catalog.terms import Term
from almanaq.web.problems import from_utf16, utf16_length

_KINDS = ("table", "column", "value", "term")
_MOST_MEANINGS, _LONGEST_VALUE = 8, 100


def links_record(connection: Connection, question: str, at: int) -> dict[str, Any]:
    """Return the words that the source knows, with their meanings, and what may stand before a place of the question.

    Places count UTF-16 units. Each meaning has the text to `write` so that only it is meant.
    """
    index = connection.agent.word_index()
    if index is None:
        return {"spans": [], "start": at, "items": []}
    links, found = link(question, index), complete_question(index, question, from_utf16(question, at))
    spans = [
        {
            "start": utf16_length(question[: links.tokens[span.first].start]),
            "end": utf16_length(question[: links.tokens[span.last - 1].end]),
            "meanings": meanings,
        }
        for span in (links.covers[0] if links.covers else ())
        if span.kind in _KINDS and (meanings := _describe_meanings(links, span))
    ]
    return {"spans": spans, "start": utf16_length(question[: found.start]), "items": plain(found.items)}


def _describe_meanings(links: Links, span: Span) -> list[dict[str, str]]:
    same = (each for each in links.spans if (each.first, each.last) == (span.first, span.last))
    ranked = sorted((each for each in same if each.kind in _KINDS), key=lambda each: -each.score)
    found = {tuple(record.values()): record for each in ranked for record in _describe(each)}
    return [*found.values()][:_MOST_MEANINGS]


def _describe(span: Span) -> Iterator[dict[str, str]]:
    """Yield each meaning; where several columns have the name or the value, the text to write says which is meant."""
    columns = {(c.relation.name, c.name) for m in span.meanings if (c := _column_of(m)) is not None}
    for meaning in span.meanings:
        column = _column_of(meaning)
        if column is None:
            detail = meaning.description if isinstance(meaning, Term) else ""
            yield _record(span.kind, meaning.name, detail, meaning.name)
            continue
        relation, own, several = column.relation.name, column.name, len(columns) > 1
        if isinstance(meaning, ValueMeaning):
            if meaning.how != "part" and len(meaning.value) <= _LONGEST_VALUE:
                exact = f"{own} {meaning.value}" if several else meaning.value
                yield _record("value", meaning.value, f"{relation}.{own}", exact)
        else:
            yield _record("column", own, relation, f"{relation} {own}" if several else own)


def _column_of(meaning: Any) -> Any:
    """Return the column of a meaning; None of a relation or a term."""
    if isinstance(meaning, ValueMeaning):
        return meaning.column
    thing = getattr(meaning, "thing", None)
    return thing if hasattr(thing, "column") else None


def _record(kind: str, name: str, detail: str, write: str) -> dict[str, str]:
    return {
        "kind": kind,
        "name": name,
        "detail": detail,
        "write": write.replace("_", " ") if kind != "value" else write,
    }
