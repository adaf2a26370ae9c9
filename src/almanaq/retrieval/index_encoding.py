"""How vectors and texts are encoded in an index on disk.

Vectors are stored in half precision. An int8 code holds each component in one byte, in units of the vector's largest; a
binary one holds its sign in one bit. The nearest by code are compared again by the vectors. The only module that
imports usearch.

`texts.bin` holds what was indexed of each table, as JSON lines in compressed blocks, so that an index explains its hits
without its corpus; `blocks.npy` the first table and first byte of each block, and at the end how many there are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Field, Table
from almanaq.errors import MissingExtraError, UsageError
from almanaq.models.embedders.vector_store import Vectors
from almanaq.retrieval.index_files import CheckedArray

_EPSILON = 1e-12


class Precision(StrEnum):
    """How the vectors of tables are stored."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    INT8 = "int8"
    BINARY = "binary"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the stored vectors."""
        return np.dtype(np.float32 if self is Precision.FLOAT32 else np.float16)

    @property
    def code_type(self) -> np.dtype[Any] | None:
        """The type of the numbers in a code; None where there are no codes."""
        return {Precision.INT8: np.dtype(np.int8), Precision.BINARY: np.dtype(np.uint8)}.get(self)

    @property
    def spare(self) -> int:
        """How many times more tables are rescored than requested: signs alone are imprecise."""
        return 4 if self is Precision.BINARY else 1

    def codes(self, vectors: Vectors) -> NDArray[Any]:
        """Return the codes of vectors."""
        if self is Precision.BINARY:
            return np.packbits(vectors > 0, axis=1)
        largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), _EPSILON)
        codes: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
        return codes

    def nearest(self, codes: NDArray[Any], vector: Vectors, count: int) -> NDArray[np.intp]:
        """Return the numbers of the vectors whose codes are nearest to the code of one vector.

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
    """Return the numbers of the rows nearest to one row, by exact search.

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


_BLOCK_CHARS = 16_384  # per block: a small table alone compresses badly, a large block is slow to read
_ZLIB_LEVEL = 1
MAX_BLOCK_BYTES = 2**28  # decompressed: a forged block could otherwise fill all memory


@dataclass
class TextPacker:
    """Compresses the indexed content of tables into blocks."""

    fields: Sequence[Field]
    packed: bytearray = field(default_factory=bytearray)
    _blocks: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    _lines: list[bytes] = field(default_factory=list)
    _size: int = 0

    def add(self, table: Table) -> None:
        """Add a table."""
        description = table.description if Field.DESCRIPTION in self.fields else ""
        keys = table.keys if Field.KEYS in self.fields else ()
        rows = table.rows if Field.CELLS in self.fields else ()
        line = json.dumps([description, keys, rows], ensure_ascii=False, separators=(",", ":"))
        self._lines.append(line.encode("utf-8", "surrogatepass"))
        self._size += len(line)
        if self._size >= _BLOCK_CHARS:
            self._pack()

    def blocks(self) -> NDArray[np.int64]:
        """Pack the rest; return the first table and first byte of each block, and the end of the last."""
        self._pack()
        return np.array(self._blocks, dtype=np.int64)

    def _pack(self) -> None:
        if self._lines:
            self.packed += zlib.compress(b"\n".join(self._lines), _ZLIB_LEVEL)
            self._blocks.append((self._blocks[-1][0] + len(self._lines), len(self.packed)))
            self._lines, self._size = [], 0


def unpack_table(
    packed: CheckedArray[np.uint8], blocks: NDArray[np.int64], number: int
) -> tuple[str, list[str], list[list[str]]]:
    """Return description, keys and rows of a table, if they were indexed. Raises ValueError where damaged."""
    block = int(np.searchsorted(blocks[:, 0], number, side="right")) - 1
    start, end = int(blocks[block, 1]), int(blocks[block + 1, 1])
    try:
        lines = _decompress(packed.run(start, end).tobytes()).split(b"\n")
        description, keys, rows = json.loads(lines[number - int(blocks[block, 0])])
    except (zlib.error, IndexError) as error:
        raise ValueError(f"the text of table {number} cannot be read: {error}") from error
    return description, keys, rows


def _decompress(block: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(block, MAX_BLOCK_BYTES)
    if not unpacker.eof:
        raise ValueError("it does not end, or is larger than any that is written")
    return text
