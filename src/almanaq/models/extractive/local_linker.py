"""LocalLinker: values that mean the same as a literal, by equal spelling, shared words, and a few synonyms."""

from __future__ import annotations

from collections.abc import Callable

from almanaq.models.protocols import LinkRequest
from almanaq.sample import read_toml
from almanaq.text.words import stems, text_similarity
from almanaq.values import canonical

_SPELLING = 0.55
"""Similarity of letters from which a value counts as another spelling of the literal."""


class LocalLinker:
    """A Linker that knows words, not the world: the first of its means that finds any value decides."""

    name = "local"

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        """Return the values that mean the same as the literal, in the column's order."""
        literal = canonical(request.literal)
        wanted = frozenset(stems(literal))
        meanings = [other for other in _synonyms(wanted) if other]
        tests: tuple[Callable[[str], bool], ...] = (
            lambda value: canonical(value) == literal,
            lambda value: bool(wanted) and _whole(wanted, value),
            lambda value: any(_whole(other, value) for other in meanings),
            lambda value: len(literal) > 3 and text_similarity(literal, canonical(value)) >= _SPELLING,
        )
        found = (tuple(value for value in request.values if test(value)) for test in tests)
        return next((values for values in found if values), ())


def _whole(wanted: frozenset[str], value: str) -> bool:
    """Return whether one holds all the words of the other: "burger" and "Burgers & Shakes"."""
    held = frozenset(stems(value))
    return bool(held) and (wanted <= held or held <= wanted)


def _synonyms(wanted: frozenset[str]) -> list[frozenset[str]]:
    same = read_toml("places.toml")["same"]
    groups = [[frozenset(stems(word)) for word in group.split(", ")] for group in same]
    return [
        other
        for group in groups
        if any(word and word <= wanted for word in group)
        for other in group
        if other != wanted
    ]
