"""How a pattern is read: by the letters that stand before it, or are handed over beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.classes import cases
from almanaq.suql.dialects.regexps.tree import Chars

_WIDE = 0x1000


@dataclass(frozen=True)
class Modes:
    """Whether letters match small and large, lines end where, blanks mean nothing, and signs stand for themselves."""

    folded: bool = False
    lines_in_sets: bool = False
    lines_at_edges: bool = False
    expanded: bool = False
    literal: bool = False

    def with_letters(self, letters: str) -> Modes:
        """Return the modes after `i`, `c`, `n`, `m`, `s`, `p`, `w`, `x`, `t`, `q`; each undoes others of its kind.

        Raises:
            UnsupportedError: another letter.
        """
        found = self
        for letter in letters:
            if letter not in _LETTERS:
                raise UnsupportedError(
                    f"a regular expression with the flag {letter!r} is not supported: i, c, n, m, s, p, w, x, t, q are"
                )
            found = replace(found, **_LETTERS[letter])
        return found

    def one(self, point: int) -> Chars:
        """Return a character, small and large where letters match both."""
        points = cases(point) if self.folded else (point,)
        return Chars(tuple((each, each) for each in points))

    def span(self, low: int, high: int) -> Chars:
        """Return a range of characters, small and large where letters match both.

        Raises:
            UnsupportedError: too many of them to look at each.
        """
        if not self.folded:
            return Chars(((low, high),))
        if high - low > _WIDE:
            raise UnsupportedError("a range of over 4,096 characters is not matched small and large: write it out")
        others = {each for point in range(low, high + 1) for each in cases(point) if not low <= each <= high}
        return Chars(((low, high), *_joined(sorted(others))))

    def named(self, name: str) -> Chars:
        """Return a class of characters by its name."""
        folded = self.folded and name in ("upper", "lower")
        return Chars((), ("alpha" if folded else name,))


def _joined(points: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1] = (found[-1][0], point)
        else:
            found.append((point, point))
    return found


_LETTERS: dict[str, dict[str, bool]] = {
    "i": {"folded": True},
    "c": {"folded": False},
    "n": {"lines_in_sets": True, "lines_at_edges": True},
    "m": {"lines_in_sets": True, "lines_at_edges": True},
    "s": {"lines_in_sets": False, "lines_at_edges": False},
    "p": {"lines_in_sets": True, "lines_at_edges": False},
    "w": {"lines_in_sets": False, "lines_at_edges": True},
    "x": {"expanded": True},
    "t": {"expanded": False},
    "q": {"literal": True},
}
