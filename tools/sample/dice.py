"""Seeded choices that give the same result on every Python: only `random()` itself is guaranteed to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Seeded choices; two dice with one seed throw the same."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random(":".join(map(str, seed)))

    def chance(self, share: float) -> bool:
        """Return True for `share` of the throws."""
        return self._random.random() < share

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def uniform(self, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        return low + self._random.random() * (high - low)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(self._random.random() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """Return one of the items, each as often as its weight says."""
        rest = self._random.random() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            rest -= weight
            if rest < 0:
                return item
        return items[-1]

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """Return `size` different items (all of them when there are fewer), in random order."""
        return self.shuffled(items)[:size]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        keys = sorted((self._random.random(), i) for i in range(len(items)))
        return [items[i] for _, i in keys]
