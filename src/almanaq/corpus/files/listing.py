"""Which files of rows and documents a source names: a file, a folder, a glob; and what lies there and is none.

Files that are one table (`year=2020/a.csv`, `sales-2024-01.csv` and those beside it, `*.csv` of one shape) are joined,
and what their paths say is a column.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.corpus.sqlite import SQLITE, is_sqlite, sqlite_files
from almanaq.corpus.table import TableId
from almanaq.errors import SourceError, UsageError, suggest


class Format(Enum):
    DELIMITED = "delimited text"
    JSON = "JSON"
    PARQUET = "Parquet"
    SHEETS = "a workbook"
    DOCUMENTS = "documents"


ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), Format.DELIMITED),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), Format.JSON),
    ".parquet": Format.PARQUET,
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), Format.SHEETS),
    **dict.fromkeys((".txt", ".md", ".html", ".htm", ".eml", ".mbox", ".pdf", ".docx", ".pptx"), Format.DOCUMENTS),
}
DUCKDB = (".duckdb", ".ddb")
UNREAD = {  # files of data that are none of these, and what to do with them
    **dict.fromkeys(DUCKDB, "a DuckDB file is a separate source: name it"),
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".xz"), "unpack it first"),
    **dict.fromkeys(
        (".avro", ".arrow", ".feather", ".orc", ".geojson", ".xlsb", ".dbf", ".mdb", ".accdb", ".sav", ".dta", ".rds"),
        "files of this kind cannot be read: convert it to CSV, JSON or Parquet",
    ),
    **dict.fromkeys((".doc", ".ppt", ".odt", ".odp", ".rtf", ".epub"), "save it as .docx, .pptx, .html or .pdf"),
    ".msg": "save it as .eml",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
KNOWN = ", ".join((*ENDINGS, *(f".csv{ending}" for ending in COMPRESSIONS)))
STDIN = "-"
INDEX_FORMAT = "almanaq-table-index"  # an index of tables says so in its manifest
_PARTITION = re.compile(r"[^=]+=[^=]*")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # as Spark and its like write NULL
_PART = re.compile(r"part[-_.]?\d.*|\d+", re.IGNORECASE)  # what Spark and its like call the files of one table
_PARTED = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
_DEEPEST = 12  # no table is parted by more columns than this
# Names of documents that speak of the tables beside them, and are no documents of the source.
_ABOUT_FILES = re.compile(r"(readme|licen[cs]e|copying|notice|authors|changelog)\b", re.IGNORECASE)
_DOCUMENT_ENDINGS = tuple(ending for ending, format_ in ENDINGS.items() if format_ is Format.DOCUMENTS)
_DATE = re.compile(
    r"(?<!\d)((?:19|20)\d\d)(?:[-_.]?(?:Q([1-4])|(0[1-9]|1[0-2])(?:[-_.]?([0-3]\d))?))?(?!\d)", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?=\D*$)")
_LEAST_ALIKE = 3  # so many files of one shape that a pattern names are one table; two may well be of two kinds
_FIRST_LINE = 1 << 16
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


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file's name says of it."""

    stem: str  # without its endings
    ending: str
    format: Format
    compression: str = ""  # pyarrow's name of it


def kind_of(path: Path) -> Kind | None:
    """Return the kind of a file by its name; None where it names no format of tables."""
    name, compression = path.name, COMPRESSIONS.get(path.suffix.lower(), "")
    if compression:
        name = name[: -len(path.suffix)]
    inner = Path(name)
    format_ = ENDINGS.get(inner.suffix.lower())
    if format_ is None or (compression and format_ not in (Format.DELIMITED, Format.JSON)):
        return None
    return Kind(inner.stem, inner.suffix.lower(), format_, compression)


def total_bytes(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def not_opened(file: str, why: str) -> str:
    return f"{file}: not opened: {why.removeprefix(file).lstrip(' ,:').removeprefix('not opened: ')}"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One table of a source: a file, the files of a table that is kept in parts, or all its documents."""

    id: TableId
    paths: tuple[Path, ...]
    # Of parts, the folder under which the names of their folders are values (`year=2020`); of documents, the folder
    # that their paths begin at.
    root: Path | None = None
    columns: tuple[str, ...] = ()  # that the paths say
    values: tuple[tuple[str, ...], ...] = ()  # of each path

    @property
    def path(self) -> Path:
        return self.paths[0]

    @property
    def kind(self) -> Kind:
        kind = kind_of(self.path)
        assert kind is not None
        return kind


@dataclass(frozen=True, slots=True)
class Listing:
    """The tables that a source names, in order, and the files that are none of them although they look so."""

    files: tuple[FoundFile, ...]
    problems: tuple[str, ...] = ()  # what was not as it should be with a file: what, and what to do
    databases: tuple[Path, ...] = ()  # SQLite files, each of which holds tables of its own


def list_folder(folder: Path, *, separate: bool = False) -> Listing:
    """List the tables of a folder: its own files and those of its sub-folders, each in a database named after it.

    A folder of parts (`year=2020/…`, `part-0000.parquet`) is one table, named after the folder; `separate` parts are
    tables of their own, unless they are Parquet. So are its documents, however deep they lie. Raises SourceError where
    there is no table, not even one that cannot be opened.
    """
    found: list[FoundFile] = []
    problems: list[str] = []
    endings = (".parquet",) if separate else _PARTED
    parts = _join_parts(folder, folder.resolve().parent.name or "data", problems, endings)
    if parts is not None:
        return Listing((parts,), tuple(problems))
    for place in [folder, *_list_folders(folder, problems)]:
        whole = _join_parts(place, folder.resolve().name, problems, endings) if place is not folder else None
        found += [whole] if whole else _list_own_files(place, problems)
        problems += [] if whole or place is folder else _report_deeper(place)
    databases = sqlite_files(folder)
    documents = list(_walk_documents(str(folder)))
    if found or databases:
        documents = [path for path in documents if not _ABOUT_FILES.match(path.name)]
    if documents:
        found.append(FoundFile(TableId(folder.resolve().name, folder.resolve().name), tuple(documents), folder))
    listing = replace(_name_apart(found, problems), databases=tuple(databases))
    if not listing.files and not databases and not listing.problems:
        raise SourceError(f"the folder {str(folder)!r} holds no table: put files ending in {KNOWN} there")
    return listing


def list_paths(paths: Iterable[Path], *, separate: bool = False) -> Listing:
    """List files that were named one by one, or by a glob; a folder among them stands for its files."""
    found: list[FoundFile] = []
    problems: list[str] = []
    databases: list[Path] = []
    documents: list[Path] = []
    for path in paths:
        if path.is_dir():
            inner = list_folder(path, separate=separate)
            found += inner.files
            databases += inner.databases
            problems += inner.problems
            continue
        kind = kind_of(path)
        if kind is None and not _find_oddity(path, named=True) and (path.suffix.lower() in SQLITE or is_sqlite(path)):
            databases.append(path)
            continue
        if kind is None:
            problems.append(not_opened(path.name, f"files of this kind cannot be read; known: {KNOWN}"))
        elif why := _find_oddity(path, named=True):
            problems.append(not_opened(path.name, why))
        elif kind.format is Format.DOCUMENTS:
            documents.append(path)
        else:
            found.append(FoundFile(TableId("data", kind.stem), (path,)))
    if documents:
        root = Path(os.path.commonpath([path.parent.absolute() for path in documents]))
        name = documents[0].stem if len(documents) == 1 else root.name
        found.append(FoundFile(TableId("data", name), tuple(path.absolute() for path in documents), root))
    return replace(_name_apart(found, problems), databases=tuple(databases))


def _list_own_files(place: Path, problems: list[str]) -> list[FoundFile]:
    found = []
    names = [name for name in os.listdir(place) if not name.startswith((".", "~$")) and not _is_document(name)]
    for path in (place / name for name in sorted(names)):
        kind = kind_of(path)
        if kind is None and not path.is_dir() and (advice := UNREAD.get(path.suffix.lower())):
            problems.append(not_opened(path.name, advice))
        if kind is None or path.is_dir():
            continue
        if why := _find_oddity(path):
            problems.append(not_opened(path.name, why))
        else:
            found.append(FoundFile(TableId(place.resolve().name, kind.stem), (path,)))
    return found


def _is_document(name: str) -> bool:
    return name.lower().endswith(_DOCUMENT_ENDINGS)


def _walk_documents(folder: str) -> Iterator[Path]:
    """Yield the documents of a folder and of all folders in it, by their paths; hidden ones and links are left out."""
    with os.scandir(folder) as entries:
        # By strings, and the kind of an entry from the folder itself: there may be ten thousands.
        found = {e.name: e.is_dir(follow_symlinks=False) for e in entries if not e.is_symlink()}
    for name in sorted(found):
        if name.startswith((".", "~$")):
            continue
        if found[name]:
            yield from _walk_documents(os.path.join(folder, name))
        elif _is_document(name):
            yield Path(folder, name)


def _find_oddity(path: Path, *, named: bool = False) -> str:
    """Say why what has the name of a file is none that is read; "" where it is. Nothing is opened."""
    try:
        mode = path.stat().st_mode if named else path.lstat().st_mode
    except OSError as error:
        return f"it cannot be inspected ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "it is a link, and links in a folder are not followed: name the file itself, or copy it there"
    if not stat.S_ISREG(mode):
        return f"it is a pipe, socket or device: save it as a file, or send it to standard input and name {STDIN}"
    return ""


def _list_folders(folder: Path, problems: list[str]) -> list[Path]:
    """Return the sub-folders of a folder, by name; links are reported, hidden ones and indexes of tables left out."""
    with os.scandir(folder) as entries:
        inner = sorted((e.name, e.is_symlink()) for e in entries if not e.name.startswith(".") and os.path.isdir(e))
    problems += [
        not_opened(f"{name}/", "it is a link to a folder, and links are not followed")
        for name, linked in inner
        if linked
    ]
    return [folder / name for name, linked in inner if not linked and not _is_index(folder / name)]


def _is_index(folder: Path) -> bool:
    with suppress(OSError), (folder / "manifest.json").open("rb") as file:
        return INDEX_FORMAT.encode() in file.read(_FIRST_LINE)
    return False


def _report_deeper(place: Path) -> list[str]:
    """Say which folders in a sub-folder, or beside the parts of a table, hold files of tables: they are not opened."""
    tables = (*(ending for ending in ENDINGS if not _is_document(ending)), *COMPRESSIONS, *SQLITE)
    return [
        not_opened(
            f"{place.name}/{inner.name}/", "its files lie too deep, or beside parts of a table: name it as the source"
        )
        for inner in _list_folders(place, [])
        if not _PARTITION.fullmatch(inner.name)
        and any(name.lower().endswith(tables) for *_, names in os.walk(inner) for name in names)
    ]


def _join_parts(folder: Path, database: str, problems: list[str], endings: Sequence[str]) -> FoundFile | None:
    inner = [p for p in _list_folders(folder, []) if _PARTITION.fullmatch(p.name)]
    names = [name for name in os.listdir(folder) if not name.startswith((".", "_"))]
    own = [name for name in names if name.lower().endswith(".parquet")]
    if not inner and not (own and all(_PART.fullmatch(Path(name).stem) for name in own)):
        return None
    paths = list(_walk_parts(folder, problems, endings if inner else (".parquet",)))
    if not paths:
        return None
    ending = paths[0].suffix.lower()
    problems += _report_deeper(folder)
    problems += [not_opened(p.name, f"the other parts are {ending}") for p in paths if p.suffix.lower() != ending]
    paths = [path for path in paths if path.suffix.lower() == ending]
    parts = (path.parent.relative_to(folder).as_posix().replace(_NO_VALUE, "").split("/") for path in paths)
    said = [dict(unquote(part).split("=", 1) for part in each if part != ".") for each in parts]
    columns = tuple(dict.fromkeys(key for each in said for key in each))
    values = tuple(tuple(each.get(key, "") for key in columns) for each in said)
    return FoundFile(TableId(database, folder.resolve().name), tuple(paths), folder, columns, values)


def _walk_parts(folder: Path, problems: list[str], endings: Sequence[str], depth: int = 0) -> Iterator[Path]:
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith((".", "_"))):
        if path.suffix.lower() in endings and not path.is_dir():
            if why := _find_oddity(path):
                problems.append(not_opened(path.name, why))
            else:
                yield path
        elif path.is_dir() and not path.is_symlink() and depth < _DEEPEST and _PARTITION.fullmatch(path.name):
            yield from _walk_parts(path, problems, endings, depth + 1)


def _name_apart(found: Sequence[FoundFile], problems: list[str]) -> Listing:
    """Return the files with names of their own: the second of two of one name has its ending in its name."""
    files: dict[tuple[str, str], FoundFile] = {}
    for each in found:
        database, table = each.id
        names = [table, each.path.name.replace(".", "_")] + [f"{table}_{n}" for n in range(2, len(found) + 2)]
        name = next(name for name in names if (database, name.casefold()) not in files)
        if name != table:
            other = files[database, table.casefold()].path.name
            why = f"since {other} is {table!r} already; rename one to choose its name"
            problems.append(f"{each.path.name}: it is the table {name!r}, {why}")
        files[database, name.casefold()] = replace(each, id=TableId(database, name))
    return Listing(tuple(files.values()), tuple(problems))


def join_files(listing: Listing, named: Iterable[str] = (), *, any_name: bool = False) -> Listing:
    """Return a listing with the files that are one table joined: their names differ in a date or a number alone.

    Files that would be joined with a table that a schema file speaks of (`named`) stay apart. With `any_name`, files of
    one header are one table, named after their folder, as somebody named them together: `*.csv`.
    """
    apart = {name.rpartition(".")[2].casefold() for name in named}
    found, problems = listing.files, list(listing.problems)
    groups: dict[tuple[str, Path, str, str, Hashable], list[tuple[FoundFile, str]]] = defaultdict(list)
    for each in found:
        if (shape := _read_shape(each)) is not None and (said := _parse_name(each.kind.stem)) is not None:
            pattern, column, value = said
            groups[each.id.database, each.path.parent, pattern, column, shape].append((each, value))
    joined: dict[FoundFile, FoundFile | None] = {}
    for (database, folder, pattern, column, _), members in groups.items():
        files = [each for each, _ in members]
        if len(files) > 1 and apart.isdisjoint(_table_names(files)):
            name = re.sub(r"[-_. ]*\0[-_. ]*", "_", pattern).strip("_") or folder.resolve().name
            if any(each.id == TableId(database, name) for each in found if each not in files):
                name = f"{name}_{column}"
            one = _join(files, name, column, [value for _, value in members], problems)
            joined |= {**dict.fromkeys(files), files[0]: one}
    rest = [each for each in found if each not in joined and each.kind.format is not Format.DOCUMENTS]
    if any_name and not joined and len(rest) >= _LEAST_ALIKE and apart.isdisjoint(_table_names(rest)):
        (parent, format_, shape), *others = {(each.path.parent, each.kind.format, _read_shape(each)) for each in rest}
        if not others and format_ is Format.DELIMITED and shape is not None:
            one = _join(rest, parent.resolve().name, "file", [each.kind.stem for each in rest], problems)
            joined = {**dict.fromkeys(rest), rest[0]: one}
    kept = [each for each in (joined.get(each, each) for each in found) if each is not None]
    return replace(listing, files=tuple(kept), problems=tuple(problems))


def _table_names(files: Sequence[FoundFile]) -> set[str]:
    return {each.id.table.casefold() for each in files}


def _join(files: Sequence[FoundFile], name: str, column: str, values: Sequence[str], problems: list[str]) -> FoundFile:
    first, shape = files[0], _read_shape(files[0])
    if first.kind.format is Format.PARQUET and isinstance(shape, tuple) and column in shape[1]:
        column = f"{column}_2"  # the others are named when they are read
    shown = f"{len(files):,} files are one table, and the column {column!r} is from their names"
    problems.append(f"{name}: {shown} ({first.path.name}, …); --separate (separate=True) keeps them apart")
    paths = tuple(path for each in files for path in each.paths)
    return replace(
        first, id=TableId(first.id.database, name), paths=paths, columns=(column,), values=tuple((v,) for v in values)
    )


def _parse_name(stem: str) -> tuple[str, str, str] | None:
    """Return what is common to a name and those beside it, and the column and value that the rest is."""
    if date := _DATE.search(stem):
        year, quarter, month, day = date.groups()
        column = "quarter" if quarter else "date" if day else "month" if month else "year"
        value = f"{year}-Q{quarter}" if quarter else "-".join(part for part in (year, month, day) if part)
        return f"{stem[: date.start()]}\0{stem[date.end() :]}", column, value
    if number := _NUMBER.search(stem):
        return f"{stem[: number.start()]}\0{stem[number.end() :]}", "part", number[0]
    return None


def _read_shape(found: FoundFile) -> Hashable | None:
    """Return what files of one table have in common: ending and header; None for a file that is not to be joined."""
    kind = found.kind
    if found.root is not None or kind.compression:
        return None
    try:
        if kind.format is Format.PARQUET:
            import pyarrow.parquet as pq

            schema = pq.read_schema(found.path, memory_map=True)
            return kind.ending, tuple(schema.names), tuple(map(str, schema.types))
        with found.path.open("rb") as file:
            line = file.readline(_FIRST_LINE).removeprefix(b"\xef\xbb\xbf").strip()
        if kind.format is Format.DELIMITED:
            return (kind.ending, line) if re.search(rb"[,;\t|]", line) else None
        if kind.ending in (".jsonl", ".ndjson") and isinstance(first := json.loads(line), dict):
            return kind.ending, frozenset(first)
    except (OSError, ValueError):  # the reader says what is wrong with it
        pass
    return None


class FetchedFolder:
    """A private folder for files that were fetched; it goes when nobody holds it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="almanaq-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files that a source names; `held` is the folder that they were written into, None where they lie elsewhere."""

    paths: tuple[Path, ...]
    name: str
    held: FetchedFolder | None = None


def is_web(source: str) -> bool:
    return _WEB.match(source) is not None


def find_named_files(source: str, *, allow_http: bool = False) -> NamedFiles | None:
    """Return the files of a glob, a list, standard input or an address; None for the path of one file or folder."""
    whole = as_path(source)
    if source == STDIN:
        return _save_stream(sys.stdin.buffer, "stdin", "standard input")
    if is_web(source):
        return _fetch_file(source, allow_http=allow_http)
    if "://" in source or whole.exists():
        return None
    parts = [part.strip() for part in source.split(",")]
    if len(parts) > 1 and all(parts) and any(Path(part).expanduser().exists() or _is_pattern(part) for part in parts):
        return NamedFiles(tuple(path for part in parts for path in _find_matching(part)), source)
    return NamedFiles(tuple(_find_matching(source)), source) if _is_pattern(source) else None


def _is_pattern(text: str) -> bool:
    return _PATTERN.search(text) is not None


def _find_matching(text: str) -> list[Path]:
    path = as_path(text)
    if path.exists():
        return [path]
    if not _is_pattern(text):
        raise SourceError(f"the list names {text!r}, which {_describe_link(path) or 'does not exist'}")
    found = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
    if not found:
        raise SourceError(f"no file matches {text!r}: in patterns, * is any name and ** any folders")
    return [each for each in found if each.is_file()] or found


def _save_stream(stream: IO[bytes], stem: str, called: str, ending: str = "") -> NamedFiles:
    held = FetchedFolder()
    target = held.path / stem
    written, start = 0, b""
    with target.open("wb") as file:
        while chunk := stream.read(_CHUNK):
            raise_if_cancelled()
            start = start or chunk[:512]
            written += len(chunk)
            if written > _MOST_BYTES:
                raise SourceError(f"{called} is larger than {_MOST_BYTES >> 30} GB: save it as a file, and name that")
            file.write(chunk)
    if not written:
        raise SourceError(f"{called} is empty")
    if not ending:
        begins_json = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")
        found = (ending for magic, ending in _MAGIC.items() if start.startswith(magic))
        ending = next(found, ".json" if begins_json else ".csv")
    return NamedFiles((target.rename(target.with_name(stem + ending)),), stem, held)


def _fetch_file(address: str, *, allow_http: bool) -> NamedFiles:
    if not allow_http:
        raise UsageError(f"{_redact_address(address)} is on the web: add --allow-http (allow_http=True) to fetch it")
    import urllib.error
    import urllib.request

    called = Path(unquote(urlsplit(address).path)).name
    kind = kind_of(Path(called)) if called else None
    stem = kind.stem if kind else (Path(called).stem or "web")
    ending = called[len(kind.stem) :] if kind else ""
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as reply:
            if not is_web(reply.geturl()):
                raise SourceError(f"{_redact_address(address)} redirects away from the web")
            return _save_stream(reply, stem, _redact_address(address), ending)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise SourceError(f"{_redact_address(address)} cannot be fetched: {error}") from error


def _redact_address(address: str) -> str:
    """Return an address without what may be secret in it: user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def as_list(source: object) -> Sequence[Path] | None:
    """Return the paths of a list of files, None where it is none."""
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | Path) for each in source):
        return [path for each in source for path in _find_matching(str(each))]
    return None


def as_path(text: str | os.PathLike[str]) -> Path:
    """Return the path that a text names; raises UsageError for "", which would be the working directory."""
    if not os.fspath(text):
        raise UsageError("the source is an empty text: name the source, as a file, a folder or a URL")
    return Path(text).expanduser()


def find_path(text: str | Path) -> Path:
    """Return the path of a file or folder that exists; raises SourceError with the near names of its folder."""
    path = as_path(text)
    if path.exists():
        if not path.is_dir() and (why := _find_oddity(path, named=True)):
            raise SourceError(f"{path}: {why}")
        return path
    if link := _describe_link(path):
        raise SourceError(f"{_without_password(path)!r} {link}")
    folder = path.parent
    if not folder.is_dir():
        raise SourceError(f"there is no folder {_without_password(folder)!r}, so no source {_without_password(text)!r}")
    names = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    hint = suggest(path.name, names) or "; that folder is empty"
    raise SourceError(
        f"there is no file or folder {_without_password(path.name)!r} in {_without_password(folder)!r}{hint}"
    )


def _describe_link(path: Path) -> str:
    return f"is a link to {os.readlink(path)!r}, which leads to nothing" if path.is_symlink() else ""


def _without_password(text: str | Path) -> str:
    """Return what was named as a source without the password in it: it may be a URL that was mistyped."""
    hidden = re.sub(r"(:/+[^:/@]*:).*@", r"\1***@", str(text))
    return re.sub(r"(password\s*=\s*)\S.*", r"\1***", hidden, flags=re.IGNORECASE)
