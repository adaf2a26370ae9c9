"""What a prompt says of the SQL that an engine speaks: its name, how it quotes, and what a writer has to know of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from almanaq.text.sql_literals import is_plain


@dataclass(frozen=True, slots=True)
class DialectNotes:
    """A dialect as prompts present it.

    Attributes:
        name: as people call it: "DuckDB".
        contains: how a list column is compared with one of its values.
        matches: how a text is matched by a part of it, in any case.
        notes: short sentences on where the dialect differs from what a writer may expect.
    """

    name: str
    contains: str
    matches: str
    notes: tuple[str, ...]


@cache
def dialect_notes(dialect: str) -> DialectNotes:
    """Return what prompts say of a dialect, by sqlglot's name of it."""
    known = _read_dialects().get(dialect, {})
    column, part = exp.Var(this="column"), exp.Literal.string("%…%")
    matches = exp.ILike(this=column, expression=part).sql(dialect)
    notes = tuple(known.get("notes", ())) or _derived_notes(dialect)
    return DialectNotes(known.get("name", dialect), contains_value("column", "'value'", dialect), matches, notes)


def quote_name(name: str, dialect: str) -> str:
    """Return a name as a query of a dialect writes it, in the dialect's quotes where it needs any.

    >>> quote_name("price", "spark"), quote_name("Home team", "duckdb"), quote_name("Home team", "spark")
    ('price', '"Home team"', '`Home team`')
    """
    return name if is_plain(name) else exp.to_identifier(name, quoted=True).sql(dialect)


def contains_value(column: str, literal: str, dialect: str) -> str:
    """Return the condition that a list column holds a value; both are SQL already.

    >>> contains_value("tags", "'new'", "duckdb"), contains_value("tags", "'new'", "spark")
    ("'new' = ANY(tags)", "ARRAY_CONTAINS(tags, 'new')")
    """
    if dialect in ("duckdb", "postgres"):
        return f"{literal} = ANY({column})"
    return exp.ArrayContains(this=exp.Var(this=column), expression=exp.Var(this=literal)).sql(dialect)


def _derived_notes(dialect: str) -> tuple[str, ...]:
    """Return what sqlglot knows of a dialect that nobody wrote notes for."""
    reader = Dialect.get_or_raise(dialect)
    quoted = exp.to_identifier("Two words", quoted=True).sql(dialect)
    division = "cuts the fraction off" if reader.TYPED_DIVISION else "keeps the fraction"
    return (f"A name that needs quotes is written {quoted}.", f"Dividing whole numbers {division}.")


@cache
def _read_dialects() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files("almanaq.agent").joinpath("dialects.toml").read_text("utf-8"))
