"""Which files of rows a source names: a file, a folder, a folder of parts, a glob; and what lies there and is none."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from almanaq.corpus.files.kinds import KNOWN, kind_of, unread_advice
from almanaq.corpus.sqlite import SQLITE, sqlite_files
from almanaq.corpus.table import TableId
from almanaq.errors import SourceError

_PARTITION = re.compile(r"[^=]+=[^=]*")
_PART = re.compile(r"part[-_.]?\d.*|\d+", re.IGNORECASE)
"""What Spark and its like call the files of one table."""
_DEEPEST = 12
"""No table is parted by more columns than this."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What was not as it should be with a file as a whole: what, and what to do."""

    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


def not_opened(file: str, why: str) -> Problem:
    """Return the problem of a file that was left out."""
    return Problem(file, f"not opened: {why.removeprefix(file).lstrip(' ,:')}")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One table of a source: a file, or the files of a table that is kept in parts.

    Attributes:
        root: of parts, the folder under which the names of their folders are values (`year=2020`).
    """

    id: TableId
    paths: tuple[Path, ...]
    root: Path | None = None

    @property
    def path(self) -> Path:
        """The file; of parts, the first."""
        return self.paths[0]


@dataclass(frozen=True, slots=True)
class Listing:
    """The tables that a source names, in order, and the files that are none of them although they look so.

    Attributes:
        databases: the SQLite files among them, each of which holds tables of its own.
    """

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...] = ()
    databases: tuple[Path, ...] = ()


def list_folder(folder: Path) -> Listing:
    """List the tables of a folder: its own files and those of its sub-folders, each in a database named after it.

    A folder of Parquet parts (`year=2020/…`, `part-0000.parquet`) is one table, named after the folder.

    Raises:
        SourceError: there is no table, not even one that cannot be opened.
    """
    found: list[FoundFile] = []
    problems: list[Problem] = []
    parts = _parts(folder, folder.resolve().parent.name or "data", problems)
    if parts is not None:
        return Listing((parts,), tuple(problems))
    for place in [folder, *_folders(folder, problems)]:
        whole = _parts(place, folder.resolve().name, problems) if place is not folder else None
        found += [whole] if whole else _own(place, problems)
    databases = sqlite_files(folder)
    listing = replace(_distinct(found, problems), databases=tuple(databases))
    if not listing.files and not databases and not listing.problems:
        raise SourceError(f"the folder {str(folder)!r} holds no table: put files ending in {KNOWN} there")
    return listing


def list_paths(paths: Iterable[Path]) -> Listing:
    """List files that were named one by one, or by a glob; a folder among them stands for its files."""
    found: list[FoundFile] = []
    problems: list[Problem] = []
    databases: list[Path] = []
    for path in paths:
        if path.is_dir():
            inner = list_folder(path)
            found += inner.files
            databases += inner.databases
            problems += inner.problems
            continue
        if path.suffix.lower() in SQLITE and not _odd(path, named=True):
            databases.append(path)
            continue
        kind = kind_of(path)
        if kind is None:
            problems.append(not_opened(path.name, f"files of this kind cannot be read; known: {KNOWN}"))
        elif why := _odd(path, named=True):
            problems.append(not_opened(path.name, why))
        else:
            found.append(FoundFile(TableId("data", kind.stem), (path,)))
    return replace(_distinct(found, problems), databases=tuple(databases))


def holds_rows(folder: Path) -> bool:
    """Tell whether a folder or a sub-folder of it holds a file of rows."""
    return any(kind_of(p) for place in [folder, *_folders(folder, [])] for p in place.iterdir()) or bool(
        _parts(folder, "", [])
    )


def _own(place: Path, problems: list[Problem]) -> list[FoundFile]:
    """List the files of rows that lie in a folder itself."""
    found = []
    for path in sorted(p for p in place.iterdir() if not p.name.startswith((".", "~$"))):
        kind = kind_of(path)
        if kind is None and not path.is_dir() and (advice := unread_advice(path)):
            problems.append(not_opened(path.name, advice))
        if kind is None or path.is_dir():
            continue
        if why := _odd(path):
            problems.append(not_opened(path.name, why))
        else:
            found.append(FoundFile(TableId(place.resolve().name, kind.stem), (path,)))
    return found


def _odd(path: Path, *, named: bool = False) -> str:
    """Say why what has the name of a file is none that is read; "" where it is."""
    try:
        mode = path.stat().st_mode if named else path.lstat().st_mode
    except OSError as error:
        return f"it cannot be looked at ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "it is a link, and links in a folder are not followed: name the file itself, or copy it there"
    if not stat.S_ISREG(mode):
        return "it is no regular file, but a pipe, socket or device: write its content to a file"
    return ""


def _folders(folder: Path, problems: list[Problem]) -> list[Path]:
    """Return the sub-folders of a folder, by name; hidden ones are left out, links are reported."""
    found = []
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        if path.is_symlink() and path.is_dir():
            problems.append(not_opened(path.name + "/", "it is a link to a folder, and links are not followed"))
        elif path.is_dir():
            found.append(path)
    return found


def _parts(folder: Path, database: str, problems: list[Problem]) -> FoundFile | None:
    """Return the one table that a folder of Parquet parts is, None where it is none."""
    inner = [p for p in _folders(folder, []) if _PARTITION.fullmatch(p.name)]
    own = [p for p in folder.iterdir() if p.suffix.lower() == ".parquet" and not p.name.startswith((".", "_"))]
    if not inner and not (own and all(_PART.fullmatch(p.stem) for p in own)):
        return None
    paths: list[Path] = []
    _collect(folder, paths, problems, 0)
    return FoundFile(TableId(database, folder.resolve().name), tuple(paths), folder) if paths else None


def _collect(folder: Path, paths: list[Path], problems: list[Problem], depth: int) -> None:
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith((".", "_"))):
        if path.suffix.lower() == ".parquet" and not path.is_dir():
            why = _odd(path)
            problems += [not_opened(path.name, why)] if why else []
            paths += [] if why else [path]
        elif path.is_dir() and not path.is_symlink() and depth < _DEEPEST and _PARTITION.fullmatch(path.name):
            _collect(path, paths, problems, depth + 1)


def _distinct(found: Sequence[FoundFile], problems: list[Problem]) -> Listing:
    """Return the files with names of their own: the second of two that would be one table has its ending
    in its name.
    """
    files: dict[tuple[str, str], FoundFile] = {}
    for each in found:
        database, table = each.id
        names = [table, each.path.name.replace(".", "_")] + [f"{table}_{n}" for n in range(2, len(found) + 2)]
        name = next(name for name in names if (database, name.casefold()) not in files)
        if name != table:
            other = files[database, table.casefold()].path.name
            message = f"it is the table {name!r}, since {other} is {table!r} already; rename one to choose its name"
            problems.append(Problem(each.path.name, message))
        files[database, name.casefold()] = FoundFile(TableId(database, name), each.paths, each.root)
    return Listing(tuple(files.values()), tuple(problems))
