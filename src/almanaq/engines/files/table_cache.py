"""Tables that were read from files, cached in the user's cache folder as DuckDB files until the files change.

A cached file is written beside and moved into place, so that processes that share the folder see it whole or not at
all; the folder is the user's alone, and the files used longest ago are deleted where they grow beyond a limit.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Protocol, get_args, get_origin, get_type_hints

import duckdb

from almanaq.corpus.files.listing import Format, FoundFile, Listing
from almanaq.corpus.read_cancellation import current_read
from almanaq.engines.duckdb.engine import DuckDBDatabase, Loaded
from almanaq.engines.duckdb.session import open_instance
from almanaq.errors import DeadlineExceeded
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import Schema
from almanaq.text.sql_literals import string_literal

# --- the cache --------------------------------------------------------------------------------------------------------

VERSION = 7
"""Of what readers decide: a change makes every cached file stale."""
_ENDS = 1 << 16
_HURRIED = (KeyboardInterrupt, DeadlineExceeded)
"""Whoever waits for these to end does not wait for tables to be written."""
_ABANDONED_SECONDS = 3600.0
DEFAULT_MEGABYTES = 2048


class _Digest(Protocol):
    def update(self, data: bytes, /) -> object: ...


Save = Callable[[Catalog | None], None]
"""Writes what was loaded, with its catalog where that was read."""


@dataclass(frozen=True, slots=True)
class TableCache:
    """A folder of cached tables.

    Attributes:
        most_bytes: what its files may take together.
    """

    LEAST_BYTES: ClassVar[int] = 1 << 20
    LEAST_FILES: ClassVar[int] = 50
    """Smaller sources are read as quickly as they are fetched from here."""

    folder: Path
    most_bytes: int = DEFAULT_MEGABYTES << 20

    def open(self, key: str) -> tuple[duckdb.DuckDBPyConnection, Loaded] | None:
        """Return a connection with the tables attached as `files`, and what loading found out; None: not cached."""
        path = self._path(key)
        if not path.is_file():
            return None
        connection = open_instance()
        try:
            connection.execute(f"ATTACH {string_literal(path)} AS files (READ_ONLY)")
            decided = _from_json(json.loads(_checked(self._record_path(key).read_text(encoding="utf-8"))))
            os.utime(path)
            return connection, decided
        except (duckdb.Error, OSError, ValueError, KeyError, TypeError):
            # Written by another version, or damaged: the source is read anew.
            connection.close()
            self._drop(path)
            return None

    def prepare(self, connection: duckdb.DuckDBPyConnection, key: str, loaded: Loaded) -> Save | None:
        """Attach a new file, while the engine may, and give what writes the tables into it; None without room."""
        temporary = self.folder / f"{uuid.uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
            connection.execute(f"ATTACH {string_literal(temporary)} AS cache")
            temporary.chmod(0o600)
        except (duckdb.Error, OSError):
            return None
        return lambda catalog: self._save(connection, temporary, key, replace(loaded, catalog=catalog))

    def _save(self, connection: duckdb.DuckDBPyConnection, temporary: Path, key: str, loaded: Loaded) -> None:
        """Write the tables; a disk that has no room for them leaves none."""
        try:
            if isinstance(sys.exc_info()[1], _HURRIED):
                return
            connection.execute("COPY FROM DATABASE files TO cache")
            connection.execute("DETACH cache")
            temporary.chmod(0o600)
            if temporary.stat().st_size <= self.most_bytes:
                record = temporary.with_suffix(".told.part")
                record.touch(mode=0o600)
                record.write_text(_with_checksum(json.dumps(_to_json(loaded), default=_json_value)), encoding="utf-8")
                os.replace(record, self._record_path(key))
                os.replace(temporary, self._path(key))
        except (duckdb.Error, OSError):
            pass
        finally:
            for left in (temporary, temporary.with_name(temporary.name + ".wal")):
                left.unlink(missing_ok=True)
        self.shrink()

    def shrink(self) -> None:
        """Delete the files that were used longest ago until the rest fits, and what a killed process left."""
        entries = []
        for path in self.folder.glob("*"):
            try:
                found = path.stat()
            except OSError:
                continue
            if path.suffix == ".duckdb":
                entries.append((found.st_mtime, found.st_size, path))
            elif path.suffix == ".part" and found.st_mtime < time.time() - _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.most_bytes:
                break
            self._drop(path)
            total -= size

    def stats(self) -> tuple[int, int]:
        """Return how many sources are cached, and their size in bytes."""
        sizes = [path.stat().st_size for path in self.folder.glob("*.duckdb")]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Delete all that is cached; give how many sources that were."""
        found = list(self.folder.glob("*.duckdb"))
        for path in found:
            self._drop(path)
        return len(found)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.duckdb"

    def _record_path(self, key: str) -> Path:
        """Return the file that says how the tables of another were read; it is moved into place before that one."""
        return self.folder / f"{key}.json"

    def _drop(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)


def table_cache_folder() -> Path:
    """Return the folder of the user's cached tables."""
    from almanaq.models.private_files import default_cache_folder

    return default_cache_folder() / "tables"


def default_table_cache() -> TableCache | None:
    """Return the table cache of the user: at most ALMANAQ_KEEP_TABLES megabytes, None where that is 0."""
    setting = os.environ.get("ALMANAQ_KEEP_TABLES", "")
    megabytes = int(setting) if setting.isdigit() else DEFAULT_MEGABYTES
    return TableCache(table_cache_folder(), megabytes << 20) if megabytes else None


def fingerprint(listing: Listing, said: Schema) -> str:
    """Return what tells the content of a source from any other: its files' names, sizes, times and ends."""
    digest = hashlib.sha256(f"{VERSION} {duckdb.__version__}".encode())
    digest.update(repr([(name, entry.as_read_options()) for name, entry in said.relations.items()]).encode())
    digest.update(repr([str(problem) for problem in listing.problems]).encode())
    for found in listing.files:
        if found.kind.format is Format.DOCUMENTS:
            _add_documents(digest, found)
            continue
        for path in found.paths:
            _add(digest, repr(found.id), path)
    for path in listing.databases:
        _add(digest, path.stem, path)
        # Each commit to the log beside a SQLite file changes the sum at its end, or the mark at its beginning.
        for beside in (path.with_name(path.name + ending) for ending in ("-wal", "-journal")):
            if beside.is_file() and beside.stat().st_size:
                _add(digest, path.stem, beside)
    return digest.hexdigest()


def _add_documents(digest: _Digest, found: FoundFile) -> None:
    """Add documents without opening them, as there may be many; a change of content changes `st_ctime`."""
    assert found.root is not None
    digest.update(repr((found.id, str(found.root.resolve()))).encode())
    for path in map(str, found.paths):
        known = os.stat(path)
        digest.update(f"{path}\0{known.st_size} {known.st_mtime_ns} {known.st_ctime_ns}\n".encode())


def _add(digest: _Digest, called: str, path: Path) -> None:
    known = path.stat()
    digest.update(repr((called, str(path.resolve()), known.st_size, known.st_mtime_ns)).encode())
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, known.st_size - _ENDS))
        digest.update(file.read(_ENDS))


def _with_checksum(text: str) -> str:
    """Return a text with its hash in a line before it; the tables' own file has checksums of its own."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def _checked(summed: str) -> str:
    """Return the text behind its hash. Raises ValueError where it is not the one that was written."""
    text = summed.partition("\n")[2]
    if _with_checksum(text) != summed:
        raise ValueError("it does not hold what was written")
    return text


def _json_value(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, ColumnKind):
        return value.value
    raise TypeError(f"a {type(value).__name__} is not cached")


def _to_json(loaded: Loaded) -> dict[str, Any]:
    origins = [(*place, origin) for place, origin in loaded.origins.items()]
    catalog = None if loaded.catalog is None else [asdict(relation) for relation in loaded.catalog.relations]
    return asdict(replace(loaded, origins={}, catalog=None, made=None)) | {"origins": origins, "catalog": catalog}


def _from_json(found: dict[str, Any]) -> Loaded:
    """Return what loading found out from its JSON form."""
    origins = [((database, table), origin) for database, table, origin in found["origins"]]
    loaded: Loaded = _decode(Loaded, found | {"origins": origins, "catalog": None})
    relations = found["catalog"]
    return loaded if relations is None else replace(loaded, catalog=Catalog(_decode(tuple[Relation, ...], relations)))


_type_hints = cache(get_type_hints)


def _decode(kind: Any, value: Any) -> Any:
    """Return the value of a declared type that has a form in JSON."""
    origin, inner = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin is UnionType:
        return _decode(inner[0], value)
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(_decode(each, part) for each, part in zip(inner, value, strict=True))
    if origin in (tuple, frozenset):
        return origin(_decode(inner[0], part) for part in value)
    if origin is Mapping:
        pairs = value.items() if isinstance(value, dict) else value
        return {_decode(inner[0], key): _decode(inner[1], part) for key, part in pairs}
    if hasattr(kind, "__dataclass_fields__"):
        return kind(**{name: _decode(type_, value[name]) for name, type_ in _type_hints(kind).items() if name in value})
    return kind(value) if isinstance(kind, type) and issubclass(kind, ColumnKind) else value


# --- sources that are loaded into DuckDB: from the cache, else read, and then cached ----------------------------------

DATABASE = "files"
"""Under this name DuckDB knows what was loaded."""
Work = Callable[[duckdb.DuckDBPyConnection], None]


def _nothing(_: duckdb.DuckDBPyConnection) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """Where the tables of a source are cached.

    Attributes:
        key: tells the content of the source from any other; "": it is not worth being cached.
    """

    cache: TableCache | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Closing:
    """What is done when a database is closed; it holds until then what must live so long."""

    save: Save | None
    held: object

    def __call__(self, catalog: Catalog | None) -> None:
        if self.save is not None:
            self.save(catalog)


def open_loaded(
    load: Callable[[duckdb.DuckDBPyConnection], Loaded],
    *,
    name: str,
    schema: Schema | None,
    entry: CacheEntry,
    lock: Work = _nothing,
    held: object = None,
) -> DuckDBDatabase:
    """Return the database of the tables that `load` makes in DATABASE, or that were cached of it.

    Args:
        lock: says what files the engine may read from then on; none by itself.
        held: what must live as long as the database, as a folder of files that were fetched.
    """
    cache, key = entry.cache, entry.key
    found = cache.open(key) if cache is not None and key else None
    if found is not None:
        lock(found[0])
        return _database(found[0], name, schema, found[1], None)
    connection = open_instance()
    try:
        connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
        with current_read().interrupting(connection.interrupt):
            loaded = load(connection)
        lock(connection)
        save = cache.prepare(connection, key, loaded) if cache is not None and key and loaded.lasting else None
    except BaseException:
        connection.close()
        raise
    return _database(connection, name, schema, loaded, _Closing(save, held))


def _database(
    connection: duckdb.DuckDBPyConnection, name: str, schema: Schema | None, loaded: Loaded, closing: _Closing | None
) -> DuckDBDatabase:
    return DuckDBDatabase(
        connection, name=name, database=DATABASE, schema=schema, loaded=loaded, infer_enums=True, on_close=closing
    )
