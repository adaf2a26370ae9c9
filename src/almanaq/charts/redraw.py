"""Draws the columns of a result that a person chose, as the chart that they chose."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from almanaq.charts.chart import Chart
from almanaq.charts.columns import Column, read_column
from almanaq.charts.marks import MOST_BARS, gather_marks, order_marks, sort_bars, thin_marks
from almanaq.errors import UsageError

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
    apart = _read(table, colour) if colour else None
    marks = gather_marks(along, [measure], apart)
    places = {(mark["x"], mark.get("colour")) for mark in marks.kept}
    if kind != "point" and len(places) < len(marks.kept):
        raise UsageError(f"several rows have the same {x}: choose points, or a colour that tells them apart")
    if not marks.kept:
        raise UsageError(f"no row has both {x} and {y}")
    chart = Chart(kind, x, (y,), marks.kept, colour, title or f"{y} by {x}", marks.note, temporal=along.temporal)
    if kind == "point" and (along.temporal or along.role == "measure"):
        return thin_marks(chart)
    if along.role == "category" and kind in ("bar", "stacked"):
        return sort_bars(chart)
    ordered = order_marks(chart, along)
    if kind in ("bar", "stacked") and len(ordered.order) > MOST_BARS:
        raise UsageError(f"{len(ordered.order):,} bars cannot be read: choose a line or points")
    return thin_marks(ordered)


def _read(table: pa.Table, name: str) -> Column:
    if name not in table.column_names:
        raise UsageError(f"the result has no column {name!r}")
    return read_column(name, table.column(name))
