"""Where a match ends: PostgreSQL takes the longest or the shortest of all, RE2 and Java what they find first."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.automaton import END, MATCH, Automaton, symbols
from almanaq.suql.dialects.regexps.groups import refuse_other_groups
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
    parts,
)

_MOST_LISTS = 400
States: TypeAlias = tuple[int, ...]


def found_first(node: Node, *, groups: bool) -> Node:
    """Return a pattern whose first find is PostgreSQL's match, and whose groups are too, where they are asked for.

    Raises:
        UnsupportedError: it is another, or that is not certain.
    """
    groups = groups and count_groups(node) > 0
    kinds = {part.greedy for part in parts(node) if isinstance(part, Repeat) and part.low != part.high}
    if _is_flat(node):
        if len(kinds) < 2:
            return node
        if not groups:
            return _made(node, greedy=prefers_long(node) is not False)
        if _ends(node) and all(_is_uniform(run) for run in _runs(node)):
            return node
        raise _unlike("repetitions that want much and others that want little, like .* and .*?")
    _refuse_uncertain(node)
    if not groups:
        return _without_groups(node, greedy=prefers_long(node) is not False)
    if False in kinds:
        raise _unlike("repetitions that want little, like .*?, beside alternatives or repeated groups")
    for tried in (node, _sorted(node, greedy=True)):
        try:
            refuse_other_groups(tried)
            _require(tried, greedy=True)
        except UnsupportedError as error:
            refused = error
        else:
            return tried
    raise refused


def prefers_long(node: Node) -> bool | None:
    """Tell whether PostgreSQL prefers a long match: as the first repetition in it does, and any choice."""
    if isinstance(node, Choice):
        return True
    if isinstance(node, Repeat):
        return prefers_long(node.inner) if node.low == node.high else node.greedy
    if isinstance(node, Sequence):
        return next((found for item in node.items if (found := prefers_long(item)) is not None), None)
    return prefers_long(node.inner) if isinstance(node, Group) else None


def _without_groups(node: Node, *, greedy: bool) -> Node:
    """Return a pattern of one kind of repetition; branches that are longer are tried first, or last."""
    made = _made(node, greedy=greedy)
    try:
        _require(made, greedy=greedy)
    except UnsupportedError:
        made = _sorted(made, greedy=greedy)
        _require(made, greedy=greedy)
    return made


def _require(node: Node, *, greedy: bool) -> None:
    """Raise UnsupportedError unless what is found first is the longest match, or the shortest."""
    automaton = Automaton()
    entry = automaton.enter(node, MATCH)
    alphabet = symbols(node)
    waiting = [automaton.reach([entry], begin=True), automaton.reach([entry], begin=False)]
    seen = set(waiting)
    while waiting:
        states = waiting.pop()
        if MATCH in states:
            place = states.index(MATCH)
            kept, cut = states[:place], states[place + 1 :]
            if (any(not automaton.is_end(state) for state in kept) and not greedy) or (
                cut and greedy and not _includes(automaton, kept, cut, alphabet)
            ):
                raise _unlike("alternatives, or parts that may be missing, of which another is longer")
            states = kept
        for symbol in alphabet:
            after = tuple(automaton.step(states, symbol))
            if after and after not in seen:
                seen.add(after)
                waiting.append(after)
        if len(seen) > _MOST_LISTS:
            raise _unlike("too many ways to match")


def _includes(automaton: Automaton, kept: States, cut: States, alphabet: tuple[int, ...]) -> bool:
    """Tell whether some states match each text that others do, beside the empty one, and at the end of a text."""
    waiting = [(frozenset(cut), frozenset(kept))]
    seen = set(waiting)
    while waiting:
        others, own = waiting.pop()
        for symbol in alphabet:
            pair = frozenset(automaton.step(others, symbol)), frozenset(automaton.step(own, symbol))
            theirs, ours = (automaton.matches(states) for states in pair)
            if symbol != END and theirs > ours:
                return False
            if symbol != END and pair[0] and pair not in seen:
                seen.add(pair)
                waiting.append(pair)
        if len(seen) > _MOST_LISTS:
            return False
    return True


def _refuse_uncertain(node: Node) -> None:
    for part in parts(node):
        if isinstance(part, Edge) and part.sign.startswith("line"):
            raise _unlike("edges of lines beside alternatives or repeated groups")
        if isinstance(part, Repeat) and part.high != 1 and nullable(part.inner):
            raise _unlike("repetitions of what may be empty")


def _is_flat(node: Node) -> bool:
    """Tell whether a pattern is a row of single characters, each with a repetition or without."""
    if isinstance(node, Sequence):
        return all(map(_is_flat, node.items))
    if isinstance(node, Repeat):
        return isinstance(node.inner, Chars)
    return isinstance(node, Chars | Edge) or (isinstance(node, Group) and _is_flat(node.inner))


def _ends(node: Node) -> bool:
    return node == Edge("$") or (isinstance(node, Sequence) and bool(node.items) and _ends(node.items[-1]))


def _runs(node: Node) -> list[list[Node]]:
    """Return the parts of a pattern between the edges of its groups."""
    found: list[list[Node]] = [[]]
    for item in node.items if isinstance(node, Sequence) else (node,):
        if isinstance(item, Group):
            found += [[item], []]
        else:
            found[-1].append(item)
    return found


def _is_uniform(run: list[Node]) -> bool:
    return len({p.greedy for item in run for p in parts(item) if isinstance(p, Repeat) and p.low != p.high}) < 2


def _made(node: Node, *, greedy: bool) -> Node:
    """Return a pattern whose repetitions all want much, or little."""
    if isinstance(node, Repeat):
        return replace(node, inner=_made(node.inner, greedy=greedy), greedy=greedy or node.low == node.high)
    if isinstance(node, Sequence):
        return Sequence(tuple(_made(item, greedy=greedy) for item in node.items))
    if isinstance(node, Choice):
        return Choice(tuple(_made(branch, greedy=greedy) for branch in node.branches))
    return replace(node, inner=_made(node.inner, greedy=greedy)) if isinstance(node, Group) else node


def _sorted(node: Node, *, greedy: bool) -> Node:
    if isinstance(node, Choice):
        branches = [_sorted(branch, greedy=greedy) for branch in node.branches]
        return Choice(tuple(branches if count_groups(node) else sorted(branches, key=_longest, reverse=greedy)))
    if isinstance(node, Sequence):
        return Sequence(tuple(_sorted(item, greedy=greedy) for item in node.items))
    return replace(node, inner=_sorted(node.inner, greedy=greedy)) if isinstance(node, Repeat | Group) else node


def _longest(node: Node) -> float:
    if isinstance(node, Chars):
        return 1
    if isinstance(node, Repeat):
        return _longest(node.inner) * (float("inf") if node.high is None else node.high)
    if isinstance(node, Choice):
        return max(map(_longest, node.branches))
    if isinstance(node, Sequence):
        return sum(map(_longest, node.items))
    return _longest(node.inner) if isinstance(node, Group) else 0


def _unlike(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"a pattern with {what}, is not supported where what it matches counts: PostgreSQL may match more or less of "
        "the text than this engine; put the longer alternative first, and write [^,]* rather than .*?"
    )
