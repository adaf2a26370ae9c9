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

from dataclasses import dataclass
from typing import Any

from almanaq.charts.drawing import Drawing
from almanaq.charts.svg import draw_svg
from almanaq.charts.text import draw_chart
from almanaq.charts.vega_lite import write_spec


@dataclass(frozen=True)
class Chart(Drawing):
    """The chart of a result; `Drawing` says what it holds."""

    def spec(self) -> dict[str, Any]:
        """Return the chart as a Vega-Lite specification that holds its data.

        >>> spec = chart.spec()
        >>> spec["mark"]["type"], spec["data"]["values"][0]
        ('bar', {'x': 'Pug', 'y': 2})
        """
        return write_spec(self)

    def svg(self) -> str:
        """Return the chart as a still SVG picture, for a file or a page without scripts.

        >>> chart.svg()[:4]
        '<svg'
        """
        return draw_svg(self)

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
