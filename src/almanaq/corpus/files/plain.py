"""A file as readers want it: decompressed, and its text in UTF-8; a copy is made only where it is neither."""

from __future__ import annotations

import codecs
import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import SourceError, first_line

_CHUNK = 1 << 20
_MOST_UNPACKED = 64 << 30
_ROOM = 1 << 30
"""The bytes of a disk that unpacking leaves free; what is smaller than a chunk is unpacked wherever it fits."""


@contextmanager
def unpacked(path: Path, compression: str) -> Iterator[Path]:
    """Give the file that a compressed one holds, for as long as the block lasts; another file as it is."""
    if not compression:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
        target = Path(folder) / Path(path.name).stem
        try:
            with _open_compressed(path, compression) as source, target.open("wb") as file:
                _copy(source, file, path, folder)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise _no_room(path) from error
            why = first_line(error)
            raise SourceError(f"{path.name} cannot be unpacked ({why}): is it whole, and {compression}?") from error
        yield target


@contextmanager
def in_utf8(path: Path, encoding: str, errors: str) -> Iterator[Path]:
    """Give a text file in UTF-8, for as long as the block lasts."""
    if encoding == "utf-8-sig" and errors == "strict":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
        target = Path(folder) / path.name
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        with path.open("rb") as source, target.open("w", encoding="utf-8", newline="") as file:
            while chunk := source.read(_CHUNK):
                raise_if_cancelled()
                file.write(decoder.decode(chunk))
            file.write(decoder.decode(b"", final=True))
        yield target


def _open_compressed(path: Path, compression: str) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(path)), compression)


def _copy(source: Any, target: Any, path: Path, folder: str) -> None:
    """Copy what is unpacked; raises SourceError where it would fill the disk."""
    written = 0
    while chunk := source.read(_CHUNK):
        raise_if_cancelled()
        written += len(chunk)
        tight = written > _CHUNK and shutil.disk_usage(folder).free < _ROOM
        if written > _MOST_UNPACKED or tight:
            raise _no_room(path)
        target.write(chunk)


def _no_room(path: Path) -> SourceError:
    return SourceError(f"{path.name} holds more than the disk has room for: unpack it elsewhere, and name that")
