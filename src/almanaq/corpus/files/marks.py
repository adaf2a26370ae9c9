"""What a whole column, or a whole file, says of how its numbers and days are written, where one cell alone does not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

DecimalMark = Literal[".", ","]
DayOrder = Literal["DMY", "MDY"]

_LONGEST = 80
_DIGITS = re.compile(r"[0-9](?:[0-9.,' \u00a0\u202f\u2009]*[0-9])?", re.ASCII)
_COMMA = re.compile(
    r"(?:[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})|0,[0-9]+|[0-9]{1,3}(?:[. '][0-9]{3})+,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,})",
    re.ASCII,
)
_POINT = re.compile(
    r"(?:[0-9]+\.(?:[0-9]{1,2}|[0-9]{4,})|0\.[0-9]+|[0-9]{1,3}(?:[, '][0-9]{3})+\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3}){2,})",
    re.ASCII,
)
_SLASHED = re.compile(r"([0-9]{1,2})(?:[/-]([0-9]{1,2})[/-][0-9]{4}|/([0-9]{1,2})/[0-9]{2})(?![0-9/])", re.ASCII)
_SHORT_YEAR = re.compile(
    r"(?P<day>[0-9]{1,2}/[0-9]{1,2}/|[0-9]{2}\.[0-9]{2}\.|[0-9]{1,2}-[A-Za-z]{3}-)(?P<year>[0-9]{2})(?![0-9/.-])",
    re.ASCII,
)
_PIVOT = 69
"""Of years with two digits: 69 is 1969, and 68 is 2068, as strptime has them."""
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'"})
ORDERS = {"DMY": "day/month/year", "MDY": "month/day/year"}


@dataclass(frozen=True, slots=True)
class Marks:
    """How numbers and days are written; None: each cell says it for itself, as far as it does."""

    decimal: DecimalMark | None = None
    days: DayOrder | None = None

    def over(self, other: Marks) -> Marks:
        """Return these, and where they say nothing those of another."""
        return Marks(self.decimal or other.decimal, self.days or other.days)


def is_slashed(cell: str) -> bool:
    """Tell whether a cell begins with a day whose order it may not say: 02/03/1968."""
    return _SLASHED.match(cell.strip()) is not None


def with_full_year(cell: str) -> str:
    """Return a cell that begins with a day whose year has two digits with all four: "5/3/09" is "5/3/2009"."""
    found = _SHORT_YEAR.match(cell.strip())
    if found is None:
        return cell
    century = "19" if int(found["year"]) >= _PIVOT else "20"
    return f"{found['day']}{century}{found['year']}{cell.strip()[found.end() :]}"


def marks_of(cells: Iterable[str]) -> Marks:
    """Return what some cells say together: what one of them can only mean, if no other contradicts it."""
    decimals: set[DecimalMark] = set()
    orders: set[DayOrder] = set()
    for cell in cells:
        if len(cell) > _LONGEST or cell.isdigit():
            continue
        if _POINT.fullmatch(cell):
            decimals.add(".")
        elif day := _SLASHED.match(cell.strip()):
            first, second = int(day[1]), int(day[2] or day[3])
            orders |= {"DMY"} if first > 12 >= second else {"MDY"} if second > 12 >= first else set()
        elif digits := _DIGITS.search(cell):
            written = digits[0].translate(_SPACES)
            decimals |= {","} if _COMMA.fullmatch(written) else {"."} if _POINT.fullmatch(written) else set()
    return Marks(next(iter(decimals)) if len(decimals) == 1 else None, next(iter(orders)) if len(orders) == 1 else None)
