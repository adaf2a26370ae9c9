"""Makes the marks of a chart from the rows, in order, and sums up or leaves out what is too much to be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from almanaq.charts.chart import Chart
from almanaq.charts.columns import Column, place_in_order
from almanaq.charts.drawing import choose_bins
from almanaq.display import cell_text

MOST_MARKS, MOST_BARS, MOST_COLOURS = 5_000, 30, 8
"""Marks of a chart; bars, of which more cannot be read; colours that are told apart."""
_BINS = 40


@dataclass(frozen=True)
class Marks:
    """The marks, and what became of the rows that have none."""

    kept: tuple[dict[str, Any], ...]
    note: str


def gather_marks(
    along: Column, measures: Sequence[Column], apart: Column | None = None, label: Column | None = None
) -> Marks:
    """Return a mark for each row and measure; rows that have no place or no number are counted."""
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
    return Marks(tuple(marks), note)


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
        marks = tuple(mark for line in _lines_of(chart) for mark in _average(line, size))
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


def _lines_of(chart: Chart) -> list[list[dict[str, Any]]]:
    lines: dict[Any, list[dict[str, Any]]] = {}
    for mark in chart.marks:
        lines.setdefault(mark.get("colour"), []).append(mark)
    return list(lines.values())


def _average(line: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    stretches = [line[start : start + size] for start in range(0, len(line), size)]
    return [stretch[0] | {"y": sum(mark["y"] for mark in stretch) / len(stretch)} for stretch in stretches]
