"""The sections of a schema file that define terms: `[orders.metrics]`, `[orders.dimensions]`, `[orders.filters]`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from almanaq.errors import SourceError, suggest
from almanaq.suql.catalog.terms import Term, TermKind, find_line

KINDS: Mapping[str, TermKind] = {"metrics": "metric", "dimensions": "dimension", "filters": "filter"}
TERM_KEYS = tuple(KINDS)
GRAINS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_KEYS = {
    "metric": ("expression", "description", "synonyms", "unit", "filter"),
    "dimension": ("expression", "description", "synonyms", "grain"),
    "filter": ("expression", "description", "synonyms"),
}


def read_sections(relation: str, entry: Mapping[str, Any], text: str, name: str) -> tuple[Term, ...]:
    """Return the terms of a relation's entry; raises SourceError with the line at fault.

    Args:
        text: the file, in which lines are counted; `name` the name of the file.
    """
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
    """Return the lines that define terms again; `relation` is its name as TOML writes it."""
    sections = {kind: section for section, kind in KINDS.items()}
    lines = []
    for term in terms:
        lines.append(f"[{relation}.{sections[term.kind]}.{json.dumps(term.name, ensure_ascii=False)}]")
        fields = {"expression": term.expression, "description": term.description, "synonyms": list(term.synonyms)}
        fields |= {"unit": term.unit, "filter": term.where, "grain": term.grain}
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items() if value]
    return lines
