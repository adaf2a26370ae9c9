"""Spans of days that words name: "March 2024", "03/15/2024", "15 March", "last year", "the last 30 days"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_NTH = r"(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"""(?<![\w/.-])(?:
    (?P<iso>\d{{4}}-\d{{1,2}}(?:-\d{{1,2}})?)
    |(?P<left>\d{{1,2}})(?P<mark>[/.])(?P<right>\d{{1,2}})(?P=mark)(?P<year4>\d{{4}})
    |(?P<day>\d{{1,2}}){_NTH}\ (?:of\ )?(?P<month>{_MONTH})\.?(?:,?\ (?P<year>\d{{4}}))?
    |(?P<month2>{_MONTH})\.?\ (?P<day2>\d{{1,2}}){_NTH}(?!\d)(?:,?\ (?:of\ )?(?P<year2>\d{{4}}))?
    |(?P<month3>{_MONTH})\.?,?\ (?:of\ )?(?P<year3>\d{{4}})
    |(?<=\ )(?P<month4>{_MONTH})
    )(?![\w/-])""",
    re.IGNORECASE | re.VERBOSE,
)
_BEFORE_MONTH = re.compile(r"\b(?:in|since|before|after|until|from|of|during|to|by|and|between)\s+$", re.IGNORECASE)
_DAYS = {"day": 1, "week": 7}
_RELATIVE = re.compile(
    r"""\b(?:
    (?:the\ )?(?P<decade>\d{3}0)s
    |(?:the\ ['’]?|['’])(?P<short>[3-9]0)s
    |(?:the\ )?(?P<century>\d{1,2})(?:st|nd|rd|th)\ century
    |(?P<near>yesterday|today|tomorrow)
    |(?:the\ )?(?P<nth>first|second|third|fourth|last)\ (?P<part>half|quarter)\ of\ (?P<of>\d{4})
    |(?:the\ )?(?P<which>last|past|previous|this|current|next)\ (?P<unit>week|month|quarter|year)
    |(?:the\ )?(?:last|past|previous)\ (?P<several>\d+)\ (?P<units>day|week|month|quarter|year)s?
    )\b(?:['’]s\b)?""",
    re.IGNORECASE | re.VERBOSE,
)
_AHEAD = 92
"""Days after the last one known within which a day without a year may still lie; others lie behind it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Days that characters `first` to `last` of a question name: from `start` up to and without `after`.

    Attributes:
        yearless: no year was said; the one given is that of today.
    """

    first: int
    last: int
    start: date
    after: date
    yearless: bool = False

    def nearest(self, known: date) -> tuple[date, date]:
        """Return the days, of a span without a year, that lie nearest before a day, or not far behind it."""
        for year in (known.year + 1, known.year, known.year - 1):
            start = _in_year(self.start, year)
            if start is not None and start <= known + timedelta(_AHEAD):
                return start, start + (self.after - self.start)
        return self.start, self.after


def spans(question: str, today: date) -> Iterator[Span]:
    """Yield the spans of days that a question names, in its order; days that no calendar has are none."""
    found = [*filter(None, (_written(m, question, today) for m in _DATE.finditer(question)))]
    found += [span for m in _RELATIVE.finditer(question) if (span := _relative(m, today))]
    yield from sorted(found, key=lambda span: span.first)


def _written(match: re.Match[str], question: str, today: date) -> Span | None:
    """Return the days of a date as it is written."""
    yearless = False
    if match["iso"]:
        year, month, day = (int(part) for part in (match["iso"] + "-0").split("-")[:3])
    elif match["mark"]:
        year, month, day = int(match["year4"]), int(match["left"]), int(match["right"])
        if month > 12 or match["mark"] == ".":
            month, day = day, month
    else:
        name = next(filter(None, (match["month"], match["month2"], match["month3"], match["month4"]))).casefold()
        month = next(i for i, known in enumerate(_MONTHS, 1) if known.startswith(name[:3]))
        said = match["year"] or match["year2"] or match["year3"]
        year, yearless = int(said or today.year), said is None
        day = int(match["day"] or match["day2"] or 0)
        if match["month4"] and not _BEFORE_MONTH.search(question[: match.start()]):
            return None
    found = _days(year, month, day)
    return Span(match.start(), match.end(), *found, yearless) if found else None


def _days(year: int, month: int, day: int) -> tuple[date, date] | None:
    """Return the first day, and the day after the last; None for a day that no calendar has."""
    try:
        start = date(year, month, day or 1)
        return start, start + timedelta(1) if day else _months_on(start, 1)
    except (ValueError, OverflowError):
        return None


def _relative(match: re.Match[str], today: date) -> Span | None:
    """Return the days of words that count from today."""
    try:
        if match["decade"]:
            start, after = date(int(match["decade"]), 1, 1), date(int(match["decade"]) + 10, 1, 1)
        elif match["short"]:
            start, after = date(1900 + int(match["short"]), 1, 1), date(1910 + int(match["short"]), 1, 1)
        elif match["century"]:
            after = date(100 * int(match["century"]) + 1, 1, 1)
            start = after.replace(year=after.year - 100)
        elif match["nth"]:
            months = 6 if match["part"].casefold() == "half" else 3
            nth = "first second third fourth".split().index(match["nth"].casefold()) if match["nth"] != "last" else -1
            if nth >= 12 // months:
                return None
            start = _months_on(date(int(match["of"]), 1, 1), nth % (12 // months) * months)
            after = _months_on(start, months)
        elif match["near"]:
            start = today + timedelta({"yesterday": -1, "today": 0, "tomorrow": 1}[match["near"].casefold()])
            after = start + timedelta(1)
        elif match["several"]:
            start = _steps(today, match["units"].casefold(), -int(match["several"]))
            after = today + timedelta(1)
        else:
            unit = match["unit"].casefold()
            step = {"this": 0, "current": 0, "next": 1}.get(match["which"].casefold(), -1)
            start = _steps(_opening(today, unit), unit, step)
            after = _steps(start, unit, 1)
    except (ValueError, OverflowError):
        return None
    return Span(*match.span(), start, after)


def _opening(day: date, unit: str) -> date:
    """Return the first day of the week, month, quarter or year of a day."""
    if unit == "week":
        return day - timedelta(day.weekday())
    month = {"month": day.month, "quarter": day.month - (day.month - 1) % 3}.get(unit, 1)
    return date(day.year, month, 1)


def _steps(day: date, unit: str, count: int) -> date:
    """Return the day so many units later."""
    if unit in _DAYS:
        return day + timedelta(_DAYS[unit] * count)
    return _months_on(day, count * {"month": 1, "quarter": 3, "year": 12}[unit])


def _months_on(day: date, count: int) -> date:
    """Return the same day so many months later, or the last one of a shorter month."""
    years, month = divmod(day.month - 1 + count, 12)
    for last in range(day.day, 27, -1):
        try:
            return date(day.year + years, month + 1, last)
        except ValueError:
            if last == 28:
                raise
    return date(day.year + years, month + 1, day.day)


def _in_year(day: date, year: int) -> date | None:
    try:
        return day.replace(year=year)
    except ValueError:
        return None
