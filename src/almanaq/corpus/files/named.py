"""The files that a text names as a source: a path, several with commas between, a glob, "-", or an https:// address."""

from __future__ import annotations

import glob
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from almanaq.corpus.files.kinds import kind_of
from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import SourceError, UsageError

STDIN = "-"
_WEB = re.compile(r"https?://", re.IGNORECASE)
_PATTERN = re.compile(r"[*?\[]")
_MAGIC = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}
_MOST_BYTES = 4 << 30
_SECONDS = 60.0
_CHUNK = 1 << 20


class Held:
    """A private folder for files that were fetched; it goes when nobody holds it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="almanaq-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Named:
    """Files that a source names; `held` is the folder that they were written into, None where they lie elsewhere."""

    paths: tuple[Path, ...]
    name: str
    held: Held | None = None


def is_web(source: str) -> bool:
    """Tell whether a source is an address on the web."""
    return _WEB.match(source) is not None


def named_files(source: str, *, allow_http: bool = False) -> Named | None:
    """Return the files that a source names in one of these ways; None where it is the path of one file or folder.

    Raises:
        SourceError: a pattern fits no file, a file of a list is not there, or an address gives none.
        UsageError: an address was named without leave to read it.
    """
    if source == STDIN:
        return _kept(sys.stdin.buffer, "stdin", "standard input")
    if is_web(source):
        return _fetched(source, allow_http=allow_http)
    if "://" in source or Path(source).expanduser().exists():
        return None
    parts = [part.strip() for part in source.split(",")]
    if len(parts) > 1 and all(parts) and any(Path(part).expanduser().exists() or _is_pattern(part) for part in parts):
        return Named(tuple(path for part in parts for path in _matching(part)), source)
    return Named(tuple(_matching(source)), source) if _is_pattern(source) else None


def _is_pattern(text: str) -> bool:
    return _PATTERN.search(text) is not None


def _matching(text: str) -> list[Path]:
    """Return the file of a name, or those that a pattern fits, by name."""
    path = Path(text).expanduser()
    if path.exists():
        return [path]
    if not _is_pattern(text):
        raise SourceError(f"there is no file or folder {text!r}, which the list names")
    found = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
    if not found:
        raise SourceError(f"no file fits {text!r}: patterns have * for any name, ** for any folders")
    return [each for each in found if each.is_file()] or found


def _kept(stream: IO[bytes], stem: str, called: str, ending: str = "") -> Named:
    """Write what a stream gives into a file of its own, named by what it holds."""
    held = Held()
    target = held.path / stem
    with target.open("wb") as file:
        written = 0
        while chunk := stream.read(_CHUNK):
            raise_if_cancelled()
            written += len(chunk)
            if written > _MOST_BYTES:
                raise SourceError(f"{called} gives more than {_MOST_BYTES >> 30} GB: save it as a file, and name that")
            file.write(chunk)
    if not written:
        raise SourceError(f"{called} is empty")
    named = target.with_name(stem + (ending or _ending(target)))
    shutil.move(target, named)
    return Named((named,), stem, held)


def _ending(path: Path) -> str:
    """Return the ending that a file should have by how it begins."""
    with path.open("rb") as file:
        start = file.read(512)
    for magic, ending in _MAGIC.items():
        if start.startswith(magic):
            return ending
    return ".json" if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{") else ".csv"


def _fetched(address: str, *, allow_http: bool) -> Named:
    """Fetch the file at an address, which the user must have allowed."""
    if not allow_http:
        raise UsageError(f"{_shown(address)} is on the web: add --allow-http (allow_http=True) to fetch it")
    import urllib.error
    import urllib.request

    called = Path(unquote(urlsplit(address).path)).name
    kind = kind_of(Path(called)) if called else None
    stem = kind.stem if kind else (Path(called).stem or "web")
    ending = called[len(kind.stem) :] if kind else ""
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as reply:
            if not is_web(reply.geturl()):
                raise SourceError(f"{_shown(address)} leads elsewhere than to the web")
            return _kept(reply, stem, _shown(address), ending)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise SourceError(f"{_shown(address)} cannot be fetched: {error}") from error


def _shown(address: str) -> str:
    """Return an address without what may be secret in it: user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def as_list(source: object) -> Sequence[Path] | None:
    """Return the paths of a list of files, None where it is none."""
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | Path) for each in source):
        return [path for each in source for path in _matching(str(each))]
    return None
