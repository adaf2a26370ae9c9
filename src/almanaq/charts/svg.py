"""Draws a chart as a still SVG picture: for pages without scripts, exported boards and files.

Words and lines take the colour of the page around them (`currentColor`), so they keep their contrast in the dark and
under forced colours. The picture is built as a tree of elements: a name or a cell can only become text.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from almanaq.charts.drawing import Drawing, choose_bins, format_figure
from almanaq.charts.vega_lite import COLOURS
from almanaq.display import cell_text

_WIDTH, _RIGHT, _NAMES, _FIGURES = 640, 616, 190, 70
"""Pixels: of the picture, where a plane ends, left of bars for their names, right of them for their figures."""
_BAR, _HEIGHT = 22, 240
_MOST_TICKS = 7


def draw_svg(chart: Drawing) -> str:
    """Return the chart as an SVG element, 640 pixels wide where nothing scales it."""
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "picture", "role": "img"})
    SubElement(root, "title").text = cell_text(chart.title, 120)
    SubElement(root, "desc").text = chart.describe()
    colours = (
        {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(_distinct(chart, "colour"))} if chart.colour else {}
    )
    top = _draw_legend(root, list(colours.items()))
    draw = {"bar": _draw_bars, "stacked": _draw_bars, "share": _draw_bars, "number": _draw_number}.get(
        chart.kind, _draw_plane
    )
    bottom = draw(root, chart, colours, top)
    root.set("viewBox", f"0 0 {_WIDTH} {bottom:g}")
    root.set("width", str(_WIDTH))
    return tostring(root, encoding="unicode")


def _distinct(chart: Drawing, field: str) -> list[Any]:
    return list(dict.fromkeys(mark.get(field, "") for mark in chart.marks))


def _add(root: Element, tag: str, **attributes: Any) -> Element:
    """Add an element; numbers are rounded to tenths of a pixel."""
    written = {name.replace("_", "-"): f"{v:.1f}" if isinstance(v, float) else str(v) for name, v in attributes.items()}
    return SubElement(root, tag, written)


def _write(root: Element, text: Any, x: float, y: float, anchor: str = "start", most: int = 40, size: int = 12) -> None:
    element = _add(root, "text", x=x, y=y, text_anchor=anchor, font_size=size, fill="currentColor")
    element.text = cell_text(text, most)


def _draw_legend(root: Element, colours: Sequence[tuple[Any, str]]) -> float:
    """Draw the names of the colours in lines; return where the space below them begins."""
    x, y = 0.0, 4.0
    for name, colour in colours:
        wide = 7 * min(len(str(name)), 40) + 30
        if x and x + wide > _WIDTH:
            x, y = 0.0, y + 18
        _add(root, "rect", x=x, y=y, width=12, height=12, fill=colour)
        _write(root, name, x + 17, y + 10)
        x += wide
    return y + 20 if colours else y


def _draw_number(root: Element, chart: Drawing, _: dict[Any, str], top: float) -> float:
    _write(root, format_figure(chart.marks[0]["y"]), 0, top + 38, size=40)
    return top + 50


def _draw_bars(root: Element, chart: Drawing, colours: dict[Any, str], top: float) -> float:
    """Draw lying bars from zero, in parts where they add up; several of a place lie below each other."""
    adds = chart.kind != "bar"
    bars: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for mark in chart.marks:
        bars.setdefault((mark["x"], None if adds else mark.get("colour")), []).append(mark)
    ends = [sum(mark["y"] for mark in parts) for parts in bars.values()]
    low, high = min(0, *ends), max(0, *ends)
    scale = (_WIDTH - _NAMES - _FIGURES) / ((high - low) or 1)
    y, before = top, None
    for ((place, _), parts), end in zip(bars.items(), ends, strict=True):
        if place != before:
            _write(root, place, _NAMES - 8, y + 15, "end", most=28)
        start = before_end = 0.0
        for mark in parts:
            before_end, start = start, start + mark["y"]
            left, right = sorted((before_end, start))
            at, fill = _NAMES + (left - low) * scale, colours.get(mark.get("colour"), COLOURS[0])
            _add(root, "rect", x=float(at), y=y + 2, width=float((right - left) * scale), height=_BAR - 4, fill=fill)
        _write(root, format_figure(end), _NAMES + (max(end, 0) - low) * scale + 4, y + 15)
        y, before = y + _BAR, place
    x = float(_NAMES - low * scale)
    _add(root, "line", x1=x, x2=x, y1=top, y2=y, stroke="currentColor")
    _write(root, chart.titles[1], _NAMES, y + 18, most=60)
    return y + 26


def _draw_plane(root: Element, chart: Drawing, colours: dict[Any, str], top: float) -> float:
    """Draw lines, points, or rectangles of bins between two axes."""
    place = _choose_place(chart)
    ups = [mark[field] for mark in chart.marks for field in ("y", "y2") if field in mark] + [0] * chart.from_zero
    steps = _choose_ticks(min(ups), max(ups))
    left, top, bottom = 14 + 7 * max(len(format_figure(step)) for step in steps), top + 20, top + 20 + _HEIGHT
    across = [place(mark[field]) for mark in chart.marks for field in ("x", "x2") if field in mark]
    first, wide = min(across), (max(across) - min(across)) or 1

    def at(mark: dict[str, Any], x: str = "x", y: str = "y") -> tuple[float, float]:
        up = (mark[y] - steps[0]) / (steps[-1] - steps[0])
        return left + 6 + (place(mark[x]) - first) / wide * (_RIGHT - left - 6), bottom - up * _HEIGHT

    for step in steps:
        y = at({"x": chart.marks[0]["x"], "y": step})[1]
        _add(root, "line", x1=left, x2=_RIGHT, y1=y, y2=y, stroke="currentColor", stroke_opacity=0.2)
        _write(root, format_figure(step), left - 6, y + 4, "end")
    for value in _choose_places(chart, min(across), max(across)):
        _write(root, _place_name(value), at({"x": value, "y": steps[0]})[0], bottom + 16, "middle", most=14)
    _write(root, chart.titles[1] or "number of rows", 0, top - 9, most=60)
    _write(root, chart.titles[0], _RIGHT, bottom + 34, "end", most=60)
    if chart.kind == "line":
        for name in _distinct(chart, "colour"):
            line = [at(mark) for mark in chart.marks if mark.get("colour", "") == name]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
            _add(root, "polyline", points=path, fill="none", stroke=colours.get(name, COLOURS[0]), stroke_width=2)
    most = max(mark["colour"] for mark in chart.marks) if chart.kind == "heatmap" else 1
    for mark in chart.marks:
        x, y = at(mark)
        colour = colours.get(mark.get("colour"), COLOURS[0])
        if "x2" in mark:
            right, up = at(mark, "x2", "y2") if "y2" in mark else (at(mark, "x2")[0], at(mark | {"y": 0})[1])
            box = {"x": x, "y": min(y, up), "width": right - x, "height": abs(y - up)}
            _add(root, "rect", **box, fill=colour, fill_opacity=0.15 + 0.85 * mark.get("colour", most) / most)
        elif chart.kind == "point" or len(chart.marks) <= 60:
            _add(root, "circle", cx=x, cy=y, r=3, fill=colour)
    return bottom + 42


def _choose_place(chart: Drawing) -> Callable[[Any], float]:
    """Return where a value of `x` lies along its axis, in any unit."""
    if chart.order:
        places = {value: float(place) for place, value in enumerate(chart.order)}
        return places.__getitem__
    return _read_moment if chart.temporal else float


def _read_moment(text: str) -> float:
    moment = datetime.datetime.fromisoformat(text)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)) - epoch).total_seconds()


def _choose_places(chart: Drawing, low: float, high: float) -> list[Any]:
    """Return the values of `x` that are written below the axis: round ones, or some of those that there are."""
    if not (chart.order or chart.temporal or chart.kind == "line"):
        return [tick for tick in _choose_ticks(low, high) if low <= tick <= high]
    values = list(chart.order) or sorted(set(_distinct(chart, "x")))
    return values[:: math.ceil(len(values) / _MOST_TICKS)]


def _place_name(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value).removesuffix("T00:00:00Z").removesuffix("Z")


def _choose_ticks(low: float, high: float) -> list[float]:
    """Return round numbers at equal steps, the first at most `low`, the last at least `high`."""
    if low == high:
        low, high = low - 1, high + 1
    step = choose_bins([low, high], 5).step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]
