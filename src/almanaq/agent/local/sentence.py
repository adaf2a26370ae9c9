"""Sentence: the spans of one cover in order; Choices: what a composer decides where words leave it open."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.link import Links
from almanaq.agent.linking.spans import Span

_DOING = ("er", "or", "ist", "ant", "ent", "ee")
"""How nouns end that say who does something."""
_BREAKS = frozenset((",", ";", "?", ".", "!", ":"))
_ALL = frozenset("all any every everyone everybody everything many".split())


def names_doers(column: LinkedColumn) -> bool:
    """Return whether a column is called by those who do something: `writer`, `customer`."""
    return column.kind == "text" and column.words[-1].endswith(_DOING)


class Sentence:
    """The spans of a cover with their neighbours."""

    def __init__(self, links: Links, cover: Sequence[Span]) -> None:
        self.links = links
        self.items = tuple(cover)
        excepting = [i for i in range(len(cover)) if self.text(i) == "but" and self._excepts(i)]
        self.items = tuple(replace(item, kind="not") if i in excepting else item for i, item in enumerate(cover))
        self.used = [item.kind == "silent" for item in self.items]

    def _excepts(self, i: int) -> bool:
        """Return whether a "but" leaves rows out, as in "all dogs but pugs"; that of "cheap but good" does not."""
        said = {word for k in range(i) for word in self.text(k).split()}
        if not said & _ALL or said & {"no", "not", "nothing", "never"}:
            return False
        last = next((item for item in reversed(self.items[:i]) if item.kind != "silent"), None)
        flag = last and last.kind == "column" and getattr(last.meanings[0].thing, "kind", "") == "boolean"
        noun = last is None or (last.kind in ("table", "noun", "column") and not flag)
        return noun or self.text(i - 1) in _ALL or self.text(i + 1) in ("those", "the")

    def asks_doer(self, i: int, column: LinkedColumn) -> bool:
        """Return whether a verb asks for a column that names who does it: "who wrote it", of a `writer`."""
        return i == 1 and self.text(0) == "who" and names_doers(column)

    def asks_for(self, i: int, column: LinkedColumn) -> bool:
        """Return whether the question word and a verb ask for a column: "when was it sold", of the day it was."""
        return self.asks_doer(i, column) or (self.text(0) == "when" and column.kind == "date")

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
        unused = [item for i, item in enumerate(self.items) if not self.used[i] and item.kind != "and"]
        return [item for item in unused if self.links.text(item).casefold() not in ("every", "each")]


T = TypeVar("T")
_SHARPNESS = 5.0
_SURE_VALUE, _FAR = 0.8, 0.05


def _certainty(key: Hashable, weight: float, options: int) -> float:
    """Return how sure an option of some weight is: a name that only one column has is surer than its parts say."""
    weight = min(1.0, weight)
    if isinstance(key, tuple) and key[0] == "value":
        return weight if weight >= _SURE_VALUE else 0.7 * weight
    return (1 + weight) / 2 if options == 1 else weight


@dataclass
class Choices:
    """The decisions of one composition.

    Attributes:
        forced: which option to take at a choice, by its place among the likeliest; 0 where nothing is forced.
        made: the choices that came up, each with how many options it has, and the share of each.
        log_probability: the sum of the logarithms of what was chosen.
        log_certainty: the same, as if nothing else could be chosen.
        reasons: what was not sure, in words for people who tune it.
    """

    forced: Mapping[Hashable, int] = field(default_factory=dict)
    made: dict[Hashable, tuple[float, ...]] = field(default_factory=dict)
    log_probability: float = 0.0
    log_certainty: float = 0.0
    reasons: list[str] = field(default_factory=list)

    def pick(self, key: Hashable, options: Sequence[tuple[T, float]]) -> T:
        """Return the likeliest option, or the one that is forced; weights are about 1 for what is sure."""
        ranked = sorted(options, key=lambda each: -each[1])[:4]
        weights = [max(weight, 1e-3) ** _SHARPNESS for _, weight in ranked]
        total = sum(weights)
        shares = tuple(weight / total for weight in weights)
        place = min(self.forced.get(key, 0), len(ranked) - 1)
        if key not in self.made:
            self.made[key] = shares
            self.log_certainty -= math.log(max(shares[place], 1e-6))
            worth = sum(share > _FAR for share in shares)
            self.doubt(shares[place] * _certainty(key, ranked[place][1], worth), f"{key}: {place} of {len(ranked)}")
        return ranked[place][0]

    def doubt(self, probability: float, reason: str = "", *, when: object = True) -> None:
        """Lower the probability of the whole, where something is so."""
        if not when:
            return
        self.log_probability += math.log(max(probability, 1e-6))
        self.log_certainty += math.log(max(probability, 1e-6))
        if probability < 1:
            self.reasons.append(f"{reason} {probability:.2f}")
