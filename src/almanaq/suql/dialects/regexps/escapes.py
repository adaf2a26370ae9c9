"""What a backslash means in a regular expression of PostgreSQL's."""

from __future__ import annotations

import re

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.modes import Modes
from almanaq.suql.dialects.regexps.tree import Chars, Edge, Node

_CONTROLS = {"a": 7, "b": 8, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CODES = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]+))")
_CLASSES = {"d": "digit", "s": "space", "w": "word"}
_LAST = 0x10FFFF


def read_escape(pattern: str, at: int, modes: Modes) -> tuple[Node, int]:
    """Return what an escape stands for, and the place after it.

    Raises:
        UnsupportedError: a back reference, or an escape that PostgreSQL has not.
    """
    sign = pattern[at + 1 : at + 2]
    if sign in _CLASSES:
        return modes.named(_CLASSES[sign]), at + 2
    if sign.lower() in _CLASSES:
        return Chars((), modes.named(_CLASSES[sign.lower()]).classes, negated=True), at + 2
    if sign and sign in "yYmM":
        return Edge(f"\\{sign}"), at + 2
    if sign and sign in "AZ":
        return Edge("^" if sign == "A" else "$"), at + 2
    point, end = read_character(pattern, at)
    return modes.one(point), end


def read_character(pattern: str, at: int) -> tuple[int, int]:
    """Return the code point that an escape stands for, and the place after it.

    Raises:
        UnsupportedError: it stands for no character.
    """
    sign = pattern[at + 1 : at + 2]
    if sign == "b":
        raise UnsupportedError(
            rf"\b is a backspace in PostgreSQL's regular expressions: write \y for a word's edge (in {pattern!r})"
        )
    if code := _CODES.match(pattern, at):
        point = int(code[1] or code[2] or code[3], 16)
        if 0 < point <= _LAST and not 0xD800 <= point <= 0xDFFF:
            return point, code.end()
    if sign in _CONTROLS:
        return _CONTROLS[sign], at + 2
    if sign and not re.match(r"[A-Za-z0-9]", sign):
        return ord(sign), at + 2
    what = "back references" if sign.isdigit() else f"{pattern[at : at + 2]!r}"
    raise UnsupportedError(f"the pattern {pattern!r} has {what}: write it without on this engine")
