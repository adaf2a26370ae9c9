"""The type of a column of text, found from all its cells, with the cells that do not fit it counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from almanaq.values import parse_date, parse_duration, parse_quantity, parse_time, parse_timestamp

TYPED_SHARE = 0.95
"""A column is typed when at least this share of its non-missing cells can be read so; the others are NULL, counted."""

MISSING = frozenset({"", "-", "\u2013", "\u2014", "n/a", "na", "n.a.", "null", "none", "nan", "?"})
"""What people write for "no value"; NULL in a typed column, kept as it is in a column of text."""

_EXAMPLES = 3
_LEADING_ZERO = re.compile(r"[0-]?0[0-9]+", re.ASCII)
_FRACTION = re.compile(r"[0-9]+:[0-9]{2}\.[0-9]+", re.ASCII)
_TWO_PART = re.compile(r"[0-9]+:[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """What was read of one column.

    Attributes:
        type: the SQL type chosen, in the PostgreSQL dialect.
        cells: cells that hold something; `missing` of them say "no value" ("n/a", "-").
        failures: cells that could not be read as `type` and are NULL; `examples` are a few of them.
        unit: the one currency or "%" that its numbers carry; "" for none.
    """

    name: str
    type: str
    cells: int
    missing: int = 0
    failures: int = 0
    examples: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How one table was read: `warnings` are about its header; `messages` say all that a user should know."""

    table: str
    rows: int
    columns: tuple[ColumnReport, ...]
    warnings: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        """The warnings, and one line for each column with cells that could not be read as its type."""
        return self.warnings + tuple(_failure_message(self.table, c) for c in self.columns if c.failures)


def _failure_message(table: str, column: ColumnReport) -> str:
    examples = ", ".join(repr(example) for example in column.examples)
    said = f"{column.failures:,} of {column.cells:,} cells are not {column.type} and read as NULL: {examples}"
    return f"{table}.{column.name}: {said}"


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """The report of a column and the value of each distinct cell (absent: NULL); `values` is None for text."""

    report: ColumnReport
    values: Mapping[str, Any] | None = None


def infer_column(name: str, counts: Mapping[str, int], *, plain_numbers: bool = True) -> TypedColumn:
    """Give the type of a column from its distinct cells and how often each occurs.

    Tried in order: boolean (true/false), number, date, timestamp, time (durations and times of day). Numbers with
    leading zeros or more than 18 digits are identifiers and stay text, and so do numbers of several units.

    Args:
        plain_numbers: whether text made of digits only is a number; False where the format has numbers of its own.
    """
    present = {cell: count for cell, count in counts.items() if cell.strip().casefold() not in MISSING}
    cells = sum(count for cell, count in counts.items() if cell.strip())
    total = sum(present.values())
    for read in _READERS:
        values, type_, unit = read(present) if total else ({}, "text", "")
        failed = [cell for cell in present if cell not in values]
        failures = sum(present[cell] for cell in failed)
        if not values or total - failures < TYPED_SHARE * total:
            continue
        if type_ in _NUMERIC and not plain_numbers and all(cell.strip().isdigit() for cell in values):
            break
        shown = tuple(sorted(failed, key=lambda cell: -present[cell])[:_EXAMPLES])
        report = ColumnReport(name, type_, cells, cells - total, failures, shown, unit)
        return TypedColumn(report, values)
    return TypedColumn(ColumnReport(name, "text", cells))


_NUMERIC = ("bigint", "double precision")


def _booleans(cells: Mapping[str, int]) -> tuple[dict[str, Any], str, str]:
    truth = {"true": True, "false": False}
    return {c: truth[c.strip().casefold()] for c in cells if c.strip().casefold() in truth}, "boolean", ""


def _numbers(cells: Mapping[str, int]) -> tuple[dict[str, Any], str, str]:
    """Read numbers; none at all where the column looks like identifiers or mixes units."""
    if any(_LEADING_ZERO.fullmatch(cell.strip()) for cell in cells):
        return {}, "text", ""
    read = _read_all(cells, parse_quantity)
    units = {unit for _, unit in read.values()} - {""}
    whole = all(number == number.to_integral_value() for number, _ in read.values())
    if len(units) > 1 or (whole and any(abs(number) >= Decimal(10) ** 18 for number, _ in read.values())):
        return {}, "text", ""
    convert: Callable[[Decimal], Any] = int if whole else float
    type_ = "bigint" if whole else "double precision"
    return {cell: convert(number) for cell, (number, _) in read.items()}, type_, "".join(units)


def _dates(cells: Mapping[str, int]) -> tuple[dict[str, Any], str, str]:
    return _read_all(cells, parse_date), "date", ""


def _timestamps(cells: Mapping[str, int]) -> tuple[dict[str, Any], str, str]:
    return _read_all(cells, parse_timestamp), "timestamp", ""


def _times(cells: Mapping[str, int]) -> tuple[dict[str, Any], str, str]:
    """Read times; "2:13" is minutes and seconds where other cells of the column have fractions ("2:13.32")."""
    clocks = any(_FRACTION.fullmatch(cell.strip()) for cell in cells)
    spans: dict[str, timedelta] = {}
    for cell in cells:
        moment = None if clocks and _TWO_PART.fullmatch(cell.strip()) else parse_time(cell)
        span = parse_duration(cell) if moment is None else _since_midnight(moment)
        if span is not None:
            spans[cell] = span
    if any(span >= timedelta(days=1) for span in spans.values()):
        return dict(spans), "interval", ""
    return dict(spans), "time", ""


def _since_midnight(moment: Any) -> timedelta:
    return timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond)


def _read_all(cells: Mapping[str, int], parse: Callable[[str], Any]) -> dict[str, Any]:
    """Give the cells that `parse` can read, with their values."""
    values = ((cell, parse(cell)) for cell in cells)
    return {cell: value for cell, value in values if value is not None}


_READERS = (_booleans, _numbers, _dates, _timestamps, _times)
