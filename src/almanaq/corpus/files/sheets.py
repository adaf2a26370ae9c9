"""Workbooks: each sheet that holds rows is a table. The one module that reads them, with python-calamine."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.files.shape import (
    Numbered,
    Row,
    count_preamble,
    find_below,
    find_subtotals,
    is_filled,
    join_headers,
    numbers_of,
    read_units,
    split_tables,
)
from almanaq.corpus.files.sniff import has_header, number_columns
from almanaq.corpus.files.workbook_details import Details, read_details
from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import MissingExtraError, SourceError, first_line

# --- sheets -----------------------------------------------------------------------------------------------------------

MOST_BYTES = 300 << 20
"""A workbook with more XML takes minutes, and the memory of a large machine."""
_MOST_MERGED = 1 << 20
"""So many cells at most are looked at in ranges that are merged."""
_LOOK = 1 << 12
"""How many rows are read between two looks whether the reading is to end."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of a sheet, without empty rows.

    Attributes:
        names: its header as text, or names for as many columns as there are.
        units: of its columns, where a row below the header says them.
        notes: what was guessed, for people.
    """

    name: str
    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


def read_sheets(path: Path, header: bool | None = None) -> list[Sheet]:
    """Return the sheets of a workbook that hold rows.

    Raises:
        MissingExtraError: no reader of workbooks is installed.
        SourceError: the file is no workbook, or all its sheets are empty.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise MissingExtraError("python-calamine", "xlsx", f"the workbook {path.name}") from error
    size, most = _measure_unpacked(path), MOST_BYTES
    if size > most:
        raise SourceError(
            f"{path.name} holds {size >> 20:,} MB, and workbooks are read up to {most >> 20:,}: save its sheets as CSV"
        )
    try:
        workbook = CalamineWorkbook.from_path(str(path))
        details = read_details(path)
        read = [_read_sheet(name, workbook.get_sheet_by_name(name), details.get(name)) for name in workbook.sheet_names]
    except (CalamineError, OSError, ValueError) as error:
        why = first_line(error)
        raise SourceError(f"{path.name} cannot be read as a workbook ({why}): save it again, or as CSV") from error
    sheets = [table for sheet in read for table in _find_tables(path.name, sheet, header)]
    if not sheets:
        raise SourceError(f"{path.name} holds no rows")
    tables = [sheet for sheet in sheets if sheet.rows or len(sheet.names) > 1]
    if not tables:
        return sheets
    alone = tuple(
        f"{path.name}, sheet {sheet.name!r}: left out, as it has only one cell"
        for sheet in sheets
        if sheet not in tables
    )
    return [replace(tables[0], notes=tables[0].notes + alone), *tables[1:]]


def _measure_unpacked(path: Path) -> int:
    """Return how many bytes of XML a workbook holds; of one that is no archive, its own."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError):
        return path.stat().st_size


@dataclass(frozen=True, slots=True)
class _ReadSheet:
    """The rows of a sheet as they were read; `first` is the number of the first."""

    name: str
    first: int
    rows: list[list[Any]]
    notes: tuple[str, ...]


def _read_sheet(name: str, sheet: Any, details: Details | None) -> _ReadSheet:
    """Return the rows of a sheet, cells that are merged each with the value of their first."""
    rows = []
    for number, row in enumerate(sheet.iter_rows()):
        if number % _LOOK == 0:
            raise_if_cancelled()
        rows.append([_cell(value) for value in row])
    if sheet.end is None:
        return _ReadSheet(name, 1, rows, ())
    top, left = sheet.end[0] + 1 - len(rows), sheet.start[1]
    notes: tuple[str, ...] = ()
    if details is not None:
        for (at, column), width in details.padded.items():
            if 0 <= at - top < len(rows) and 0 <= column - left < len(rows[at - top]):
                value = rows[at - top][column - left]
                if isinstance(value, int):
                    rows[at - top][column - left] = f"{value:0{width}d}"
        notes = details.notes()
    if _fill(rows, sheet):
        notes += ("merged cells repeat the value of their first cell in each row",)
    return _ReadSheet(name, top + 1, rows, notes)


def _fill(rows: list[list[Any]], sheet: Any) -> int:
    """Give each row of a merged cell its value, in the first column; return how many cells were filled."""
    top, left = sheet.end[0] + 1 - len(rows), sheet.start[1]
    seen = filled = 0
    for (first, own), (last, end) in sheet.merged_cell_ranges or ():
        seen += (last - first + 1) * (end - own + 1)
        if seen > _MOST_MERGED:
            break
        for row in rows[first - top + 1 : last - top + 1]:
            if own - left < len(row) and row[own - left] is None:
                row[own - left] = rows[first - top][own - left]
                filled += row[own - left] is not None
    return filled


def _find_tables(file: str, sheet: _ReadSheet, header: bool | None) -> list[Sheet]:
    """Return the tables of a sheet: each from its header on, as titles and remarks stand above it."""
    where = f"{file}, sheet {sheet.name!r}"
    tables = split_tables(list(enumerate(sheet.rows, start=sheet.first)))
    found = [_find_table(where, sheet.name, rows, header) for rows in tables]
    said = list(sheet.notes)
    if len(found) > 1:
        said.append(f"holds {len(found)} tables, with blank rows between them")
    notes = tuple(f"{where}: {note}" for note in said)
    return [replace(found[0], notes=notes + found[0].notes), *found[1:]] if found else []


def _find_table(where: str, name: str, rows: list[Numbered], header: bool | None) -> Sheet:
    notes: list[str] = []
    start = max(
        next((i for i, (_, row) in enumerate(rows) if sum(map(is_filled, row)) > 1), 0),
        count_preamble([row for _, row in rows], _reads_like_header) if header is None else 0,
    )
    if start:
        notes.append(f"{where}: {_numbers_of_rows(rows[:start])} above the table left out")
    rows = rows[start:]
    used = [
        i for i in range(max(len(row) for _, row in rows)) if any(i < len(row) and is_filled(row[i]) for _, row in rows)
    ]
    table = [tuple(row[i] if i < len(row) else None for i in used) for _, row in rows]
    again = next((i for i, row in enumerate(table) if row != table[0]), 1)
    if header is None and again > 1 and _reads_like_header(table[again - 1 :]):  # its cells are merged over rows
        notes.append(f"{where}: {_numbers_of_rows(rows[1:again])} left out, as the header is repeated")
        table, rows = table[again - 1 :], rows[again - 1 :]
    joined = join_headers(table) if header is None else None
    named = joined is not None or (_reads_like_header(table) if header is None else header)
    if joined is not None:
        notes.append(f"{where}: two header rows are joined, as in {joined[-1]!r}")
    if not named and header is None:
        notes.append(f"{where}: its first row looks like values, so the columns are called column_1 …")
    if named and joined is None and 2 * sum(map(is_filled, table[0])) < len(used):
        notes.append(f"{where}: its first row names fewer than half of its columns: is it a form rather than a table?")
    names = joined or (tuple("" if v is None else str(v) for v in table[0]) if named else number_columns(len(used)))
    head = 2 if joined is not None else int(named)
    units = read_units(table[head:]) if named else None
    if units is not None:
        notes.append(f"{where}: row {rows[head][0]} gives the units of columns")
        head += 1
    body, numbers = table[head:], [number for number, _ in rows[head:]]
    left = find_subtotals(body)
    kept = [i for i in range(len(body)) if i not in {each.at for each in left}]
    bare = [body[i] for i in kept]
    below = find_below(bare, lambda end, at: numbers_of(row[at] for row in bare[:end]))
    gone = [(numbers[each.at], each) for each in left] + [(numbers[kept[each.at]], each) for each in reversed(below)]
    notes += [f"{where}: row {number}, {each.why}{'' if each.kept else ', is left out'}" for number, each in gone]
    without = {kept[each.at] for each in below if not each.kept} | {each.at for each in left}
    return Sheet(name, names, tuple(row for i, row in enumerate(body) if i not in without), tuple(notes), units or ())


def _reads_like_header(rows: Sequence[Row]) -> bool:
    return has_header([["" if v is None else str(v) for v in row] for row in rows])


def _numbers_of_rows(rows: Sequence[Numbered]) -> str:
    first, last = rows[0][0], rows[-1][0]
    return f"row {first}" if first == last else f"rows {first} to {last}"


def _cell(value: Any) -> Any:
    """Return a cell's value: nothing for "", and whole numbers as such, which workbooks keep as fractions."""
    if value == "":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
