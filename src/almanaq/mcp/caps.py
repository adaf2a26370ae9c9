"""How much of a result a client gets: cells, quotes and lists are cut, then rows are left out, and it is said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from almanaq.encode import plain

RESULT, CELL = 30_000, 2_000
"""Most characters of a result as JSON, and of a cell."""
_WORDS, _QUOTE, _KEY, _MESSAGE, _QUOTES = 4_000, 300, 2_000, 500, 3
_MOST_WARNINGS, _LEAST_CELL, _NAMES = 10, 20, 6_000
_EXACT = 2**53 - 1

Record = dict[str, Any]


def cell(value: Any, most: int = CELL) -> Any:
    """Return a value as JSON of at most `most` characters; whole numbers that JavaScript has not are text."""
    return _cut(_numbers(plain(value)), most)


def clip(text: str, most: int = _WORDS) -> str:
    """Return a text, cut with a mark where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def size(value: Any) -> int:
    """Return how many characters a value takes as JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def quotes(evidence: Sequence[Any]) -> list[Record]:
    """Return a row's quotes with their places, named as the arguments of read_text are; `key` may be None."""
    return [
        {
            "table": found.relation,
            "key": clip(found.key, _KEY) if found.row_known else None,
            "column": found.column,
            "passage": found.passage + 1,
            "quote": clip(found.quote, _QUOTE),
            "question": clip(found.question, _QUOTE),
        }
        for found in evidence[:_QUOTES]
    ]


def warnings(messages: Sequence[str]) -> list[str]:
    """Return the first warnings, cut."""
    return [clip(message, _MESSAGE) for message in messages[:_MOST_WARNINGS]]


def fit(record: Mapping[str, Any], rows: Sequence[Sequence[Any]], evidence: Sequence[Sequence[Any]]) -> Record:
    """Return a record with as many of its rows, and of their quotes, as its size allows; `truncated` where not all.

    Args:
        record: the rest, whose texts are cut already; with `columns` and `truncated`.
    """
    columns = _leading(record["columns"], _NAMES)
    fitted = {**record, "columns": columns, "rows": [], "evidence": []}
    most = CELL
    while True:
        narrow = [[cell(value, most) for value in row[: len(columns)]] for row in rows[:1]]
        if size({**fitted, "rows": narrow}) <= RESULT or most <= _LEAST_CELL:
            break
        most //= 2
    left = RESULT - size(fitted) - 100
    for number, row in enumerate(rows):
        shown = [cell(value, most) for value in row[: len(columns)]]
        cited = quotes(evidence[number]) if number < len(evidence) else []
        taken = size(shown) + size(cited) + 4
        if taken > left and number == 0:
            cited, taken = [], size(shown) + 6
        if taken > left:
            break
        fitted["rows"].append(shown)
        fitted["evidence"].append(cited)
        left -= taken
    whole = len(fitted["rows"]) == len(rows) and len(columns) == len(record["columns"])
    fitted["truncated"] = bool(record["truncated"]) or not whole
    return fitted


def listed(items: Sequence[Any], left: int) -> list[Any]:
    """Return the first items that take at most so many characters together."""
    return _leading(items, left)


def _leading(items: Sequence[Any], most: int) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        most -= size(item) + 2
        if most < 0:
            break
        kept.append(item)
    return kept


def _numbers(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    return value


def _cut(value: Any, most: int) -> Any:
    """Cut a JSON value to a size; one that is made of others and is too large becomes text."""
    if isinstance(value, str):
        value = clip(value, most)
    if value is None or isinstance(value, bool | int | float) or size(value) <= most:
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # What JSON escapes takes several characters: the text is cut until it fits as it is sent.
    kept = most - 3
    while size(clip(text, kept)) > most:
        kept = max(1, kept // 2) if kept > 2 * _LEAST_CELL else kept - 1
        if kept <= 1:
            return "…"
    return clip(text, kept)
