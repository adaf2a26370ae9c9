"""Dates and moments as people write them."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from almanaq.values.texts import LONGEST
from almanaq.values.times import parse_time

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ),
        start=1,
    )
    for name in names.split()
}
_WEEKDAY = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+", re.I)
_DATES = (
    re.compile(r"(?P<y>[0-9]{4})[-/.](?P<m>[0-9]{1,2})[-/.](?P<d>[0-9]{1,2})", re.ASCII),
    re.compile(
        r"(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?[\s-]+(?:of\s+)?(?P<m>[a-z]+)\.?,?[\s-]+(?P<y>[0-9]{4})", re.I | re.A
    ),
    re.compile(r"(?P<m>[a-z]+)\.?\s+(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?,?\s+(?P<y>[0-9]{4})", re.I | re.A),
    re.compile(r"(?P<y>[0-9]{4})[\s-]+(?P<m>[a-z]+)\.?[\s-]+(?P<d>[0-9]{1,2})", re.I | re.A),
    re.compile(r"(?P<d>[0-9]{1,2})\.\s?(?P<m>[0-9]{1,2})\.\s?(?P<y>[0-9]{4})", re.ASCII),
)
_SLASHED = re.compile(r"([0-9]{1,2})[/-]([0-9]{1,2})[/-]([0-9]{4})", re.ASCII)


def parse_date(text: str, order: str | None = None) -> date | None:
    """Return the day that `text` names, or None.

    `order` ("DMY", "MDY") says what "02/03/1968" means where it is known, as from the other cells of a column.

    Understood: "1968-02-15", "15 February 1968", "Feb 15, 1968", "15.02.1968" (dots are day first), and "02/15/1968"
    where only one order is possible. A year or a month alone names no day; two-digit years name no year.

    >>> parse_date("3 May 2024")
    datetime.date(2024, 5, 3)
    """
    text = text.strip()
    if len(text) > LONGEST or not any(c.isdigit() for c in text):
        return None
    text = _WEEKDAY.sub("", text, count=1)
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            month = int(match["m"]) if match["m"].isdigit() else _MONTHS.get(match["m"].lower(), 0)
            return _day(int(match["y"]), month, int(match["d"]))
    if match := _SLASHED.fullmatch(text):
        first, second, year = (int(part) for part in match.groups())
        month_first, day_first = _day(year, first, second), _day(year, second, first)
        if month_first and day_first and month_first != day_first:
            return {"MDY": month_first, "DMY": day_first}.get(order or "")
        return month_first or day_first
    return None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


_ZONE = re.compile(
    r"(?P<rest>.*[0-9m])\s?(?:(?P<utc>Z|UTC|GMT)|(?P<sign>[+-])(?P<h>[0-9]{2}):?(?P<m>[0-9]{2})?)", re.I | re.A
)
_MOMENT = re.compile(
    r"(?P<day>.*?[0-9])(?:T|,?\s+(?:at\s+)?)(?P<time>[0-9]{1,2}(?:[:.][0-9]{2}.*|\s?[ap]\.?m\.?))", re.I | re.A
)


def parse_timestamp(text: str, order: str | None = None) -> datetime | None:
    """Return the moment that `text` names, without a zone (with one: in UTC), or None; a day is its midnight.

    `order` is that of `parse_date`.

    >>> parse_timestamp("2024-05-03T10:00:00+02:00"), parse_timestamp("3 May 2024")
    (datetime.datetime(2024, 5, 3, 8, 0), datetime.datetime(2024, 5, 3, 0, 0))
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    day = parse_date(text, order)
    if day is not None:
        return datetime.combine(day, time())
    zone = _ZONE.fullmatch(text)
    if zone is not None and zone["sign"] and ":" not in zone["rest"]:
        zone = None  # the "-15" of a date
    match = _MOMENT.fullmatch(zone["rest"] if zone else text)
    parsed = (parse_date(match["day"], order), parse_time(match["time"])) if match else (None, None)
    if parsed[0] is None or parsed[1] is None:
        return None
    moment = datetime.combine(parsed[0], parsed[1])
    return _to_utc(moment, zone) if zone else moment


def _to_utc(moment: datetime, zone: re.Match[str]) -> datetime | None:
    """Take the offset of a written zone away."""
    if zone["utc"]:
        return moment
    offset = timedelta(hours=int(zone["h"]), minutes=int(zone["m"] or 0))
    try:
        return moment - offset if zone["sign"] == "+" else moment + offset
    except OverflowError:
        return None
