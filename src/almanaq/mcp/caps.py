"""How much of a result a client gets: texts and lists are cut, then rows are left out, and it is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from almanaq import encode
from almanaq.encode import RecordCap, exact_numbers, plain
from almanaq.suql.result import UnknownAnswer

RESULT, CELL = 30_000, 2_000
"""Most characters of a result as JSON, and of a cell with its quotation marks."""
CAP = RecordCap(size=RESULT, cell=CELL - 2)
_WORDS, _QUOTE, _KEY, _MESSAGE, _QUOTES = 4_000, 300, 2_000, 500, 3
_MOST_WARNINGS, _NAMES, _UNKNOWN, _SHORT = 10, 6_000, 10, 150

Record = dict[str, Any]


def clip(text: str, most: int = _WORDS) -> str:
    return encode.clip(text, most)


def quote_records(evidence: Sequence[Any]) -> list[Record]:
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


def unknown_records(unknown: Sequence[UnknownAnswer]) -> list[Record]:
    """Return the first answers that rows lack, their places named as the arguments of read_text are."""
    return [
        {
            "table": clip(each.relation, _SHORT),
            "key": None if each.row.startswith("~") else clip(each.row, _SHORT),
            "column": clip(each.column, _SHORT),
            "question": clip(each.question, _SHORT),
            "reason": clip(each.reason, _SHORT),
        }
        for each in unknown[:_UNKNOWN]
    ]


def clip_warnings(messages: Sequence[str]) -> list[str]:
    return [clip(message, _MESSAGE) for message in messages[:_MOST_WARNINGS]]


def fit_record(record: Mapping[str, Any], rows: Sequence[Sequence[Any]], evidence: Sequence[Sequence[Any]]) -> Record:
    """Return a record with as many of its rows, and of their quotes, as its size allows; `truncated` where not all."""
    columns = CAP.lead(record["columns"], _NAMES)
    fitted = {**record, "columns": columns, "rows": [], "evidence": []}
    shown = [[exact_numbers(plain(value)) for value in row[: len(columns)]] for row in rows]
    capped = CAP.fit(shown, [quote_records(row) for row in evidence], used=CAP.size_of(fitted) + 100)
    whole = len(capped.rows) == len(rows) and len(columns) == len(record["columns"])
    truncated = bool(record["truncated"]) or not whole
    return {**fitted, "rows": capped.rows, "evidence": capped.quotes, "truncated": truncated}
