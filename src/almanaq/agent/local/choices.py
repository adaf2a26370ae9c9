"""Choices: what a composer decides where words leave it open, so that the other ways can be tried as well."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
_SHARPNESS = 5.0


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
            self.doubt(shares[place] * min(1.0, ranked[place][1]), f"{key}: {place} of {len(ranked)}")
        return ranked[place][0]

    def doubt(self, probability: float, reason: str = "") -> None:
        """Lower the probability of the whole."""
        self.log_probability += math.log(max(probability, 1e-6))
        self.log_certainty += math.log(max(probability, 1e-6))
        if probability < 1:
            self.reasons.append(f"{reason} {probability:.2f}")
