"""The one reader of files of rows: SQL types the cells that it gives, table search reads them as text."""

from __future__ import annotations

import codecs
import csv
import errno
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from almanaq.corpus.files.listing import KNOWN, Format, FoundFile, Kind, kind_of
from almanaq.corpus.files.records import Records, flat_columns, read_json
from almanaq.corpus.files.shape import MOST_BELOW, Header, LeftOut, clean_header, find_below, numbers_of
from almanaq.corpus.files.sheets import read_workbook
from almanaq.corpus.files.sniff import NAMES, Dialect, Hints, csv_reader, find_encoding, sniff
from almanaq.corpus.read_cancellation import raise_if_cancelled, until_cancelled
from almanaq.errors import SourceError, first_line

_CHUNK = 1 << 20
_MOST_ON_DISK = 64 << 30
_ROOM = 1 << 30  # bytes of a disk that unpacking leaves free; less than a chunk is unpacked wherever it fits
_SHOWN_LINES = 5
_NO_HINTS = Hints()


@contextmanager
def unpack_file(path: Path, compression: str) -> Iterator[Path]:
    """Give the file that a compressed one holds, for as long as the block lasts; another file as it is."""
    if not compression:
        yield path
        return
    import pyarrow as pa

    with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
        target = Path(folder) / Path(path.name).stem
        try:
            with pa.CompressedInputStream(pa.OSFile(str(path)), compression) as source, target.open("wb") as file:
                _copy(source, file, path, folder)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise _no_room(path) from error
            why = first_line(error)
            raise SourceError(f"{path.name} cannot be unpacked ({why}): is it complete, and {compression}?") from error
        yield target


@contextmanager
def in_utf8(path: Path, encoding: str, errors: str) -> Iterator[Path]:
    """Give a text file in UTF-8, for as long as the block lasts."""
    if encoding == "utf-8-sig" and errors == "strict":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
        target = Path(folder) / path.name
        try:
            decoder = codecs.getincrementaldecoder(encoding)(errors)
        except LookupError as error:
            raise SourceError(f"{path.name}: unknown encoding {encoding!r}") from error
        with path.open("rb") as source, target.open("w", encoding="utf-8", newline="") as file:
            while chunk := source.read(_CHUNK):
                raise_if_cancelled()
                file.write(decoder.decode(chunk))
            file.write(decoder.decode(b"", final=True))
        yield target


def _copy(source: Any, target: Any, path: Path, folder: str) -> None:
    """Copy what is unpacked; raises SourceError where it would fill the disk."""
    written = 0
    while chunk := source.read(_CHUNK):
        raise_if_cancelled()
        written += len(chunk)
        tight = written > _CHUNK and shutil.disk_usage(folder).free < _ROOM
        if written > _MOST_ON_DISK or tight:
            raise _no_room(path)
        target.write(chunk)


def _no_room(path: Path) -> SourceError:
    return SourceError(f"{path.name} is too large for the disk when unpacked: unpack it elsewhere, and name that")


@dataclass(slots=True)
class Repairs:
    """What was mended while a file of delimited text was read: rows of another length are mended and counted."""

    rows: int = 0
    short: int = 0  # rows with fewer fields than there are columns
    long: int = 0  # with more
    first: int = 0  # the line of the first of these
    quotes: int = 0  # the line of a quote that is at fault, 0 for none
    blank: list[int] = field(default_factory=list)  # the lines of rows without a value, which are left out
    # The line of each of the last rows, and whether it is short; what is said of them.
    last: deque[tuple[int, bool]] = field(default_factory=lambda: deque(maxlen=MOST_BELOW))
    below: list[str] = field(default_factory=list)

    def take_out(self, rows: list[list[str | None]], at: int, found: LeftOut) -> None:
        """Take out the row at a place among the last ones that were read, unless it is kept, and say so."""
        behind = len(rows) - at
        line, short = self.last[-behind] if behind <= len(self.last) else (0, False)
        place = f"line {line}" if line else f"row {at + 1}"
        self.below.insert(0, f"{place}: {'' if found.kept else 'left out, '}{found.why}")
        if not found.kept:
            self.short -= short
            del rows[at]
            if line:
                del self.last[-behind]

    def messages(self, name: str, width: int) -> tuple[str, ...]:
        found = [f"{name}, {note}" for note in self.below]
        if self.blank:
            lines = ", ".join(map(str, self.blank[:_SHOWN_LINES])) + " …" * (len(self.blank) > _SHOWN_LINES)
            found.append(f"{name}: {len(self.blank):,} rows without a value are left out (lines {lines})")
        if self.quotes:
            found.append(f"{name}, line {self.quotes}: a quote is out of place: double quotes within quoted fields")
        if self.short or self.long:
            parts = [f"{self.short:,} with fewer fields, the rest is NULL"] if self.short else []
            parts += [f"{self.long:,} with more, which are left out"] if self.long else []
            message = f"{self.short + self.long:,} of {self.rows:,} rows do not have {width} fields"
            fix = "quote fields that hold the separator or a line break, or complete the rows"
            found.append(f"{name}, first in line {self.first}: {message} ({'; '.join(parts)}): {fix}")
        return tuple(found)


def read_delimited(path: Path, dialect: Dialect, mended: Repairs | None = None) -> Iterator[list[str | None]]:
    """Yield the rows of a file, each as long as the header; an empty field is None, blank lines are skipped."""
    mended = mended if mended is not None else Repairs()
    width = len(dialect.names)
    rows = _read_numbered_rows(path, dialect, mended)
    if dialect.header:
        next(rows, None)
    for line, row in until_cancelled(rows):
        if width > 1 and not any(map(str.strip, row)):
            mended.blank.append(line)
            continue
        mended.rows += 1
        mended.last.append((line, len(row) < width))
        if len(row) != width:
            extra = any(row[width:])
            mended.short += len(row) < width
            mended.long += extra
            mended.first = mended.first or (line if extra or len(row) < width else 0)
            row = [*row[:width], *[""] * (width - len(row))]
        yield [cell or None for cell in row]


def _read_numbered_rows(path: Path, dialect: Dialect, mended: Repairs) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line that a row ends on, its fields); blank lines are skipped."""
    mode = _find_quoting(path, dialect, mended)
    with path.open(encoding=dialect.encoding, errors=dialect.errors, newline="") as lines:
        for _ in range(dialect.skip):
            next(lines, None)
        reader = (
            csv.reader(lines, delimiter=dialect.separator, quoting=mode)
            if mode == csv.QUOTE_NONE
            else csv_reader(lines, dialect.separator, dialect.escape)
        )
        for row in reader:
            if row and not (len(row) == 1 and row[0].isspace()):
                yield reader.line_num + dialect.skip, row


def _find_quoting(path: Path, dialect: Dialect, mended: Repairs) -> Literal[0, 3]:
    """Return how quotes are to be taken: as CSV has it; as plain characters where one is never closed."""
    with path.open(encoding=dialect.encoding, errors=dialect.errors, newline="") as lines:
        reader = csv_reader(lines, dialect.separator, dialect.escape, strict=True)
        try:
            for _ in until_cancelled(reader):
                pass
        except csv.Error as error:
            mended.quotes = reader.line_num
            return csv.QUOTE_NONE if "unexpected end" in str(error) else csv.QUOTE_MINIMAL
    return csv.QUOTE_MINIMAL


@dataclass(frozen=True, slots=True)
class DelimitedFile:
    name: str
    path: Path  # where it lies decompressed, for as long as it is open
    dialect: Dialect
    header: Header
    origin: str  # how it is written, for people

    def notes(self, mended: Repairs) -> tuple[str, ...]:
        return self.dialect.notes + self.header.warnings + mended.messages(self.name, len(self.header.names))


@contextmanager
def open_delimited(path: Path, hints: Hints = _NO_HINTS) -> Iterator[DelimitedFile]:
    """Give a file of delimited text with what its beginning says of it; raises SourceError for one without text."""
    kind = _require_kind(path)
    with unpack_file(path, kind.compression) as plain:
        dialect = sniff(plain, path.name, hints)
        written = f"{path.name}: {NAMES.get(dialect.separator, 'one column')}, {dialect.encoding.removesuffix('-sig')}"
        packed = f", {kind.compression}" if kind.compression else ""
        origin = written + ("" if dialect.header else ", no header") + packed
        yield DelimitedFile(path.name, plain, dialect, clean_header(list(dialect.names), path.name), origin)


def read_records(path: Path, encoding: str = "") -> Records:
    """Return the objects of a JSON file; its encoding is found where none is given."""
    with unpack_file(path, _require_kind(path).compression) as plain:
        how = (encoding, "replace", ()) if encoding else find_encoding(plain, path.name)
        with in_utf8(plain, *how[:2]) as text:
            records = read_json(text, path.name)
    records.notes = how[2] + records.notes
    return records


def _require_kind(path: Path) -> Kind:
    kind = kind_of(path)
    if kind is None:
        raise SourceError(f"{path.name}: files of this kind cannot be read; known: {KNOWN}")
    return kind


def read_rows(path: Path, limit: int | None = None) -> tuple[Header, list[list[Any]]]:
    """Return the names of the columns of a file of rows, and its rows, each as long as the header; None is no value.

    Delimited text gives text, JSON gives Python values; the lists of objects in JSON stay values. Of a
    workbook it is the first sheet. At most `limit` rows; None gives all.
    """
    kind = _require_kind(path).format
    if kind is Format.DELIMITED:
        mended = Repairs()
        with open_delimited(path) as file:
            cells: list[list[Any]] = list(islice(read_delimited(file.path, file.dialect, mended), limit))
        return Header(file.header.names, file.notes(mended)), cells
    if kind is Format.JSON:
        records = read_records(path)
        read = [{"table": name, **row} for name, rows in records.tables.items() for row in rows] or records.rows
        columns = flat_columns((read or [records.whole or {}])[:limit])
        header = clean_header(list(columns), path.name)
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        return Header(header.names, records.notes + header.warnings), rows
    sheet = read_workbook(path, path.stem)[0]
    return Header(sheet.header.names, sheet.notes), [list(row) for row in sheet.rows[:limit]]


def read_parts(found: FoundFile, limit: int | None = None) -> tuple[Header, list[list[Any]]]:
    """Return the columns and rows of a table that is kept in several files; what their paths say are columns, too."""
    names: dict[str, None] = {}
    read: list[dict[str, Any]] = []
    notes: list[str] = []
    for path, values in zip(found.paths, found.values or [()] * len(found.paths), strict=True):
        header, rows = read_rows(path, None if limit is None else limit - len(read))
        notes += header.warnings
        said = dict(zip(name_paths_columns(found.columns, header.names), values, strict=True))
        names |= dict.fromkeys((*header.names, *said))
        read += [dict(zip(header.names, row, strict=True)) | said for row in rows]
        if limit is not None and len(read) >= limit:
            break
    return Header(tuple(names), tuple(notes)), [[row.get(name) for name in names] for row in read]


def name_paths_columns(columns: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Return the names of columns that paths say, other than those of the files."""
    folded = {name.casefold() for name in taken}
    return [f"{name}_2" if name.casefold() in folded else name for name in columns]


def _read_own_rows(file: DelimitedFile, mended: Repairs) -> Iterator[list[str | None]]:
    """Yield the rows of a file without those at its end that are none of its table."""
    last: list[list[str | None]] = []
    first = 0
    for row in read_delimited(file.path, file.dialect, mended):
        last.append(row)
        if len(last) > MOST_BELOW:
            first += 1
            yield last.pop(0)

    def column(end: int, at: int) -> list[float]:
        return numbers_of(row[at] for row in islice(read_delimited(file.path, file.dialect), first + end))

    for found in find_below(last, column):
        mended.take_out(last, found.at, found)
    yield from last


@contextmanager
def join_delimited(found: FoundFile, hints: Hints = _NO_HINTS) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Give delimited files as one, with what their paths say, and what to say of them; types are found in all cells."""
    notes: list[str] = []
    headers: dict[str, None] = {}
    for path in found.paths:
        with open_delimited(path, hints) as file:
            headers |= dict.fromkeys(file.header.names)
    said = name_paths_columns(found.columns, list(headers))
    with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
        target = Path(folder, f"{found.id.table}.csv")
        with target.open("w", encoding="utf-8", newline="") as joined:
            writer = csv.writer(joined)
            writer.writerow([*headers, *said])
            for path, values in zip(found.paths, found.values, strict=True):
                mended = Repairs()
                with open_delimited(path, hints) as file:
                    for row in _read_own_rows(file, mended):
                        cells = dict(zip(file.header.names, row, strict=True))
                        writer.writerow([*map(cells.get, headers), *values])
                    notes += file.notes(mended)
        yield target, tuple(notes)
