"""Draws a chart as lines of text: bars of blocks, points of Braille."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from almanaq.charts.drawing import Drawing, format_figure
from almanaq.display import cell_text

_MOST_BARS = 30
"""Lines of a bar each; a longer line chart is drawn as dots."""


def draw_chart(chart: Drawing, width: int) -> list[str]:
    """Return the lines, of at most `width` characters."""
    if chart.kind == "number":
        return [f"{format_figure(chart.marks[0]['y'])}  {cell_text(chart.title, width)}"]
    if chart.kind == "heatmap":
        return _draw_map(chart)
    if chart.kind == "point" or (chart.kind == "line" and len(chart.marks) > _MOST_BARS):
        return _draw_dots(chart, width)
    return _draw_bars(chart, width)


def _draw_bars(chart: Drawing, width: int) -> list[str]:
    """Draw a bar a line, each from zero."""
    place = "colour" if chart.kind == "share" else "x"
    names = [_label_of(chart, mark, place) for mark in chart.marks]
    figures = [format_figure(mark["y"]) for mark in chart.marks]
    wide = min(max(map(len, names)), max(10, width // 3))
    room = max(4, width - wide - max(map(len, figures)) - 2)
    bars = draw_bars([mark["y"] for mark in chart.marks], room)
    lines = zip(names, bars, figures, strict=True)
    return [" ".join(filter(None, (f"{cell_text(name, wide):{wide}}", bar, figure))) for name, bar, figure in lines]


def draw_bars(values: Sequence[Any], width: int) -> list[str]:
    """Return a bar for each number, the longest of `width` characters; negative ones are of other blocks."""
    known = [float(value) if _is_finite(value) else 0.0 for value in values]
    most = max(map(abs, known), default=0) or 1.0
    return [_draw_bar(value / most * width) for value in known]


def _is_finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _draw_bar(length: float) -> str:
    if length < 0:
        return "░" * round(-length)
    return ("█" * int(length) + " ▏▎▍▌▋▊▉"[int(length % 1 * 8)]).rstrip()


def _label_of(chart: Drawing, mark: dict[str, Any], place: str) -> str:
    if chart.kind == "histogram":
        return f"{format_figure(mark['x'])} to {format_figure(mark['x2'])}"
    name = str(mark[place]).removesuffix("T00:00:00Z").removesuffix("Z") if chart.temporal else str(mark[place])
    return f"{name} · {mark['colour']}" if chart.colour and place == "x" else name


def _draw_dots(chart: Drawing, width: int, height: int = 12) -> list[str]:
    """Draw marks as dots of Braille, with the ends of both axes written."""
    marks = chart.marks
    numeric = all(isinstance(mark["x"], int | float) for mark in marks)
    places = {value: number for number, value in enumerate(sorted({mark["x"] for mark in marks}))}
    xs = [mark["x"] if numeric else places[mark["x"]] for mark in marks]
    ys = [mark["y"] for mark in marks]
    low, high = (pick([*ys, *[0] * chart.from_zero]) for pick in (min, max))
    ends = [format_figure(high), format_figure(low)]
    left = max(map(len, ends))
    across, up = max(10, width - left - 2), height
    dots = [[0] * across for _ in range(up)]
    for x, y in zip(xs, ys, strict=True):
        column = round((x - min(xs)) / ((max(xs) - min(xs)) or 1) * (2 * across - 1))
        row = round((high - y) / ((high - low) or 1) * (4 * up - 1))
        dots[row // 4][column // 2] |= (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)[row % 4 + 4 * (column % 2)]
    side = [ends[0], *[""] * (up - 2), ends[1]]
    lines = [
        f"{name:>{left}} │{''.join(chr(0x2800 + dot) for dot in line)}" for name, line in zip(side, dots, strict=True)
    ]
    first, last = (cell_text(pick(mark["x"] for mark in marks), across // 2 - 1) for pick in (min, max))
    return [*lines, f"{'':{left}}  {first}{last:>{across - len(first)}}"]


def _draw_map(chart: Drawing) -> list[str]:
    """Draw counts by place as shades, the highest values on top."""
    across, up = (sorted({mark[axis] for mark in chart.marks}) for axis in ("x", "y"))
    counts = {(mark["x"], mark["y"]): mark["colour"] for mark in chart.marks}
    most = max(counts.values())
    left = max(len(format_figure(value)) for value in (up[0], up[-1]))
    lines = []
    for y in reversed(up):
        side = format_figure(y) if y in (up[0], up[-1]) else ""
        shades = (" ░▒▓█"[math.ceil(4 * counts.get((x, y), 0) / most)] for x in across)
        lines.append(f"{side:>{left}} │{''.join(shades)}")
    return [*lines, f"{'':{left}}  {format_figure(across[0])} … {format_figure(across[-1])}"]
