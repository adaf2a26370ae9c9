"""Rows for people: as many rows and columns as can be read, cells cut with a mark, and what was left out said."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from almanaq.encode import plain
from almanaq.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

MOST_ROWS = 40
CELL = 400
"""Longest cell, in characters, where there is room for it."""
_LEAST_WIDTH = 12
"""Narrowest column of longer cells."""
_GAP = 3
_LINES = 4
"""Lines that a cell takes at most where columns stand side by side."""
_BLOCKS = 3
"""So few rows are printed one below the other where their columns do not fit."""


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of a result is printed.

    Attributes:
        rows: at most so many rows; None: every row and column, with their cells whole.
        lines: one row in a block of lines, however few its columns.
        more: how the rest can be seen, told where something is left out.
    """

    rows: int | None = MOST_ROWS
    lines: bool = False
    more: str = "--all prints everything"


def print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], out: Console, amount: Amount | None = None
) -> None:
    """Print rows as a table, or one below the other; a NULL is empty, and what is left out is said."""
    amount = amount or Amount()
    if not rows:
        out.print("no rows")
        return
    shown = rows if amount.rows is None else rows[: amount.rows]
    fitting = _fitting(columns, shown, out.width)
    if amount.lines or (fitting < len(columns) and (amount.rows is None or len(shown) <= _BLOCKS)):
        _print_blocks(columns, shown, out, None if amount.rows is None else CELL)
        fitting = len(columns)
    else:
        _print_table(columns[:fitting], shown, out, amount)
    left = []
    if len(shown) < len(rows):
        left.append(f"first {len(shown):,} of {len(rows):,} rows")
    if fitting < len(columns):
        left.append(f"first {fitting:,} of {len(columns):,} columns")
    if left:
        out.print(f"{', '.join(left)}: {amount.more}", style="dim")


def cell_text(value: Any, limit: int | None = CELL) -> str:
    """Return a cell as a person reads it: NULL empty, an array as a list, at most `limit` characters."""
    if value is None:
        return ""
    if isinstance(value, datetime.timedelta):
        return _interval(0, value.days, (value - datetime.timedelta(value.days)) // datetime.timedelta(microseconds=1))
    if hasattr(value, "months") and hasattr(value, "nanoseconds"):
        return _interval(value.months, value.days, value.nanoseconds // 1000)
    shown = plain(value)
    if isinstance(shown, list):
        return shorten("; ".join(cell_text(item, limit) for item in shown), limit)
    return visible(shorten(str(shown), limit))


def _interval(months: int, days: int, microseconds: int) -> str:
    """Return an interval as PostgreSQL prints one.

    >>> _interval(14, 3, 7_200_000_000), _interval(0, 1, 0), _interval(0, 0, 0), _interval(0, 0, -90_500_000)
    ('1 year 2 mons 3 days 02:00:00', '1 day', '00:00:00', '-00:01:30.5')
    """
    years, months = int(months / 12), int(months - 12 * int(months / 12))
    parts = [(years, "year"), (months, "mon"), (days, "day")]
    found = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count]
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    if microseconds or not found:
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        clock += f".{fraction:06}".rstrip("0") if fraction else ""
        found.append(f"{'-' if microseconds < 0 else ''}{clock}")
    return " ".join(found)


def shorten(text: str, limit: int | None) -> str:
    """Return a text on one line, cut at a word where it is longer than `limit`."""
    line = " ".join(text.split())
    if limit is None or len(line) <= limit:
        return line
    return line[:limit].rsplit(" ", 1)[0] + " …"


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> int:
    """Return how many of the first columns fit side by side; at least one."""
    taken = 0
    for index, name in enumerate(columns):
        longest = max(len(visible(name)), *(len(cell_text(row[index], _LEAST_WIDTH)) for row in rows))
        taken += min(longest, _LEAST_WIDTH) + (_GAP if index else 0)
        if taken > width and index:
            return index
    return len(columns)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], out: Console, amount: Amount) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    limit = None
    if amount.rows is not None:
        limit = min(CELL, max(4 * _LEAST_WIDTH, _LINES * out.width // max(1, len(columns))))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        numeric = all(isinstance(row[index], int | float) for row in rows if row[index] is not None)
        table.add_column(Text(visible(name)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell_text(value, limit)) for value in row[: len(columns)]))
    out.print(table)


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[Any]], out: Console, limit: int | None) -> None:
    from rich.table import Table
    from rich.text import Text

    for number, row in enumerate(rows, 1):
        out.print(f"— row {number:,} —", style="dim")
        block = Table(box=None, show_header=False, pad_edge=False)
        block.add_column(overflow="fold", max_width=max(_LEAST_WIDTH, out.width // 3))
        block.add_column(overflow="fold")
        for name, value in zip(columns, row, strict=True):
            block.add_row(Text(visible(name), style="dim"), Text(cell_text(value, limit)))
        out.print(block)
