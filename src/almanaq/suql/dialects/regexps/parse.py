"""Reads the advanced regular expressions of PostgreSQL."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.brackets import read_set
from almanaq.suql.dialects.regexps.escapes import read_escape
from almanaq.suql.dialects.regexps.modes import Modes
from almanaq.suql.dialects.regexps.tree import ANY, Chars, Choice, Edge, Group, Node, Repeat, Sequence

_BOUNDS = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_MOST = 255
_LOOKS = ("(?=", "(?!", "(?<")


def parse(pattern: str, modes: Modes | None = None) -> Node:
    """Return the tree of a pattern.

    Raises:
        UnsupportedError: it looks around or back, or is no pattern of PostgreSQL's.
    """
    modes = modes or Modes()
    if pattern.startswith("***="):
        pattern, modes = pattern[4:], replace(modes, literal=True)
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    if not modes.literal and (options := re.match(r"\(\?([a-z]+)\)", pattern)):
        pattern, modes = pattern[options.end() :], modes.with_letters(options[1])
    if modes.literal:
        return Sequence(tuple(modes.one(ord(char)) for char in pattern))
    reader = _Reader(pattern, modes)
    found = reader.choice()
    if reader.at < len(pattern):
        reader.fail("a ) without its (")
    return found


@dataclass
class _Reader:
    pattern: str
    modes: Modes
    at: int = 0

    def fail(self, reason: str) -> None:
        raise UnsupportedError(f"the pattern {self.pattern!r} has {reason}: write it without on this engine")

    def choice(self) -> Node:
        branches = [self._sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while True:
            self._skip()
            if self.at >= len(self.pattern) or self.pattern[self.at] in "|)":
                return items[0] if len(items) == 1 else Sequence(tuple(items))
            items.append(self._repeated(self._atom()))

    def _skip(self) -> None:
        """Pass over comments, and over blanks where they mean nothing."""
        blank = r"(?:\(\?#[^)]*\)|\s+|#[^\n]*)*" if self.modes.expanded else r"(?:\(\?#[^)]*\))*"
        self.at = re.compile(blank).match(self.pattern, self.at).end()  # type: ignore[union-attr]

    def _atom(self) -> Node:
        sign = self.pattern[self.at]
        if sign == "(":
            return self._parentheses()
        if sign == "[":
            found, self.at = read_set(self.pattern, self.at, self.modes)
            return found
        if sign == "\\":
            found, self.at = read_escape(self.pattern, self.at, self.modes)
            return found
        if sign in "*+?" or _BOUNDS.match(self.pattern, self.at):
            self.fail(f"{sign!r} after nothing that could be repeated")
        if re.match(r"\{\d", self.pattern[self.at :]):
            self.fail("a { that is not closed")
        self.at += 1
        if sign == ".":
            return Chars(((10, 10),), (), negated=True) if self.modes.lines_in_sets else ANY
        if sign in "^$":
            return Edge(f"line{sign}" if self.modes.lines_at_edges else sign)
        return self.modes.one(ord(sign))

    def _parentheses(self) -> Node:
        if self.pattern.startswith(_LOOKS, self.at):
            self.fail(f"{self.pattern[self.at : self.at + 3]!r}, and there is no look-around here")
        given = not self.pattern.startswith("(?:", self.at)
        if given and self.pattern.startswith("(?", self.at):
            self.fail(f"{self.pattern[self.at : self.at + 3]!r}, which means nothing in PostgreSQL")
        self.at += 1 if given else 3
        inner = self.choice()
        if not self.pattern.startswith(")", self.at):
            self.fail("a ( without its )")
        self.at += 1
        return Group(inner) if given else inner

    def _repeated(self, atom: Node) -> Node:
        self._skip()
        sign = self.pattern[self.at : self.at + 1]
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign, (1, 1))
        if bounds := _BOUNDS.match(self.pattern, self.at):
            low = int(bounds[1])
            high = (int(bounds[3]) if bounds[3] else None) if bounds[2] else low
            if bounds[2] and low == high:
                self.fail(f"the bounds {bounds[0]}, which are {{{low}}}")
            if max(low, high or 0) > _MOST or (high is not None and low > high):
                self.fail(f"the bounds {bounds[0]}, which PostgreSQL has up to {_MOST}")
            self.at = bounds.end()
        elif sign and sign in "*+?":
            self.at += 1
        else:
            if re.match(r"\{\d", self.pattern[self.at :]):
                self.fail("a { that is not closed")
            return atom
        if isinstance(atom, Edge):
            self.fail("a place that is repeated")
        greedy = not self.pattern.startswith("?", self.at)
        self.at += not greedy
        if self.pattern[self.at : self.at + 1] in tuple("*+?") or _BOUNDS.match(self.pattern, self.at):
            self.fail("a repetition of a repetition")
        return Repeat(atom, low, high, greedy)
