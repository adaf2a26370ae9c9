"""Files of an index on disk, each block held against its checksum when it is first touched.

`sums.bin` of a segment: one line of JSON with the size of each file, then the checksums of their blocks, file after
file; its own hash stands in the manifest. A disk that forgets a bit is found out before the bit is used, and opening an
index still reads next to nothing. Who may write the index may write the sums: they are no signature.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from almanaq.errors import SourceError
from almanaq.models.private_files import open_private

SUMS = "sums.bin"
_SHIFT = 14  # a block is 16 KiB: its checksum takes some microseconds
_BLOCK = 1 << _SHIFT
_HEADER = 4096  # bytes in which an array's header ends
_DIGEST_BYTES = 16

D = TypeVar("D", bound=np.generic)


class Damaged(SourceError):
    """A file of an index does not hold what was written."""

    def __init__(self, file: Path, what: str) -> None:
        index, segment = file.parent.parent, file.parent.name
        super().__init__(
            f"the index {index} is damaged ({segment}/{file.name}: {what}): build it again with `almanaq index`"
        )


class Checked(Generic[D]):
    """An array in a mapped file; what is given of it was checked.

    Args:
        raw: the whole file; `sums`: the checksums of its blocks.
        array: the array within, as a view of it.
    """

    __slots__ = ("_array", "_bounds", "_file", "_head", "_left", "_raw", "_row", "_seen", "_sums", "_view")

    def __init__(self, file: Path, raw: NDArray[np.uint8], sums: NDArray[np.uint32], array: NDArray[D]) -> None:
        self._file, self._raw, self._sums, self._array = file, raw, sums, array
        self._head = len(raw) - array.nbytes
        self._row = array.strides[0] if array.size else array.itemsize
        self._seen = bytearray(len(sums))
        self._view = np.frombuffer(self._seen, dtype=np.bool_)
        self._left = len(sums)
        self._bounds: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self._array)

    def bounded(self, least: int, most: int) -> None:
        """Take no item for whole that is not between two numbers: it would point to nowhere."""
        self._bounds = least, most

    def all(self) -> NDArray[D]:
        """Return the whole array."""
        if self._left:
            self._check(range(len(self._sums)))
        return self._array

    def run(self, start: int, stop: int) -> NDArray[D]:
        """Return the items from `start` to before `stop`, of which there must be as many."""
        if self._left and stop > start:
            first, last = (self._head + start * self._row) >> _SHIFT, (self._head + stop * self._row - 1) >> _SHIFT
            if self._seen.find(0, max(first, 0), last + 1) >= 0:
                self._check(range(max(first, 0), min(last + 1, len(self._sums))))
        if not 0 <= start <= stop <= len(self._array):
            raise Damaged(self._file, f"it has no items {start} to {stop}")
        return self._array[start:stop]

    def at(self, places: NDArray[Any]) -> NDArray[D]:
        """Return the items at some places."""
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(self._array):
            raise Damaged(self._file, "it has no items at some places that are named")
        if self._left and len(places):
            begins = places.astype(np.int64) * self._row + self._head
            blocks = np.concatenate([begins >> _SHIFT, (begins + self._row - 1) >> _SHIFT])
            self._check(np.unique(blocks[~self._view[blocks]]).tolist())
        items: NDArray[D] = self._array[places]
        return items

    def _check(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if not self._seen[block]:
                if zlib.crc32(self._raw[block << _SHIFT : (block + 1) << _SHIFT].data) != self._sums[block]:
                    raise Damaged(self._file, f"block {block} does not hold what was written")
                if self._bounds is not None:
                    self._check_bounds(block, *self._bounds)
                self._seen[block] = 1
        # Counted anew rather than counted down: threads may check the same block.
        self._left = self._seen.count(0)

    def _check_bounds(self, block: int, least: int, most: int) -> None:
        first = max(0, (block << _SHIFT) - self._head) // self._row
        items = self._array[first : max(0, ((block + 1) << _SHIFT) - self._head) // self._row + 1]
        if items.size and not least <= items.min() <= items.max() <= most:
            raise Damaged(self._file, f"block {block} points to what the index does not hold")


@dataclass(frozen=True, slots=True)
class Sums:
    """The checksums of a segment's files, by name."""

    sizes: Mapping[str, int]
    by_file: Mapping[str, NDArray[np.uint32]]

    def open(self, file: Path, dtype: DTypeLike, *, width: int | None = None, rows: bool = False) -> Checked[Any]:
        """Map a file.

        Args:
            dtype: of its items; a file that is no `.npy` holds nothing else.
            width: how many of them make an item, where that is fixed; `rows`: as many as the file says.

        Raises:
            OSError: it is not there; ValueError: it is of another size or another kind.
        """
        if file.stat().st_size != self.sizes.get(file.name):
            raise ValueError(f"{file.parent.name}/{file.name} is cut off")
        raw = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
        sums = self.by_file[file.name]
        if file.suffix != ".npy":
            return Checked(file, raw, sums, raw)
        Checked(file, raw, sums, raw).run(0, min(len(raw), _HEADER))  # before what it says is believed
        head = io.BytesIO(raw[:_HEADER].tobytes())
        if npy.read_magic(head) != (1, 0):
            raise ValueError(f"{file.name} is of another format")
        try:
            shape, fortran, found = npy.read_array_header_1_0(head)
        except Exception as error:  # numpy reads it with Python's tokenizer, which has errors of its own
            raise ValueError(f"{file.name} says nothing of what it holds: {error}") from error
        many = 2 if rows or width else 1
        if fortran or found != np.dtype(dtype) or len(shape) != many or (width is not None and shape[1] != width):
            raise ValueError(f"{file.name} holds {found} in the shape {shape}")
        return Checked(file, raw, sums, raw[head.tell() :].view(found).reshape(shape))


def write_sums(folder: Path) -> str:
    """Write the checksums of all files in a folder; give the hash of the file they are in."""
    sizes: dict[str, int] = {}
    sums: list[int] = []
    for file in sorted(path for path in folder.iterdir() if path.name != SUMS):
        sizes[file.name] = file.stat().st_size
        with file.open("rb") as opened:
            while block := opened.read(_BLOCK):
                sums.append(zlib.crc32(block))
    content = json.dumps(sizes).encode() + b"\n" + np.array(sums, dtype="<u4").tobytes()
    with open(folder / SUMS, "wb", opener=open_private) as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    return _hash(content)


def read_sums(folder: Path, expected: str) -> Sums:
    """Return the checksums of a folder. Raises OSError or ValueError where they are missing or not
    the ones expected.
    """
    content = (folder / SUMS).read_bytes()
    if _hash(content) != expected:
        raise ValueError(f"{folder.name}/{SUMS} does not hold what was written")
    head, _, rest = content.partition(b"\n")
    sizes = {str(name): int(size) for name, size in json.loads(head).items()}
    sums, start, by_file = np.frombuffer(rest, dtype="<u4"), 0, {}
    for name, size in sizes.items():
        blocks = (size + _BLOCK - 1) >> _SHIFT
        by_file[name] = sums[start : start + blocks]
        start += blocks
    if start != len(sums):
        raise ValueError(f"{folder.name}/{SUMS} holds {len(sums)} sums of {start} blocks")
    return Sums(sizes, by_file)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
