"""The manifest of an index on disk: which segments count, how they were made, and that nobody has touched it since."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import SourceError
from almanaq.retrieval.writing import LOCK, replace_file

FORMAT, VERSION = "almanaq-table-index", 5
MANIFEST = "manifest.json"
_SEGMENT = re.compile(r"segment-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A segment as a manifest names it; `sums` is the hash of its checksums."""

    name: str
    sums: str


def segment_name(name: object) -> str:
    """Return a segment's name. Raises ValueError for one that may lie elsewhere than in the index."""
    if not isinstance(name, str) or not _SEGMENT.fullmatch(name):
        raise ValueError(f"{name!r:.60} is no name of a segment")
    return name


def damaged(folder: Path, error: Exception) -> SourceError:
    """Return the error for an index that cannot be read."""
    return SourceError(f"the index {folder} is damaged ({error}): build it again with `almanaq index`")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a manifest says.

    Raises:
        SourceError: there is none, it is not as it was written, or another version of almanaq wrote it.
    """
    file = folder / MANIFEST
    if not file.is_file():
        raise SourceError(f"{folder} holds no index: make one with `almanaq index CORPUS --out {folder}`")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read {file}: {error}; build the index again with `almanaq index`") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise SourceError(f"{file} is not an index of tables: name another folder")
    if record.get("version") != VERSION:
        raise SourceError(
            f"the index {folder} has format version {record.get('version')}, this almanaq reads {VERSION}: "
            "build it again with `almanaq index`"
        )
    if record.pop("sum", None) != _sum(record):
        raise damaged(folder, ValueError(f"{MANIFEST} does not hold what was written"))
    return record


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than an index; one that is damaged or outdated may be built anew."""
    if folder.exists() and not folder.is_dir():
        raise SourceError(f"{folder} is a file: name a folder")
    if not folder.is_dir():
        return
    names = sorted(path.name for path in folder.iterdir())
    segments = [name for name in names if name.startswith("segment-")]
    if MANIFEST in names and _is_ours(folder / MANIFEST, unreadable=bool(segments)):
        return
    ours = {*segments, LOCK, *(name for name in names if name.startswith(f".{MANIFEST}."))}
    foreign = next((name for name in names if name not in ours), None)
    if foreign is not None:
        raise SourceError(f"{folder} is not empty and holds no index ({foreign}): name another folder")


def _is_ours(manifest: Path, *, unreadable: bool) -> bool:
    """Return whether a manifest is an index of tables', of any version.

    `unreadable` answers where it cannot be read.
    """
    try:
        record = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return unreadable
    return isinstance(record, dict) and record.get("format") == FORMAT


def write_manifest(
    folder: Path,
    recipe: Mapping[str, Any],
    several: bool,
    means: Mapping[str, float],
    named: Sequence[NamedSegment],
    dead: Sequence[NDArray[np.int64]],
) -> None:
    """Put a new manifest in the old one's place, then remove what no manifest names."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        **recipe,
        "several": several,
        "means": dict(means),
        "segments": [
            {"name": each.name, "sums": each.sums, "dead": gone.tolist()}
            for each, gone in zip(named, dead, strict=True)
        ],
    }
    replace_file(folder / MANIFEST, json.dumps({**record, "sum": _sum(record)}))
    tidy(folder, [each.name for each in named])


def tidy(folder: Path, names: Sequence[str]) -> None:
    """Remove what changes before left, and segments that are not named."""
    for left in folder.glob(f".{MANIFEST}.*"):
        left.unlink(missing_ok=True)
    for path in folder.glob("segment-*"):
        # A process that has the old segments open keeps its maps: the files live until it ends.
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True)


def _sum(told: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()
