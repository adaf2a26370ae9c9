"""A chart of a result: what to draw, and how it is written for a page, a notebook and a terminal.

The page, a notebook and the terminal draw the same choice: `Chart.spec()` is Vega-Lite, `Chart.svg()` a still
picture, `Chart.lines()` text. Charts hold nothing but cells of the result. Names and cells stand in a spec as data and
titles, never as field names or expressions: nothing that a row says is evaluated.

>>> import almanaq
>>> con = almanaq.connect({"dogs": {"breed": ["Pug", "Boxer", "Pug"], "age": [7, 3, 2]}})
>>> chart = con.sql("SELECT breed, count(*) AS dogs FROM dogs GROUP BY breed").chart()
>>> chart.kind, chart.x, chart.y
('bar', 'breed', ('dogs',))
>>> print("\\n".join(chart.lines(30)))
Pug   ██████████████████████ 2
Boxer ███████████ 1
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, tostring

from almanaq.display import cell_text, label_column

Kind = Literal["bar", "line", "point", "stacked", "share", "histogram", "heatmap", "number"]
_CALLED: dict[Kind, str] = {
    "bar": "Bars",
    "stacked": "Bars in parts",
    "line": "Line",
    "point": "Points",
    "share": "Shares",
    "heatmap": "Map",
}


@dataclass(frozen=True)
class Chart:
    """The chart of a result.

    Attributes:
        kind: `bar`, `line`, `point`, `stacked` (bars in parts), `share` (one bar in parts), `histogram`, `heatmap`
            (points by the place, where there are too many), `number`.
        x, y: the columns along the axes; several in `y` are drawn in colours of their own. In a histogram `y` is ().
        colour: the column that colours tell apart; "" for none.
        title: what is shown, in a few words.
        note: what of the result is not drawn; "" where all of it is.
        marks: what is drawn: `x`, `y`, and `colour` or `label` where there are such.
        temporal: whether `x` are dates or moments.
        order: the values of `x` in the order of the axis; () where it is one of numbers or times.
    """

    kind: Kind
    x: str
    y: tuple[str, ...]
    marks: tuple[dict[str, Any], ...]
    colour: str = ""
    title: str = ""
    note: str = ""
    temporal: bool = False
    order: tuple[Any, ...] = ()

    @property
    def from_zero(self) -> bool:
        """Whether the axis of `y` holds zero: of all but clouds of points and counts by place."""
        return self.kind != "heatmap" and (self.kind != "point" or self.temporal or bool(self.order))

    @property
    def titles(self) -> tuple[str, str]:
        """The columns along both axes, in words."""
        return label_column(self.x), " and ".join(map(label_column, self.y))

    def describe(self) -> str:
        """Return the chart in words, for readers who do not see it."""
        if self.kind == "number":
            return f"{self.title}: {format_figure(self.marks[0]['y'])}."
        if self.kind == "histogram":
            return f"Histogram of {self.titles[0]}: {sum(mark['y'] for mark in self.marks):,} values."
        what = f"{_CALLED[self.kind]} of {self.titles[1]} by {self.titles[0]}"
        what += f" and {label_column(self.colour)}" if self.colour else ""
        if self.kind == "heatmap":
            return f"{what}: {sum(mark['colour'] for mark in self.marks):,} rows."
        ends = (pick(self.marks, key=lambda mark: mark["y"]) for pick in (min, max))
        named = (f"{format_figure(mark['y'])} ({cell_text(mark['x'], 40)})" for mark in ends)
        return f"{what}: from {' to '.join(named)}."

    def spec(self) -> dict[str, Any]:
        """Return the chart as a Vega-Lite specification that holds its data."""
        head = {
            "$schema": _SCHEMA,
            "title": {"text": cell_text(self.title, 120), "subtitle": self.note},
            "description": self.describe(),
            "data": {"values": list(self.marks)},
            "width": "container",
            "usermeta": {"almanaq": {"kind": self.kind, "x": self.x, "y": list(self.y), "colour": self.colour}},
        }
        return head | _SPECS[self.kind](self)

    def svg(self) -> str:
        """Return the chart as a still SVG picture, for a file or a page without scripts."""
        return _draw_svg(self)

    def lines(self, width: int = 80) -> list[str]:
        """Return the chart as lines of text of at most `width` characters, the note last."""
        if self.kind == "number":
            drawn = [f"{format_figure(self.marks[0]['y'])}  {cell_text(self.title, width)}"]
        elif self.kind == "heatmap":
            drawn = _draw_map(self)
        elif self.kind == "point" or (self.kind == "line" and len(self.marks) > _MOST_LINES):
            drawn = _draw_dots(self, width)
        else:
            drawn = _draw_bar_lines(self, width)
        return [*drawn, *([self.note] if self.note else [])]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        spec = self.spec()
        return {
            "application/vnd.vegalite.v6+json": spec,
            "application/vnd.vegalite.v5+json": spec | {"$schema": spec["$schema"].replace("v6", "v5")},
            "text/plain": "\n".join(self.lines()),
        }


def format_figure(value: float) -> str:
    """Return a number as people read it, with at most four figures where it is a fraction."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


@dataclass(frozen=True)
class Bins:
    """Equal steps; called with a number, they give where its step begins."""

    step: float

    def __call__(self, value: float) -> float:
        return round(math.floor(value / self.step + 1e-9) * self.step, 12)


def choose_bins(values: Sequence[float], wanted: int) -> Bins:
    """Return bins with round ends, about as many as wanted."""
    spread = (max(values) - min(values)) / wanted or 1.0
    power = 10 ** math.floor(math.log10(spread))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= spread)
    return Bins(max(step, 1) if all(isinstance(value, int) for value in values) else step)


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#8c564b")
"""Told apart by people who see fewer colours, and dark or light enough on either ground."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


def read_spec(spec: dict[str, Any]) -> Chart:
    """Return what a specification of `Chart.spec` draws, also after whole numbers became text in JSON."""
    own, encoding = spec["usermeta"]["almanaq"], spec["encoding"]
    place: dict[str, Any] = next(
        (encoding[axis] for axis in ("x", "y") if encoding.get(axis, {}).get("field") == "x"), {}
    )
    return Chart(
        **own | {"y": tuple(own["y"])},
        marks=tuple(m | {"y": int(m["y"])} if isinstance(m["y"], str) else m for m in spec["data"]["values"]),
        title=spec["title"]["text"],
        note=spec["title"]["subtitle"],
        temporal=place.get("type") == "temporal",
        order=tuple(place.get("sort", ())),
    )


def _axis(title: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "title": cell_text(title, 60)} | more


def _place_axis(chart: Chart) -> dict[str, Any]:
    if chart.temporal:
        return _axis(chart.titles[0], "temporal", field="x", scale={"type": "utc"})
    if chart.order:
        return _axis(chart.titles[0], "nominal", field="x", sort=list(chart.order))
    whole = all(isinstance(mark["x"], int) for mark in chart.marks)
    # A year or a number of an order is written without a comma, and has no place at zero.
    format = {"axis": {"format": "d", "tickMinStep": 1}} if whole else {}
    return _axis(chart.titles[0], "quantitative", field="x", scale={"zero": False}, **format)


def _value_axis(chart: Chart) -> dict[str, Any]:
    whole = {"axis": {"tickMinStep": 1}} if all(isinstance(mark["y"], int) for mark in chart.marks) else {}
    return _axis(chart.titles[1], "quantitative", field="y", scale={"zero": chart.from_zero}, **whole)


def _colour(chart: Chart) -> dict[str, Any]:
    if not chart.colour:
        return {}
    names = _distinct(chart, "colour")
    scale = {"domain": names, "range": list(COLOURS[: len(names)])}
    return {"color": _axis(label_column(chart.colour), "nominal", field="colour", scale=scale)}


def _tooltip(chart: Chart) -> dict[str, Any]:
    fields = [("label", ""), *zip("xy", chart.titles, strict=True), ("colour", label_column(chart.colour))]
    there = {name for mark in chart.marks for name in mark}
    return {"tooltip": [{"field": name, "title": cell_text(title, 60)} for name, title in fields if name in there]}


def _bar_spec(chart: Chart) -> dict[str, Any]:
    place, value = _place_axis(chart), _value_axis(chart)
    lying = len(chart.order) > 6 or any(len(str(name)) > 12 for name in chart.order)
    lies = {"y": place, "x": value} if lying else {"x": place, "y": value}
    apart = {"yOffset" if lying else "xOffset": {"field": "colour"}} if chart.colour and chart.kind == "bar" else {}
    size = {"height": {"step": 20}} if lying else {"height": 260}
    mark = {"type": "bar"} | ({} if chart.colour else {"color": COLOURS[0]})
    return {"mark": mark, "encoding": lies | apart | _colour(chart) | _tooltip(chart)} | size


def _point_spec(chart: Chart) -> dict[str, Any]:
    """Return the specification of a line or of points."""
    line = chart.kind == "line"
    looks = {"point": len(chart.marks) <= 60} if line else {"filled": True, "opacity": 0.6}
    mark = {"type": chart.kind} | looks | ({} if chart.colour else {"color": COLOURS[0]})
    ordered = line or chart.temporal or chart.order
    across = _axis(chart.titles[0], "quantitative", field="x", scale={"zero": False})
    axes = {"x": _place_axis(chart) if ordered else across, "y": _value_axis(chart)}
    encoding = axes | _colour(chart) | _tooltip(chart)
    return {"mark": mark, "encoding": encoding, "height": 260 if line else 320}


def _share_spec(chart: Chart) -> dict[str, Any]:
    stack = _axis(chart.titles[0], "quantitative", field="y", stack="normalize")
    order = {"order": {"field": "y", "sort": "descending"}}
    return {"mark": {"type": "bar"}, "encoding": {"x": stack} | order | _colour(chart) | _tooltip(chart), "height": 60}


def _histogram_spec(chart: Chart) -> dict[str, Any]:
    bins = _axis(chart.titles[0], "quantitative", field="x", bin={"binned": True})
    axes = {"x": bins, "x2": {"field": "x2"}, "y": _axis("number of rows", "quantitative", field="y")}
    return {"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": axes | _tooltip(chart), "height": 260}


def _heatmap_spec(chart: Chart) -> dict[str, Any]:
    axes = {
        "x": _axis(chart.titles[0], "quantitative", field="x", bin={"binned": True}),
        "x2": {"field": "x2"},
        "y": _axis(chart.titles[1], "quantitative", field="y", bin={"binned": True}),
        "y2": {"field": "y2"},
        "color": _axis("number of rows", "quantitative", field="colour"),
    }
    return {"mark": {"type": "rect"}, "encoding": axes | _tooltip(chart), "height": 320}


def _number_spec(chart: Chart) -> dict[str, Any]:
    text = {"type": "quantitative", "field": "y", "format": ",~r" if isinstance(chart.marks[0]["y"], int) else ",.4~g"}
    return {"mark": {"type": "text", "fontSize": 40}, "encoding": {"text": text}, "height": 60}


_SPECS: dict[Kind, Callable[[Chart], dict[str, Any]]] = {
    "bar": _bar_spec,
    "stacked": _bar_spec,
    "line": _point_spec,
    "point": _point_spec,
    "share": _share_spec,
    "histogram": _histogram_spec,
    "heatmap": _heatmap_spec,
    "number": _number_spec,
}


_WIDTH, _RIGHT, _NAMES, _FIGURES = 640, 616, 190, 70
"""Pixels: of the picture, where a plane ends, left of bars for their names, right of them for their figures."""
_BAR, _HEIGHT = 22, 240
_MOST_TICKS = 7


def _draw_svg(chart: Chart) -> str:
    # Words and lines take the colour of the page around them, so they keep their contrast in the dark and under forced
    # colours. The picture is a tree of elements: a name or a cell can only become text.
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "picture", "role": "img"})
    SubElement(root, "title").text = cell_text(chart.title, 120)
    SubElement(root, "desc").text = chart.describe()
    colours = (
        {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(_distinct(chart, "colour"))} if chart.colour else {}
    )
    top = _draw_legend(root, list(colours.items()))
    if chart.kind == "number":
        _write(root, format_figure(chart.marks[0]["y"]), 0, top + 38, size=40)
        bottom = top + 50
    else:
        bottom = (_draw_bars if chart.kind in ("bar", "stacked", "share") else _draw_plane)(root, chart, colours, top)
    root.set("viewBox", f"0 0 {_WIDTH} {bottom:g}")
    root.set("width", str(_WIDTH))
    return tostring(root, encoding="unicode")


def _distinct(chart: Chart, field: str) -> list[Any]:
    return list(dict.fromkeys(mark.get(field, "") for mark in chart.marks))


def _add(root: Element, tag: str, **attributes: Any) -> Element:
    written = {name.replace("_", "-"): f"{v:.1f}" if isinstance(v, float) else str(v) for name, v in attributes.items()}
    return SubElement(root, tag, written)


def _write(root: Element, text: Any, x: float, y: float, anchor: str = "start", most: int = 40, size: int = 12) -> None:
    element = _add(root, "text", x=x, y=y, text_anchor=anchor, font_size=size, fill="currentColor")
    element.text = cell_text(text, most)


def _draw_legend(root: Element, colours: Sequence[tuple[Any, str]]) -> float:
    x, y = 0.0, 4.0
    for name, colour in colours:
        wide = 7 * min(len(str(name)), 40) + 30
        if x and x + wide > _WIDTH:
            x, y = 0.0, y + 18
        _add(root, "rect", x=x, y=y, width=12, height=12, fill=colour)
        _write(root, name, x + 17, y + 10)
        x += wide
    return y + 20 if colours else y


def _draw_bars(root: Element, chart: Chart, colours: dict[Any, str], top: float) -> float:
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


def _draw_plane(root: Element, chart: Chart, colours: dict[Any, str], top: float) -> float:
    places = {value: float(place) for place, value in enumerate(chart.order)}
    place = places.__getitem__ if places else _read_moment if chart.temporal else float
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
        name = f"{value:.10g}" if isinstance(value, float) else _name_moment(value)
        _write(root, name, at({"x": value, "y": steps[0]})[0], bottom + 16, "middle", most=14)
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


def _read_moment(text: str) -> float:
    moment = datetime.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def _name_moment(value: Any) -> str:
    return str(value).removesuffix("T00:00:00Z").removesuffix("Z")


def _choose_places(chart: Chart, low: float, high: float) -> list[Any]:
    if not (chart.order or chart.temporal or chart.kind == "line"):
        return [tick for tick in _choose_ticks(low, high) if low <= tick <= high]
    values = list(chart.order) or sorted(set(_distinct(chart, "x")))
    return values[:: math.ceil(len(values) / _MOST_TICKS)]


def _choose_ticks(low: float, high: float) -> list[float]:
    if low == high:
        low, high = low - 1, high + 1
    step = choose_bins([low, high], 5).step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


_MOST_LINES = 30
"""Lines of a bar each; a longer line chart is drawn as dots."""


def _draw_bar_lines(chart: Chart, width: int) -> list[str]:
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
    known = [float(value) if value is not None and math.isfinite(value) else 0.0 for value in values]
    most = max(map(abs, known), default=0) or 1.0
    lengths = [value / most * width for value in known]
    return ["░" * round(-n) if n < 0 else ("█" * int(n) + " ▏▎▍▌▋▊▉"[int(n % 1 * 8)]).rstrip() for n in lengths]


def _label_of(chart: Chart, mark: dict[str, Any], place: str) -> str:
    if chart.kind == "histogram":
        return f"{format_figure(mark['x'])} to {format_figure(mark['x2'])}"
    name = _name_moment(mark[place]) if chart.temporal else str(mark[place])
    return f"{name} · {mark['colour']}" if chart.colour and place == "x" else name


def _draw_dots(chart: Chart, width: int) -> list[str]:
    marks = chart.marks
    numeric = all(isinstance(mark["x"], int | float) for mark in marks)
    places = {value: number for number, value in enumerate(sorted({mark["x"] for mark in marks}))}
    xs = [mark["x"] if numeric else places[mark["x"]] for mark in marks]
    ys = [mark["y"] for mark in marks]
    low, high = (pick([*ys, *[0] * chart.from_zero]) for pick in (min, max))
    ends = [format_figure(high), format_figure(low)]
    left = max(map(len, ends))
    across, up = max(10, width - left - 2), 12
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


def _draw_map(chart: Chart) -> list[str]:
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
