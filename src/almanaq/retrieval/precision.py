"""In how many bits the vectors of an index are kept, and codes: small copies that all tables are first compared in.

An int8 code holds each component in one byte, in units of the vector's largest; a binary one holds its sign in one bit.
The nearest by their codes are compared again by the vectors themselves, which are kept in half precision.
The only module that imports usearch.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, UsageError
from almanaq.models.embedders.vector_store import Vectors

_LEAST = 1e-12


class Precision(StrEnum):
    """In what the vectors of tables are kept."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    INT8 = "int8"
    BINARY = "binary"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the vectors themselves."""
        return np.dtype(np.float32 if self is Precision.FLOAT32 else np.float16)

    @property
    def code_type(self) -> np.dtype[Any] | None:
        """The type of what a code consists of; None: there are no codes."""
        return {Precision.INT8: np.dtype(np.int8), Precision.BINARY: np.dtype(np.uint8)}.get(self)

    @property
    def spare(self) -> int:
        """How many times as many tables are compared again as are wanted: a sign says little."""
        return 4 if self is Precision.BINARY else 1

    def codes(self, vectors: Vectors) -> NDArray[Any]:
        """Return the codes of vectors."""
        if self is Precision.BINARY:
            return np.packbits(vectors > 0, axis=1)
        largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), _LEAST)
        codes: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
        return codes

    def nearest(self, codes: NDArray[Any], vector: Vectors, count: int) -> NDArray[np.intp]:
        """Return the numbers of the vectors whose codes are nearest to that of one.

        Raises:
            MissingExtraError: the extra `hnsw` is not installed.
        """
        code = self.codes(vector[None])[0]
        return _nearest_rows(codes, code, count, "hamming" if self is Precision.BINARY else "cos")


def parse_precision(name: str) -> Precision:
    """Return the precision of a name. Raises UsageError for an unknown one."""
    try:
        return Precision(name)
    except ValueError:
        known = ", ".join(Precision)
        raise UsageError(f"no vectors in {name!r}: choose one of {known}") from None


def _nearest_rows(
    rows: NDArray[Any], row: NDArray[Any], count: int, metric: Literal["cos", "hamming"]
) -> NDArray[np.intp]:
    """Return the numbers of the rows of bytes that are nearest to one, all of them compared.

    Raises:
        MissingExtraError: the extra `hnsw` is not installed.
    """
    try:
        from usearch.compiled import MetricKind
        from usearch.index import search
    except ImportError as problem:
        raise MissingExtraError("usearch", "hnsw", "an index with codes of vectors") from problem
    kind = MetricKind.Cos if metric == "cos" else MetricKind.Hamming
    found = search(rows, row[None], count, kind, exact=True, threads=1)
    return np.ravel(found.keys).astype(np.intp)
