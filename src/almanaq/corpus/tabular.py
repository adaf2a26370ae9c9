"""Files of rows as a header and rows, for those who read them as text; and the names that columns are given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from almanaq.corpus.files.delimited import Mended, read_delimited
from almanaq.corpus.files.kinds import KNOWN, Format, kind_of
from almanaq.corpus.files.listing import FoundFile
from almanaq.corpus.files.plain import unpacked
from almanaq.corpus.files.records import flat_columns, read_json
from almanaq.corpus.files.sheets import read_sheets
from almanaq.corpus.files.sniff import sniff
from almanaq.errors import SourceError, first_line, suggest

_BATCH_ROWS = 1000
_MOST_UNPACKED = 2_000_000_000
"""The most memory that the rows of one Parquet file may take as a table of a corpus."""


@dataclass(frozen=True, slots=True)
class Header:
    """Names of columns that are present and distinct.

    Attributes:
        warnings: what had to be changed to make them so.
    """

    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def clean_header(written: list[str], where: str) -> Header:
    """Return the header with empty names filled (`column_N`) and repeated ones, case folded, numbered (`name_2`)."""
    names: list[str] = []
    warnings: list[str] = []
    taken = {name.strip().casefold() for name in written}
    seen: set[str] = set()
    for position, raw in enumerate(written, start=1):
        name = raw.strip()
        if not name or name.casefold() in seen:
            name = _free_name(name or f"column_{position}", seen | (taken if name or raw else set()), bool(name))
            fault = f"column {position} has no name" if not raw.strip() else f"column name {raw.strip()!r} is repeated"
            warnings.append(f"{where}: {fault}; it is called {name!r}")
        seen.add(name.casefold())
        names.append(name)
    return Header(tuple(names), tuple(warnings))


def _free_name(name: str, taken: set[str], repeated: bool) -> str:
    """Return `name`, or `name_2`, `name_3`, …: the first that is not taken."""
    number = 2
    candidate = f"{name}_{number}" if repeated else name
    while candidate.casefold() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def find_path(text: str | Path) -> Path:
    """Return the path of a file or folder that exists; raises SourceError with the near names of its folder."""
    path = Path(text).expanduser()
    if path.exists():
        return path
    folder = path.parent
    if not folder.is_dir():
        raise SourceError(f"there is no folder {_shown(folder)!r}, so no source {_shown(text)!r}")
    names = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    hint = suggest(path.name, names) or "; that folder is empty"
    raise SourceError(f"there is no file or folder {_shown(path.name)!r} in {_shown(folder)!r}{hint}")


def _shown(text: str | Path) -> str:
    """Return what was named as a source without the password in it: it may be a URL that was mistyped."""
    hidden = re.sub(r"(:/+[^:/@]*:).*@", r"\1***@", str(text))
    return re.sub(r"(password\s*=\s*)\S.*", r"\1***", hidden, flags=re.IGNORECASE)


def read_rows(path: Path, limit: int | None = None) -> tuple[Header, list[list[Any]]]:
    """Return the names of the columns of a file of rows, and its rows, each as long as the header; None is no value.

    Delimited text gives text, JSON and Parquet give Python values; the lists of objects in JSON stay values.

    Args:
        limit: at most so many rows; None gives all.
    """
    kind = kind_of(path)
    if kind is None:
        raise SourceError(f"{path.name}: files of this kind cannot be read; known: {KNOWN}")
    if kind.format is Format.PARQUET:
        return _parquet_rows(path, limit)
    if kind.format is Format.SHEETS:
        sheet = read_sheets(path)[0]
        return clean_header(list(sheet.names), path.name), [list(row) for row in sheet.rows[:limit]]
    with unpacked(path, kind.compression) as file:
        return _delimited_rows(file, path, limit) if kind.format is Format.DELIMITED else _json_rows(file, path, limit)


def read_parts(found: FoundFile, limit: int | None = None) -> tuple[Header, list[list[Any]]]:
    """Return the columns and rows of a table of Parquet parts; what the names of their folders say is a column."""
    assert found.root is not None
    names: dict[str, None] = {}
    read = []
    count = 0
    for path in found.paths:
        partition = dict(part.split("=", 1) for part in path.parent.relative_to(found.root).parts)
        header, rows = _parquet_rows(path, None if limit is None else limit - count)
        names |= dict.fromkeys((*header.names, *partition))
        read += [dict(zip(header.names, row, strict=True)) | partition for row in rows]
        count += len(rows)
        if limit is not None and count >= limit:
            break
    return Header(tuple(names)), [[row.get(name) for name in names] for row in read]


def _delimited_rows(file: Path, path: Path, limit: int | None) -> tuple[Header, list[list[Any]]]:
    dialect = sniff(file, path.name)
    mended = Mended()
    header = clean_header(list(dialect.names), path.name)
    rows: list[list[Any]] = list(islice(read_delimited(file, dialect, mended), limit))
    notes = (*dialect.notes, *header.warnings, *mended.messages(path.name, len(header.names)))
    return Header(header.names, notes), rows


def _json_rows(file: Path, path: Path, limit: int | None) -> tuple[Header, list[list[Any]]]:
    records = read_json(file, path.name)
    columns = flat_columns(records.rows[:limit])
    header = clean_header(list(columns), path.name)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return Header(header.names, records.notes + header.warnings), rows


def _size(column: Any) -> int:
    """Return the bytes of a column, text that is kept once counted for each row that it stands in."""
    return int(column.dictionary_decode().nbytes if hasattr(column, "dictionary_decode") else column.nbytes)


def _parquet_rows(path: Path, limit: int | None) -> tuple[Header, list[list[Any]]]:
    file = open_parquet(path)
    header = clean_header(list(file.schema_arrow.names), path.name)
    rows: list[list[Any]] = []
    held = 0
    for batch in file.iter_batches(batch_size=min(limit or _BATCH_ROWS, _BATCH_ROWS)):
        held += sum(map(_size, batch.columns))  # a few bytes may stand for any number of rows, and of long ones
        if held > _MOST_UNPACKED:
            raise SourceError(
                f"{path.name} holds more than {_MOST_UNPACKED // 10**6:,} MB when it is unpacked: leave columns out of "
                "it, or ask it by queries (--db)"
            )
        rows += (list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        if limit is not None and len(rows) >= limit:
            break
    return header, rows[:limit]


# --- Parquet ---------------------------------------------------------------------------------------------------------


def open_parquet(path: Path) -> Any:
    """Return the opened pyarrow ParquetFile; raises SourceError when it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path.name} is not a Parquet file: {first_line(error)}") from error
