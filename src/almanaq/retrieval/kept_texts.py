"""What was indexed of each table, kept beside its postings: an index explains itself without the corpus it is of.

Files: `texts.bin`, tables as lines of JSON in packed blocks; `blocks.npy`, the first table of each block and where it
begins, and at the end how many there are of both.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field
from almanaq.corpus.table import Table
from almanaq.retrieval.checked import Checked

_BLOCK = 16_384  # characters that are packed together: a small table alone packs badly, a large block is slow to open
_LEVEL = 1
_MOST = 2**28  # bytes that a block unpacks to: a forged one could unpack to all memory


@dataclass
class TextPacker:
    """Packs tables, one after another; what is not indexed of them is left out."""

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
        if self._size >= _BLOCK:
            self._pack()

    def blocks(self) -> NDArray[np.int64]:
        """Pack what is left, and give the first table and the first byte of each block, and where the last ends."""
        self._pack()
        return np.array(self._blocks, dtype=np.int64)

    def _pack(self) -> None:
        if self._lines:
            self.packed += zlib.compress(b"\n".join(self._lines), _LEVEL)
            self._blocks.append((self._blocks[-1][0] + len(self._lines), len(self.packed)))
            self._lines, self._size = [], 0


def unpacked(
    packed: Checked[np.uint8], blocks: NDArray[np.int64], number: int
) -> tuple[str, list[str], list[list[str]]]:
    """Return description, keys and rows of a table, as far as they were indexed. Raises ValueError where damaged."""
    block = int(np.searchsorted(blocks[:, 0], number, side="right")) - 1
    start, end = int(blocks[block, 1]), int(blocks[block + 1, 1])
    try:
        lines = _unpacked(packed.run(start, end).tobytes()).split(b"\n")
        description, keys, rows = json.loads(lines[number - int(blocks[block, 0])])
    except (zlib.error, IndexError) as error:
        raise ValueError(f"the text of table {number} cannot be read: {error}") from error
    return description, keys, rows


def _unpacked(block: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(block, _MOST)
    if not unpacker.eof:
        raise ValueError("it does not end, or is larger than any that is written")
    return text
