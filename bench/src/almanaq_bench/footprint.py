"""How much memory an index takes: its arrays, texts and containers, what is shared counted once."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping

import numpy as np

from almanaq.models.vector_store import VectorStore

_MOST = 2_000_000  # objects looked at: enough for any index here, and it ends on all


def footprint(index: object) -> int:
    """Return the bytes that an index holds; models and stores of vectors, which others share, are left out."""
    seen: set[int] = set()
    open_: list[object] = [index]
    total = 0
    while open_ and len(seen) < _MOST:
        item = open_.pop()
        if id(item) in seen or isinstance(item, type | VectorStore) or hasattr(item, "embed_documents"):
            continue
        seen.add(id(item))
        total += item.nbytes if isinstance(item, np.ndarray) else sys.getsizeof(item)
        open_.extend(_parts(item))
    return total


def _parts(item: object) -> Iterable[object]:
    if isinstance(item, np.ndarray | str | bytes | int | float) or item is None:
        return ()
    if isinstance(item, Mapping):
        return (part for pair in item.items() for part in pair)
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if dataclasses.is_dataclass(item):
        return [getattr(item, each.name) for each in dataclasses.fields(item)]
    return list(getattr(item, "__dict__", {}).values())
