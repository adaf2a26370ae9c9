"""Rows of two drivers, made alike."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_DIGITS = 9
_MONTH, _YEAR = 30, 365


def verdict(expected: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> str:
    """Say how rows agree: "same", "other order", or "different"."""
    one, other = ([tuple(map(_plain, row)) for row in rows] for rows in (expected, found))
    if one == other:
        return "same"
    return "other order" if Counter(map(repr, one)) == Counter(map(repr, other)) else "different"


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float | Decimal):
        number = float(value) + 0.0  # there is one zero
        return "nan" if number != number else float(f"{number:.{_DIGITS}g}")
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if type(value).__name__ == "MonthDayNano":
        years, months = divmod(abs(value.months), 12)  # as psycopg counts them
        days = math.copysign(years * _YEAR + months * _MONTH, value.months)
        return (days + value.days) * 86_400 + value.nanoseconds / 1e9
    if isinstance(value, memoryview | bytes):
        return bytes(value)
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
