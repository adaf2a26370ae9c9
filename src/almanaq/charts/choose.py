"""Chooses the chart that shows a result best, and draws the one of the columns that a person chose."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, get_args

import pyarrow as pa

from almanaq.charts.chart import Chart, choose_bins
from almanaq.charts.columns import (
    MOST_BARS,
    MOST_COLOURS,
    Column,
    Role,
    describe_left_out,
    draw_marks,
    order_marks,
    read_column,
    sort_bars,
    thin_marks,
)
from almanaq.display import cell_text, label_column
from almanaq.errors import UsageError

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
    if table.num_rows >= _LEAST_CLOUD:  # a number that is the same in all of so many rows shows nothing
        measures = [each for each in measures if len(set(each.values)) > 1]
    if not measures or table.num_rows == 0:
        return None
    if table.num_rows == 1:
        value = measures[0].values[0]
        name, others = measures[0].name, [other for other in columns if other is not measures[0]]
        if len(measures) > 1 or value is None or any(each.role in ("time", "order") for each in columns[1:]):
            return None  # with dates behind a name, the number may be the lesser part of the answer
        beside = ", ".join(f"{label_column(other.name)} {cell_text(other.values[0], 60)}" for other in others)
        said = title or ", ".join(filter(None, (label_column(name), beside)))
        return Chart("number", name, (name,), ({"x": "", "y": value},), title=said, note=beside if title else "")
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
    across, up = chosen.titles
    by = label_column(chosen.colour) if chosen.kind == "share" else across
    return replace(chosen, title=title or f"{up or 'number of rows'} by {by}")


def _settle_orders(columns: Sequence[Column]) -> list[Column]:
    """Decide which numbers are places in an order: those that rows are grouped by, and hours, months and the like.

    Where places come more than once, and no category tells the rows apart, they are but numbers or names. Names of rows
    come first: beside them numbers are no places, and a rank is only the order of the bars.
    """
    named = any(column.role == "category" and column.unique for column in columns)
    grouped = any(column.aggregate and len(column.values) > 1 for column in columns if column.role == "measure")
    settled = []
    for column in columns:
        if named and column.rank:
            continue
        is_key = grouped and not named and column.role == "measure" and column.whole and not column.aggregate
        role: Role = "order" if is_key else column.role
        others = [other for other in columns if other is not column and (other.role == "category" or other.whole)]
        if role == "order" and not (column.unique or any(_pairs_unique(column, other) for other in others)):
            role = "measure" if column.whole else "category"
        settled.append(replace(column, role=role))
    return settled


def _over_order(along: Column, others: Sequence[Column], measures: Sequence[Column]) -> Chart | None:
    measure = _intended(measures)
    apart = next((other for other in others if _pairs_unique(along, other)), None)
    distinct = len(set(along.values))
    trend = distinct >= along.least_trend
    if along.unique:
        drawn = _alike(measures) if trend else [measure]
        if not drawn:
            return None
        chart = draw_marks("line" if trend else "bar", along, drawn)
        chart = replace(chart, colour="" if len(drawn) == 1 else "measure")
    elif apart is not None:
        chart = draw_marks("line" if trend else "stacked" if measure.additive else "bar", along, [measure], apart)
    elif along.role == "time" and len(along.values) >= _LEAST_CLOUD:
        return thin_marks(replace(draw_marks("point", along, [measure]), temporal=along.temporal))
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
    chart = draw_marks("bar", category, [measure])
    sizes = [mark["y"] for mark in chart.marks]
    if loose and len(sizes) >= _LEAST_LIST and min(sizes) > _ALIKE * max(sizes):
        return None  # names that happen to have a number
    if len(sizes) < 2:
        return None
    whole = math.isclose(sum(sizes), 1, abs_tol=0.011) or math.isclose(sum(sizes), 100, abs_tol=1.1)
    if whole and _SHARE.search(measure.words) and len(sizes) <= MOST_COLOURS:  # told apart by colour
        parts = tuple({"x": measure.name, "y": mark["y"], "colour": mark["x"]} for mark in chart.marks)
        return replace(chart, kind="share", x=measure.name, marks=parts, colour=category.name)
    return sort_bars(chart)


def _in_parts(first: Column, second: Column, measure: Column) -> Chart | None:
    category, apart = sorted((first, second), key=lambda each: -len(set(each.values)))
    colours = len(set(apart.values))
    if colours > MOST_COLOURS or len(set(category.values)) > MOST_BARS:
        return None
    if not measure.additive and colours * len(set(category.values)) > MOST_BARS:
        return None
    return sort_bars(draw_marks("stacked" if measure.additive else "bar", category, [measure], apart))


def _numbers_alone(measures: Sequence[Column], labels: Sequence[Column]) -> Chart | None:
    if len(measures) == 1:
        return _histogram(measures[0])
    if _is_grouped(measures[1:]) and measures[0].unique and _sorted(measures[0].values):
        return thin_marks(draw_marks("line", measures[0], measures[1:2]))
    return _cloud(measures[0], measures[1], labels[0] if labels else None)


def _cloud(first: Column, second: Column, label: Column | None) -> Chart | None:
    chart = draw_marks("point", first, [second], label=label)
    return None if len(chart.marks) < _LEAST_CLOUD else thin_marks(chart)


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


def _is_grouped(columns: Sequence[Column]) -> bool:
    return any(column.aggregate for column in columns)


def _intended(measures: Sequence[Column]) -> Column:
    return next((measure for measure in measures if _sorted(measure.values)), measures[0])


def _alike(measures: Sequence[Column]) -> list[Column]:
    """Return the numbers that one axis can hold, at most three: those as large as the first.

    Else the one that the rows are sorted by; none where that is not known, as all of them may be asked for.
    """
    size = [max((abs(value) for value in m.values if value is not None), default=0) for m in measures]
    if len(measures) == 1 or (len(measures) <= 3 and size[0] and all(0.1 <= each / size[0] <= 10 for each in size)):
        return list(measures)
    return [measure for measure in measures if _sorted(measure.values)][:1]


def _sorted(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    if len(known) < 3 or known[0] == known[-1]:
        return False
    return all(a <= b for a, b in pairwise(known)) or all(a >= b for a, b in pairwise(known))


def _pairs_unique(first: Column, second: Column) -> bool:
    return len(set(zip(first.values, second.values, strict=True))) == len(first.values)


DrawnKind = Literal["bar", "line", "point", "stacked"]


def draw_columns(table: pa.Table, kind: DrawnKind, x: str, y: str, colour: str = "", title: str = "") -> Chart:
    """Return the chart of the columns `x` and `y`, with `colour` telling rows apart where it is given.

    Raises:
        UsageError: there is no such column, `y` holds no numbers, bars and lines have several rows for a place, a line
            would connect names, or there are more bars than can be read.

    >>> table = pa.table({"breed": ["Pug", "Boxer"], "age": [7, 3]})
    >>> draw_columns(table, "bar", "breed", "age").marks
    ({'x': 'Pug', 'y': 7}, {'x': 'Boxer', 'y': 3})
    """
    along, measure = _read(table, x), _read(table, y)
    if any(isinstance(value, str) for value in measure.values):
        raise UsageError(f"{y} holds no numbers: choose another column to go up")
    if kind == "line" and along.role in ("category", "label"):
        raise UsageError(f"a line connects times or numbers, and {x} holds names: choose bars or points")
    chart = draw_marks(kind, along, [measure], _read(table, colour) if colour else None)
    chart = replace(chart, title=title or f"{y} by {x}", temporal=along.temporal)
    places = {(mark["x"], mark.get("colour")) for mark in chart.marks}
    if kind != "point" and len(places) < len(chart.marks):
        raise UsageError(f"several rows have the same {x}: choose points, or a colour that tells them apart")
    if not chart.marks:
        raise UsageError(f"no row has both {x} and {y}")
    if kind == "point" and (along.temporal or along.role == "measure"):
        return thin_marks(chart)
    if along.role == "category" and kind in ("bar", "stacked"):
        return sort_bars(chart)
    ordered = order_marks(chart, along)
    if kind in ("bar", "stacked") and len(ordered.order) > MOST_BARS:
        raise UsageError(f"{len(ordered.order):,} bars cannot be read: choose a line or points")
    return thin_marks(ordered)


def drawable_kinds(table: pa.Table, x: str, y: str, colour: str = "") -> list[DrawnKind]:
    """Return the kinds that `draw_columns` draws of these columns; bars have parts only where there is a colour."""
    found: list[DrawnKind] = []
    for kind in get_args(DrawnKind):
        with suppress(UsageError):
            draw_columns(table, kind, x, y, colour)
            found += [kind] if colour or kind != "stacked" else []
    return found


def _read(table: pa.Table, name: str) -> Column:
    if name not in table.column_names:
        raise UsageError(f"the result has no column {name!r}")
    return read_column(name, table.column(name))
