"""Python values → Arrow columns without `pyarrow.array`, which imports pandas wherever that is installed.

That import would take the first query 0.3 s and 45 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_MOST_BYTES = 2**31 - 1


def boolean_column(values: Sequence[bool | None]) -> pa.Array:
    """Return a column of booleans."""
    true = _bits([value is True for value in values])
    return pa.Array.from_buffers(pa.bool_(), len(values), [_present(values), true])


def text_column(values: Sequence[str | None]) -> pa.Array:
    """Return a column of text."""
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > _MOST_BYTES:
        return pa.array(values, pa.string())
    buffers = [_present(values), pa.py_buffer(ends.astype(np.int32).tobytes()), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def id_column(values: Sequence[Any]) -> pa.Array:
    """Return a column of row ids: integers, text where an engine names its rows by text, or what an engine else has."""
    if all(type(value) is int for value in values):
        numbers = pa.py_buffer(np.array(values, np.int64).tobytes())
        return pa.Array.from_buffers(pa.int64(), len(values), [None, numbers])
    if all(isinstance(value, str) for value in values):
        return text_column(values)
    return pa.array(values)


def _present(values: Sequence[Any]) -> pa.Buffer | None:
    missing = [value is None for value in values]
    return _bits([not absent for absent in missing]) if any(missing) else None


def _bits(values: list[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(values, bool), bitorder="little").tobytes())
