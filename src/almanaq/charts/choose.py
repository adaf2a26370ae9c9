"""Chooses the chart that shows a result best, from the columns, their types and their values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from almanaq.charts.chart import Chart
from almanaq.charts.columns import Column, Role, read_column
from almanaq.charts.drawing import Kind, choose_bins
from almanaq.charts.marks import (
    MOST_BARS,
    MOST_COLOURS,
    describe_left_out,
    gather_marks,
    order_marks,
    sort_bars,
    thin_marks,
)
from almanaq.display import cell_text, label_column

_LEAST_CLOUD = 10
"""Points below which there is nothing to see."""
_ALIKE = 0.5
"""Bars of which the shortest is more than this part of the longest look alike."""
_LEAST_LIST = 8
"""Rows from which on names are a list rather than a comparison."""
_MOST_RECORD = 6
"""Columns beyond which rows that no query has grouped are records to be read."""
_SHARE = re.compile(r"\b(?:share|percent|percentage|pct|proportion|fraction)\b|%")


def choose_chart(table: pa.Table, title: str = "") -> Chart | None:
    """Return the chart that shows a result best; None where a table does.

    Time against a number is a line, categories against a number are bars, two numbers are points, shares of a whole are
    one bar in parts, and one number is itself. Rows without the number that is drawn are left out, and counted in the
    note; what is too much to be read is summed up or cut, and the note says so.
    """
    columns = [read_column(name, table.column(place)) for place, name in enumerate(table.column_names)]
    if table.num_columns > _MOST_RECORD and not _is_grouped(columns):
        return None
    columns = _settle_orders(columns)
    measures = [column for column in columns if column.role == "measure"]
    if not measures or table.num_rows == 0:
        return None
    if table.num_rows == 1:
        return _number(columns, measures[0], title) if len(measures) == 1 else None
    along = [column for column in columns if column.role in ("time", "order")]
    categories = [column for column in columns if column.role == "category"]
    if not categories and _is_grouped(measures):
        categories = [column for column in columns if column.role == "label" and column.unique]
    # Rows that are things, each with its date, are told apart by their names.
    things = bool(categories) and categories[0].unique and not _is_grouped(measures)
    chosen: Chart | None
    if along and not things:
        chosen = _over_order(along[0], categories or along[1:], measures)
    elif categories:
        chosen = _by_category(categories, measures)
    else:
        chosen = _numbers_alone(measures, labels=[column for column in columns if column.role == "label"])
    if chosen is None or len(chosen.marks) < 2:
        return None
    return replace(chosen, title=title or _title_of(chosen))


def _settle_orders(columns: Sequence[Column]) -> list[Column]:
    """Decide which numbers are places in an order: those that rows are grouped by, and hours, months and the like.

    Where places come more than once, and no category tells the rows apart, they are but numbers or names.
    """
    grouped = any(column.aggregate for column in columns if column.role == "measure")
    settled = []
    for column in columns:
        is_key = grouped and column.role == "measure" and column.whole and not column.aggregate
        role: Role = "order" if is_key else column.role
        others = [other for other in columns if other is not column and (other.role == "category" or other.whole)]
        if role == "order" and not (column.unique or any(_pairs_unique(column, other) for other in others)):
            role = "measure" if column.whole else "category"
        settled.append(replace(column, role=role))
    return settled


def _number(columns: Sequence[Column], measure: Column, title: str) -> Chart | None:
    value = measure.values[0]
    if value is None:
        return None
    beside = [
        f"{label_column(other.name)} {cell_text(other.values[0], 60)}" for other in columns if other is not measure
    ]
    named = ", ".join([label_column(measure.name), *beside])
    return Chart("number", measure.name, (measure.name,), ({"x": "", "y": value},), title=title or named)


def _over_order(along: Column, others: Sequence[Column], measures: Sequence[Column]) -> Chart | None:
    """Draw what changes along a time or another order: a line where there are enough of them, else bars."""
    measure = _intended(measures)
    apart = next((other for other in others if _pairs_unique(along, other)), None)
    distinct = len(set(along.values))
    trend = distinct >= along.least_trend
    if along.unique:
        drawn = _alike(measures) if trend else [measure]
        marks = gather_marks(along, drawn)
        chart = Chart("line" if trend else "bar", along.name, _names(drawn), marks.kept, note=marks.note)
        chart = replace(chart, colour="" if len(drawn) == 1 else "measure")
    elif apart is not None:
        marks = gather_marks(along, [measure], apart)
        kind: Kind = "line" if trend else "stacked" if measure.additive else "bar"
        chart = Chart(kind, along.name, (measure.name,), marks.kept, apart.name, note=marks.note)
    elif along.role == "time" and len(along.values) >= _LEAST_CLOUD:
        marks = gather_marks(along, [measure])
        return thin_marks(
            Chart("point", along.name, (measure.name,), marks.kept, note=marks.note, temporal=along.temporal)
        )
    else:
        return None
    return thin_marks(order_marks(chart, along))


def _by_category(categories: Sequence[Column], measures: Sequence[Column]) -> Chart | None:
    measure, category = _intended(measures), categories[0]
    for other in categories[1:]:
        if not category.unique and _pairs_unique(category, other):
            return _in_parts(category, other, measure)
    if not category.unique:
        category = next((other for other in categories if other.unique), category)
    if not category.unique:
        return None
    ranked = _sorted(measure.values)
    loose = not ranked and not _is_grouped(measures)
    if len(measures) > 1 and loose and len(category.values) >= _LEAST_LIST:
        return _cloud(measures[0], measures[1], category)
    if len(category.values) > 2 * MOST_BARS and not ranked:
        return None  # too many to be cut at a place that means something
    marks = gather_marks(category, [measure])
    sizes = [mark["y"] for mark in marks.kept]
    if loose and len(sizes) >= _LEAST_LIST and min(sizes) > _ALIKE * max(sizes):
        return None  # names that happen to have a number
    if len(sizes) < 2:
        return None
    if _is_whole(measure, marks.kept):
        parts = tuple({"x": measure.name, "y": mark["y"], "colour": mark["x"]} for mark in marks.kept)
        return Chart("share", measure.name, (measure.name,), parts, category.name, note=marks.note)
    return sort_bars(Chart("bar", category.name, (measure.name,), marks.kept, note=marks.note))


def _in_parts(first: Column, second: Column, measure: Column) -> Chart | None:
    """Draw a number by two categories: bars in parts where the parts add up, else bars side by side."""
    category, apart = sorted((first, second), key=lambda each: -len(set(each.values)))
    colours = len(set(apart.values))
    if colours > MOST_COLOURS or len(set(category.values)) > MOST_BARS:
        return None
    if not measure.additive and colours * len(set(category.values)) > MOST_BARS:
        return None
    marks = gather_marks(category, [measure], apart)
    kind: Kind = "stacked" if measure.additive else "bar"
    return sort_bars(Chart(kind, category.name, (measure.name,), marks.kept, apart.name, note=marks.note))


def _numbers_alone(measures: Sequence[Column], labels: Sequence[Column]) -> Chart | None:
    if len(measures) == 1:
        return _histogram(measures[0])
    if _is_grouped(measures[1:]) and measures[0].unique and _sorted(measures[0].values):
        marks = gather_marks(measures[0], measures[1:2])
        return thin_marks(Chart("line", measures[0].name, (measures[1].name,), marks.kept, note=marks.note))
    return _cloud(measures[0], measures[1], labels[0] if labels else None)


def _cloud(first: Column, second: Column, label: Column | None) -> Chart | None:
    marks = gather_marks(first, [second], label=label)
    if len(marks.kept) < _LEAST_CLOUD:
        return None
    return thin_marks(Chart("point", first.name, (second.name,), marks.kept, note=marks.note))


def _histogram(measure: Column) -> Chart | None:
    values = [value for value in measure.values if isinstance(value, int | float)]
    if len(values) < 10 or min(values) == max(values):
        return None
    bins = choose_bins(values, min(20, max(5, round(math.sqrt(len(values))))))
    counts: dict[float, int] = {}
    for value in values:
        counts[bins(value)] = counts.get(bins(value), 0) + 1
    step = bins.step
    marks = tuple({"x": start, "x2": start + step, "y": counts[start]} for start in sorted(counts))
    left = len(measure.values) - len(values)
    return Chart("histogram", measure.name, (), marks, note=describe_left_out(left, "without a number"))


def _is_whole(measure: Column, marks: Sequence[dict[str, Any]]) -> bool:
    """Whether the numbers are the shares of one whole, few enough to be told apart by colour."""
    total = sum(mark["y"] for mark in marks)
    whole = math.isclose(total, 1, abs_tol=0.011) or math.isclose(total, 100, abs_tol=1.1)
    return bool(_SHARE.search(measure.words)) and whole and len(marks) <= MOST_COLOURS


def _is_grouped(columns: Sequence[Column]) -> bool:
    return any(column.aggregate for column in columns)


def _intended(measures: Sequence[Column]) -> Column:
    """Return the number that was asked about: the one by which the rows are sorted, else the first."""
    return next((measure for measure in measures if _sorted(measure.values)), measures[0])


def _alike(measures: Sequence[Column]) -> list[Column]:
    """Return the numbers that one axis can hold, at most three: those as large as the first."""
    size = [max((abs(value) for value in m.values if value is not None), default=0) for m in measures]
    if not size[0] or len(measures) > 3:
        return [_intended(measures)]
    alike = [measure for measure, most in zip(measures, size, strict=True) if most and 0.1 <= most / size[0] <= 10]
    return alike if len(alike) == len(measures) else [_intended(measures)]


def _sorted(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    if len(known) < 3 or known[0] == known[-1]:
        return False
    return all(a <= b for a, b in pairwise(known)) or all(a >= b for a, b in pairwise(known))


def _pairs_unique(first: Column, second: Column) -> bool:
    return len(set(zip(first.values, second.values, strict=True))) == len(first.values)


def _names(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _title_of(chart: Chart) -> str:
    across, up = chart.titles
    return f"{up or 'number of rows'} by {label_column(chart.colour) if chart.kind == 'share' else across}"
