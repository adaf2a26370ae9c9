"""The parts of a regular expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

LAST = 0x10FFFF


@dataclass(frozen=True)
class Chars:
    """One character of some: in ranges of code points, or in classes by name; `negated`: in none of them."""

    ranges: tuple[tuple[int, int], ...] = ()
    classes: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Edge:
    r"""A place that takes no character: `^`, `$`, `line^`, `line$`, `\y`, `\Y`, `\m`, `\M`."""

    sign: str


@dataclass(frozen=True)
class Sequence:
    """One part after another; none of them matches the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of two or more branches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """What stands in parentheses and is given back."""

    inner: Node


@dataclass(frozen=True)
class Repeat:
    """A part again and again: `high` is None for no bound."""

    inner: Node
    low: int
    high: int | None
    greedy: bool


Node: TypeAlias = Chars | Edge | Sequence | Choice | Group | Repeat
ANY = Chars(negated=True)


def children(node: Node) -> tuple[Node, ...]:
    """Return the parts of a node."""
    if isinstance(node, Sequence):
        return node.items
    if isinstance(node, Choice):
        return node.branches
    return (node.inner,) if isinstance(node, Group | Repeat) else ()


def parts(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, in the order of their text."""
    yield node
    for child in children(node):
        yield from parts(child)


def count_groups(node: Node) -> int:
    """Count the groups that are given back."""
    return sum(isinstance(part, Group) for part in parts(node))


def nullable(node: Node) -> bool:
    """Tell whether a node can match the empty text."""
    if isinstance(node, Chars):
        return False
    if isinstance(node, Repeat):
        return node.low == 0 or nullable(node.inner)
    found = map(nullable, children(node))
    return any(found) if isinstance(node, Choice) else all(found)
