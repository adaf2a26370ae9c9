"""Files of rows (CSV, TSV, JSON Lines, Parquet): a header and a stream of rows, or a SourceError that says where."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from almanaq.errors import SourceError, suggest

DELIMITED = (".csv", ".tsv")
JSON_LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet",)
TABULAR = DELIMITED + JSON_LINES + PARQUET
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True)
class Header:
    """Names of columns that are present and distinct.

    Attributes:
        warnings: what had to be changed to make them so.
    """

    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def clean_header(written: list[str], where: str) -> Header:
    """Give the header with empty names filled (`column_N`) and repeated ones, case folded, numbered (`name_2`)."""
    names: list[str] = []
    warnings: list[str] = []
    taken = {name.strip().casefold() for name in written}
    seen: set[str] = set()
    for position, raw in enumerate(written, start=1):
        name = raw.strip()
        if not name or name.casefold() in seen:
            name = _free_name(name or f"column_{position}", seen | (taken if name or raw else set()), bool(name))
            said = f"column {position} has no name" if not raw.strip() else f"column name {raw.strip()!r} is repeated"
            warnings.append(f"{where}: {said}; it is called {name!r}")
        seen.add(name.casefold())
        names.append(name)
    return Header(tuple(names), tuple(warnings))


def _free_name(name: str, taken: set[str], repeated: bool) -> str:
    """Give `name`, or `name_2`, `name_3`, …: the first that is not taken."""
    number = 2
    candidate = f"{name}_{number}" if repeated else name
    while candidate.casefold() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def find_path(text: str | Path) -> Path:
    """Give the path of a file or folder that exists; raises SourceError with the near names of its folder."""
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
    """Give what was named as a source without the password in it: it may be a URL that was mistyped."""
    hidden = re.sub(r"(:/+[^:/@]*:).*@", r"\1***@", str(text))
    return re.sub(r"(password\s*=\s*)\S.*", r"\1***", hidden, flags=re.IGNORECASE)


def list_tabular(folder: Path) -> list[Path]:
    """Give the files of rows in a folder, by name; hidden ones and other kinds are left out."""
    files = (p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    return sorted(p for p in files if p.suffix.lower() in TABULAR)


def read_header(path: Path) -> Header:
    """Give the names of the columns of one file of rows."""
    suffix = path.suffix.lower()
    if suffix in DELIMITED:
        return clean_header(_first_row(path), path.name)
    if suffix in PARQUET:
        return clean_header(list(open_parquet(path).schema_arrow.names), path.name)
    names: dict[str, None] = {}
    for _, record in read_records(path):
        names.update(dict.fromkeys(record))
    return clean_header(list(names), path.name)


def read_rows(path: Path, header: Header) -> Iterator[list[Any]]:
    """Yield the rows of one file, each as long as the header; a missing value is None.

    CSV gives text, with an empty field as None; JSON Lines and Parquet give Python values.
    """
    suffix = path.suffix.lower()
    if suffix in DELIMITED:
        yield from _delimited_rows(path, len(header.names))
    elif suffix in PARQUET:
        for batch in open_parquet(path).iter_batches():
            yield from (list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    else:
        keys: dict[str, None] = {}
        for _, record in read_records(path):
            keys.update(dict.fromkeys(record))
        for _, record in read_records(path):
            yield [record.get(key) for key in keys]


# --- CSV -------------------------------------------------------------------------------------------------------------


def _first_row(path: Path) -> list[str]:
    first = next(_numbered_rows(path), None)
    if first is None:
        raise SourceError(f"{path.name} is empty: a CSV file begins with a line of column names")
    return first[1]


def _delimited_rows(path: Path, width: int) -> Iterator[list[str | None]]:
    rows = _numbered_rows(path)
    next(rows, None)
    for line, row in rows:
        if len(row) != width:
            raise SourceError(
                f"{path.name}, line {line}: {len(row)} fields where the header has {width}; "
                "quote fields that contain the delimiter or a line break, or complete the row"
            )
        yield [cell or None for cell in row]


def _numbered_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line the row ends on, fields) of a delimited file; empty lines are skipped."""
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)  # a cell may hold a whole document
    delimiter = _delimiter(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            for row in reader:
                if row:
                    yield reader.line_num, row
    except csv.Error as error:
        raise SourceError(f"{path.name}, line {reader.line_num}: not well-formed CSV ({error})") from error
    except UnicodeDecodeError as error:
        _refuse_encoding(path, error)


def _delimiter(path: Path) -> str:
    """Give the delimiter: tab for .tsv, else the one that occurs most often in the first line, the comma first."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = lines.readline(1 << 16)
    except UnicodeDecodeError as error:
        _refuse_encoding(path, error)
    return max(_DELIMITERS, key=first.count)


def _refuse_encoding(path: Path, error: UnicodeDecodeError) -> NoReturn:
    """Raise for a file that is not UTF-8, naming the line of the first faulty byte."""
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(f"{path.name} is UTF-16, not UTF-8; convert it with  iconv -f UTF-16 -t UTF-8") from error
    try:
        content.decode("utf-8")
        where = ""
    except UnicodeDecodeError as first:
        line = content.count(b"\n", 0, first.start) + 1
        where = f", line {line}: byte 0x{content[first.start]:02x}"
    raise SourceError(f"{path.name}{where} is not UTF-8; convert it, e.g. with  iconv -f LATIN1 -t UTF-8") from error


# --- JSON Lines ------------------------------------------------------------------------------------------------------


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a JSON Lines file; blank lines are skipped."""
    found = False
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    found = True
                    yield number, _record(path, number, line)
    except UnicodeDecodeError as error:
        _refuse_encoding(path, error)
    if not found:
        raise SourceError(f"{path.name} is empty: JSON Lines hold one object a line")


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise SourceError(f"{path.name}, line {number}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise SourceError(
            f"{path.name}, line {number}: JSON Lines hold one object a line, not a {type(value).__name__}"
        )
    return value


# --- Parquet ---------------------------------------------------------------------------------------------------------


def open_parquet(path: Path) -> Any:
    """Give the opened pyarrow ParquetFile; raises SourceError when it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path.name} is not a Parquet file: {str(error).splitlines()[0]}") from error
