"""Schemas as prompts show them, and examples generated from a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from almanaq.agent.describe import words
from almanaq.agent.linking.columns import LinkedColumn, link_column, name_column
from almanaq.agent.small_tables import Rows
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.text.sql_literals import identifier, string_literal

LISTED_VALUES = 100
"""An ENUM of at most so many values is listed whole (10 in the paper, section 5.2); of a larger one, samples."""

_SAMPLES = 3
_SAMPLE_LENGTH = 60
_WRITTEN = 4000
"""Characters of a description that are shown: what a person wrote is not cut, unless it is no description."""


def schema_text(catalog: Catalog, rows: Mapping[str, Rows] | None = None) -> str:
    """Return the relations as CREATE TABLE statements with kinds, keys, descriptions and samples in comments.

    `rows` are those of small tables, by relation: a comment shows them all.
    """
    known = rows or {}
    return "\n\n".join(_relation(relation, known.get(relation.name, ())) for relation in catalog.relations)


def _relation(relation: Relation, rows: Rows) -> str:
    lines = [f"-- {_safe(relation.description, _WRITTEN)}"] if relation.description else []
    lines.append(f"CREATE TABLE {identifier(relation.name)} (")
    lines += [f"  {_declaration(c)},{_comment(c)}" for c in relation.columns]
    if relation.key:
        lines.append(f"  PRIMARY KEY ({', '.join(map(identifier, relation.key))}),")
    for own, other, theirs in relation.foreign_keys:
        columns, target = ", ".join(map(identifier, own)), ", ".join(map(identifier, theirs))
        lines.append(f"  FOREIGN KEY ({columns}) REFERENCES {identifier(other)} ({target}),")
    lines.append(");")
    if rows:
        lines.append(f"-- its {len(rows) - 1} rows:")
        lines += [f"-- {' | '.join(map(_safe, row))}" for row in rows]
    return "\n".join(lines)


def _declaration(column: Column) -> str:
    type_name = {ColumnKind.FREE_TEXT: "FREE_TEXT", ColumnKind.ENUM: "ENUM"}.get(column.kind, column.type)
    if column.kind is ColumnKind.ENUM and 0 < len(column.values) <= LISTED_VALUES and not column.private:
        type_name = f"ENUM({', '.join(string_literal(_safe(v)) for v in column.values)})"
    return f"{identifier(column.name)} {type_name}{'[]' if column.array else ''}"


def _comment(column: Column) -> str:
    parts = [_safe(column.description, _WRITTEN)] if column.description else []
    listed = column.kind is ColumnKind.ENUM and len(column.values) <= LISTED_VALUES
    if listed and column.values and not column.array and not column.private:
        parts.append("values in ascending order" if column.ordered else "values in no order")
    samples = column.samples or column.values
    if samples and not listed and not column.private:
        shown = ", ".join(string_literal(_safe(s)) for s in samples[:_SAMPLES])
        there = f" (there written {string_literal(_safe(column.written))})" if column.written else ""
        parts.append(f"for example {shown}{there}")
    return f"  -- {'; '.join(parts)}" if parts else ""


def _safe(text: str, most: int = _SAMPLE_LENGTH) -> str:
    """Return cell text on one short line that cannot end the tags around the schema."""
    flat = " ".join(text.split()).replace("<", "\u2039").replace(">", "\u203a")
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def examples(catalog: Catalog, most: int = 4) -> tuple[tuple[str, str | None], ...]:
    """Return (question, SUQL) pairs over the catalog's own columns, the last one a question without a query (None)."""
    found: list[tuple[str, str | None]] = []
    for relation in _richest(catalog.relations):
        found += _examples(relation)
        if len(found) >= most:
            break
    return (*found[:most], ("Thanks, that is all!", None))


def _richest(relations: Sequence[Relation]) -> list[Relation]:
    """Return relations with prose, then with ENUMs, first: they show most of the language."""
    return sorted(
        relations, key=lambda r: -sum({ColumnKind.FREE_TEXT: 3, ColumnKind.ENUM: 2}.get(c.kind, 0) for c in r.columns)
    )


def _examples(relation: Relation) -> list[tuple[str, str | None]]:
    places = tuple(link_column(relation, column) for column in relation.columns)
    name, noun, table = name_column(places), words(relation.name), identifier(relation.name)
    shown = identifier(name.column.name)
    number = next((p for p in places if p.kind == "number" and not p.is_identifier), None)
    value, prose = next((p for p in places if _value(p)), None), next((p for p in places if p.kind == "prose"), None)
    found: list[tuple[str, str | None]] = []
    if prose is not None:
        call = f"answer({identifier(prose.column.name)}, 'is this a pleasant one?') = 'Yes'"
        also = f"{_equals(value)} AND " if value else ""
        asked = f"Find a pleasant one among the {noun}" + (
            f" whose {words(value.column.name)} is {_value(value)}" if value else ""
        )
        found.append((asked + ".", f"SELECT {shown} FROM {table} WHERE {also}{call} LIMIT 3"))
    if number is not None and number is not name:
        column = identifier(number.column.name)
        found.append(
            (
                f"Which of the {noun} has the highest {words(number.column.name)}?",
                f"SELECT {shown}, {column} FROM {table} ORDER BY {column} DESC LIMIT 1",
            )
        )
    if value is not None:
        found.append(
            (
                f"How many {noun} have {words(value.column.name)} {_value(value)}?",
                f"SELECT COUNT(*) FROM {table} WHERE {_equals(value)}",
            )
        )
    return found


def _value(place: LinkedColumn) -> str:
    column = place.column
    known = (*column.values, *column.samples)
    return _safe(known[0]) if place.kind == "text" and known and not column.private else ""


def _equals(place: LinkedColumn | None) -> str:
    if place is None:
        return ""
    literal, column = string_literal(_value(place)), identifier(place.column.name)
    return f"{literal} = ANY({column})" if place.column.array else f"{column} = {literal}"
