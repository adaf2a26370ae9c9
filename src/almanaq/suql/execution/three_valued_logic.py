"""Three-valued logic with parts still open: what a predicate can still become, and which atom to find out next.

A set of possible truth values is a bit mask of TRUE, FALSE and NULL; what is known is a mask with one bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from almanaq.suql.plan.predicates import And, Computed, Not, Or, Predicate, Structured, Verdict

TRUE, FALSE, NULL = 1, 2, 4
ANY = TRUE | FALSE | NULL

Atom = Structured | Verdict | Computed


def mask(value: bool | None) -> int:
    """Return the mask of a known truth value."""
    return NULL if value is None else TRUE if value else FALSE


def possible(predicate: Predicate, known: Mapping[str, int]) -> int:
    """Return what a predicate can still be, given the masks of the atoms known by column."""
    match predicate:
        case And(children):
            return _fold(children, known, _AND)
        case Or(children):
            return _fold(children, known, _OR)
        case Not(child):
            return _NOT[possible(child, known)]
    return known.get(predicate.column, ANY)


@dataclass(frozen=True, slots=True)
class Choice:
    """The atom to find out next in a predicate, with what deciding the whole of it is expected to take."""

    atom: Atom
    cost: float
    chance: float


def choose(
    predicate: Predicate, known: Mapping[str, int], cost: Callable[[Atom], float], chance: Callable[[Atom], float]
) -> Choice:
    """Return the atom whose answer decides the predicate at the least expected cost.

    Children of an AND are tried by cost / chance of not being TRUE, those of an OR by cost / chance of being TRUE.

    Args:
        cost: what finding out an atom takes; chance: the probability that it is TRUE.
    """
    match predicate:
        case Not(child):
            inner = choose(child, known, cost, chance)
            return Choice(inner.atom, inner.cost, 1 - inner.chance)
        case And(children) | Or(children):
            conjunction = isinstance(predicate, And)
            still_open = [child for child in children if possible(child, known) & (possible(child, known) - 1)]
            choices = [choose(child, known, cost, chance) for child in still_open]
            choices.sort(key=lambda c: c.cost / max(1e-6, 1 - c.chance if conjunction else c.chance))
            reach, total = 1.0, 0.0
            for choice in choices:
                total += reach * choice.cost
                reach *= choice.chance if conjunction else 1 - choice.chance
            return Choice(choices[0].atom, total, reach if conjunction else 1 - reach)
    return Choice(predicate, cost(predicate), chance(predicate))


def _fold(children: tuple[Predicate, ...], known: Mapping[str, int], table: list[list[int]]) -> int:
    result = possible(children[0], known)
    for child in children[1:]:
        result = table[result][possible(child, known)]
    return result


def _both(left: int, right: int) -> int:
    if FALSE in (left, right):
        return FALSE
    return NULL if NULL in (left, right) else TRUE


def _negation(value: int) -> int:
    return {TRUE: FALSE, FALSE: TRUE, NULL: NULL}[value]


def _bits(values: int) -> list[int]:
    return [bit for bit in (TRUE, FALSE, NULL) if values & bit]


def _image(left: int, right: int, both: Callable[[int, int], int]) -> int:
    image = 0
    for a in _bits(left):
        for b in _bits(right):
            image |= both(a, b)
    return image


_NOT = [sum(_negation(bit) for bit in _bits(values)) for values in range(8)]
_AND = [[_image(a, b, _both) for b in range(8)] for a in range(8)]
_OR = [[_NOT[_AND[_NOT[a]][_NOT[b]]] for b in range(8)] for a in range(8)]
