"""A dict of a bounded size, for what is worked out once and read several times."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(dict[K, V]):
    """A dict that drops its oldest entry when one more than `most` is set.

    >>> squares = BoundedDict[int, int](2)
    >>> for number in range(3):
    ...     squares[number] = number**2
    >>> squares
    {1: 1, 2: 4}
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most and key not in self:
            self.pop(next(iter(self)), None)
        super().__setitem__(key, value)
