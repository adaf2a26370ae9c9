"""The tools that tell which tables there are, and what is in them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from almanaq.errors import UsageError
from almanaq.mcp import caps
from almanaq.mcp.declared import NOTICE
from almanaq.suql.catalog.relations import Catalog, Column, Relation

MOST_RANKED = 50
"""Tables that are ranked for a question; how many a tool lists is said in `declared.py`."""
_DESCRIPTION, _NAMES, _VALUES, _SAMPLES, _VALUE = 300, 1_500, 50, 3, 80

Record = dict[str, Any]


def found(catalog: Catalog, given: Mapping[str, Any], choose: Callable[..., tuple[str, ...]]) -> Record:
    """Return some of the tables: all in their order, or those that fit a question, the best first."""
    catalog.check_readable()
    question = given.get("question", "").strip()
    ranked = choose(question, catalog) if question else tuple(relation.name for relation in catalog.relations)
    start = _start(given.get("cursor"), question)
    wanted = ranked[start : start + given.get("limit", 10)]
    shown = caps.listed([_short(catalog.relation(name)) for name in wanted], caps.RESULT - 500)
    end = start + len(shown)
    return {
        "tables": shown,
        "total": len(ranked),
        "next": _cursor(end, question) if shown and end < len(ranked) else None,
        "notice": NOTICE,
    }


def described(catalog: Catalog, given: Mapping[str, Any]) -> Record:
    """Return a table with its columns; samples of their values only where they are asked for."""
    relation = catalog.relation(given["table"])
    columns = [_column(column, samples=given.get("samples", False)) for column in relation.columns]
    shown = caps.listed(columns, caps.RESULT - 6_000)
    references = [f"{', '.join(own)} -> {other}({', '.join(theirs)})" for own, other, theirs in relation.foreign_keys]
    return {
        "table": relation.name,
        "description": caps.clip(relation.description, 1_000),
        "rows": relation.rows,
        "key": caps.listed(list(relation.key), 1_000),
        "references": caps.listed(references, 2_000),
        "columns": shown,
        "truncated": len(shown) < len(columns),
        "notice": NOTICE,
    }


def _short(relation: Relation) -> Record:
    names = [column.name for column in relation.columns]
    return {
        "table": relation.name,
        "description": caps.clip(relation.description, _DESCRIPTION),
        "rows": relation.rows,
        "columns": caps.listed(names, _NAMES),
    }


def _column(column: Column, *, samples: bool) -> Record:
    record: Record = {
        "name": column.name,
        "type": column.type + ("[]" if column.array else ""),
        "kind": column.kind.value,
    }
    if column.description:
        record["description"] = caps.clip(column.description, _DESCRIPTION)
    if column.values:
        record["values"] = [caps.clip(value, _VALUE) for value in column.values[:_VALUES]]
    if samples and column.samples:
        record["samples"] = [caps.clip(value, _VALUE) for value in column.samples[:_SAMPLES]]
    return record


def _cursor(start: int, question: str) -> str:
    return base64.urlsafe_b64encode(f"{start}:{_mark(question)}".encode()).decode()


def _start(cursor: str | None, question: str) -> int:
    if cursor is None:
        return 0
    try:
        start, _, mark = base64.urlsafe_b64decode(cursor.encode()).decode().partition(":")
        if mark == _mark(question) and int(start) >= 0:
            return int(start)
    except ValueError:
        pass
    raise UsageError("the cursor is not one of this search: pass `next` of a result with the same question")


def _mark(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:8]
