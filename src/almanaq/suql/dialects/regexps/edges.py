r"""Edges of words: `\y`, `\m` and the like, as what stands beside them; letters are those of all languages."""

from __future__ import annotations

from dataclasses import replace

from almanaq.suql.dialects.regexps.classes import holds, samples
from almanaq.suql.dialects.regexps.tree import Chars, Choice, Edge, Group, Node, Sequence, children, nullable, parts

WORD = Chars((), ("word",))
OTHER = Chars((), ("word",), negated=True)
_BEGIN, _END = Edge("^"), Edge("$")


def has_word_edges(node: Node) -> bool:
    r"""Tell whether a pattern has `\y`, `\Y`, `\m` or `\M`."""
    return any(_is_edge(part) for part in parts(node))


def with_neighbours(node: Node) -> Node:
    """Write a word's edges at the ends of a pattern as the characters beside them: it matches the same texts."""
    if isinstance(node, Choice):
        return Choice(tuple(map(with_neighbours, node.branches)))
    if isinstance(node, Group):
        return replace(node, inner=with_neighbours(node.inner))
    before, core, after = split(node)
    if isinstance(core, Choice | Group):
        core = with_neighbours(core)
    return Sequence((*before, core, *after)) if before or after else core


def split(node: Node) -> tuple[tuple[Node, ...], Node, tuple[Node, ...]]:
    """Return what stands before a match and after it, and the pattern without the edges of words that are settled."""
    items: list[Node] = list(node.items) if isinstance(node, Sequence) else [node]
    items = [item for place, item in enumerate(items) if not _is_certain(items, place)]
    before, after = (), ()  # type: tuple[Node, ...], tuple[Node, ...]
    if len(items) > 1 and _is_edge(items[0]) and (found := _beside(items[0], items[1:], _BEGIN, "\\m")):
        before, items = (found,), items[1:]
    if len(items) > 1 and _is_edge(items[-1]) and (found := _beside(items[-1], items[-2::-1], _END, "\\M")):
        after, items = (found,), items[:-1]
    return before, items[0] if len(items) == 1 else Sequence(tuple(items)), after


def _is_edge(node: Node) -> bool:
    return isinstance(node, Edge) and node.sign.startswith("\\")


def _beside(edge: Node, items: list[Node], end: Edge, own: str) -> Node | None:
    """Return what stands on the other side of an edge at an end of a pattern; None where that is not certain."""
    assert isinstance(edge, Edge)
    word = is_word(items, last=end is _END)
    if word is None or (edge.sign in ("\\m", "\\M") and (edge.sign == own) != word):
        return None
    if (edge.sign == "\\Y") == word:
        return WORD
    return Choice((end, OTHER))


def _is_certain(items: list[Node], place: int) -> bool:
    """Tell whether an edge between two parts always is one."""
    edge = items[place]
    if not isinstance(edge, Edge) or not edge.sign.startswith("\\") or not 0 < place < len(items) - 1:
        return False
    before = is_word(items[place - 1 :: -1], last=True) if items[place - 1] != _BEGIN else False
    after = is_word(items[place + 1 :], last=False) if items[place + 1] != _END else False
    if before is None or after is None:
        return False
    wanted = {"\\y": before != after, "\\Y": before == after, "\\m": after and not before, "\\M": before and not after}
    return wanted[edge.sign]


def is_word(items: list[Node], *, last: bool) -> bool | None:
    """Tell whether parts begin, or end, with a character of a word; None where that depends."""
    kinds = {
        holds(WORD, point)
        for chars in _outermost(items, last=last)
        for point in samples(chars, WORD)
        if holds(chars, point)
    }
    return kinds.pop() if len(kinds) == 1 else None


def _outermost(items: list[Node], *, last: bool) -> list[Chars]:
    """Return the sets that the first, or the last, character is of; none where there may be no character."""
    found: list[Chars] = []
    for item in items:
        if isinstance(item, Edge):
            return []
        found += _of_one(item, last=last)
        if not nullable(item):
            return found
    return []


def _of_one(node: Node, *, last: bool) -> list[Chars]:
    if isinstance(node, Chars):
        return [node]
    found: list[Chars] = []
    inner = children(node)
    for child in reversed(inner) if last else inner:
        found += _of_one(child, last=last)
        if isinstance(node, Sequence) and not nullable(child):
            break
    return found
