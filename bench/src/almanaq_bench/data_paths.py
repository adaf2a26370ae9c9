"""Paths named in data files, which must lie in the folder of the data."""

from __future__ import annotations

from pathlib import Path

from almanaq.errors import SourceError


def resolve_inside(named: object, beside: Path, within: Path) -> Path:
    """Resolve a path that a file names relative to itself; it need not exist.

    Args:
        beside: the file that names it.
        within: the folder that must contain it, links resolved; the file's own folder is allowed too.

    Raises:
        SourceError: it lies elsewhere, or is not a valid path.
    """
    path = beside.parent / str(named)
    try:
        lies = path.resolve()
        if any(lies.is_relative_to(folder.resolve()) for folder in (within, beside.resolve().parent)):
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(f"{beside}: {str(named)[:80]!r} is not a valid path: {error}") from error
    raise SourceError(
        f"{beside}: {str(named)[:80]!r} lies outside {within}, and data may name only files beside it: put it there"
    )


def is_plain_name(name: str) -> bool:
    """Return whether a name is a plain file or folder name, not a path."""
    return bool(name) and name not in (".", "..") and not {"/", "\\", "\0"} & {*name}
