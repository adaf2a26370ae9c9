"""Vectors of unit length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def normalised(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the rows of a matrix at unit length, in single precision; a row of zeros stays as it is."""
    single = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(single, axis=1, keepdims=True)
    return (single / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
