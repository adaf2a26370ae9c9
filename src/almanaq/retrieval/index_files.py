"""Files of an index on disk: checksums per block, the manifest, and the lock of its writer.

`sums.bin` of a segment: one line of JSON with the size of each file, then the checksums of their blocks, file after
file; its own hash is in the manifest. A block is verified when it is first read, so that a flipped bit is found before
it is used, and opening an index still reads next to nothing. The checksums are no signature: whoever can write the
index can write them too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from almanaq.corpus.files.listing import INDEX_FORMAT
from almanaq.errors import SourceError
from almanaq.models.private_files import open_private

VERSION = 5
MANIFEST, SUMS, LOCK = "manifest.json", "sums.bin", ".lock"
_SEGMENT = re.compile(r"segment-[0-9a-f]{12}")
_SHIFT = 14  # a block is 16 KiB, whose checksum takes some microseconds
_BLOCK_BYTES = 1 << _SHIFT
_HEADER_BYTES = 4096  # an array's header is shorter

D = TypeVar("D", bound=np.generic)


class DamagedFile(SourceError):
    """A file of an index does not match its checksums."""

    def __init__(self, file: Path, what: str) -> None:
        index, segment = file.parent.parent, file.parent.name
        super().__init__(
            f"the index {index} is damaged ({segment}/{file.name}: {what}): rebuild it with `almanaq index`"
        )


class CheckedArray(Generic[D]):
    """An array, a view into a memory-mapped file (`raw`); every part that is returned has been verified."""

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

    def set_bounds(self, least: int, most: int) -> None:
        """Also verify that items are between two numbers: positions outside would point to nothing."""
        self._bounds = least, most

    def all(self) -> NDArray[D]:
        if self._left:
            self._check(range(len(self._sums)))
        return self._array

    def run(self, start: int, stop: int) -> NDArray[D]:
        """Return the items from `start` to before `stop`; raises DamagedFile where there are fewer."""
        if self._left and stop > start:
            first, last = (self._head + start * self._row) >> _SHIFT, (self._head + stop * self._row - 1) >> _SHIFT
            if self._seen.find(0, max(first, 0), last + 1) >= 0:
                self._check(range(max(first, 0), min(last + 1, len(self._sums))))
        if not 0 <= start <= stop <= len(self._array):
            raise DamagedFile(self._file, f"it has no items {start} to {stop}")
        return self._array[start:stop]

    def at(self, places: NDArray[Any]) -> NDArray[D]:
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(self._array):
            raise DamagedFile(self._file, "it has no items at some places that are named")
        if self._left and len(places):
            begins = places.astype(np.int64) * self._row + self._head
            blocks = np.concatenate([begins >> _SHIFT, (begins + self._row - 1) >> _SHIFT])
            self._check(np.unique(blocks[~self._view[blocks]]).tolist())
        items: NDArray[D] = self._array[places]
        return items

    def _check(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if self._seen[block]:
                continue
            if zlib.crc32(self._raw[block << _SHIFT : (block + 1) << _SHIFT].data) != self._sums[block]:
                raise DamagedFile(self._file, f"block {block} has changed since it was written")
            if self._bounds is not None:
                first = max(0, (block << _SHIFT) - self._head) // self._row
                items = self._array[first : max(0, ((block + 1) << _SHIFT) - self._head) // self._row + 1]
                if items.size and not self._bounds[0] <= items.min() <= items.max() <= self._bounds[1]:
                    raise DamagedFile(self._file, f"block {block} points outside the index")
            self._seen[block] = 1
        # Recounted rather than decremented, as two threads may verify the same block.
        self._left = self._seen.count(0)


@dataclass(frozen=True, slots=True)
class SegmentChecksums:
    """The sizes of a segment's files and the checksums of their blocks, by name."""

    sizes: Mapping[str, int]
    by_file: Mapping[str, NDArray[np.uint32]]

    def open(self, file: Path, dtype: DTypeLike, *, width: int | None = None, rows: bool = False) -> CheckedArray[Any]:
        """Memory-map a file of items of `width` numbers, or `rows` of any. Raises OSError or ValueError."""
        if file.stat().st_size != self.sizes.get(file.name):
            raise ValueError(f"{file.parent.name}/{file.name} is cut off")
        raw = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
        sums = self.by_file[file.name]
        if file.suffix != ".npy":
            return CheckedArray(file, raw, sums, raw)
        CheckedArray(file, raw, sums, raw).run(0, min(len(raw), _HEADER_BYTES))  # verified before it is parsed
        try:
            mapped = np.load(file, mmap_mode="r")
        except Exception as error:  # numpy parses it with Python's tokenizer, which raises its own errors
            raise ValueError(f"{file.name} does not describe its content: {error}") from error
        shape, many = mapped.shape, 2 if rows or width else 1
        whole = mapped.flags.c_contiguous and mapped.offset + mapped.nbytes == len(raw)
        if not whole or mapped.dtype != np.dtype(dtype) or len(shape) != many or width not in (None, shape[-1]):
            raise ValueError(f"{file.name} holds {mapped.dtype} in the shape {shape}")
        return CheckedArray(file, raw, sums, np.asarray(mapped))


def write_file(file: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a private file; its content is on disk when this returns."""
    with open(file, "wb", opener=open_private) as opened:
        write(opened)
        opened.flush()
        os.fsync(opened.fileno())


def write_sums(folder: Path) -> str:
    """Write the checksums of all files in a folder; return the hash of the checksum file."""
    sizes: dict[str, int] = {}
    sums: list[int] = []
    for file in sorted(path for path in folder.iterdir() if path.name != SUMS):
        sizes[file.name] = file.stat().st_size
        with file.open("rb") as opened:
            while block := opened.read(_BLOCK_BYTES):
                sums.append(zlib.crc32(block))
    content = json.dumps(sizes).encode() + b"\n" + np.array(sums, dtype="<u4").tobytes()
    write_file(folder / SUMS, lambda out: out.write(content))
    return _hash(content)


def read_sums(folder: Path, expected: str) -> SegmentChecksums:
    """Read the checksums of a folder. Raises OSError or ValueError where they are missing or not those expected."""
    content = (folder / SUMS).read_bytes()
    if _hash(content) != expected:
        raise ValueError(f"{folder.name}/{SUMS} has changed since it was written")
    head, _, rest = content.partition(b"\n")
    sizes = {str(name): int(size) for name, size in json.loads(head).items()}
    sums = np.frombuffer(rest, dtype="<u4")
    ends = np.cumsum([0, *((size + _BLOCK_BYTES - 1) >> _SHIFT for size in sizes.values())])
    if ends[-1] != len(sums):
        raise ValueError(f"{folder.name}/{SUMS} holds {len(sums)} sums of {ends[-1]} blocks")
    return SegmentChecksums(sizes, dict(zip(sizes, np.split(sums, ends[1:-1]), strict=True)))


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for writing, creating it if necessary; the lock ends with the process.

    A second writer would take the first one's files for leftovers of a crash. On systems without flock (Windows)
    nothing is locked. Raises SourceError where another process holds it, or it cannot be written.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise SourceError(f"cannot write the index {folder}: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SourceError(f"another process is writing the index {folder}: wait until it has finished") from error
        try:
            yield
        finally:
            if [path.name for path in folder.iterdir()] == [LOCK]:
                # Nothing was written: remove the folder again.
                (folder / LOCK).unlink()
                with suppress(OSError):
                    folder.rmdir()


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment in a manifest: the hash of its checksums, and the numbers of its deleted or replaced tables."""

    name: str
    sums: str
    dead: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def check_segment_name(name: object) -> str:
    """Return the name of a segment. Raises ValueError for one that could point outside the index."""
    if not isinstance(name, str) or not _SEGMENT.fullmatch(name):
        raise ValueError(f"{name!r:.60} is not the name of a segment")
    return name


def damaged_error(folder: Path, error: Exception) -> SourceError:
    return SourceError(f"the index {folder} is damaged ({error}): rebuild it with `almanaq index`")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest. Raises SourceError where it is missing, damaged, or of another version of almanaq."""
    file = folder / MANIFEST
    if not file.is_file():
        raise SourceError(f"{folder} holds no index: make one with `almanaq index CORPUS --out {folder}`")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read {file}: {error}; rebuild the index with `almanaq index`") from error
    if not isinstance(record, dict) or record.get("format") != INDEX_FORMAT:
        raise SourceError(f"{file} is not an index of tables: name another folder")
    if record.get("version") != VERSION:
        raise SourceError(
            f"the index {folder} has format version {record.get('version')}, this almanaq reads {VERSION}: "
            "rebuild it with `almanaq index`"
        )
    if record.pop("sum", None) != _hash_record(record):
        raise damaged_error(folder, ValueError(f"{MANIFEST} has changed since it was written"))
    return record


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an index; a damaged or outdated index may be rebuilt."""
    if folder.exists() and not folder.is_dir():
        raise SourceError(f"{folder} is a file: name a folder")
    if not folder.is_dir():
        return
    names = sorted(path.name for path in folder.iterdir())
    segments = [name for name in names if name.startswith("segment-")]
    if MANIFEST in names:
        try:
            record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            is_index = isinstance(record, dict) and record.get("format") == INDEX_FORMAT
        except (OSError, ValueError):
            is_index = bool(segments)
        if is_index:
            return
    ours = {*segments, LOCK, *(name for name in names if name.startswith(f".{MANIFEST}."))}
    foreign = next((name for name in names if name not in ours), None)
    if foreign is not None:
        raise SourceError(f"{folder} is not empty and holds no index ({foreign}): name another folder")


def write_manifest(
    folder: Path,
    recipe: Mapping[str, Any],
    several: bool,
    means: Mapping[str, float],
    named: Sequence[SegmentEntry],
) -> None:
    """Replace the manifest atomically, then remove segments that it does not name."""
    record = {
        "format": INDEX_FORMAT,
        "version": VERSION,
        **recipe,
        "several": several,
        "means": dict(means),
        "segments": [{"name": each.name, "sums": each.sums, "dead": each.dead.tolist()} for each in named],
    }
    content = json.dumps({**record, "sum": _hash_record(record)}).encode()
    fresh = folder / f".{MANIFEST}.{os.getpid()}"
    write_file(fresh, lambda out: out.write(content))
    fresh.replace(folder / MANIFEST)
    with suppress(OSError):  # Windows cannot flush a folder
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    remove_leftovers(folder, [each.name for each in named])


def remove_leftovers(folder: Path, names: Sequence[str]) -> None:
    for left in folder.glob(f".{MANIFEST}.*"):
        left.unlink(missing_ok=True)
    for path in folder.glob("segment-*"):
        # A process that has an old segment open keeps its mappings: the files live until it ends.
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True)


def _hash_record(record: Mapping[str, Any]) -> str:
    return _hash(json.dumps(record, sort_keys=True).encode())
