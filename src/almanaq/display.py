"""Results as HTML and as text, made safe to show: nothing from rows links, loads or runs, or steers a terminal."""

from __future__ import annotations

import datetime
import decimal
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# C0 and DEL but for tab and newline, C1, what marks, overrides or isolates the direction of text, halves of characters.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""A character that moves the cursor, colours, rings, turns what follows around, or cannot be written at all."""


def visible(text: str) -> str:
    r"""Return the text with each character that steers a terminal as its escape, `\x1b`; tabs and newlines stay."""
    return STEERING.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""Return JSON with each character that steers a terminal as JSON writes it, `\u009b`: it stays the same value."""
    return STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


ROWS, CELL, QUOTES = 20, 300, 60
"""Most rows of a table, characters of a cell, and quotes that are shown."""


_PARTS = {".pdf": "page", ".pptx": "slide"}


Row = Sequence[object]


def cell_text(value: object, most: int | None = CELL) -> str:
    """Return a value as people read it, on one line of at most `most` characters; NULL is empty."""
    text = visible(" ".join(_text(value, most and 4 * CELL).split()))
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


_FUNCTION = re.compile(r'"?(\w+)"?\((.*)\)', re.DOTALL)
_FUNCTIONS = {
    "count": "number of",
    "avg": "average",
    "mean": "average",
    "sum": "total",
    "min": "lowest",
    "max": "highest",
    "median": "median",
}
_ASKED = re.compile(r".+?, '(.+)'", re.DOTALL)
_NAMELESS = {"avg": "average", "?column?": "value"}
_SHAPES = re.compile(r"(?:round|cast|try_cast|coalesce|trunc|floor|ceil)$", re.IGNORECASE)


def label_column(name: str) -> str:
    """Return the name of a column as people read it: one that an engine made of a function says what it holds.

    >>> [label_column(name) for name in ("price", "count_star()", "round(avg(n), 2)", "answer(about, 'is it calm?')")]
    ['price', 'number of rows', 'average n', 'is it calm']
    """
    found = _FUNCTION.fullmatch(name)
    if found is None:
        return _NAMELESS.get(name, name.strip('"'))
    if found[1].lower() == "answer" and (asked := _ASKED.fullmatch(found[2])):
        return asked[1].replace("''", "'").rstrip("? ")
    function, inside = found[1].lower(), re.sub(r"^DISTINCT ", "different ", found[2], flags=re.IGNORECASE)
    if function in ("count", "count_star") and not inside.strip("* "):
        return "number of rows"
    if _SHAPES.match(function):
        return label_column(re.sub(r", [\w']+$| AS [\w() ,]+$", "", inside, flags=re.IGNORECASE))
    return f"{_FUNCTIONS.get(function) or function.replace('_', ' ') + ' of'} {label_column(inside)}"


def describe_progress(done: int, total: int | None, passed: int, forecast: object = None) -> str:
    """Return how far a query is, in words, and what it is expected to take in all.

    >>> describe_progress(1200, None, 3), describe_progress(5, 10, 0, "about 9 texts in 3 requests")
    ('1,200 rows read, 3 found', '5 of 10 rows read, 0 found; in all about 9 texts in 3 requests')
    """
    of = "" if total is None else f" of {total:,}"
    return f"{done:,}{of} rows read, {passed:,} found" + ("" if forecast is None else f"; in all {forecast}")


def count_line(rows: int, shown: int, *more: str) -> str:
    of = f"{shown:,} of " if shown < rows else ""
    return " · ".join([f"{of}{rows:,} row{'' if rows == 1 else 's'}", *filter(None, more)])


def table_html(columns: Sequence[str], rows: Iterable[Row]) -> str:
    body = list(rows)
    right = [all(_is_number(row[i]) for row in body) and bool(body) for i in range(len(columns))]
    head = "".join(f'<th scope="col">{escape(cell_text(name))}</th>' for name in columns)
    lines = "".join(f"<tr>{''.join(map(_cell_html, row, right))}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def quotes_html(evidence: Sequence[Sequence[Any]]) -> str:
    """Return the quotes of the rows, folded; "" where there are none."""
    found = [(number, quote) for number, quotes in enumerate(evidence, 1) for quote in quotes]
    if not found:
        return ""
    lines = "".join(
        f"<li>row {number}: <q>{escape(cell_text(quote.quote))}</q> <small>{escape(place(quote))}</small></li>"
        for number, quote in found[:QUOTES]
    )
    left = f"<li>… and {len(found) - QUOTES:,} more</li>" if len(found) > QUOTES else ""
    return f"<details><summary>Quotes ({len(found):,})</summary><ul>{lines}{left}</ul></details>"


def passage_name(column: str, key: str, otherwise: str = "passage") -> str:
    """Return what the passages of a text are called: of documents, whose key is their path, pages or slides.

    >>> passage_name("text", "reports/2024.pdf"), passage_name("about", "7")
    ('page', 'passage')
    """
    return _PARTS.get(os.path.splitext(key)[1].lower(), otherwise) if column == "text" else otherwise


def place(quote: Any) -> str:
    """Return where a quote comes from and which question it answers."""
    part = passage_name(quote.column, quote.key)
    where = f"{quote.relation}.{quote.column} of {quote.key}, {part} {quote.passage + 1}"
    return cell_text(f"{where}: {quote.question}")


def rows_html(
    columns: Sequence[str], rows: Sequence[Row], evidence: Sequence[Sequence[Any]], total: int, *more: str
) -> str:
    """Return the first of `total` rows with how many there are on top, and their quotes below."""
    first = rows[:ROWS]
    top = f"<p>{escape(visible(count_line(total, len(first), *more)))}</p>"
    return top + table_html(columns, first) + quotes_html(evidence[:ROWS])


def rows_text(columns: Sequence[str], rows: Sequence[Row], total: int, *more: str) -> str:
    first = rows[:ROWS]
    shown = [list(map(cell_text, columns)), *([cell_text(value, 60) for value in row] for row in first)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    return "\n".join([count_line(total, len(first), *more), *lines])


def block(*parts: str) -> str:
    return f'<div class="almanaq">{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    return f"<p>{escape(visible(text)).replace(chr(10), '<br>')}</p>"


def fold_text(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{preformat_text(text)}</details>"


def preformat_text(text: str) -> str:
    return f"<pre>{escape(visible(text))}</pre>"


def _cell_html(value: object, right: bool) -> str:
    attribute = ' align="right"' if right else ""
    return f"<td{attribute}>{'<i>null</i>' if value is None else escape(cell_text(value))}</td>"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool))


def _text(value: Any, most: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "; ".join(_text(item, most) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(item, most)}" for name, item in value.items())
    if isinstance(value, datetime.timedelta):
        return _interval(0, value.days, (value - datetime.timedelta(value.days)) // datetime.timedelta(microseconds=1))
    if hasattr(value, "months") and hasattr(value, "nanoseconds"):
        return _interval(value.months, value.days, value.nanoseconds // 1000)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, bytes):
        return "\\x" + value[:most].hex()
    return str(value)[:most]


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
