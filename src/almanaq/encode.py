"""Results, traces and responses as JSON, how much of them a client gets, and rows as CSV: for every surface.

A value becomes what a reader of JSON expects: numbers stay numbers wherever a number can hold them; dates and times
become ISO 8601 text, binary data PostgreSQL's `\\x…` text; NaN and the infinities, which JSON lacks, become text.
docs/json.md lists the keys of every record.

>>> import almanaq
>>> from almanaq.suql.result import Evidence, Trace
>>> from almanaq.testing import FunctionModel
>>> model = FunctionModel(lambda text, question: "No")
>>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, None]}}, model=model, cache=False)
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import decimal
import enum
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from almanaq.display import visible

if TYPE_CHECKING:
    from almanaq.agent.response import Event, Response
    from almanaq.suql.catalog.relations import Relation
    from almanaq.suql.explain.explain import Explanation
    from almanaq.suql.explain.why_not import WhyNot
    from almanaq.suql.result import Evidence, Result, Trace, UnknownAnswer


_EXACT = 2**53 - 1
"""The largest whole number that JavaScript holds exactly."""
_LEAST_CELL = 20
_MOST_VALUES = 200
"""Permitted values of a column that are listed."""


def plain(value: Any) -> Any:
    """Return a value made of None, bool, int, float, str, list and dict only.

    >>> plain([datetime.date(2026, 11, 23), decimal.Decimal("1.50"), decimal.Decimal("2"), float("nan"), b"\\x01"])
    ['2026-11-23', 1.5, 2, 'NaN', '\\\\x01']
    >>> plain(datetime.timedelta(days=1, hours=2)), plain(decimal.Decimal("0.12345678901234567890123"))
    ('P1DT7200S', '0.12345678901234567890123')
    """
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, datetime.timedelta):
        return _duration(0, value.days, value.total_seconds() - value.days * 86_400)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return "\\x" + bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if hasattr(value, "months") and hasattr(value, "nanoseconds"):  # Arrow's interval of months, days, nanoseconds
        return _duration(value.months, value.days, value.nanoseconds / 1e9)
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if not f.name.startswith("_")}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def event_record(event: Event) -> dict[str, Any]:
    """Return an event of a reply as JSON: its `kind` and fields; the last one holds the whole reply.

    >>> [event_record(event)["kind"] for event in con.ask_stream("How old is Rex?")][-1]
    'response'
    """
    from almanaq.agent.response import Finished

    if isinstance(event, Finished):
        return {"kind": event.kind, "response": response_record(event.response)}
    return {"kind": event.kind, **plain(event)}


def result_record(result: Result, most: int | None = None) -> dict[str, Any]:
    """Return a query's result as `sql --format json` prints it: columns, rows, evidence per row, trace.

    Args:
        most: rows that are encoded; None: all.

    >>> record = result_record(con.sql("SELECT name, age FROM dogs ORDER BY name"))
    >>> record["columns"], record["rows"], sorted(record)
    (['name', 'age'], [['Bella', None], ['Rex', 7]], ['chart', 'columns', 'evidence', 'rows', 'trace', 'unknown'])
    """
    from almanaq.suql.result_values import python_rows

    return {
        "columns": list(result.columns),
        "rows": plain(python_rows(result.table.slice(0, most), exact=True)),
        "evidence": [[evidence_record(e) for e in row] for row in result.evidence[:most]],
        "trace": trace_record(result.trace),
        "chart": _chart_record(result),
        "unknown": [unknown_record(each) for each in result.unknown],
    } | ({"inferred": list(result.inferred)} if result.inferred else {})


def response_record(response: Response) -> dict[str, Any]:
    """Return a reply to a question as `ask --json` prints it; a reply without a query has a trace of nothing.

    >>> record = response_record(con.ask("How many dogs are there?"))
    >>> record["status"], record["rows"]
    ('answered', [[2]])
    """
    from almanaq.suql.result import Trace

    return {
        "status": response.status,
        "answer": response.answer,
        "suql": response.suql,
        "columns": list(response.columns),
        "rows": plain(response.rows),
        "tables": plain(response.tables),
        "evidence": [[evidence_record(e) for e in row] for row in response.evidence],
        "searched": plain(response.searched),
        "relaxed": plain(response.relaxed),
        "readings": [plain(reading.as_dict()) for reading in response.readings],
        "trace": trace_record(response.trace or Trace()),
        "chart": _chart_record(response),
        "unknown": [unknown_record(each) for each in response.unknown],
    }


def _chart_record(shown: Result | Response) -> dict[str, Any] | None:
    chart = shown.chart()
    return None if chart is None else chart.spec()


def why_not_record(found: WhyNot) -> dict[str, Any]:
    """Return the conditions of a query with what each comes to for one row, and in words what keeps the row out.

    >>> query = "SELECT * FROM dogs WHERE age > 8 AND answer(name, 'is it a cat?') = 'Yes'"
    >>> record = why_not_record(con.why_not(query, {"age": 7}))
    >>> record["found"], [(each["text"], each["truth"]) for each in record["conditions"]][:1]
    (True, [('age > 8', False)])
    """
    conditions = [
        {
            "text": each.text,
            "truth": each.truth,
            "reason": each.reason,
            "evidence": [evidence_record(e) for e in each.evidence],
        }
        for each in found.conditions
    ]
    return {"found": bool(found.conditions), "conditions": conditions, "answer": str(found)}


def expected_record(explanation: Explanation) -> dict[str, Any]:
    """Return what a query is expected to take, all stages together, and which columns leave this machine for it.

    The money is None where a price is not known.

    >>> expected_record(con.explain("SELECT * FROM dogs WHERE answer(name, 'is it a cat?') = 'Yes'"))["predicted"]
    {'rows': 1, 'calls': 2, 'requests': 2, 'tokens': 173, 'money': 0.0}
    """
    stages = [line.predicted for line in explanation.stages]
    predicted: dict[str, Any] = {"rows": next((each["rows"] for each in reversed(stages) if "rows" in each), None)}
    predicted |= {name: sum(each.get(name, 0) for each in stages) for name in ("calls", "requests", "tokens")}
    money = [each["money"] for each in stages if "money" in each]
    predicted["money"] = None if None in money else round(sum(money), 6)
    return {"predicted": predicted, "columns_sent": list(explanation.sent)}


def relation_record(relation: Relation) -> dict[str, Any]:
    """Return a relation of the catalog with its columns; of a private column nothing but what it is called.

    >>> record = relation_record(con.catalog.relations[0])
    >>> record["name"], record["rows"], [(column["name"], column["type"]) for column in record["columns"]]
    ('dogs', 2, [('name', 'text'), ('age', 'bigint')])
    """
    return {
        "name": relation.name,
        "description": relation.description,
        "rows": relation.rows,
        "key": list(relation.key),
        "origin": relation.origin,
        "references": [
            {"columns": list(own), "relation": other, "to": list(theirs)}
            for own, other, theirs in relation.foreign_keys
        ],
        "columns": [
            {
                "name": column.name,
                "type": column.type + ("[]" if column.array else ""),
                "kind": column.kind.value,
                "description": column.description,
                "values": [] if column.private else list(column.values[:_MOST_VALUES]),
                "samples": [] if column.private else list(column.samples),
                "private": column.private,
            }
            for column in relation.columns
        ],
    }


def evidence_record(evidence: Evidence) -> dict[str, Any]:
    """Return one quote: its place and the question that it answers.

    >>> evidence_record(Evidence("dogs", "7", "about", 0, 0, "Rex is friendly.", "friendly?"))["quote"]
    'Rex is friendly.'
    """
    record: dict[str, Any] = plain(evidence)
    del record["by_row"]  # how people count the row; a program finds it by its key
    return record


def unknown_record(unknown: UnknownAnswer) -> dict[str, str]:
    """Return one answer that a row lacks: the row's key or number, the column, the question, the reason."""
    return {name: getattr(unknown, name) for name in ("relation", "row", "column", "question", "reason")}


def trace_record(trace: Trace) -> dict[str, Any]:
    """Return what a query took; links and columns as objects with named parts.

    >>> trace_record(Trace(text_calls=2, columns_sent=(("about", 2),)))["columns_sent"]
    [{'column': 'about', 'cells': 2}]
    """
    record: dict[str, Any] = plain(trace)
    record["links"] = [
        {"column": column, "literal": literal, "values": list(values)} for column, literal, values in trace.links
    ]
    del record["unknown"]  # it stands beside the rows
    if trace.inference is None:
        del record["inference"]
    record["columns_sent"] = [{"column": column, "cells": cells} for column, cells in trace.columns_sent]
    return record


def exact_numbers(value: Any) -> Any:
    """Return a JSON value with whole numbers that JavaScript would round as text.

    >>> exact_numbers([2**53 - 1, 2**53, True, 1.5])
    [9007199254740991, '9007199254740992', True, 1.5]
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, list):
        return [exact_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: exact_numbers(item) for name, item in value.items()}
    return value


def clip(text: str, most: int) -> str:
    """Return a text of at most so many characters, with a mark where it was longer.

    >>> clip("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclasses.dataclass(slots=True)
class CappedRows:
    """The rows that fit, each with its quotes, and how many of their cells were cut."""

    rows: list[list[Any]]
    quotes: list[list[Any]]
    cells_cut: int


@dataclasses.dataclass(frozen=True, slots=True)
class RecordCap:
    """How much of a result a client gets: long cells are cut, then rows are left out.

    Attributes:
        size: of all rows with their quotes, as JSON.
        cell: characters of a cell.
        measure: what the size of a text is counted in.

    >>> RecordCap(size=60, cell=10).fit([["a" * 20, 1], ["b", 2], ["c" * 99, 3], ["d", 4]])
    CappedRows(rows=[['aaaaaaaaa…', 1], ['b', 2], ['ccccccccc…', 3]], quotes=[[], [], []], cells_cut=2)
    """

    size: int
    cell: int
    measure: Callable[[str], int] = len

    def size_of(self, value: Any) -> int:
        return self.measure(json.dumps(value, ensure_ascii=False))

    def cut(self, value: Any, most: int | None = None) -> Any:
        """Return a JSON value of at most `cell` characters; one made of others becomes text where it is longer."""
        most = self.cell if most is None else most
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        limit = most + 2  # the quotation marks around a text
        if isinstance(value, str) and 6 * len(text) <= limit:  # an escaped character takes at most six
            return value
        if len(text) <= limit and len(json.dumps(value, ensure_ascii=False)) <= limit:
            return value
        # What JSON escapes takes several characters: the text is cut until it fits as it is sent.
        kept = most
        while len(json.dumps(clip(text, kept), ensure_ascii=False)) > limit:
            kept = kept // 2 if kept > 2 * _LEAST_CELL else kept - 1
            if kept <= 1:
                return "…"
        return clip(text, kept)

    def fit(self, rows: Sequence[Sequence[Any]], quotes: Sequence[Sequence[Any]] = (), *, used: int = 0) -> CappedRows:
        """Return the first rows, as many as fit beside what the rest of the record has used."""
        left, most = self.size - used, self.cell
        # Where the first row alone is too large, every cell is cut shorter.
        while rows and most > _LEAST_CELL and self.size_of([self.cut(value, most) for value in rows[0]]) + 6 > left:
            most //= 2
        kept = CappedRows([], [], 0)
        for number, row in enumerate(rows):
            cells = [self.cut(value, most) for value in row]
            cited = list(quotes[number]) if number < len(quotes) else []
            taken = self.size_of([cells, cited])
            if taken > left and number == 0:
                cited, taken = [], self.size_of(cells) + 6
            if taken > left:
                break
            kept.rows.append(cells)
            kept.quotes.append(cited)
            kept.cells_cut += sum(cell is not value for cell, value in zip(cells, row, strict=True))
            left -= taken
        return kept

    def lead(self, items: Sequence[Any], size: int) -> list[Any]:
        kept: list[Any] = []
        for item in items:
            size -= self.size_of(item) + 2
            if size < 0:
                break
            kept.append(item)
        return kept


def _decimal(value: decimal.Decimal) -> int | float | str:
    """Return a number where one holds the decimal exactly, else its text."""
    if not value.is_finite():
        return _not_finite(float(value)) if not value.is_snan() else "NaN"
    if value == value.to_integral_value():
        return int(value)
    # A float prints as the shortest text that reads back to it; equal texts lose nothing.
    return float(value) if decimal.Decimal(repr(float(value))) == value else str(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _duration(months: int, days: int, seconds: float) -> str:
    """Write an interval as ISO 8601 does: P1M2DT3.5S."""
    parts = "P" + (f"{months}M" if months else "") + (f"{days}D" if days else "")
    return parts + (f"T{seconds:g}S" if seconds or parts == "P" else "")


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that a spreadsheet takes for a formula, the wide forms included."""
_ROWS_AT_ONCE = 1000


def encode_text(text: str) -> bytes:
    """Return text in UTF-8; bytes that were none come out as they came in, half a character as U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class CsvWriter:
    """Writes rows in UTF-8; `no_formulas` disarms what a spreadsheet would compute, `terminal` what would steer one."""

    def __init__(self, file: BinaryIO, *, no_formulas: bool = False, terminal: bool = False) -> None:
        self._file, self._no_formulas, self._terminal = file, no_formulas, terminal

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for number, row in enumerate(rows, 1):
            writer.writerow([self._cell(value) for value in row])
            if number % _ROWS_AT_ONCE == 0:
                self._send(buffer)
        self._send(buffer)

    def _send(self, buffer: io.StringIO) -> None:
        text = buffer.getvalue()
        self._file.write(encode_text(visible(text) if self._terminal else text))
        buffer.seek(0)
        buffer.truncate()

    def _cell(self, value: Any) -> Any:
        shown = plain(value)
        if isinstance(shown, list | dict):
            shown = json.dumps(shown, ensure_ascii=False)
        if isinstance(shown, bool):
            return str(shown).lower()
        computed = self._no_formulas and isinstance(shown, str) and shown.lstrip(" \n\ufeff").startswith(_FORMULA)
        return f"'{shown}" if computed else shown
