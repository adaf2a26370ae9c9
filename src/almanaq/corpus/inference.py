"""The type of a column of text, found from all its cells, with the cells that do not fit it counted.

What a whole column, or a whole file, says of how its numbers and days are written, where one cell alone does not, are
its marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, repeat
from typing import Any, Literal

from almanaq.corpus.read_cancellation import until_cancelled
from almanaq.values import (
    MISSING,
    parse_boolean,
    parse_date,
    parse_duration,
    parse_quantity,
    parse_time,
    parse_timestamp,
)

# A column is typed when at least this share of its non-missing cells can be read so; the others are NULL, counted.
TYPED_SHARE = 0.95
TWO_DIGIT_YEARS = "two-digit years are read as 1969 to 2068"
_EXAMPLES, _WRITTEN = 3, 60
_SURE_DIGITS = 15
_NUMERIC = ("bigint", "double precision")
_BEYOND_BIGINT = Decimal(2) ** 63
_DAY = date(1970, 1, 1)
_MIDNIGHT = datetime.combine(_DAY, time())
_LEADING_ZERO = re.compile(r"-?0[0-9]+(?:\.[0-9]+)?", re.ASCII)
_FRACTION = re.compile(r"[0-9]+:[0-9]{2}\.[0-9]+", re.ASCII)
_PLAIN = {  # how cells begin that are written as their values are in a query
    **dict.fromkeys(_NUMERIC, re.compile(r"-?[0-9]+(?:\.[0-9]+)?\Z", re.ASCII)),
    **dict.fromkeys(("date", "timestamp"), re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)),
    "time": re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII),
}
_TWO_PART = re.compile(r"[0-9]+:[0-9]{2}", re.ASCII)
_THREE_PART = re.compile(r"[0-9]+:[0-9]{2}:[0-9]{2}", re.ASCII)
_NO_CLOCK = re.compile(r"(?!24:00)(?:2[4-9]|[3-9][0-9]|[0-9]{3,}):[0-9]{2}", re.ASCII)
_METRES, _SPAN = re.compile(r"[0-9.]+\s?m", re.I), re.compile(r"[0-9]\s?(?:h|s|min)", re.I)
_SCALED = re.compile(r"[0-9]\s?(?!e[+-]?[0-9])[a-z]", re.I)
_VERSION = re.compile(r"[0-9]{1,3}\.([0-9]{1,3})", re.ASCII)
_ROOM = re.compile(r"[0-9]+[eE][0-9]+", re.ASCII)
_DIALLED = re.compile(r"\+[0-9]", re.ASCII)
_FRACTION_DIGITS = re.compile(r"[+-]?[0-9]*[.,]([0-9]+)", re.ASCII)
_OFFSET = re.compile(r"(?P<clock>.*[0-9]:[0-9.:]+)\s?(?P<offset>[+-][0-9]{2}(?::?[0-9]{2})?)", re.ASCII)
_NANOSECONDS = re.compile(r":[0-9]{2}\.[0-9]{6}[0-9]*[1-9]", re.ASCII)

DecimalMark = Literal[".", ","]
DayOrder = Literal["DMY", "MDY"]

_LONGEST = 80
_DIGITS = re.compile(r"[0-9](?:[0-9.,' \u00a0\u202f\u2009]*[0-9])?", re.ASCII)
_COMMA = re.compile(
    r"(?:[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})|0,[0-9]+|[0-9]{1,3}(?:[. '][0-9]{3})+,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,})",
    re.ASCII,
)
_POINT = re.compile(
    r"(?:[0-9]+\.(?:[0-9]{1,2}|[0-9]{4,})|0\.[0-9]+|[0-9]{1,3}(?:[, '][0-9]{3})+\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3}){2,})",
    re.ASCII,
)
_SLASHED = re.compile(r"([0-9]{1,2})(?:[/-]([0-9]{1,2})[/-][0-9]{4}|/([0-9]{1,2})/[0-9]{2})(?![0-9/])", re.ASCII)
_SHORT_YEAR = re.compile(
    r"(?P<day>[0-9]{1,2}/[0-9]{1,2}/|[0-9]{2}\.[0-9]{2}\.|[0-9]{1,2}-[A-Za-z]{3}-)(?P<year>[0-9]{2})(?![0-9/.-])",
    re.ASCII,
)
_PIVOT = 69  # of years with two digits: 69 is 1969, and 68 is 2068, as strptime has them
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'"})
ORDERS = {"DMY": "day/month/year", "MDY": "month/day/year"}


@dataclass(frozen=True, slots=True)
class Marks:
    """How numbers and days are written; None: each cell says it for itself, as far as it does."""

    decimal: DecimalMark | None = None
    days: DayOrder | None = None

    def over(self, other: Marks) -> Marks:
        """Return these, and where they say nothing those of another."""
        return Marks(self.decimal or other.decimal, self.days or other.days)


def is_slashed(cell: str) -> bool:
    """Tell whether a cell begins with a day whose order it may not say: 02/03/1968."""
    return _SLASHED.match(cell.strip()) is not None


def with_full_year(cell: str) -> str:
    """Return a cell that begins with a day whose year has two digits with all four: "5/3/09" is "5/3/2009"."""
    found = _SHORT_YEAR.match(cell.strip())
    if found is None:
        return cell
    century = "19" if int(found["year"]) >= _PIVOT else "20"
    return f"{found['day']}{century}{found['year']}{cell.strip()[found.end() :]}"


def marks_of(cells: Iterable[str]) -> Marks:
    """Return what some cells say together: what one of them can only mean, if no other contradicts it."""
    decimals: set[DecimalMark] = set()
    orders: set[DayOrder] = set()
    for cell in cells:
        if len(cell) > _LONGEST or cell.isdigit():
            continue
        if _POINT.fullmatch(cell):
            decimals.add(".")
        elif day := _SLASHED.match(cell.strip()):
            first, second = int(day[1]), int(day[2] or day[3])
            orders |= {"DMY"} if first > 12 >= second else {"MDY"} if second > 12 >= first else set()
        elif digits := _DIGITS.search(cell):
            written = digits[0].translate(_SPACES)
            decimals |= {","} if _COMMA.fullmatch(written) else {"."} if _POINT.fullmatch(written) else set()
    return Marks(next(iter(decimals)) if len(decimals) == 1 else None, next(iter(orders)) if len(orders) == 1 else None)


_UNMARKED = Marks()


@dataclass(frozen=True, slots=True)
class ColumnReport:
    name: str
    type: str  # the SQL type chosen, in the PostgreSQL dialect
    cells: int  # that hold something
    missing: int = 0  # of these, cells that say "no value" ("n/a", "-")
    failures: int = 0  # cells that could not be read as `type` and are NULL
    examples: tuple[str, ...] = ()  # a few of them
    unit: str = ""  # the one currency or "%" that its numbers carry
    order: str = ""  # in which its days were read ("DMY", "MDY"), where a cell alone does not say it
    notes: tuple[str, ...] = ()  # what else was decided, as that formatting some values does not give their cells back
    written: str = ""  # a cell as it stands there, where queries compare it in another spelling

    @property
    def caution(self) -> str:
        """What a reader of its values should know, without a cell: what was lost, which years were guessed."""
        lost = f"{self.failures:,} of {self.cells:,} cells cannot be read as {self.type} and are missing"
        years = TWO_DIGIT_YEARS if TWO_DIGIT_YEARS in self.notes else ""
        return "; ".join(filter(None, (lost if self.failures else "", years)))

    @property
    def messages(self) -> list[str]:
        messages = list(self.notes)
        if self.order:
            messages.append(f"days are read as {ORDERS[self.order]}")
        if self.missing:
            share = f"{self.missing:,} of {self.cells:,} cells are placeholders"
            messages.append(f"{share} such as n/a or -, and read as NULL")
        if self.failures:
            share = f"{self.failures:,} of {self.cells:,} cells are not {self.type}"
            messages.append(f"{share} and read as NULL: {', '.join(map(repr, self.examples))}")
        return messages


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How one table was read."""

    table: str
    rows: int
    columns: tuple[ColumnReport, ...]
    warnings: tuple[str, ...] = ()  # what was guessed or mended of the file as a whole
    origin: str = ""  # the file, and how it is written
    repeated: int = 0  # rows that are equal to an earlier one

    @property
    def messages(self) -> tuple[str, ...]:
        messages = [f"{self.table}.{column.name}: {each}" for column in self.columns for each in column.messages]
        if self.repeated:
            one = self.repeated == 1
            how, they = ("repeats an earlier one", "it is") if one else ("repeat earlier ones", "they are")
            share = f"{self.repeated:,} of {self.rows:,} rows {how} in every cell"
            messages.append(f"{self.table}: {share}; {they} counted again unless DISTINCT is written")
        return (*self.warnings, *messages)


def with_units(reports: Sequence[ColumnReport], units: Sequence[str]) -> tuple[ColumnReport, ...]:
    padded = chain(units, repeat("", len(reports) - len(units)))
    return tuple(replace(report, unit=report.unit or unit) for report, unit in zip(reports, padded, strict=True))


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """The report of a column and the value of each distinct cell (absent: NULL); `values` is None for text."""

    report: ColumnReport
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ColumnHints:
    plain_numbers: bool = True  # text made of digits only is a number; False where the format has numbers of its own
    file: Marks = _UNMARKED  # of the file; what the column itself says goes before it
    said: Marks = _UNMARKED  # what a person said of it, which goes before all
    type: str = ""  # the type that a person gave it; "" to be found out


_NO_HINTS = ColumnHints()


def infer_column(name: str, counts: Mapping[str, int], hints: ColumnHints = _NO_HINTS) -> TypedColumn:
    """Return the type of a column from its distinct cells and how often each occurs.

    Tried in order: boolean (true/false), number, date, timestamp, time (durations and times of day). Numbers with
    leading zeros or more than 18 digits are identifiers and stay text, and so do versions and numbers of several units.
    Notes say which values do not give their cells back when they are formatted.
    """
    present = {cell: count for cell, count in counts.items() if cell.strip().casefold() not in MISSING}
    cells = sum(count for cell, count in counts.items() if cell.strip())
    total = sum(present.values())
    marks = hints.said.over(marks_of(present)).over(hints.file)
    readers = (lambda cells, marks: _read_as(cells, marks, hints.type),) if hints.type else _READERS
    for read in readers if hints.type != "text" else ():
        values, type_, unit = read(present, marks) if total or hints.type else ({}, "text", "")
        failed = [cell for cell in present if cell not in values]
        failures = sum(present[cell] for cell in failed)
        if not hints.type and (not values or total - failures < TYPED_SHARE * total):
            continue
        quoted = not hints.plain_numbers and not hints.type
        if quoted and type_ in _NUMERIC and all(cell.strip().isdigit() for cell in values):
            break
        shown = tuple(sorted(failed, key=lambda cell: -present[cell])[:_EXAMPLES])
        order = (marks.days or "") if type_ in ("date", "timestamp") and any(map(is_slashed, values)) else ""
        notes = _conversion_notes({cell: present[cell] for cell in values}, values, type_, marks, unit)
        report = ColumnReport(
            name, type_, cells, cells - total, failures, shown, unit, order, notes, _find_other_spelling(values, type_)
        )
        return TypedColumn(report, values)

    def are_most(looks_so: Callable[[str], Any]) -> bool:
        return sum(count for cell, count in present.items() if looks_so(cell.strip())) >= TYPED_SHARE * total > 0

    unsure = _UNSURE if marks.days is None and are_most(is_slashed) else ""
    unsure = unsure or (_UNSURE_CLOCKS if are_most(_TWO_PART.fullmatch) else "")
    notes = () if hints.type else (unsure,) if unsure else _codes_note(present)
    return TypedColumn(ColumnReport(name, "text", cells, notes=notes))


_UNSURE = (
    "kept as text, because day and month cannot be told apart: set "
    "`days = " + " or ".join(f'"{order}"' for order in ORDERS) + "` in the schema file"
)

_UNSURE_CLOCKS = (
    "kept as text, because minutes and seconds cannot be told from hours and minutes: for these, set "
    '`type = "interval"` in the schema file'
)


def find_code(cells: Iterable[str]) -> str:
    """Return a cell that shows that numbers are codes: 1.10 beside 1.9 (versions), 1E5 beside 101 (rooms), +41."""
    written = [cell.strip() for cell in cells]
    if all(map(_DIALLED.match, written)):
        return written[0]
    rooms = [cell for cell in written if not cell.isdigit() and _ROOM.fullmatch(cell)]
    if rooms and (len(rooms) < len(written) or "E" in rooms[0]):
        return rooms[0]
    ends = [found[1] for cell in written if (found := _VERSION.fullmatch(cell))]
    padded = [cell for cell in written if cell.endswith("0") and not cell.endswith(".0")]
    return padded[0] if padded and len(ends) == len(written) and len(set(map(len, ends))) > 1 else ""


def _codes_note(cells: Mapping[str, int]) -> tuple[str, ...]:
    code = find_code(cells) if sum(parse_quantity(c) is not None for c in cells) >= TYPED_SHARE * len(cells) > 0 else ""
    fix = 'if these are numbers, say `type = "double precision"` in the schema file'
    note = f"kept as text, because as a number {code!r} could not be told from other spellings; {fix}"
    return (note,) if code else ()


def _conversion_notes(
    cells: Mapping[str, int], values: Mapping[str, Any], type_: str, marks: Marks, unit: str
) -> tuple[str, ...]:
    """Say what formatting the values does not give back, with one cell each."""
    notes = []
    moment = type_ in ("date", "timestamp")
    if moment and any(with_full_year(cell) != cell for cell in cells):
        notes.append(TWO_DIGIT_YEARS)
    if type_ in _NUMERIC and marks.decimal == "," and any("," in c or "." in c for c in cells):
        notes.append("the comma is the decimal mark")
    if offsets := {found["offset"] for cell in cells if moment and (found := _OFFSET.fullmatch(cell.strip()))}:
        shown = " and ".join(sorted(offsets)[:_EXAMPLES])
        notes.append(f"times are kept as their clocks show them; the offset from UTC ({shown}) is left out")
    changed = []
    if type_ == "double precision":
        changed = [cell for cell in cells if _loses_digits(cell, values[cell], marks)]
    elif type_ == "timestamp":
        changed = [cell for cell in cells if _NANOSECONDS.search(cell)]
    of = f"of {sum(cells.values()):,} cells"
    bare = [cell for cell in cells if unit and values[cell] and unit not in cell and "per" not in cell.casefold()]
    if bare:
        notes.append(f"{sum(map(cells.__getitem__, bare)):,} {of} lack the {unit} of others, and are read alike")
    if type_ in _NUMERIC and not unit and (scaled := next(filter(_SCALED.search, cells), "")):
        notes.append(f"letters behind numbers are scales: {scaled.strip()!r} is {values[scaled]:,}")
    if changed:
        count = sum(cells[cell] for cell in changed)
        notes.append(f"{count:,} {of} have more digits than their values, as {changed[0]!r}")
    if type_ == "double precision":
        digits = {cell: found[1] for cell in cells if (found := _FRACTION_DIGITS.fullmatch(cell.strip()))}
        padded = [cell for cell, shown in digits.items() if len(shown) > 1 and shown.endswith("0")]
        if padded and len(set(map(len, digits.values()))) > 1:
            count = sum(cells[cell] for cell in padded)
            notes.append(f"{count:,} {of} end in zeros that values drop, as {padded[0]!r}")
    return tuple(notes)


def _loses_digits(cell: str, value: float, marks: Marks) -> bool:
    if len(cell) <= _SURE_DIGITS:
        return False
    read = parse_quantity(cell, marks.decimal)
    return read is not None and Decimal(repr(value)) != read[0]


def _find_other_spelling(values: Mapping[str, Any], type_: str) -> str:
    """Return a cell that is written otherwise than its value is in a query: `2:13.32`, `$1,200`, `3 May 2021`."""
    plain = _PLAIN.get(type_)
    odd = (cell for cell in values if plain is not None and not plain.match(cell.strip()))
    return next(odd, "").strip()[:_WRITTEN]


def _read_as(cells: Mapping[str, int], marks: Marks, type_: str) -> tuple[dict[str, Any], str, str]:
    """Read cells as the type that a person gave the column: none is left as it is because it looks like another."""
    if type_ == "boolean":
        return _read_all(cells, parse_boolean), type_, ""
    if type_ in _NUMERIC:
        read = _read_all(cells, lambda cell: parse_quantity(cell, marks.decimal))
        units = {unit for _, unit in read.values()} - {""}
        numbers: dict[str, Any] = {cell: float(number) for cell, (number, _) in read.items()}
        if type_ == "bigint":
            whole = {cell: number for cell, (number, _) in read.items() if number == number.to_integral_value()}
            numbers = {cell: int(number) for cell, number in whole.items() if abs(number) < _BEYOND_BIGINT}
        return numbers, type_, units.pop() if len(units) == 1 else ""
    if type_ in ("time", "interval"):
        spans = _times(cells, marks, said=True)[0]
        day = timedelta(days=1)
        return {cell: span for cell, span in spans.items() if type_ == "interval" or span < day}, type_, ""
    return (_dates if type_ == "date" else _timestamps)(cells, marks)


def _booleans(cells: Mapping[str, int], _marks: Marks) -> tuple[dict[str, Any], str, str]:
    truth = {"true": True, "false": False}
    return {c: truth[c.strip().casefold()] for c in cells if c.strip().casefold() in truth}, "boolean", ""


def _numbers(cells: Mapping[str, int], marks: Marks) -> tuple[dict[str, Any], str, str]:
    """Read numbers; none at all where the column looks like identifiers or mixes units."""
    if all(len(cell) <= _SURE_DIGITS and cell.isdigit() and cell.isascii() and cell[0] != "0" for cell in cells):
        return {cell: int(cell) for cell in cells}, "bigint", ""
    if any(_LEADING_ZERO.fullmatch(cell.strip()) for cell in cells) or find_code(cells):
        return {}, "text", ""
    read = _read_all(cells, lambda cell: parse_quantity(cell, marks.decimal))
    units = {unit for _, unit in read.values()} - {""}
    whole = all(number == number.to_integral_value() for number, _ in read.values())
    if len(units) > 1 or (whole and any(abs(number) >= Decimal(10) ** 18 for number, _ in read.values())):
        return {}, "text", ""
    convert: Callable[[Decimal], Any] = int if whole else float
    type_ = "bigint" if whole else "double precision"
    return {cell: convert(number) for cell, (number, _) in read.items()}, type_, "".join(units)


def _dates(cells: Mapping[str, int], marks: Marks) -> tuple[dict[str, Any], str, str]:
    return _read_all(cells, lambda cell: parse_date(with_full_year(cell), marks.days)), "date", ""


def _timestamps(cells: Mapping[str, int], marks: Marks) -> tuple[dict[str, Any], str, str]:
    def parse(cell: str) -> Any:
        cell = with_full_year(cell)
        # A moment is what its clock shows: in UTC it may lie on another day.
        found = _OFFSET.fullmatch(cell.strip()) if "+" in cell or "-" in cell else None
        return parse_timestamp(found["clock"] if found else cell, marks.days)

    return _read_all(cells, parse), "timestamp", ""


def _times(cells: Mapping[str, int], _marks: Marks, *, said: bool = False) -> tuple[dict[str, Any], str, str]:
    """Read times; "2:13" is minutes and seconds where other cells of the column have fractions ("2:13.32").

    So it is where some are no times of day ("58:10") and others have hours ("1:02:13"); if nothing tells, a column of
    them is one of hours and minutes where its type is `said`, else text. "5 m" may be metres if no other unit tells.
    """
    written = [cell.strip() for cell in cells]
    unsure = any(map(_NO_CLOCK.fullmatch, written))
    clocks = any(map(_FRACTION.fullmatch, written)) or (unsure and any(map(_THREE_PART.fullmatch, written)))
    if unsure and not (said or clocks):
        return {}, "text", ""
    if not said and not any(map(_SPAN.search, written)):
        cells = {cell: count for cell, count in cells.items() if not _METRES.fullmatch(cell.strip())}
    spans: dict[str, timedelta] = {}
    for cell in cells:
        two = _TWO_PART.fullmatch(cell.strip())
        moment = None if two else parse_time(cell)
        span = parse_duration(f"{cell.strip()}:00" if two and not clocks else cell)
        span = span if moment is None else datetime.combine(_DAY, moment) - _MIDNIGHT
        if span is not None:
            spans[cell] = span
    if any(span >= timedelta(days=1) for span in spans.values()):
        return dict(spans), "interval", ""
    return dict(spans), "time", ""


def _read_all(cells: Mapping[str, int], parse: Callable[[str], Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for cell in until_cancelled(cells):
        value = parse(cell)
        if value is not None:
            values[cell] = value
    return values


_READERS = (_booleans, _numbers, _dates, _timestamps, _times)
