"""Texts as values: which of them mean the same, and which a database can hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 80
"""No number, date or time is written in more characters; longer text is refused at once."""
_SPACE = re.compile(r"\s+")


def canonical(text: str) -> str:
    """Return the form in which two replies that mean one value are equal (semantics 4): space and case folded.

    >>> canonical("  Yes. ")
    'yes.'
    """
    return _SPACE.sub(" ", text).strip().casefold()


def option_of(text: str, options: Sequence[str]) -> str | None:
    """Return the one of some options that a text means, as that is spelled; None when it means none of them.

    >>> option_of("  VERY good", ["bad", "Very Good"])
    'Very Good'
    """
    meant = canonical(text)
    return next((option for option in options if canonical(option) == meant), None)


_UNWRITABLE = re.compile("[\\0\\ud800-\\udfff]")


def writable(text: str) -> str:
    """Return text that every database takes: NUL and halves of characters, as replies may have, become U+FFFD.

    >>> writable("Rex\\0") == "Rex\\ufffd"
    True
    """
    return _UNWRITABLE.sub("\ufffd", text)
