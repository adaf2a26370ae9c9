"""A pattern in RE2's syntax, where its matches count: what DuckDB finds first is what PostgreSQL finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.edges import OTHER, WORD, has_word_edges, is_word, split, with_neighbours
from almanaq.suql.dialects.regexps.extents import found_first
from almanaq.suql.dialects.regexps.modes import Modes
from almanaq.suql.dialects.regexps.parse import parse
from almanaq.suql.dialects.regexps.re2 import write
from almanaq.suql.dialects.regexps.tree import (
    Chars,
    Choice,
    Group,
    Node,
    Repeat,
    Sequence,
    children,
    count_groups,
    nullable,
    parts,
)

_ITEM = r"(?:[^\\.*+?()\[\]{}|^$]|\\[!-/:-@\[-`{-~]|\.|\[\^?(?:[^\\\[\]^-](?:-[^\\\[\]^-])?)+\])"
_SAFE = rf"(?:{_ITEM}(?:[*+?]\??)?|[\^$|(]|\)(?:[*+?]\??)?)*"
_SAFE_FLAT = rf"(?:{_ITEM}[*+?]?|[\^$])*"
"""Patterns that mean the same in PostgreSQL and RE2; of the second, matches are the same too."""


def text(value: str) -> exp.Expr:
    """Return a text that is written out."""
    return exp.Literal.string(value)


OVER_LINES = text("s")


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a function, of copies."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def plain(pattern: exp.Expr) -> exp.Expr:
    """Return a pattern without what says no more than that it is text."""
    while isinstance(pattern, exp.Paren) or (isinstance(pattern, exp.Cast) and pattern.is_type("text", "varchar")):
        if isinstance(pattern, exp.Cast) and pattern.args["to"].expressions:
            break
        pattern = pattern.this
    return pattern


def written(pattern: exp.Expr, name: str) -> str:
    """Return a pattern that is written out.

    Raises:
        UnsupportedError: it is computed.
    """
    pattern = plain(pattern)
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise UnsupportedError(f"{name} takes a pattern that is written out on duckdb: use ~, or substring(… FROM …)")
    return pattern.name


def read_flags(flags: exp.Expr | None, *, also: str = "") -> str:
    """Return flags that are written out.

    Raises:
        UnsupportedError: they are computed, or others.
    """
    if flags is None:
        return ""
    if not isinstance(flags, exp.Literal):
        raise UnsupportedError("flags of regular expressions are written out, as 'i', on duckdb")
    left = "".join(letter for letter in flags.name if letter not in also)
    Modes().with_letters(left)
    return left


def matches(value: exp.Expr, pattern: exp.Expr, flags: str) -> exp.Expr:
    """Return whether a text has a match of a pattern, which may be computed if it is a simple one."""
    pattern = plain(pattern)
    if isinstance(pattern, exp.Null):
        return exp.null()
    if isinstance(pattern, exp.Literal):
        found = text(any_match(pattern.name, flags))
    elif flags:
        raise UnsupportedError("~* takes a pattern that is written out on duckdb: write lower(…) ~ … of small letters")
    else:
        found = guarded(pattern, flat=False)
    return exp.RegexpLike(this=value.copy(), expression=found, flag=OVER_LINES.copy())


@lru_cache(maxsize=1024)
def any_match(pattern: str, flags: str) -> str:
    """Return a pattern of which a text has a match where it has one in PostgreSQL."""
    return write(with_neighbours(parse(pattern, Modes().with_letters(flags))))


def guarded(pattern: exp.Expr, *, flat: bool) -> exp.Expr:
    """Return a computed pattern, or an error in a row where RE2 might read it otherwise than PostgreSQL."""
    simple = call("regexp_full_match", pattern, text(_SAFE_FLAT if flat else _SAFE))
    message = text(
        "a computed pattern is not supported on duckdb if it has more than characters, sets and * + ? | ( ): "
    )
    stop = call("error", exp.DPipe(this=message, expression=exp.paren(pattern.copy())))
    return exp.Case(ifs=[exp.If(this=exp.not_(simple), true=stop)], default=pattern.copy())


@dataclass(frozen=True)
class Match:
    """A pattern, what stands before it and after, and its groups; `whole` is the number of RE2's group that it is."""

    tree: Node
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    pattern: str
    whole: int

    @property
    def groups(self) -> int:
        return count_groups(self.tree)

    @property
    def core(self) -> str:
        return write(self.tree)

    @property
    def is_of_words(self) -> bool:
        """Tell whether a match is a whole word: edges on both sides, and nothing but characters of words between."""
        edge = [isinstance(side[0], Choice) for side in (self.before, self.after) if side]
        inner = [part for part in parts(self.tree) if isinstance(part, Chars)]
        return edge == [True, True] and all(is_word([chars], last=False) for chars in inner)

    def group(self, value: exp.Expr, number: int) -> exp.Expr:
        """Return what a group of the first match is, 0 for all: NULL where it has no part in it."""
        place = exp.Literal.number(self.whole + number)
        found = call("regexp_extract", value, text(self.pattern), place, OVER_LINES)
        return exp.Nullif(this=found, expression=text("")) if self.tells_apart(number) else found

    def tells_apart(self, number: int) -> bool:
        """Tell whether a group may be left out, which is NULL, and not the empty text.

        Raises:
            UnsupportedError: it may be left out, and may be empty.
        """
        if number == 0 or not list(_optional(self.tree))[number - 1]:
            return False
        group = [part for part in parts(self.tree) if isinstance(part, Group)][number - 1]
        if nullable(group.inner):
            raise UnsupportedError("a group that may be empty, and may be left out, is not supported on this engine")
        return True

    def when_found(self, value: exp.Expr, found: exp.Expr) -> exp.Expr:
        """Return a result where there is a match, NULL where there is none."""
        like = exp.RegexpLike(this=value.copy(), expression=text(self.pattern), flag=OVER_LINES.copy())
        return exp.Case(ifs=[exp.If(this=like, true=found)])

    def require_many(self, name: str) -> None:
        """Raise UnsupportedError unless all matches of a text, one after another, are the same as in PostgreSQL."""
        if nullable(self.tree):
            raise UnsupportedError(f"{name} takes no pattern that matches the empty text on duckdb: write + for *")
        one_side = not (self.before and self.after) and WORD not in (*self.before, *self.after)
        if self.whole and not (one_side and is_word([self.tree], last=bool(self.before))):
            raise UnsupportedError(f"{name} takes word's edges around letters and digits alone on duckdb")


@lru_cache(maxsize=1024)
def first_match(pattern: str, flags: str, *, groups: bool) -> Match:
    """Return a pattern of which DuckDB finds what PostgreSQL does; `groups`: what its groups match is asked for too.

    Raises:
        UnsupportedError: it finds something else, or that is not certain.
    """
    tree = parse(pattern, Modes().with_letters(flags))
    before, core, after = split(tree)
    if not before and not after:
        found = found_first(core, groups=groups)
        return Match(found, (), (), write(found), 0)
    if has_word_edges(core):
        write(core)
    framed = found_first(Sequence((*before, Group(core), *after)), groups=True)
    return Match(core, before, after, write(framed), 1)


def _optional(node: Node, *, loose: bool = False) -> Iterator[bool]:
    """Yield for each group, in order, whether a pattern may match without it."""
    if isinstance(node, Group):
        yield loose
    loose = loose or isinstance(node, Choice) or (isinstance(node, Repeat) and node.low == 0)
    for child in children(node):
        yield from _optional(child, loose=loose)


def of_one_kind() -> str:
    """Return the pattern of the runs of characters that belong to words, and that do not."""
    return f"{write(WORD)}+|{write(OTHER)}+"
