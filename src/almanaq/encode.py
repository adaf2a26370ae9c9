"""Results, traces and responses as JSON values, for the command line and for any other client.

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

import dataclasses
import datetime
import decimal
import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq.agent.response import Event, Response
    from almanaq.suql.catalog.relations import Column, Relation
    from almanaq.suql.explain.why_not import WhyNot
    from almanaq.suql.result import Evidence, Result, Trace

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
    return _compound(value)


def _compound(value: Any) -> Any:
    """Encode the values that are made of others; whatever else there is becomes its text."""
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


def result_record(result: Result) -> dict[str, Any]:
    """Return a query's result as `sql --format json` prints it: columns, rows, evidence per row, trace.

    >>> record = result_record(con.sql("SELECT name, age FROM dogs ORDER BY name"))
    >>> record["columns"], record["rows"], sorted(record)
    (['name', 'age'], [['Bella', None], ['Rex', 7]], ['columns', 'evidence', 'rows', 'trace'])
    """
    from almanaq.suql.row_values import python_rows

    return {
        "columns": list(result.columns),
        "rows": plain(python_rows(result.table, exact=True)),
        "evidence": [[evidence_record(e) for e in row] for row in result.evidence],
        "trace": trace_record(result.trace),
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
    }


def why_not_record(found: WhyNot) -> dict[str, Any]:
    """Return the conditions of a query with what each comes to for one row, and in words what keeps the row out.

    >>> query = "SELECT * FROM dogs WHERE age > 8 AND answer(name, 'is it a cat?') = 'Yes'"
    >>> record = why_not_record(con.why_not(query, {"age": 7}))
    >>> record["found"], [(each["text"], each["truth"]) for each in record["conditions"]][:1]
    (True, [('age > 8', False)])
    """
    conditions = [
        {"text": each.text, "truth": each.truth, "evidence": [evidence_record(e) for e in each.evidence]}
        for each in found.conditions
    ]
    return {"found": bool(found.conditions), "conditions": conditions, "answer": str(found)}


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
        "columns": [_column_record(column) for column in relation.columns],
    }


def _column_record(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type + ("[]" if column.array else ""),
        "kind": column.kind.value,
        "description": column.description,
        "values": [] if column.private else list(column.values[:_MOST_VALUES]),
        "samples": [] if column.private else list(column.samples),
        "private": column.private,
    }


def evidence_record(evidence: Evidence) -> dict[str, Any]:
    """Return one quote: where it stands and which question it answers.

    >>> evidence_record(Evidence("dogs", "7", "about", 0, 0, "Rex is friendly.", "friendly?"))["quote"]
    'Rex is friendly.'
    """
    record = plain(evidence)
    assert isinstance(record, dict)
    del record["by_row"]  # how people count the row; a program finds it by its key
    return record


def trace_record(trace: Trace) -> dict[str, Any]:
    """Return what a query took; links and columns as objects with named parts.

    >>> trace_record(Trace(text_calls=2, columns_sent=(("about", 2),)))["columns_sent"]
    [{'column': 'about', 'cells': 2}]
    """
    record = plain(trace)
    record["links"] = [
        {"column": column, "literal": literal, "values": list(values)} for column, literal, values in trace.links
    ]
    if trace.inference is None:
        del record["inference"]
    record["columns_sent"] = [{"column": column, "cells": cells} for column, cells in trace.columns_sent]
    assert isinstance(record, dict)
    return record


def _decimal(value: decimal.Decimal) -> int | float | str:
    """Return a number where one holds the decimal exactly, else its text."""
    if not value.is_finite():
        return _not_finite(float(value)) if not value.is_snan() else "NaN"
    if value == value.to_integral_value():
        return int(value)
    # A float prints as the shortest text that reads back to it; equal texts lose nothing.
    return float(value) if decimal.Decimal(repr(float(value))) == value else str(value)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _duration(months: int, days: int, seconds: float) -> str:
    """Write an interval as ISO 8601 does: P1M2DT3.5S."""
    parts = "P" + (f"{months}M" if months else "") + (f"{days}D" if days else "")
    return parts + (f"T{seconds:g}S" if seconds or parts == "P" else "")
