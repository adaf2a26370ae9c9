"""What several engines share: functions known by their names, queries about one relation, secrets in URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from sqlglot import exp

from almanaq.errors import DatabaseError, RefusedQueryError, SourceError, UnknownNameError, suggest
from almanaq.suql.bind import bind
from almanaq.suql.catalog import reading
from almanaq.suql.catalog.lineage import private_outputs
from almanaq.suql.catalog.reading import ColumnSample
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import Schema, apply_schema, check_keys
from almanaq.suql.language import Language

# --- which functions a query may call ---------------------------------------------------------------------------------

_OVER_ROWS = frozenset(
    """
    cume_dist dense_rank first_value grouping grouping_id lag last_value lead nth_value ntile percent_rank rank
    """.split()
)
"""Names of sqlglot's aggregates that are no aggregates: they take OVER, or name a grouping set."""
KNOWN_AGGREGATES = (
    frozenset(
        name.lower()
        for kind in vars(exp).values()
        if isinstance(kind, type) and issubclass(kind, exp.AggFunc) and kind is not exp.AggFunc
        for name in kind.sql_names()
    )
    - _OVER_ROWS
)
"""Names of the functions that aggregate, as sqlglot knows them."""


def refuse_own(name: str, allowed: str) -> str:
    """Return why a function of the database's own is not called; a user vouches for it by the name `allowed`."""
    return (
        f"the function {name!r} is one of the database's own, and nobody here knows what it does: who trusts it "
        f"connects with allow_functions=[{allowed!r}], or says --allow-function {allowed}"
    )


def refuse_in_from(name: str, known: Iterable[str]) -> str:
    """Return why a function is not called as an item of FROM; `known` are those that may be."""
    return (
        f"the table function {name!r} is not allowed in a query; FROM takes relations, subqueries and "
        f"{', '.join(sorted(known))}"
    )


@dataclass(frozen=True, slots=True)
class ListedFunctions:
    """The functions of an engine, by name, in lower case: those that come with it, and those that somebody has defined.

    Attributes:
        in_from: those that may be called as an item of FROM.
        refused: reasons against some; `*` in a name stands for any characters.
    """

    built_in: frozenset[str]
    aggregates: frozenset[str]
    in_from: frozenset[str]
    refused: Mapping[str, str]
    own: frozenset[str] = field(default=frozenset())

    def check(self, name: str, *, in_from: bool, allowed: frozenset[str], **place: Any) -> None:
        """Raise UnknownNameError or RefusedQueryError unless a query may call a function."""
        called = name.lower()
        if called in allowed:
            return
        if (reason := next((why for name, why in self.refused.items() if fnmatchcase(called, name)), None)) is not None:
            raise RefusedQueryError(f"the function {name!r} is not allowed in a query: {reason}", **place)
        if in_from and called in self.in_from:
            return
        if called in self.own:
            raise RefusedQueryError(refuse_own(name, called), **place)
        if called not in self.built_in:
            raise UnknownNameError(f"no function named {name!r}{suggest(called, sorted(self.built_in))}", **place)
        if in_from:
            raise RefusedQueryError(refuse_in_from(name, self.in_from), **place)


# --- queries about one table or view ----------------------------------------------------------------------------------

Rows = Callable[[str], list[tuple[Any, ...]]]
_SAMPLED_ROWS, _SAMPLED_CHARACTERS = 200, 400
_MOST_ENUM_VALUES = 10_000


@dataclass(frozen=True, slots=True)
class RelationQueries:
    """Asks an engine about its relations.

    Attributes:
        rows: runs a SELECT and gives its rows.
        shown: the SQL of a column's values as samples show them; None: as they are.
        by_key: whether a key of one column is what names a row, as the engine has no addresses of rows.
        insists: whether a relation that could not be looked at is read all the same for the values of its ENUMs.
    """

    rows: Rows
    dialect: str
    shown: Callable[[Column], str] | None = None
    by_key: bool = False
    insists: bool = True

    def complete(self, found: Catalog, schema: Schema) -> Catalog:
        """Return a catalog with what a schema says over it: its keys are checked, its ENUMs list their values."""
        applied = apply_schema(found, schema)
        check_keys(applied, schema, self.key_holds)
        return replace(applied, relations=tuple(map(self._complete, applied.relations)))

    def key_holds(self, relation: Relation, key: tuple[str, ...]) -> bool:
        """Tell whether a key is unique and never null."""
        names, place = ", ".join(map(self._quote, key)), reading.written_place(relation, self.dialect)
        null = " OR ".join(f"{self._quote(name)} IS NULL" for name in key)
        nulls = f"SELECT 1 FROM {place} WHERE {null} LIMIT 1"
        twice = f"SELECT 1 FROM {place} GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1"
        return not self.rows(nulls) and not self.rows(twice)

    def add_samples(self, relation: Relation, *, infer: bool, limit: int = _SAMPLED_ROWS) -> Relation:
        """Return a relation with samples, the kinds that they suggest, and its number of rows where they are all."""
        picked = ", ".join(self.shown(c) if self.shown else self._quote(c.name) for c in relation.columns)
        rows = self.rows(f"SELECT {picked} FROM {reading.written_place(relation, self.dialect)} LIMIT {limit}")
        columns = []
        for position, column in enumerate(relation.columns):
            values = [row[position] for row in rows if row[position] is not None]
            spelled = map(_spell, reading.flatten(values) if column.array else values)
            samples = tuple(text[:_SAMPLED_CHARACTERS] for text in spelled)
            inferred = reading.infer_kind(column, ColumnSample(samples)) if infer else column
            columns.append(replace(inferred, samples=reading.shown_samples(samples)))
        is_whole = relation.rows is None and len(rows) < limit
        return replace(relation, columns=tuple(columns), rows=len(rows) if is_whole else relation.rows)

    def values(self, relation: Relation, column: Column, limit: int) -> tuple[str, ...]:
        """Return at most so many distinct values (elements, of an array) as text, the commonest first."""
        rows = self.rows(reading.distinct_values(relation, column, limit, self.dialect, whole=True))
        return tuple(str(value) for (value,) in rows)

    def _complete(self, relation: Relation) -> Relation:
        columns = []
        for column in relation.columns:
            if column.kind is ColumnKind.ENUM and not column.values and relation.unread and not self.insists:
                column = replace(column, kind=ColumnKind.STRUCTURED)
            elif column.kind is ColumnKind.ENUM and not column.values:
                name = f"{relation.name}.{column.name}"
                if column.array and self.dialect not in ("duckdb", "postgres"):  # others unnest in ways of their own
                    raise SourceError(f"{name} is declared ENUM[]: list its values in the schema file")
                column = replace(column, values=self.values(relation, column, _MOST_ENUM_VALUES + 1))
                if len(column.values) > _MOST_ENUM_VALUES:
                    raise SourceError(
                        f"{name} is declared ENUM and has more than {_MOST_ENUM_VALUES:,} distinct values: declare it "
                        "structured, or list its values in the schema file"
                    )
            columns.append(column)
        row_id = relation.row_id
        if self.by_key:
            row_id = reading.written_name(relation.key, "postgres") if len(relation.key) == 1 else None
        return replace(relation, columns=tuple(columns), row_id=row_id)

    def _quote(self, name: str) -> str:
        return reading.written_name([name], self.dialect)


def _spell(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str)
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- passwords in URLs ------------------------------------------------------------------------------------------------

_PASSWORD = re.compile(r"://[^:/@]*:(?P<url>.+)@|[?&\s]password=(?P<parameter>[^\s&]+)")
_RESERVED = re.compile(r"[/@:?#\[\]\s]")


def find_secret(url: str) -> str:
    """Return the password in a URL, "" when there is none."""
    match = _PASSWORD.search(url)
    secret = (match["url"] or match["parameter"]) if match else ""
    if match and match["url"] and _RESERVED.search(secret):  # it would be read as host or path, and printed
        raise SourceError("the password in the URL must be percent-encoded: / is %2F, @ is %40")
    return secret or ""


def hide(message: str, *secrets: str) -> str:
    """Return a message without any of the secrets, however they are written."""
    for written in {form for secret in secrets for form in (secret, unquote(secret))} - {""}:
        message = message.replace(written, "***")
    return message


Derived = tuple[tuple[str, ...], tuple[str, ...], str]
"""The location of a relation, columns of it (none: all) that are made of others, and the query that makes them."""


def mark_derived(
    catalog: Catalog, derived: Sequence[Derived], of: Callable[[Catalog], Language], schema: Schema
) -> Catalog:
    """Return a catalog in which columns that are made of private ones are private, unless the schema denies it.

    Those whose query cannot be followed are private if it names a table with such columns.
    """

    def find_private(location: tuple[str, ...], names: Sequence[str], query: str) -> set[tuple[tuple[str, ...], str]]:
        try:
            made = private_outputs(bind(reader.read(query), reader, catalog).tree, catalog)
        except DatabaseError as error:
            private = [r.location[-1].casefold() for r in catalog.relations if any(c.private for c in r.columns)]
            made = ["private" in str(error) or any(name in query.casefold() for name in private)]
        names = names or [c.name for r in catalog.relations if r.location == location for c in r.columns]
        made = made if len(made) == len(names) else [any(made)] * len(names)
        return {(location, name) for name, private in zip(names, made, strict=True) if private}

    before = None
    while derived and catalog.has_private and catalog != before:  # once more, as there are views of views
        before, reader = catalog, of(catalog)
        found = set().union(*(find_private(*each) for each in derived))
        relations = [
            replace(r, columns=tuple(replace(c, private=c.private or (r.location, c.name) in found) for c in r.columns))
            for r in catalog.relations
        ]
        said = apply_schema(replace(catalog, relations=tuple(relations)), schema)
        catalog = replace(catalog, relations=said.relations)
    return catalog
