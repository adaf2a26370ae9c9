"""Sentence: the spans of one cover in order, and which of them a composition has used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from almanaq.agent.linking.link import Links
from almanaq.agent.linking.spans import Span

_BREAKS = frozenset((",", ";", "?", ".", "!", ":"))


class Sentence:
    """The spans of a cover with their neighbours."""

    def __init__(self, links: Links, cover: Sequence[Span]) -> None:
        self.links = links
        self.items = tuple(cover)
        self.used = [item.kind == "silent" for item in self.items]

    def of(self, *kinds: str) -> Iterator[int]:
        """Yield the places of unused spans of some kinds."""
        for i, item in enumerate(self.items):
            if item.kind in kinds and not self.used[i]:
                yield i

    def take(self, *places: int) -> None:
        """Mark spans as used."""
        for place in places:
            self.used[place] = True

    def text(self, i: int) -> str:
        """Return the words of a span in lower case; "" outside the sentence."""
        return self.links.text(self.items[i]).casefold() if 0 <= i < len(self.items) else ""

    def neighbour(
        self, i: int, step: int, *, gap: int = 3, over: Collection[str] = (), stops: Collection[str] = ()
    ) -> int | None:
        """Return the place of the next span on one side that is not silent; None where there is none so near.

        Args:
            gap: most silent spans between.
            over: kinds that are passed over too; `stops` silent words beyond which nothing is looked for.
        """
        k, passed = i + step, 0
        while 0 <= k < len(self.items):
            item = self.items[k]
            if item.kind == "silent":
                passed += 1
                if passed > gap or self.text(k) in stops or self.text(k) in _BREAKS:
                    return None
            elif item.kind not in over:
                return k
            k += step
        return None

    def words_between(self, i: int, j: int) -> list[str]:
        """Return the words of the spans between two places."""
        return [self.text(k) for k in range(min(i, j) + 1, max(i, j))]

    def words_before(self, i: int, most: int = 3) -> list[str]:
        """Return the texts of the spans just before a place, the nearest first."""
        return [self.text(k) for k in range(i - 1, max(i - 1 - most, -1), -1)]

    def has_kind(self, *kinds: str) -> bool:
        """Return whether the sentence has a span of some kinds, used or not."""
        return any(item.kind in kinds for item in self.items)

    def unused(self) -> list[Span]:
        """Return the spans that no part of the query came of."""
        return [item for i, item in enumerate(self.items) if not self.used[i] and item.kind != "and"]
