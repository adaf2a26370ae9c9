"""Figures as inline SVG: lines over k, and points in a plane. Text, marks and colours that print in grey too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 16, 44
_COLOURS = ("#1b6ca8", "#c1440e", "#2f7d32", "#7b3fa0", "#8a6d00", "#00707a", "#a3195b", "#4f4f4f")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True, slots=True)
class Line:
    """A named line; `x` rises."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, slots=True)
class Point:
    """A named point; `low` and `high` bound `y`, equal to it where nothing is known."""

    name: str
    x: float
    y: float
    low: float
    high: float


def lines_figure(lines: Sequence[Line], *, x_label: str, y_label: str) -> str:
    """Return lines over a logarithmic x axis, with y from 0 to 1."""
    across = _Axis(min(line.x[0] for line in lines), max(line.x[-1] for line in lines), log=True)
    parts = [_frame(across, x_label, y_label)]
    for number, line in enumerate(lines):
        points = " ".join(f"{across.place(x):.1f},{_up(y):.1f}" for x, y in zip(line.x, line.y, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" {_stroke(number)} stroke-width="2"/>')
    parts += _names([(line.name, _up(line.y[-1])) for line in lines])
    descriptions = [
        f"{line.name}: {line.y[0]:.3f} at {line.x[0]:g}, {line.y[-1]:.3f} at {line.x[-1]:g}" for line in lines
    ]
    return _svg(parts, f"{y_label} over {x_label}", descriptions)


def points_figure(points: Sequence[Point], *, x_label: str, y_label: str, log: bool = True) -> str:
    """Return points with their intervals; x on a logarithmic axis, or a share from 0 to 1."""
    low, high = (min(point.x for point in points), max(point.x for point in points)) if log else (0.0, 1.0)
    across = _Axis(low, high, log=log)
    parts = [_frame(across, x_label, y_label)]
    for number, point in enumerate(points):
        x, y, colour = across.place(point.x), _up(point.y), _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_up(point.low):.1f}" y2="{_up(point.high):.1f}" stroke="{colour}"/>'
        )
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(point.name)}: '
            f"{point.x:.4g}, {point.y:.3f}</title></circle>"
        )
    parts += _names([(point.name, _up(point.y)) for point in points])
    descriptions = [f"{point.name}: {point.y:.3f} at {point.x:.4g}" for point in points]
    return _svg(parts, f"{y_label} against {x_label}", descriptions)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Places values between the left and the right edge."""

    low: float
    high: float
    log: bool

    def place(self, value: float) -> float:
        low, high, at = (self._scale_value(each) for each in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[float]:
        if not self.log:
            return [fifth / 5 for fifth in range(6)]
        first, last = math.floor(math.log10(max(self.low, 1e-9))), math.ceil(math.log10(max(self.high, 1e-9)))
        marks = [m * 10.0**power for power in range(first, last + 1) for m in (1, 2, 5)]
        inside = [mark for mark in marks if self.low * 0.999 <= mark <= self.high * 1.001]
        if len(inside) > 9:
            inside = [mark for mark in inside if math.isclose(math.log10(mark) % 1, 0, abs_tol=1e-9)]
        return inside or [self.low]

    def _scale_value(self, value: float) -> float:
        return math.log10(max(value, 1e-9)) if self.log else value


def _up(share: float) -> float:
    return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)


def _stroke(number: int) -> str:
    dash = _DASHES[(number // 2 + number // len(_COLOURS)) % len(_DASHES)]
    return f'stroke="{_COLOURS[number % len(_COLOURS)]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _frame(across: _Axis, x_label: str, y_label: str) -> str:
    """Return axes, grid and labels."""
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = []
    for tenth in range(0, 11, 2):
        y = _up(tenth / 10)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 5}" stroke="#555"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    middle = (_TOP + bottom) / 2
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(y_label)}</text>'
    )
    return "".join(parts)


def _names(ends: Sequence[tuple[str, float]]) -> list[str]:
    """Return the names at the right edge, in the order of their heights, none on top of another."""
    order = sorted(range(len(ends)), key=lambda number: ends[number][1])
    made, last = [], -math.inf
    room = HEIGHT - _BOTTOM - 14 * len(ends)
    for number in order:
        name, y = ends[number]
        last = max(min(y, room) if room > _TOP else y, last + 14)
        room += 14
        colour = _COLOURS[number % len(_COLOURS)]
        shown = name if len(name) <= 22 else name[:21] + "…"
        place = f'x="{WIDTH - _RIGHT + 8}" y="{last + 4:.1f}"'
        made.append(f'<text {place} fill="{colour}" font-weight="600">{escape(shown)}</text>')
    return made


def _svg(parts: Sequence[str], title: str, said: Sequence[str]) -> str:
    """Return the figure with its name, and what it shows in words, for whoever does not see it."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="12" font-family="system-ui, sans-serif">'
        f"<title>{escape(title)}</title><desc>{escape('; '.join(said))}</desc>{''.join(parts)}</svg>"
    )
