"""One spelling for all equals of a value (semantics 4): that of the first one in the order of the source."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from almanaq.suql.execution.columns import text_column
from almanaq.values import canonical
from almanaq.values.lists import SEPARATOR

_AT_ONCE = 10_000


class Spellings:
    """Gives columns of replies in which equal values are spelled alike.

    Args:
        several: more than one column will come, or lists, so that the spellings of one have to be known to the next;
            a million values take hundreds of megabytes then, and a few tens otherwise.
    """

    def __init__(self, *, several: bool) -> None:
        self._known: dict[str, str] | None = {} if several else None

    def column(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column, in the order of the source, with one spelling for all equals."""
        if self._known is None:
            return _alone(values)
        known = self._known
        return _mapped(values, lambda value: spelled(value, known))


def spelled(value: str, known: dict[str, str]) -> str:
    """Return a value as its first equal was spelled, which is added to those known; of a list, each of its texts."""
    if SEPARATOR in value:
        return SEPARATOR.join(spelled(text, known) for text in value.split(SEPARATOR))
    form = canonical(value)
    # One object where both are the same text: there may be a million of them.
    return known.setdefault(form, form if form == value else value)


def _alone(values: pa.ChunkedArray) -> pa.ChunkedArray:
    encoded = _mapped(values, canonical).dictionary_encode()
    codes = np.concatenate([np.zeros(0, np.int32), *(part.indices.fill_null(-1).to_numpy() for part in encoded.chunks)])
    present, first = np.unique(codes, return_index=True)
    if len(present) == len(codes):  # no two are equal
        return values
    places = first[np.searchsorted(present, codes)].astype(np.int64)
    return values.take(pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places.tobytes())]))


def _mapped(values: pa.ChunkedArray, change: Callable[[str], str]) -> pa.ChunkedArray:
    """Return a column changed value by value, little by little: as objects, its values take ten times the memory."""
    changed = []
    for start in range(0, len(values), _AT_ONCE):
        part: list[str | None] = values.slice(start, _AT_ONCE).to_pylist()
        changed.append(text_column([value if value is None else change(value) for value in part]))
    return pa.chunked_array(changed, pa.string())
