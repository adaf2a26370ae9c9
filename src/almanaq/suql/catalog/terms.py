"""Terms of a source's semantic layer: metrics, dimensions, named filters, joins; in schema files sections of tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from almanaq.display import visible_json
from almanaq.errors import SourceError, suggest

TermKind = Literal["metric", "dimension", "filter"]
Join = tuple[str, tuple[str, ...], str, tuple[str, ...]]
"""A relation, its columns, the relation that they refer to, and the columns there."""


@dataclass(frozen=True, slots=True)
class Term:
    """A name with its definition in SQL.

    Attributes:
        relation: the relation whose rows a metric aggregates, a dimension groups or a filter selects.
        expression: an aggregate (metric), a value of one row (dimension) or a condition (filter); columns without a
            relation before them are those of `relation`.
        where: the condition on the rows that a metric aggregates; "" takes all.
        grain: the part of a date that a dimension is cut to (`day`, `month`, …); "" leaves it whole.
        place: the file and line of the definition, for messages.
    """

    kind: TermKind
    name: str
    relation: str
    expression: str
    description: str = ""
    synonyms: tuple[str, ...] = ()
    unit: str = ""
    where: str = ""
    grain: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a file defines.

    Attributes:
        tables: the file's own names of relations, with the names of these in the source.
        left_out: sentences on definitions that cannot be carried over.
    """

    terms: tuple[Term, ...] = ()
    joins: tuple[Join, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def find_line(text: str, pattern: str, name: str) -> str:
    """Return "NAME, line N" of the first match of a pattern in a file's text; the name alone where there is none."""
    found = re.search(pattern, text, re.MULTILINE)
    return f"{name}, line {text.count(chr(10), 0, found.start()) + 1}" if found else name


# --- sections of a schema file: `[orders.metrics]`, `[orders.dimensions]`, `[orders.filters]` -------------------------

KINDS: Mapping[str, TermKind] = {"metrics": "metric", "dimensions": "dimension", "filters": "filter"}
TERM_KEYS = tuple(KINDS)
GRAINS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_KEYS = {
    "metric": ("expression", "description", "synonyms", "unit", "filter"),
    "dimension": ("expression", "description", "synonyms", "grain"),
    "filter": ("expression", "description", "synonyms"),
}


def read_sections(relation: str, entry: Mapping[str, Any], text: str, name: str) -> tuple[Term, ...]:
    found = []
    for section, kind in KINDS.items():
        entries = entry.get(section, {})
        if not isinstance(entries, dict):
            raise SourceError(f"{name}, [{relation}]: {section} must be a table of names, not {entries!r}")
        for term, given in entries.items():
            own = re.escape(term)
            place = find_line(text, rf'^\s*(?:\[.*\.\s*"?{own}"?\s*\]|"?{own}"?\s*=)', name)
            found.append(_read(kind, term, relation, {"expression": given} if isinstance(given, str) else given, place))
    return tuple(found)


def _read(kind: TermKind, name: str, relation: str, given: Any, place: str) -> Term:
    where = f"{place}: the {kind} {name!r}"
    if not isinstance(given, dict) or not isinstance(given.get("expression"), str):
        raise SourceError(f'{where} must be SQL in quotes, or a table with expression = "…"')
    for key, value in given.items():
        if key not in _KEYS[kind]:
            raise SourceError(f"{where}: no setting {key!r}{suggest(key, _KEYS[kind])}")
        words = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not (words if key == "synonyms" else isinstance(value, str)):
            raise SourceError(f"{where}: {key} must be {'a list of strings' if key == 'synonyms' else 'a string'}")
    grain = given.get("grain", "")
    if grain and grain not in GRAINS:
        raise SourceError(f"{where}: no grain {grain!r}{suggest(grain, GRAINS)}")
    more = (given.get("description", ""), tuple(given.get("synonyms", ())), given.get("unit", ""))
    return Term(kind, name, relation, given["expression"], *more, given.get("filter", ""), grain, place)


def write_sections(relation: str, terms: Iterable[Term]) -> list[str]:
    sections = {kind: section for section, kind in KINDS.items()}
    lines = []
    for term in terms:
        lines.append(f"[{relation}.{sections[term.kind]}.{write_toml(term.name)}]")
        fields = {"expression": term.expression, "description": term.description, "synonyms": term.synonyms}
        lines += write_settings({**fields, "unit": term.unit, "filter": term.where, "grain": term.grain})
    return lines


def write_settings(settings: Mapping[str, object]) -> list[str]:
    """Return the lines of a TOML file that say settings; those without a value are left out."""
    return [f"{name} = {write_toml(value)}" for name, value in settings.items() if value or value is False]


def write_toml(value: object) -> str:
    """Write a TOML value: JSON's strings and lists are TOML's; what steers a terminal is written as an escape."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{write_key(name)} = {write_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(write_toml, value)) + "]"
    return visible_json(json.dumps(value, ensure_ascii=False))


def write_key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else write_toml(name)
