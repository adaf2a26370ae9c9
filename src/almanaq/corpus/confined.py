"""Paths that data files name: they lie in the folder that the data came in, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from almanaq.errors import SourceError


def confined(named: object, beside: Path, within: Path) -> Path:
    """Return the path that a file names relative to itself; it need not exist.

    Args:
        beside: the file that names it.
        within: the folder that it must lie in, links followed; the file's own folder will do too.

    Raises:
        SourceError: it lies elsewhere, or can be no path.
    """
    path = beside.parent / str(named)
    try:
        lies = path.resolve()
        if any(lies.is_relative_to(folder.resolve()) for folder in (within, beside.resolve().parent)):
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(f"{beside}: {str(named)[:80]!r} can be no path: {error}") from error
    raise SourceError(
        f"{beside}: {str(named)[:80]!r} lies outside {within}, and data names only what came with it: put it there"
    )


def is_plain_name(name: str) -> bool:
    """Return whether a name is one of a file or folder, and no path to another place."""
    return bool(name) and name not in (".", "..") and not {"/", "\\", "\0"} & {*name}
