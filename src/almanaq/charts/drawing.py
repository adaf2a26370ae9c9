"""What to draw of a result, before anything says how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
class Drawing:
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

    @property
    def from_zero(self) -> bool:
        """Whether the axis of `y` holds zero: of all but clouds of points and counts by place."""
        return self.kind != "heatmap" and (self.kind != "point" or self.temporal or bool(self.order))

    @property
    def titles(self) -> tuple[str, str]:
        """The columns along both axes, in words."""
        return label_column(self.x), " and ".join(map(label_column, self.y))

    def describe(self) -> str:
        """Return the chart in words, for readers who do not see it.

        >>> Drawing("bar", "breed", ("dogs",), ({"x": "Pug", "y": 2}, {"x": "Boxer", "y": 1})).describe()
        'Bars of dogs by breed: from 1 (Boxer) to 2 (Pug).'
        """
        if self.kind == "number":
            return f"{self.title}: {format_figure(self.marks[0]['y'])}."
        if self.kind == "histogram":
            return f"Histogram of {self.titles[0]}: {sum(mark['y'] for mark in self.marks):,} values."
        what = f"{_CALLED[self.kind]} of {self.titles[1]} by {self.titles[0]}"
        what += f" and {label_column(self.colour)}" if self.colour else ""
        if self.kind == "heatmap":
            return f"{what}: {sum(mark['colour'] for mark in self.marks):,} rows."
        least, most = (pick(self.marks, key=lambda mark: mark["y"]) for pick in (min, max))
        ends = (f"{format_figure(mark['y'])} ({cell_text(mark['x'], 40)})" for mark in (least, most))
        return f"{what}: from {' to '.join(ends)}."


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
