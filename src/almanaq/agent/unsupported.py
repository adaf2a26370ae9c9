"""What a model's wording claims that nothing which it was given holds: figures, currencies and quotes."""

from __future__ import annotations

import re
from decimal import Decimal

from almanaq.agent.describe import join_words
from almanaq.values import parse_quantity

_NUMBER = re.compile(r"\d+(?:[.,’'\xa0\u202f]\d+)*", re.ASCII)
_QUOTED, _OMITTED = re.compile(r"[“„«\"]((?:[^“”„«»\"\s]+\s){2,400}[^“”„«»\"]+)[”“»\"]"), re.compile(r"…|\.{3}")
_CURRENCIES = (r"€|\beuros?\b|\beur\b", r"\$|\bdollars?\b|\busd\b", r"£|\bgbp\b", r"¥|\byen\b|\byuan\b")
_SCALES = (1, 10**3, 10**6, 10**9, Decimal("0.01"))  # thousands, millions, billions, percent


def say_unsupported(reply: str, given: str, counted: int) -> str:
    """Return the sentence that names what a reply claims and `given` does not hold; "" for nothing.

    Whole numbers up to `counted` may count or number what is listed. Quotes are of three words or more.
    """
    known = {number for token in _NUMBER.findall(given) for number in _read_numbers(token)}
    figures = [token for token in _NUMBER.findall(reply) if not _is_known(token, known, counted)]
    quotes, plain = _QUOTED.findall(reply), _plain(given)
    strange = [f"“{each}”" for each in quotes if not all(_plain(part) in plain for part in _OMITTED.split(each))]
    found = dict.fromkeys([*figures, *find_currencies(reply, given), *strange])
    return f"Check this reply: nothing that was found holds {join_words(found)}." if found else ""


def find_currencies(text: str, given: str) -> list[str]:
    """Return the currencies that a text names and `given` does not."""
    whole = given.casefold().replace("_", " ")
    named = [re.search(each, text.casefold()) for each in _CURRENCIES if not re.search(each, whole)]
    return [found[0] for found in named if found]


def _is_known(token: str, known: set[Decimal], counted: int) -> bool:
    for number in (numbers := _read_numbers(token)):
        digits = max(0, -int(number.as_tuple().exponent))
        said = (round(one / scale, digits) for one in known for scale in _SCALES if 1000 * one >= scale)
        if number in known or number in said or (not digits and number <= counted):
            return True
    return not numbers


def _read_numbers(token: str) -> list[Decimal]:
    """Return what digits may stand for: "1,234" is 1234 or 1.234, and "05.03.2024" no number."""
    return [read[0] for mark in (None, ",") if (read := parse_quantity(token, mark)) is not None]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
