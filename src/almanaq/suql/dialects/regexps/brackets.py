"""Sets of characters in brackets, as PostgreSQL reads them."""

from __future__ import annotations

import re

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.classes import NAMES
from almanaq.suql.dialects.regexps.escapes import read_character, read_escape
from almanaq.suql.dialects.regexps.modes import Modes
from almanaq.suql.dialects.regexps.tree import Chars, Edge, Node

_NAMED = re.compile(r"\[([:.=])(.*?)\1\]", re.DOTALL)


def read_set(pattern: str, at: int, modes: Modes) -> tuple[Node, int]:
    """Return the set that begins at a place, and the place after it.

    Raises:
        UnsupportedError: a name that is no class, or a range that is none.
    """
    for written, sign in (("[[:<:]]", "\\m"), ("[[:>:]]", "\\M")):
        if pattern.startswith(written, at):
            return Edge(sign), at + len(written)
    negated = pattern.startswith("^", at + 1)
    first = at = at + 1 + negated
    found: list[Chars] = []
    while not (pattern.startswith("]", at) and at > first):
        part, at = _part(pattern, at, modes)
        low = part if isinstance(part, int) else None
        if pattern.startswith("-", at) and not pattern.startswith("-]", at):
            high, at = _part(pattern, at + 1, modes)
            if low is None or not isinstance(high, int) or low > high:
                raise _wrong(pattern, "a range that is none")
            part = modes.span(low, high)
        found.append(modes.one(part) if isinstance(part, int) else part)
    ranges = tuple(pair for chars in found for pair in chars.ranges)
    if negated and modes.lines_in_sets:
        ranges += ((10, 10),)
    classes = tuple(dict.fromkeys(name for chars in found for name in chars.classes))
    return Chars(tuple(dict.fromkeys(ranges)), classes, negated), at + 1


def _part(pattern: str, at: int, modes: Modes) -> tuple[int | Chars, int]:
    """Return a character, or a class, of a set."""
    if at >= len(pattern):
        raise _wrong(pattern, "a [ without its ]")
    if named := _NAMED.match(pattern, at):
        return _by_name(pattern, named[1], named[2], modes), named.end()
    if pattern[at] != "\\":
        return ord(pattern[at]), at + 1
    if pattern[at + 1 : at + 2] in ("d", "s", "w"):
        chars, end = read_escape(pattern, at, modes)
        assert isinstance(chars, Chars)
        return chars, end
    return read_character(pattern, at)


def _by_name(pattern: str, kind: str, name: str, modes: Modes) -> int | Chars:
    if kind == ":" and name in NAMES:
        return modes.named(name)
    if kind != ":" and len(name) == 1:
        return ord(name)
    raise _wrong(pattern, f"[{kind}{name}{kind}], which is not supported here")


def _wrong(pattern: str, reason: str) -> UnsupportedError:
    return UnsupportedError(f"the pattern {pattern!r} has {reason}: write its characters out")
