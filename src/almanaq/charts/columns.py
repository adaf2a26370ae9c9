"""Reads the columns of a result as a chart sees them, and makes marks of its rows, few enough to be read."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from almanaq.charts.chart import Chart, Kind, choose_bins
from almanaq.display import cell_text

Role = Literal["time", "order", "category", "measure", "label"]

_PROSE = 40
"""Mean length from which on texts are prose."""
_IDENTIFIER = frozenset(
    "id ids key code zip zipcode postcode plz phone isbn ean sku uuid lat lon lng latitude longitude".split()
)
_YEAR = frozenset("year yr jahr annee année año anno decade".split())
_CYCLE = frozenset("month hour week minute monat stunde woche".split())
"""What comes around: drawn as a line where there are enough of it."""
_ORDER = _CYCLE | set("day weekday dow quarter rating stars grade level floor step rank position bin bucket".split())
_RANK = frozenset("rank ranking place position placement".split())
_ADDITIVE = re.compile(r"\b(?:count|counts|sum|total|number|n|amount|revenue|sales|rows|\w+s)\b")
_AVERAGE = re.compile(r"\b(?:avg|average|mean|median|min|max|rate|share|percent)\b")
_AGGREGATE = re.compile(
    r"\b(?:count|sum|total|avg|average|mean|median|min|max|minimum|maximum|number|n|share|percent|rate)\b"
)
_PERIOD = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?|-?[QW]\d{1,2})")
_RANGE = re.compile(r"\s*[<>≤≥]?=?\s*(-?\d+(?:\.\d+)?)\s*(?:(?:-|–|to|bis)\s*-?\d+(?:\.\d+)?|\+|%)?\s*")
_MONTHS, _DAYS = (
    {name[:3]: number for number, name in enumerate(names.split())}
    for names in ("jan feb mar apr may jun jul aug sep oct nov dec", "mon tue wed thu fri sat sun")
)
_NAME_OF_TIME = re.compile(
    r"(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?\.?"
    r"|may|january|february|march|april|june|july|august|september|october|november|december"
)


@dataclass(frozen=True)
class Column:
    """A column, with the part that it can play in a chart.

    Attributes:
        role: `time` and `order` go along an axis in their own order, `category` does in any, `measure` is a number that
            is drawn, `label` is none of these: identifiers, prose, lists.
        values: numbers, texts, and dates in ISO 8601; None where there is nothing to draw.
        temporal: whether the values are dates or moments.
    """

    name: str
    role: Role
    values: list[Any]
    temporal: bool = False

    @property
    def unique(self) -> bool:
        """Whether no value comes twice."""
        return len(set(map(str, self.values))) == len(self.values)

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers only."""
        return all(isinstance(value, int) for value in self.values if value is not None)

    @property
    def words(self) -> str:
        """The words of its name, in lower case."""
        return _split_name(self.name)

    @property
    def additive(self) -> bool:
        """Whether a sum of its values says something: counts and totals, not averages."""
        known = [value for value in self.values if value is not None]
        return bool(_ADDITIVE.search(self.words)) and not _AVERAGE.search(self.words) and min(known, default=0) >= 0

    @property
    def aggregate(self) -> bool:
        """Whether its name says that a row stands for several."""
        return bool(_AGGREGATE.search(self.words))

    @property
    def rank(self) -> bool:
        """Whether it numbers the rows by their order, which a bar would turn upside down."""
        return self.words in _RANK and self.whole

    @property
    def least_trend(self) -> float:
        """From how many places on it is drawn as a line."""
        if self.role == "time":
            return 3
        months = all(str(value).strip().lower()[:3] in _MONTHS for value in self.values)
        return 6 if months or _CYCLE & set(self.words.split()) else math.inf


def read_column(name: str, column: pa.ChunkedArray) -> Column:
    """Return a column with its role, which type, name and values decide."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    words = set(_split_name(name).split())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        try:
            return Column(name, "time", [_moment(value) for value in column.to_pylist()], temporal=True)
        except (OverflowError, ValueError):  # infinity, and years that no axis has
            return Column(name, "label", [None] * len(column))
    if pa.types.is_boolean(kind):
        return Column(name, "category", [{True: "true", False: "false"}.get(v) for v in column.to_pylist()])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = [_read_number(value) for value in column.to_pylist()]
        whole = all(isinstance(value, int) for value in values if value is not None)
        role: Role = "order" if whole and words <= (_ORDER | {"of", "the"}) and words & _ORDER else "measure"
        if whole and words & _IDENTIFIER:
            role = "label"
        elif whole and words & _YEAR and all(value is None or 1000 <= value <= 2200 for value in values):
            role = "time"
        return Column(name, role, values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = column.to_pylist()
        return Column(name, _role_of_texts(words, texts), texts)
    return Column(name, "label", [None if value is None else cell_text(value) for value in column.to_pylist()])


def _role_of_texts(words: set[str], texts: Sequence[str | None]) -> Role:
    known = [text for text in texts if text is not None]
    if not known or words & _IDENTIFIER or sum(map(len, known)) > _PROSE * len(known):
        return "label"
    if all(map(_PERIOD.fullmatch, known)):
        return "time"
    return "order" if all(place_in_order(text) is not None for text in known) else "category"


def place_in_order(text: str) -> float | None:
    """Return where a month, a weekday or a range of numbers comes among its like; None for any other text."""
    name = text.strip().lower()
    if _NAME_OF_TIME.fullmatch(name):
        return float(_MONTHS.get(name[:3], _DAYS.get(name[:3], 0)))
    found = _RANGE.fullmatch(text)
    return float(found[1]) if found else None


def _read_number(value: Any) -> int | float | None:
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return int(value) if isinstance(value, int) else float(value)


def _moment(value: Any) -> str | None:
    """Write a date or moment so that JavaScript reads the wall clock, as UTC, on every machine."""
    if value is None:
        return None
    text = str(value.isoformat())
    return text if "T" not in text or re.search(r"[+-]\d\d:\d\d$", text) else f"{text}Z"


def _split_name(name: str) -> str:
    return re.sub(r"[\W_]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).strip().lower()


MOST_MARKS, MOST_BARS, MOST_COLOURS = 5_000, 30, 8
"""Marks of a chart; bars, of which more cannot be read; colours that are told apart."""
_BINS = 40


def draw_marks(
    kind: Kind, along: Column, measures: Sequence[Column], apart: Column | None = None, label: Column | None = None
) -> Chart:
    """Return a chart with a mark for each row and measure; its note counts rows that have no place or no number."""
    marks, left = [], 0
    for row, place in enumerate(along.values):
        for measure in measures:
            value = measure.values[row]
            if value is None or (place is None and along.role != "category"):
                left += 1
                continue
            mark = {"x": "(none)" if place is None else place, "y": value}
            if len(measures) > 1:
                mark["colour"] = measure.name
            if apart is not None:
                cell = apart.values[row]
                mark["colour"] = "(none)" if cell is None else str(cell)
            if label is not None and label.values[row] is not None:
                mark["label"] = cell_text(label.values[row], 80)
            marks.append(mark)
    note = describe_left_out(left, "without a value")
    if apart is not None and len({mark["colour"] for mark in marks}) > MOST_COLOURS:
        total: dict[str, float] = {}
        for mark in marks:
            total[mark["colour"]] = total.get(mark["colour"], 0) + abs(mark["y"])
        most = sorted(total, key=lambda name: -total[name])[:MOST_COLOURS]
        marks = [mark for mark in marks if mark["colour"] in most]
        note = join_notes(note, f"the {MOST_COLOURS} largest of {len(total):,} in {apart.name}")
    colour = "" if apart is None else apart.name
    return Chart(kind, along.name, tuple(each.name for each in measures), tuple(marks), colour, note=note)


def describe_left_out(count: int, why: str) -> str:
    """Say how many rows are not drawn; "" for none."""
    return f"{count:,} row{'' if count == 1 else 's'} {why} left out" if count else ""


def join_notes(*notes: str) -> str:
    """Return the notes that say something, as one."""
    return "; ".join(filter(None, notes))


def sort_bars(chart: Chart) -> Chart:
    """Put bars in the order of their size, and leave out what is too much to be read."""
    total: dict[Any, float] = {}
    for mark in chart.marks:
        total[mark["x"]] = total.get(mark["x"], 0) + mark["y"]
    rising = len(total) > 2 and list(total.values()) == sorted(total.values()) and not chart.colour
    order = list(total) if rising else sorted(total, key=lambda name: -total[name])
    if len(order) > MOST_BARS:
        note = join_notes(chart.note, f"the first {MOST_BARS} of {len(order):,}")
        order = order[:MOST_BARS]
        chart = replace(chart, marks=tuple(mark for mark in chart.marks if mark["x"] in order), note=note)
    places = {name: place for place, name in enumerate(order)}
    marks = sorted(chart.marks, key=lambda mark: places[mark["x"]])
    return replace(chart, marks=tuple(marks), order=tuple(order))


def order_marks(chart: Chart, along: Column) -> Chart:
    """Put marks in the order of a time, a number, or what has an order of its own; names stay as the rows have them."""

    def place(value: Any) -> Any:
        return (place_in_order(value) if along.role == "order" and isinstance(value, str) else value) or 0

    values = list(dict.fromkeys(mark["x"] for mark in chart.marks))
    if along.role not in ("category", "label"):
        values.sort(key=place)
    places = {value: number for number, value in enumerate(values)}
    marks = tuple(sorted(chart.marks, key=lambda mark: places[mark["x"]]))
    numeric = all(isinstance(value, int | float) for value in values)
    continuous = chart.kind == "line" and (along.temporal or numeric)
    order = () if continuous else tuple(values)
    return replace(chart, marks=marks, temporal=along.temporal and continuous, order=order)


def thin_marks(chart: Chart) -> Chart:
    """Sum up marks that are too many: points as counts by their place, lines as means of equal stretches."""
    count = len(chart.marks)
    if count <= MOST_MARKS:
        return chart
    if chart.kind == "line":
        size = math.ceil(count / MOST_MARKS)
        lines: dict[Any, list[dict[str, Any]]] = {}
        for mark in chart.marks:
            lines.setdefault(mark.get("colour"), []).append(mark)
        stretches = (line[start : start + size] for line in lines.values() for start in range(0, len(line), size))
        marks = tuple(part[0] | {"y": sum(mark["y"] for mark in part) / len(part)} for part in stretches)
        return replace(chart, marks=marks, note=join_notes(chart.note, f"means of {size} neighbours each of {count:,}"))
    if chart.temporal:
        return replace(
            chart, marks=chart.marks[:MOST_MARKS], note=join_notes(chart.note, f"{MOST_MARKS:,} of {count:,} rows")
        )
    across, up = (choose_bins([mark[axis] for mark in chart.marks], _BINS) for axis in ("x", "y"))
    counts: dict[tuple[float, float], int] = {}
    for mark in chart.marks:
        cell = across(mark["x"]), up(mark["y"])
        counts[cell] = counts.get(cell, 0) + 1
    marks = tuple(
        {"x": x, "x2": x + across.step, "y": y, "y2": y + up.step, "colour": n} for (x, y), n in sorted(counts.items())
    )
    return replace(chart, kind="heatmap", marks=marks, note=join_notes(chart.note, f"{count:,} rows, counted by place"))
