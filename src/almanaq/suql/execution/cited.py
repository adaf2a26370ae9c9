"""The passages that quotes stand in, for whoever shows a quote inside its text: kept only where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Place = tuple[str, str, str, int]
"""(relation, key, column, passage) of an Evidence."""


@dataclass
class CitedTexts:
    """The passages behind the evidence of the queries that ran meanwhile.

    Attributes:
        texts: by place.
        moved: by place and start in characters, the start in UTF-16 units, where the two differ.
        most: characters that are kept; what comes later is not kept, and its place is in `left_out`.
    """

    most: int = 16_000_000
    texts: dict[Place, str] = field(default_factory=dict)
    moved: dict[tuple[Place, int], int] = field(default_factory=dict)
    left_out: set[Place] = field(default_factory=set)
    _held: int = 0

    def add(self, place: Place, start: int, text: str) -> None:
        """Keep a passage in which a quote begins at `start`."""
        beyond = sum(character > "\uffff" for character in text[:start])
        if beyond:
            self.moved[place, start] = start + beyond
        if place in self.texts:
            return
        if self._held + len(text) > self.most:
            self.left_out.add(place)
            return
        self._held += len(text)
        self.texts[place] = text


_keeper: ContextVar[CitedTexts | None] = ContextVar("almanaq_cited_texts", default=None)


@contextmanager
def citing(most: int = CitedTexts.most) -> Iterator[CitedTexts]:
    """Keep the passages that the evidence of queries run in this block stands in."""
    kept = CitedTexts(most)
    token = _keeper.set(kept)
    try:
        yield kept
    finally:
        _keeper.reset(token)


def keeper() -> CitedTexts | None:
    """Return what keeps passages, None where nothing does."""
    return _keeper.get()
