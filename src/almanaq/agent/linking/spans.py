"""Spans: words of a question with what they may mean; and the covers that use each word once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "table",
    "column",
    "value",
    "number",
    "period",
    "compare",
    "aggregate",
    "count",
    "superlative",
    "by",
    "not",
    "and",
    "distinct",
    "missing",
    "share",
    "average",
    "order",
    "direction",
    "part",
    "hold",
    "term",
    "than",
    "noun",
    "silent",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `first` to `last` (exclusive) of a question, and what they mean.

    Attributes:
        kind: what sort of thing; `meanings` what, the likeliest first.
            table: relations; column: LinkedColumns; value: ValueMeanings; number: (number, unit);
            term: Terms; period: Period; compare: Comparison; superlative: Superlative; hold: Holding;
            aggregate, by, order, direction, part, average, …: the detail of the phrase.
        score: tokens covered, times how surely they mean it.
        how: "" as it is written; else "part", "synonym", "root", "described", "form", "code", "misspelt".
    """

    first: int
    last: int
    kind: Kind
    meanings: tuple[Any, ...]
    score: float
    how: str = ""

    @property
    def size(self) -> int:
        return self.last - self.first

    @property
    def sureness(self) -> float:
        """How surely the words mean it: 1 for what is written so."""
        return min(1.0, self.score / self.size)


def best_covers(spans: Sequence[Span], length: int, most: int = 3) -> list[tuple[Span, ...]]:
    """Return the ways to use every token once with the highest sums of scores, the best first.

    Every token needs a span of its own among `spans`.
    """
    by_end: dict[int, list[Span]] = {}
    for span in spans:
        by_end.setdefault(span.last, []).append(span)
    best: list[list[tuple[float, tuple[Span, ...]]]] = [[(0.0, ())]]
    for end in range(1, length + 1):
        found = [
            (score + span.score, (*cover, span)) for span in by_end.get(end, ()) for score, cover in best[span.first]
        ]
        found.sort(key=lambda each: -each[0])
        distinct: dict[tuple[tuple[int, int, str], ...], tuple[float, tuple[Span, ...]]] = {}
        for score, cover in found:
            distinct.setdefault(tuple((s.first, s.last, s.kind) for s in cover), (score, cover))
            if len(distinct) == most:
                break
        best.append([*distinct.values()])
    return [cover for _, cover in best[length]]
