"""Times of day and durations as people write them."""

from __future__ import annotations

import re
from datetime import time, timedelta

from almanaq.values.texts import LONGEST, canonical

_TIME = re.compile(
    r"(?P<h>[0-9]{1,2})(?:[:.](?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,9}))?)?)?\s?(?P<half>[ap])?(?:\.?m\.?)?",
    re.I | re.A,
)
_CLOCK = re.compile(r"(?:(?P<h>[0-9]+):(?=[0-9]{1,2}:))?(?P<m>[0-9]+):(?P<s>[0-9]{2}(?:\.[0-9]{1,9})?)", re.ASCII)
_UNITS = {
    "d": 86400,
    "day": 86400,
    "days": 86400,
    "h": 3600,
    "hr": 3600,
    "hrs": 3600,
    "hour": 3600,
    "hours": 3600,
    "m": 60,
    "min": 60,
    "mins": 60,
    "minute": 60,
    "minutes": 60,
    "s": 1,
    "sec": 1,
    "secs": 1,
    "second": 1,
    "seconds": 1,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]{1,9})?)\s?([a-z]+)\.?,?\s*(?:and\s+)?", re.I | re.A)


def parse_time(text: str) -> time | None:
    """Return the time of day that `text` names ("13:45", "1:45 pm", "5pm", "noon", "10:00:30.5"), or None.

    >>> parse_time("1:45 pm"), parse_time("noon"), parse_time("1.45")
    (datetime.time(13, 45), datetime.time(12, 0), None)
    """
    folded = canonical(text[: LONGEST + 1])
    if folded in ("noon", "midnight"):
        return time(12) if folded == "noon" else time()
    match = _TIME.fullmatch(folded)
    if match is None or (match["half"] is None and (match["m"] is None or "m" in folded)):
        return None
    if match["half"] is None and ":" not in folded:
        return None  # "1.45" is a number
    hour = int(match["h"])
    if match["half"]:
        if not 1 <= hour <= 12 or "m" not in folded:
            return None
        hour = hour % 12 + (12 if match["half"] == "p" else 0)
    micro = int((match["f"] or "0").ljust(6, "0")[:6])
    minute, second = int(match["m"] or 0), int(match["s"] or 0)
    return time(hour, minute, second, micro) if hour < 24 and minute < 60 and second < 60 else None


def parse_duration(text: str) -> timedelta | None:
    """Return the length of time that `text` writes ("2:13.32" is minutes, "1:02:03", "1h 5m", "90 min"), or None.

    >>> parse_duration("1 h 30 min")
    datetime.timedelta(seconds=5400)
    """
    folded = canonical(text[: LONGEST + 1])
    if len(folded) > LONGEST:
        return None
    if match := _CLOCK.fullmatch(folded):
        hours, minutes, seconds = int(match["h"] or 0), int(match["m"]), float(match["s"])
        return (
            _span(hours * 3600 + minutes * 60, seconds) if seconds < 60 and (minutes < 60 or not match["h"]) else None
        )
    parts = [(float(number), _UNITS.get(unit)) for number, unit in _PART.findall(folded)]
    sizes = [size for _, size in parts if size is not None]
    whole = not _PART.sub("", folded) and len(sizes) == len(parts)
    if not parts or not whole or sizes != sorted(set(sizes), reverse=True):
        return None
    return _span(0, sum(number * size for (number, _), size in zip(parts, sizes, strict=True)))


def _span(base: int, seconds: float) -> timedelta | None:
    try:
        return timedelta(seconds=base) + timedelta(seconds=seconds)
    except OverflowError:
        return None
