"""What reading the catalog of any engine has in common: names, comments, samples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sqlglot import exp, parse_one

from almanaq.errors import UsageError
from almanaq.suql.catalog.relations import Column, ColumnKind, Relation
from almanaq.suql.syntax.nodes import derived
from almanaq.text.sql_literals import string_literal

SAMPLE_ROWS = 1000
"""Rows from the beginning of a relation that samples and inference look at: cheap on a relation of any size."""
_VALUES_ROWS = 100_000
_DIGITS = 19
"""A row's number has fewer."""
_SHOWN_SAMPLES, _SHOWN_CHARACTERS = 5, 80
_MARK = re.compile(r"\b(FREE_TEXT|ENUM)\b(?:\[\])?[\s:;,.\u2013-]*")


def relation_names(places: Sequence[tuple[str, str]], path: Sequence[str] = ()) -> dict[tuple[str, str], str]:
    """Return each (schema, table) its name in queries.

    It is the table's where no other schema has it, or where its schema is the first of `path` that has it, as the
    database would find it; else schema.table.
    """
    schemas: dict[str, set[str]] = defaultdict(set)
    for schema, table in places:
        schemas[table.casefold()].add(schema)
    bare = {name: next((s for s in path if s in found), None) for name, found in schemas.items()}
    return {(s, t): t if len(schemas[t.casefold()]) == 1 or bare[t.casefold()] == s else f"{s}.{t}" for s, t in places}


def declared_column(name: str, type_: str, *, array: bool, values: tuple[str, ...], comment: str) -> Column:
    """Return a column with the kind that its type or its comment declares (FREE_TEXT or ENUM, in capitals)."""
    marks = {match[1] for match in _MARK.finditer(comment)}
    kind = ColumnKind.ENUM if values else ColumnKind.STRUCTURED
    if type_ == "text" and marks:
        kind = ColumnKind.FREE_TEXT if "FREE_TEXT" in marks else ColumnKind.ENUM
    description = _MARK.sub("", comment, count=1).strip()
    return Column(name, type_, kind, array, values, description=description, ordered=bool(values))


def written_name(parts: Iterable[str], dialect: str) -> str:
    """Return a qualified name as a dialect writes it, every part quoted."""
    return ".".join(exp.to_identifier(part, quoted=True).sql(dialect) for part in parts)


def written_place(relation: Relation, dialect: str) -> str:
    """Return what FROM reads a relation by, as a dialect writes it."""
    place = written_name(relation.location, dialect)
    return f"({relation.definition}) AS {written_name(['part'], dialect)}" if relation.definition else place


def read_part(table: exp.Table, relation: Relation, dialect: str) -> exp.Expr:
    """Return an item of FROM that is the part of a relation that queries may read, without an alias of the query's."""
    if not relation.definition:
        return exp.Table(**{part: table.args.get(part) for part in ("this", "db", "catalog")})
    return derived(_definition(relation.definition, dialect).copy(), "part")


@lru_cache(maxsize=256)
def _definition(sql: str, dialect: str) -> exp.Expr:
    return parse_one(sql, read=dialect)


def distinct_values(relation: Relation, column: Column, limit: int, dialect: str, *, whole: bool = False) -> str:
    """Return the SQL of the values of a column, of the elements of an array, the most frequent first, as `v`.

    Of a relation that is large, or may be, the rows at its beginning are taken, unless the `whole` is wanted.
    """
    value, place = written_name([column.name], dialect), written_place(relation, dialect)
    if not whole and (relation.rows is None or relation.rows > _VALUES_ROWS):
        place = f"(SELECT {value} FROM {place} LIMIT {_VALUES_ROWS}) AS beginning"
    if column.array:
        place, value = f"(SELECT unnest({value}) AS e FROM {place}) AS elements", "e"
    text = exp.cast(exp.to_column(value, dialect=dialect), "text").sql(dialect)
    return (
        f"SELECT {text} AS v FROM {place} WHERE {value} IS NOT NULL "
        f"GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {int(limit)}"
    )


def flatten(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the non-null values, the elements of arrays among them."""
    return tuple(flat(values))


def flat(values: Iterable[Any]) -> Iterator[str]:
    """Yield the non-null values, the elements of arrays among them."""
    for value in values:
        if isinstance(value, list):
            yield from (v for v in value if v is not None)
        elif value is not None:
            yield value


def shown_samples(values: Iterable[str]) -> tuple[str, ...]:
    """Return a few distinct values, cut to a length that a listing can show."""
    shown: dict[str, None] = {}
    for value in values:
        if value.strip():
            shown[value if len(value) <= _SHOWN_CHARACTERS else value[: _SHOWN_CHARACTERS - 1] + "…"] = None
        if len(shown) == _SHOWN_SAMPLES:
            break
    return tuple(shown)


def cell_at(relation: Relation, column: str, row: str, dialect: str) -> str:
    """Return the SELECT of a cell in the row of a number or an address, as evidence of a table without a key gives it.

    Raises:
        UsageError: rows of the relation have none, or this is none.
    """
    found = relation.column(column)
    named = relation.row_source or relation.row_id
    place = written_place(relation, dialect)
    if relation.definition and relation.row_source:
        place = f"(SELECT *, {named} AS number FROM {place}) AS numbered"
        named = "rowid" if relation.numbered else named
    if found is None or named is None:
        raise UsageError(f"rows of {relation.name} have no numbers: name the row by columns")
    number = row.removeprefix("rowid ")
    if named == "rowid" and not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        raise UsageError(f"{row!r} is no row of {relation.name}: give the key as evidence has it")
    name = written_name([found.name], dialect)
    shown = name if found.array else f"CAST({name} AS TEXT)"
    address = "number" if relation.definition else "rowid"
    condition = f"{address} = {number}" if named == "rowid" else f"{named} = {string_literal(row)}"
    return f"SELECT {shown} AS cell FROM {place} WHERE {condition} LIMIT 1"
