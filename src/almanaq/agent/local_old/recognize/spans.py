"""Spans: what runs of tokens may mean, each with a score. The same tokens may be in several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `first` to `last` (exclusive) with a meaning.

    Attributes:
        kind: one letter, as `compose` reads it: C column, R relation, V value, N number, O comparison with a number,
            K comparative, D days, A aggregate, H count, B grouping, S superlative, X negation, M missing, L a text to
            hold, Z more or less than a row, U distinct, G comparison with the average, P percentage of, Y period,
            F order, E direction, w silent, ? unknown.
        data: what the kind needs.
        score: how surely the tokens mean it, times how many they are.
        said: the word, of a verb; the stems, of a relation's name; "" of other words.
    """

    first: int
    last: int
    kind: str
    data: Any
    score: float
    said: str = ""


COMPUTED = "="
"""What `Span.said` holds for a column called after how it is computed: `average_temperature`."""
CHOSEN = "chosen"
"""With what `Span.said` begins for a superlative that chooses between two: "who is older, Ann or Bo"."""
IN_UNIT = "in the unit "
"""With what `Span.data` begins for words that say in which unit a figure is asked for."""
HOW = "how"
"""What `Span.said` holds for a column that "how tall" asks for."""


def silenced(span: Span) -> Span:
    """Return a span as one of words that ask for nothing."""
    return replace(span, kind="w", data="")


def is_deed(span: Span) -> bool:
    """Return whether a verb names a column: `order_date` of "ordered", `opened_at` of "opened"."""
    if span.kind != "C":
        return False
    place, quality = span.data[0]
    return span.said not in ("", COMPUTED, HOW) or (place.kind == "date" and quality < 1 and len(span.data) == 1)


def best_cover(found: Iterable[Span], size: int) -> tuple[Span, ...]:
    """Return the spans that cover all tokens once with the highest score; of equal ones, those of longer spans."""
    ending: dict[int, list[Span]] = {}
    for span in found:
        ending.setdefault(span.last, []).append(span)
    best: list[tuple[float, tuple[Span, ...]]] = [(0.0, ())]
    for last in range(1, size + 1):
        options = [(best[s.first][0] + s.score - 0.02, (*best[s.first][1], s)) for s in ending.get(last, ())]
        best.append(max(options, key=lambda o: (o[0], -len(o[1]))))
    return best[size][1]
