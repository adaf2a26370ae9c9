"""Numbers as people write them: with currencies, scales, percent signs, either decimal mark."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

from almanaq.values.texts import LONGEST

_CURRENCIES = (
    r"US\$|A\$|C\$|CA\$|AU\$|NZ\$|HK\$|S\$|R\$|[$€£¥₹₩₽₺฿]|USD|EUR|GBP|JPY|CHF|INR|CNY|AUD|CAD|SEK|NOK|DKK|RMB|Rs\.?"
)
_SCALES = {
    "hundred": 2,
    "k": 3,
    "thousand": 3,
    "m": 6,
    "mn": 6,
    "mio": 6,
    "million": 6,
    "millions": 6,
    "b": 9,
    "bn": 9,
    "billion": 9,
    "billions": 9,
    "tn": 12,
    "trillion": 12,
    "trillions": 12,
}
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-])?\s?(?P<before>{_CURRENCIES})?\s?(?P<within>\()?(?P<inner>[+-])?"
    r"(?P<digits>[0-9](?:[0-9.,' ]*[0-9])?\.?|\.[0-9]+)(?P<exponent>[eE][+-]?[0-9]{1,3})?"
    rf"(?:\s?(?P<scale>[A-Za-z]+?))??(?:\s?(?P<after>%|percent|per cent|{_CURRENCIES}))?(?P<close>\))?"
    r"(?P<behind>-)?",
    re.ASCII,
)
_PLAIN = re.compile(r"[0-9]*\.?[0-9]*", re.ASCII)
_ORDINARY = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?", re.ASCII)
_GROUPED = (
    re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+)(\.[0-9]*)?", re.ASCII),  # 1,234.5
    re.compile(r"([0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3})(\.[0-9]*)?", re.ASCII),  # 12,34,567.5
    re.compile(r"([0-9]{1,3}(?:[ '][0-9]{3})+)([.,][0-9]*)?", re.ASCII),  # 1 234,5 and 1'234.5
    re.compile(r"([0-9]{1,3}(?:\.[0-9]{3})+)(,[0-9]*)", re.ASCII),  # 1.234,5
    re.compile(r"([0-9]{1,3}(?:\.[0-9]{3}){2,})()", re.ASCII),  # 1.234.567
    re.compile(r"([0-9]+)(,(?:[0-9]{1,2}|[0-9]{4,}))", re.ASCII),  # 1,5: no group of thousands has this length
)
_ENGLISH = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+|[0-9]{1,3}(?:[, '][0-9]{3})+(?:\.[0-9]*)?", re.ASCII)
_SWAPPED = str.maketrans(",.", ".,")
_SPELLED_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"})


def parse_quantity(text: str, decimal: str | None = None) -> tuple[Decimal, str] | None:
    """Return the number that `text` writes and its unit (a currency as written, "%", or ""), or None.

    `decimal` is the decimal mark where it is known, as from the other cells of a column: with "," "1.234" is 1234.

    Understood: "1,234", "1 234", "1.234,5", "US$3m", "3.5 million", "12%", "1e5", and as negative "(5)", "$(5)", "5-".
    "12%" is 12 with the unit "%". "1,234" and "1.234" are read as in English. A bare "m" or "b" is a scale only after
    a currency or as a capital: "3 m" may be metres.

    >>> parse_quantity("$1,234.50")
    (Decimal('1234.50'), '$')
    """
    if _ORDINARY.fullmatch(text) and (decimal != "," or "." not in text):
        return Decimal(text), ""
    text = text.translate(_SPELLED_SPACES).strip()
    match = _NUMBER.fullmatch(text) if len(text) <= LONGEST else None
    opened = [bracket for bracket in ("open", "within") if match and match[bracket]]
    if match is None or len(opened) != bool(match["close"]):
        return None
    signs = [s for s in (match["sign"], match["inner"], match["behind"], *map(match.group, opened)) if s]
    unit = (match["before"] or "") if match["after"] is None else match["after"]
    scale = _scale(match["scale"], bool(match["before"] or match["after"]))
    digits = _digits(match["digits"], decimal)
    if len(signs) > 1 or (match["before"] and match["after"]) or scale is None or digits is None:
        return None
    value = Decimal(digits + (match["exponent"] or "")).scaleb(scale)
    if value and not -308 <= value.adjusted() <= 308:
        return None
    return (-value if signs and signs[0] in "-(" else value), "%" if unit.startswith("per") else unit


def parse_number(text: str) -> Decimal | None:
    """Return the number that `text` writes, or None; "12%" is 12 (see `parse_quantity`).

    >>> parse_number("1,234.5")
    Decimal('1234.5')
    """
    quantity = parse_quantity(text)
    return None if quantity is None else quantity[0]


def parse_integer(text: str) -> int | None:
    """Return the whole number that `text` writes ("1,234", "3 million", "4.0"), or None.

    >>> parse_integer("3 million"), parse_integer("4.0"), parse_integer("4.5")
    (3000000, 4, None)
    """
    number = parse_number(text)
    return int(number) if number is not None and number == number.to_integral_value() else None


def _scale(word: str | None, priced: bool) -> int | None:
    """Return the power of ten that a word after a number stands for, None when it is no scale."""
    if not word:
        return 0
    if len(word) == 1 and not priced and word in "mb":
        return None
    return _SCALES.get(word.lower())


def _digits(written: str, decimal: str | None = None) -> str | None:
    """Return the digits with a point for the decimal mark and no grouping; None when the grouping is unknown."""
    if decimal == "," and ("," in written or "." in written):
        swapped = written.translate(_SWAPPED)
        return _digits(swapped) if _ENGLISH.fullmatch(swapped) else None
    if _PLAIN.fullmatch(written):
        return written
    for pattern in _GROUPED:
        if match := pattern.fullmatch(written):
            return re.sub(r"[,.' ]", "", match[1]) + (match[2] or "").replace(",", ".")
    return None


def shortest(value: float | None) -> float | None:
    """Return a number of single precision as the one with fewest digits that it stands for.

    >>> shortest(1.100000023841858)
    1.1
    """
    if value is None or not math.isfinite(value):
        return value
    texts = (f"{value:.{digits}g}" for digits in range(6, 10))
    same = struct.Struct("f")
    return next((float(t) for t in texts if same.unpack(same.pack(float(t)))[0] == value), value)
