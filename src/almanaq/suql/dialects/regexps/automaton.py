"""A regular expression as states: what follows each character, and what is tried first."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.classes import holds, samples
from almanaq.suql.dialects.regexps.tree import Chars, Choice, Edge, Group, Node, Repeat, Sequence, parts

END = -1
"""The symbol that stands after a text."""
MATCH = 0
_MOST_STATES = 600


@dataclass
class Automaton:
    """States by number: a set of characters and what follows, or a place and what follows, or what is tried in turn."""

    signs: list[Chars | Edge | None] = field(default_factory=lambda: [None])
    targets: list[list[int]] = field(default_factory=lambda: [[]])
    taken: dict[tuple[int, int], bool] = field(default_factory=dict)

    def add(self, sign: Chars | Edge | None, targets: list[int]) -> int:
        """Return a new state."""
        if len(self.signs) >= _MOST_STATES:
            raise UnsupportedError("the pattern is too long to tell whether this engine matches the same: shorten it")
        self.signs.append(sign)
        self.targets.append(targets)
        return len(self.signs) - 1

    def enter(self, node: Node, then: int) -> int:
        """Return the state in which a node begins, where `then` is the state after it."""
        if isinstance(node, Chars | Edge):
            return self.add(node, [then])
        if isinstance(node, Group):
            return self.enter(node.inner, then)
        if isinstance(node, Choice):
            return self.add(None, [self.enter(branch, then) for branch in node.branches])
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                then = self.enter(item, then)
            return then
        return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        turn = 1 if node.greedy else -1
        state = then
        if node.high is None:
            state = self.add(None, [])
            self.targets[state] = [self.enter(node.inner, state), then][::turn]
        for _ in range((node.high or node.low) - node.low):
            state = self.add(None, [self.enter(node.inner, state), then][::turn])
        for _ in range(node.low):
            state = self.enter(node.inner, state)
        return state

    def reach(self, states: Iterable[int], *, begin: bool, stop: int | None = None) -> tuple[int, ...]:
        """Return the states that wait for a character, or have matched, in the order in which they are tried."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        waiting = list(states)[::-1]
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            sign = self.signs[state]
            if state in (MATCH, stop) or isinstance(sign, Chars) or (isinstance(sign, Edge) and sign.sign == "$"):
                found[state] = None
            elif sign is None or begin:
                waiting += self.targets[state][::-1]
        return tuple(found)

    def step(self, states: Iterable[int], symbol: int, *, begin: bool = False, stop: int | None = None) -> Several[int]:
        """Return the states after a symbol."""
        moved = [self.targets[state][0] for state in states if state != stop and self._takes(state, symbol)]
        return self.reach(moved, begin=begin, stop=stop)

    def is_end(self, state: int) -> bool:
        """Tell whether a state waits for the end of the text."""
        return isinstance(self.signs[state], Edge)

    def matches(self, states: Iterable[int]) -> int:
        """Return 2 where states have matched, 1 where they have at the end of a text, else 0."""
        waiting, seen = set(states), set[int]()
        if MATCH in waiting:
            return 2
        while waiting:
            seen |= waiting
            waiting = set(self.step(waiting, END)) - seen
        return int(MATCH in seen)

    def _takes(self, state: int, symbol: int) -> bool:
        known = self.taken.get((state, symbol))
        if known is None:
            sign = self.signs[state]
            known = symbol == END if isinstance(sign, Edge) else symbol != END and sign is not None
            known = known and (not isinstance(sign, Chars) or holds(sign, symbol))
            self.taken[state, symbol] = known
        return known


def symbols(node: Node) -> tuple[int, ...]:
    """Return a character of each kind that a pattern tells from others, and the end."""
    sets = tuple(dict.fromkeys(part for part in parts(node) if isinstance(part, Chars)))
    return (*samples(*sets), END)
