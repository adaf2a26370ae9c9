"""Records for clients: those of the command line, with offsets and numbers as JavaScript reads them, and bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq.suql.execution.evidence import CitedTexts

EXACT = 2**53 - 1
"""The largest whole number that JavaScript holds exactly."""
MOST_BYTES = 1_000_000
MOST_CELL = 16_000


def safe(value: Any) -> Any:
    """Return a JSON value with whole numbers that JavaScript would round as text."""
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if -EXACT <= value <= EXACT else str(value)
    if isinstance(value, dict):
        return {name: safe(item) for name, item in value.items()}
    return [safe(item) for item in value]


def with_units(evidence: dict[str, Any], cited: CitedTexts) -> dict[str, Any]:
    """Return a quote whose start is counted in UTF-16 units."""
    place = (evidence["relation"], evidence["key"], evidence["column"], evidence["passage"])
    return evidence | {"start": cited.moved.get((place, evidence["start"]), evidence["start"])}


def for_clients(
    record: dict[str, Any], cited: CitedTexts, columns: Sequence[dict[str, str]], most_rows: int | None = None
) -> dict[str, Any]:
    """Return the record of a result or a reply for a client: as many rows as fit, and what was left out.

    Args:
        record: as `result_record` and `response_record` give it.
        columns: name, type and kind of each.
        most_rows: rows that the client wants.
    """
    rows, cut = bounded(safe(record["rows"]), most_rows)
    evidence = [[with_units(each, cited) for each in row] for row in record["evidence"][: len(rows)]]
    rest = safe({name: value for name, value in record.items() if name not in ("rows", "evidence", "columns")})
    missing = len(rows) < len(record["rows"]) or cut > 0 or bool(record["trace"]["partial"])
    return {
        **rest,
        "columns": list(columns),
        "rows": rows,
        "evidence": evidence,
        "truncated": missing,
        "rows_total": len(record["rows"]),
        "cells_cut": cut,
    }


def bounded(rows: list[list[Any]], most_rows: int | None = None) -> tuple[list[list[Any]], int]:
    """Return the first rows, as many as a response may hold, and how many of their cells were cut."""
    kept: list[list[Any]] = []
    held = cut = 0
    for row in rows[:most_rows]:
        cells = [_cell(value) for value in row]
        size = sum(size for _, size, _ in cells)
        if kept and held + size > MOST_BYTES:
            break
        held += size
        cut += sum(was_cut for _, _, was_cut in cells)
        kept.append([value for value, _, _ in cells])
    return kept, cut


def _cell(value: Any) -> tuple[Any, int, bool]:
    """Return a cell, cut where it is long, its size in bytes, and whether it was cut."""
    if value is None or isinstance(value, bool | int | float):
        return value, 8, False
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > MOST_CELL:
        return text[: MOST_CELL - 1] + "…", MOST_CELL, True
    return value, len(text.encode("utf-8", "surrogatepass")), False
