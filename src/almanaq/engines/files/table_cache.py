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
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import duckdb

from almanaq.corpus.files.listing import Format, Listing
from almanaq.engines.duckdb.engine import Loaded
from almanaq.engines.duckdb.session import open_instance
from almanaq.errors import DeadlineExceeded
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.schema_file import Schema
from almanaq.text.sql_literals import string_literal

DATABASE = "files"
"""Under this name DuckDB knows what was loaded."""
VERSION = 10
"""Of what readers decide, and of the record: a change makes every cached file stale."""
_ENDS = 1 << 16
_HURRIED = (KeyboardInterrupt, DeadlineExceeded)
"""Whoever waits for these to end does not wait for tables to be written."""
_ABANDONED_SECONDS = 3600.0
DEFAULT_MEGABYTES = 2048


@dataclass(frozen=True, slots=True)
class TableCache:
    """A folder of cached tables, whose files take at most `most_bytes` together."""

    LEAST_BYTES: ClassVar[int] = 1 << 20
    LEAST_FILES: ClassVar[int] = 50
    """Smaller sources are read as quickly as they are fetched from here."""

    folder: Path
    most_bytes: int = DEFAULT_MEGABYTES << 20

    def open(self, key: str) -> tuple[duckdb.DuckDBPyConnection, Loaded] | None:
        """Return a connection with the tables attached as DATABASE, and what loading found out; None: not cached."""
        path = self.folder / f"{key}.duckdb"
        if not path.is_file():
            return None
        connection = open_instance()
        try:
            connection.execute(f"ATTACH {string_literal(path)} AS {DATABASE} (READ_ONLY)")
            record = json.loads(_verify_checksum(path.with_suffix(".json").read_text(encoding="utf-8")))
            loaded: Loaded = _decode(Loaded, record)
            os.utime(path)
            return connection, loaded
        except (duckdb.Error, OSError, ValueError, KeyError, TypeError):
            # Written by another version, or damaged: the source is read again.
            connection.close()
            _drop(path)
            return None

    def prepare(
        self, connection: duckdb.DuckDBPyConnection, key: str, loaded: Loaded
    ) -> Callable[[Catalog | None], None] | None:
        """Attach a new file, while the engine may, and give what writes the tables into it; None without room."""
        temporary = self.folder / f"{uuid.uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
            connection.execute(f"ATTACH {string_literal(temporary)} AS cache")
            temporary.chmod(0o600)
        except (duckdb.Error, OSError):
            return None
        return lambda catalog: self._save(connection, temporary, key, replace(loaded, catalog=catalog, made=None))

    def _save(self, connection: duckdb.DuckDBPyConnection, temporary: Path, key: str, loaded: Loaded) -> None:
        """Write the tables; a disk that has no room for them leaves none."""
        try:
            if isinstance(sys.exc_info()[1], _HURRIED):
                return
            connection.execute(f"COPY FROM DATABASE {DATABASE} TO cache")
            connection.execute("DETACH cache")
            temporary.chmod(0o600)
            if temporary.stat().st_size <= self.most_bytes:
                record = temporary.with_suffix(".record.part")
                record.touch(mode=0o600)
                written = json.dumps(_to_json(loaded), default=lambda v: v.value if isinstance(v, Enum) else sorted(v))
                record.write_text(_add_checksum(written), encoding="utf-8")
                os.replace(record, self.folder / f"{key}.json")  # before the tables, which nobody opens without it
                os.replace(temporary, self.folder / f"{key}.duckdb")
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
            _drop(path)
            total -= size

    def stats(self) -> tuple[int, int]:
        """Return how many sources are cached, and their size in bytes."""
        sizes = [path.stat().st_size for path in self.folder.glob("*.duckdb")]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Delete all that is cached; give how many sources that were."""
        found = list(self.folder.glob("*.duckdb"))
        for path in found:
            _drop(path)
        return len(found)


def _drop(path: Path) -> None:
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
    known: list[object] = [VERSION, duckdb.__version__, [*listing.problems]]
    known += [(name, entry.as_read_options()) for name, entry in said.relations.items()]
    for found in listing.files:
        if found.kind.format is Format.DOCUMENTS:  # not opened, as there may be many; a change changes `st_ctime`
            known.append((found.id, str(found.root and found.root.resolve())))
            stats = ((path, os.stat(path)) for path in found.paths)
            known += [(str(path), at.st_size, at.st_mtime_ns, at.st_ctime_ns) for path, at in stats]
        else:
            known += [(found.id, _fingerprint_file(path)) for path in found.paths]
    for path in listing.databases:
        # Each commit to the log beside a SQLite file changes the sum at its end, or the mark at its beginning.
        logs = [path.with_name(path.name + ending) for ending in ("-wal", "-journal")]
        present = [path, *(log for log in logs if log.is_file() and log.stat().st_size)]
        known += [(path.stem, _fingerprint_file(each)) for each in present]
    return hashlib.sha256(repr(known).encode()).hexdigest()


def _fingerprint_file(path: Path) -> tuple[object, ...]:
    known = path.stat()
    with path.open("rb") as file:
        ends = file.read(_ENDS)
        file.seek(max(0, known.st_size - _ENDS))
        ends += file.read(_ENDS)
    return str(path.resolve()), known.st_size, known.st_mtime_ns, hashlib.sha256(ends).hexdigest()


def _add_checksum(text: str) -> str:  # the tables' own file has checksums of its own
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def _verify_checksum(summed: str) -> str:
    text = summed.partition("\n")[2]
    if _add_checksum(text) != summed:
        raise ValueError("it does not hold what was written")
    return text


def _to_json(loaded: Loaded) -> dict[str, Any]:
    relations = None if loaded.catalog is None else [asdict(relation) for relation in loaded.catalog.relations]
    return asdict(replace(loaded, catalog=None)) | {"catalog": relations and {"relations": relations}}


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
        return {key: _decode(inner[1], part) for key, part in value.items()}
    if hasattr(kind, "__dataclass_fields__"):
        return kind(**{name: _decode(type_, value[name]) for name, type_ in _type_hints(kind).items() if name in value})
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
