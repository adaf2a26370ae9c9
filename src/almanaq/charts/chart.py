"""A chart of a result: what to draw, and how it is written for a page, a notebook and a terminal.

The page, a notebook and the terminal draw the same choice: `Chart.spec()` is Vega-Lite, `Chart.lines()` is text. Charts
hold nothing but cells of the result. Names and cells stand in a spec as data and titles, never as field names or
expressions: nothing that a row says is evaluated.

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

from dataclasses import dataclass
from typing import Any, Literal

from almanaq.charts.text import draw_chart, format_figure
from almanaq.charts.vega_lite import write_spec
from almanaq.display import cell_text

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
    """What to draw of a result.

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

    def spec(self) -> dict[str, Any]:
        """Return the chart as a Vega-Lite specification that holds its data.

        >>> spec = chart.spec()
        >>> spec["mark"]["type"], spec["data"]["values"][0]
        ('bar', {'x': 'Pug', 'y': 2})
        """
        return write_spec(self)

    def describe(self) -> str:
        """Return the chart in words, for readers who do not see it.

        >>> chart.describe()
        'Bars of dogs by breed: from 1 (Boxer) to 2 (Pug).'
        """
        if self.kind == "number":
            return f"{self.title}: {format_figure(self.marks[0]['y'])}."
        if self.kind == "histogram":
            return f"Histogram of {self.x}: {sum(mark['y'] for mark in self.marks):,} values."
        what = f"{_CALLED[self.kind]} of {' and '.join(self.y)} by {self.x}"
        what += f" and {self.colour}" if self.colour else ""
        if self.kind == "heatmap":
            return f"{what}: {sum(mark['colour'] for mark in self.marks):,} rows."
        least, most = (pick(self.marks, key=lambda mark: mark["y"]) for pick in (min, max))
        ends = (f"{format_figure(mark['y'])} ({cell_text(mark['x'], 40)})" for mark in (least, most))
        return f"{what}: from {' to '.join(ends)}."

    def lines(self, width: int = 80) -> list[str]:
        """Return the chart as lines of text of at most `width` characters, the note last."""
        return [*draw_chart(self, width), *([self.note] if self.note else [])]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Show the chart in a notebook, as text where Vega-Lite is not drawn."""
        spec = self.spec()
        return {
            "application/vnd.vegalite.v6+json": spec,
            "application/vnd.vegalite.v5+json": spec | {"$schema": spec["$schema"].replace("v6", "v5")},
            "text/plain": "\n".join(self.lines()),
        }
