"""Writes a chart as a Vega-Lite specification that holds its data: names and cells are data and titles only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from almanaq.charts.drawing import Drawing, Kind
from almanaq.display import cell_text, label_column

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#8c564b")
"""Told apart by people who see fewer colours, and dark or light enough on either ground."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


def write_spec(chart: Drawing) -> dict[str, Any]:
    """Return the specification; its width is that of the place where it is drawn."""
    head = {
        "$schema": _SCHEMA,
        "title": {"text": cell_text(chart.title, 120), "subtitle": chart.note},
        "description": chart.describe(),
        "data": {"values": list(chart.marks)},
        "width": "container",
        "usermeta": {"almanaq": {"kind": chart.kind, "x": chart.x, "y": list(chart.y), "colour": chart.colour}},
    }
    return head | _SPECS[chart.kind](chart)


def read_spec(spec: dict[str, Any]) -> Drawing:
    """Return what a specification of `write_spec` draws, also after whole numbers became text in JSON."""
    own, encoding = spec["usermeta"]["almanaq"], spec["encoding"]
    place: dict[str, Any] = next(
        (encoding[axis] for axis in ("x", "y") if encoding.get(axis, {}).get("field") == "x"), {}
    )
    return Drawing(
        **own | {"y": tuple(own["y"])},
        marks=tuple(m | {"y": int(m["y"])} if isinstance(m["y"], str) else m for m in spec["data"]["values"]),
        title=spec["title"]["text"],
        note=spec["title"]["subtitle"],
        temporal=place.get("type") == "temporal",
        order=tuple(place.get("sort", ())),
    )


def _axis(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "title": cell_text(label_column(name), 60)} | more


def _place_axis(chart: Drawing) -> dict[str, Any]:
    if chart.temporal:
        return _axis(chart.x, "temporal", field="x", scale={"type": "utc"})
    if chart.order:
        return _axis(chart.x, "nominal", field="x", sort=list(chart.order))
    whole = all(isinstance(mark["x"], int) for mark in chart.marks)
    # A year or a number of an order is written without a comma, and has no place at zero.
    format = {"axis": {"format": "d", "tickMinStep": 1}} if whole else {}
    return _axis(chart.x, "quantitative", field="x", scale={"zero": False}, **format)


def _value_axis(chart: Drawing) -> dict[str, Any]:
    whole = {"axis": {"tickMinStep": 1}} if all(isinstance(mark["y"], int) for mark in chart.marks) else {}
    return _axis(chart.titles[1], "quantitative", field="y", scale={"zero": chart.from_zero}, **whole)


def _colour(chart: Drawing) -> dict[str, Any]:
    if not chart.colour:
        return {}
    names = list(dict.fromkeys(mark["colour"] for mark in chart.marks))
    scale = {"domain": names, "range": list(COLOURS[: len(names)])}
    return {"color": _axis(chart.colour, "nominal", field="colour", scale=scale)}


def _tooltip(chart: Drawing) -> dict[str, Any]:
    fields = [("label", ""), *zip("xy", chart.titles, strict=True), ("colour", label_column(chart.colour))]
    there = {name for mark in chart.marks for name in mark}
    return {"tooltip": [{"field": name, "title": cell_text(title, 60)} for name, title in fields if name in there]}


def _bar_spec(chart: Drawing) -> dict[str, Any]:
    place, value = _place_axis(chart), _value_axis(chart)
    lying = len(chart.order) > 6 or any(len(str(name)) > 12 for name in chart.order)
    lies = {"y": place, "x": value} if lying else {"x": place, "y": value}
    apart = {"yOffset" if lying else "xOffset": {"field": "colour"}} if chart.colour and chart.kind == "bar" else {}
    size = {"height": {"step": 20}} if lying else {"height": 260}
    mark = {"type": "bar"} | ({} if chart.colour else {"color": COLOURS[0]})
    return {"mark": mark, "encoding": lies | apart | _colour(chart) | _tooltip(chart)} | size


def _line_spec(chart: Drawing) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": "line", "point": len(chart.marks) <= 60}
    mark |= {} if chart.colour else {"color": COLOURS[0]}
    axes = {"x": _place_axis(chart), "y": _value_axis(chart)}
    return {"mark": mark, "encoding": axes | _colour(chart) | _tooltip(chart), "height": 260}


def _point_spec(chart: Drawing) -> dict[str, Any]:
    across = (
        _place_axis(chart)
        if chart.temporal or chart.order
        else _axis(chart.x, "quantitative", field="x", scale={"zero": False})
    )
    axes = {"x": across, "y": _value_axis(chart)}
    mark = {"type": "point", "filled": True, "opacity": 0.6} | ({} if chart.colour else {"color": COLOURS[0]})
    return {"mark": mark, "encoding": axes | _colour(chart) | _tooltip(chart), "height": 320}


def _share_spec(chart: Drawing) -> dict[str, Any]:
    stack = {"field": "y", "type": "quantitative", "stack": "normalize", "title": cell_text(chart.titles[0], 60)}
    order = {"order": {"field": "y", "sort": "descending"}}
    return {"mark": {"type": "bar"}, "encoding": {"x": stack} | order | _colour(chart) | _tooltip(chart), "height": 60}


def _histogram_spec(chart: Drawing) -> dict[str, Any]:
    bins = _axis(chart.x, "quantitative", field="x", bin={"binned": True})
    axes = {"x": bins, "x2": {"field": "x2"}, "y": _axis("number of rows", "quantitative", field="y")}
    return {"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": axes | _tooltip(chart), "height": 260}


def _heatmap_spec(chart: Drawing) -> dict[str, Any]:
    axes = {
        "x": _axis(chart.x, "quantitative", field="x", bin={"binned": True}),
        "x2": {"field": "x2"},
        "y": _axis(chart.titles[1], "quantitative", field="y", bin={"binned": True}),
        "y2": {"field": "y2"},
        "color": _axis("number of rows", "quantitative", field="colour"),
    }
    return {"mark": {"type": "rect"}, "encoding": axes | _tooltip(chart), "height": 320}


def _number_spec(chart: Drawing) -> dict[str, Any]:
    text = {"type": "quantitative", "field": "y", "format": ",~r" if isinstance(chart.marks[0]["y"], int) else ",.4~g"}
    return {"mark": {"type": "text", "fontSize": 40}, "encoding": {"text": text}, "height": 60}


_SPECS: dict[Kind, Callable[[Drawing], dict[str, Any]]] = {
    "bar": _bar_spec,
    "stacked": _bar_spec,
    "line": _line_spec,
    "point": _point_spec,
    "share": _share_spec,
    "histogram": _histogram_spec,
    "heatmap": _heatmap_spec,
    "number": _number_spec,
}
