"""Which of our turns, questions and conversations are held out: every second one by the SHA-256 of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Literal, TypeVar

T = TypeVar("T")
Half = Literal["dev", "held-out"]


def half(items: Sequence[T], words: Callable[[T], str], which: Half) -> list[T]:
    """Return one half of the items, in the order of their hashes."""
    ordered = sorted(items, key=lambda item: sha256(words(item).encode()).hexdigest())
    return ordered[1 if which == "held-out" else 0 :: 2]
