"""What groups give back: the same in PostgreSQL as where the first find counts, for patterns that leave no choice."""

from __future__ import annotations

from collections.abc import Iterator

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.automaton import MATCH, Automaton, symbols
from almanaq.suql.dialects.regexps.tree import (
    Chars,
    Choice,
    Edge,
    Group,
    Node,
    Repeat,
    Sequence,
    count_groups,
    nullable,
)

_MOST_PAIRS = 20_000


def refuse_other_groups(node: Node) -> None:
    """Raise UnsupportedError unless the groups of each match are certain; all repetitions want much.

    From each group's edge on, PostgreSQL takes the longest text up to the next, and RE2 the longest for each part in
    turn. Of single characters, repeated or not, both are the same; a part of any other kind has to begin at a place
    that is settled, and to have one end alone from there, or to be repetitions of one length.
    """
    automaton = Automaton()
    pieces = list(_pieces(node))
    entries = [MATCH]
    for piece in reversed(pieces):
        entries.append(entries[-1] if piece is None else automaton.enter(piece, entries[-1]))
    entries.reverse()
    alphabet = symbols(node)
    settled = True
    for piece, entry, after in zip(pieces, entries[:-1], entries[1:], strict=True):
        if piece is None:
            settled = True
            continue
        if isinstance(piece, Chars | Edge) or (
            isinstance(piece, Repeat) and piece.low == piece.high and _is_one(piece)
        ):
            continue
        certain = settled and _has_one_end(automaton, entry, after, alphabet)
        if not certain and not _is_one(piece) and not (settled and _tries_long_first(piece)):
            raise _uncertain()
        settled = settled and certain
        if count_groups(piece):
            _refuse_inside(piece)


def _tries_long_first(piece: Node) -> bool:
    """Tell whether a part is a repetition of what has one length."""
    return isinstance(piece, Repeat) and bool(_width(piece.inner, inside=True))


def _is_one(piece: Node) -> bool:
    return isinstance(piece, Repeat) and isinstance(piece.inner, Chars)


def _pieces(node: Node) -> Iterator[Node | None]:
    """Yield the parts in turn, and None for each edge of a group."""
    if isinstance(node, Group):
        yield None
        yield from _pieces(node.inner)
        yield None
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _pieces(item)
    else:
        yield node


def _refuse_inside(piece: Node) -> None:
    """Raise UnsupportedError unless the groups inside a part are certain, whose text is."""
    if isinstance(piece, Choice):
        for branch in piece.branches:
            refuse_other_groups(branch)
    elif isinstance(piece, Repeat) and (piece.low, piece.high) == (0, 1) and not nullable(piece.inner):
        refuse_other_groups(piece.inner)
    elif not (isinstance(piece, Repeat) and isinstance(piece.inner, Group) and _width(piece.inner.inner)):
        raise _uncertain()


def _width(node: Node, *, inside: bool = False) -> int | None:
    """Return the one length of all that a part matches; `inside`: it may have groups."""
    if isinstance(node, Chars | Edge):
        return int(isinstance(node, Chars))
    if isinstance(node, Group):
        return _width(node.inner, inside=True) if inside else None
    if isinstance(node, Repeat):
        inner = _width(node.inner, inside=inside)
        return inner * node.low if inner is not None and node.low == node.high else None
    widths = [_width(part, inside=inside) for part in (node.branches if isinstance(node, Choice) else node.items)]
    if None in widths:
        return None
    known = [width for width in widths if width is not None]
    if isinstance(node, Choice):
        return known[0] if len(set(known)) == 1 else None
    return sum(known)


def _has_one_end(automaton: Automaton, entry: int, after: int, alphabet: tuple[int, ...]) -> bool:
    """Tell whether no text leaves a choice of where a part that begins at its start ends.

    Two readings of one text are followed side by side: the first goes on behind the part while the second is still
    within it (stage 1), and later both are behind it (stage 2).
    """
    inside = automaton.reach([entry], begin=True, stop=after)
    behind = automaton.reach([after], begin=True)
    waiting: list[tuple[int, int, int]] = [(p, q, 0) for p in inside for q in inside]
    seen = set(waiting)
    while waiting:
        first, second, stage = waiting.pop()
        found: set[tuple[int, int, int]] = set()
        if stage == 0 and first == after and second != after:
            found |= {(place, second, 1) for place in behind}
        for symbol in alphabet:
            stop_first = after if stage == 0 else None
            stop_second = after if stage < 2 else None
            ones = automaton.step([first], symbol, begin=True, stop=stop_first)
            others = automaton.step([second], symbol, begin=True, stop=stop_second)
            for one in ones:
                for other in others:
                    if stage == 1 and other == after:
                        found |= {(one, place, 2) for place in behind}
                    else:
                        found.add((one, other, stage))
        if (MATCH, MATCH, 2) in found or len(seen) > _MOST_PAIRS:
            return False
        waiting += found - seen
        seen |= found
    return True


def _uncertain() -> UnsupportedError:
    return UnsupportedError(
        "groups of this pattern are not supported: PostgreSQL may divide the text among them otherwise than this "
        "engine; write a pattern in which each part ends where the next can begin alone"
    )
