"""Workbooks: each sheet that holds rows is a table. The one module that reads them, with python-calamine.

What calamine leaves out of an Excel file (errors, formulas without values, zeros in front of numbers) is read from its
XML.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from almanaq.corpus.files import shape
from almanaq.corpus.files.shape import Header, Numbered, Row
from almanaq.corpus.files.sniff import has_header, number_columns
from almanaq.corpus.read_cancellation import until_cancelled
from almanaq.errors import MissingExtraError, SourceError, first_line

MOST_BYTES = 300 << 20  # a workbook with more XML takes minutes, and the memory of a large machine
_MOST_MERGED = 1 << 20  # cells at most that are looked at in ranges that are merged
_SHOWN = 3
_CELL = re.compile(rb"<c\b(?P<about>[^>]*?)(?:/>|>(?P<inner>.*?)</c>)", re.DOTALL)
_PLACE = re.compile(rb'\br="([A-Z]{1,3})([0-9]+)"')
_STYLE = re.compile(rb'\bs="([0-9]+)"')
_ZEROS = re.compile(r"0{2,}")
_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass(frozen=True, slots=True)
class SheetTable:
    """A table of a sheet, without empty rows."""

    name: str  # the workbook's where it has one sheet, else with that of the sheet
    header: Header
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...]  # what was guessed, for people
    origin: str  # where the sheet is
    units: tuple[str, ...] = ()  # of its columns, where a row below the header says them


def read_workbook(path: Path, stem: str, header: bool | None = None) -> list[SheetTable]:
    """Return the sheets of a workbook that hold rows as tables, named after `stem`; a `header` of None is guessed."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum
    except ImportError as error:
        raise MissingExtraError("python-calamine", "xlsx", f"the workbook {path.name}") from error
    try:
        size = _measure_unpacked(path)
        if size > MOST_BYTES:
            raise SourceError(
                f"{path.name} holds {size >> 20:,} MB, and workbooks are read up to {MOST_BYTES >> 20:,}: save its "
                "sheets as CSV"
            )
        workbook = CalamineWorkbook.from_path(str(path))
        details = _read_details(path)
        hidden = {sheet.name for sheet in workbook.sheets_metadata if sheet.visible != SheetVisibleEnum.Visible}
        read = {name: _read_rows(workbook.get_sheet_by_name(name), details.get(name)) for name in workbook.sheet_names}
    except (CalamineError, OSError, ValueError, zlib.error, NotImplementedError) as error:  # of damaged archives, too
        why = first_line(error)
        raise SourceError(f"{path.name} cannot be read as a workbook ({why}): save it again, or as CSV") from error
    sheets: list[SheetTable] = []
    for name, (rows, notes) in read.items():
        where = f"{path.name}, sheet {name!r}"
        found = [_find_table(where, name, part, header) for part in shape.split_tables(rows)]
        if len(found) > 1:
            notes.append(f"holds {len(found)} tables, with blank rows or columns between them")
        if name in hidden:
            notes.append("is hidden in the workbook, and a table all the same")
        if found:
            found[0] = replace(found[0], notes=tuple(f"{where}: {note}" for note in notes) + found[0].notes)
        sheets += found
    if not sheets:
        raise SourceError(f"{path.name} holds no rows")
    tables = [sheet for sheet in sheets if sheet.rows or len(sheet.header.names) > 1] or sheets
    left = tuple(f"{sheet.origin}: left out, as it has only one cell" for sheet in sheets if sheet not in tables)
    tables[0] = replace(tables[0], notes=tables[0].notes + left)
    alone = len({each.name for each in tables}) == 1
    return [
        replace(each, name=stem if alone else f"{stem}_{each.name}", notes=each.notes + each.header.warnings)
        for each in tables
    ]


def _measure_unpacked(path: Path) -> int:
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError):
        return path.stat().st_size


def _read_rows(sheet: Any, details: _Details | None) -> tuple[list[Numbered], list[str]]:
    """Return the rows of a sheet with their numbers, cells that are merged each with the value of their first."""
    rows: list[list[Any]] = [[_convert(value) for value in row] for row in until_cancelled(sheet.iter_rows())]
    if sheet.end is None:
        return list(enumerate(rows, start=1)), []
    top, left = sheet.end[0] + 1 - len(rows), sheet.start[1]
    notes: list[str] = []
    if details is not None:
        for (at, column), width in details.padded.items():
            if 0 <= at - top < len(rows) and 0 <= column - left < len(rows[at - top]):
                value = rows[at - top][column - left]
                if isinstance(value, int):
                    rows[at - top][column - left] = f"{value:0{width}d}"
        notes += details.notes()
    if _fill_merged(rows, sheet, top, left):
        notes.append("merged cells repeat the value of their first cell in each row")
    return list(enumerate(rows, start=top + 1)), notes


def _convert(value: Any) -> Any:
    """Return a cell's value: nothing for "", and whole numbers as such, which workbooks keep as fractions."""
    if value == "":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _fill_merged(rows: list[list[Any]], sheet: Any, top: int, left: int) -> int:
    """Give each row of a merged cell its value, in the first column; return how many cells were filled."""
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


def _find_table(where: str, name: str, rows: list[Numbered], header: bool | None) -> SheetTable:
    """Return a table from its header on, as titles and remarks stand above it."""
    notes: list[str] = []
    start = max(
        next((i for i, (_, row) in enumerate(rows) if sum(map(shape.is_filled, row)) > 1), 0),
        shape.count_preamble([row for _, row in rows], _reads_like_header) if header is None else 0,
    )
    if start:
        notes.append(f"{where}: {_numbers_of_rows(rows[:start])} above the table left out")
    rows = rows[start:]
    width = max(len(row) for _, row in rows)
    used = [i for i in range(width) if any(i < len(row) and shape.is_filled(row[i]) for _, row in rows)]
    table = [tuple(row[i] if i < len(row) else None for i in used) for _, row in rows]
    again = next((i for i, row in enumerate(table) if row != table[0]), 1)
    if header is None and again > 1 and _reads_like_header(table[again - 1 :]):  # its cells are merged over rows
        notes.append(f"{where}: {_numbers_of_rows(rows[1:again])} left out, as the header is repeated")
        table, rows = table[again - 1 :], rows[again - 1 :]
    joined = shape.join_headers(table) if header is None else None
    named = joined is not None or (_reads_like_header(table) if header is None else header)
    if joined is not None:
        notes.append(f"{where}: two header rows are joined, as in {joined[-1]!r}")
    if not named and header is None:
        notes.append(f"{where}: its first row looks like values, so the columns are called column_1 …")
    if named and joined is None and 2 * sum(map(shape.is_filled, table[0])) < len(used):
        notes.append(f"{where}: its first row names fewer than half of its columns: is it a form rather than a table?")
    names = joined or (tuple("" if v is None else str(v) for v in table[0]) if named else number_columns(len(used)))
    gaps = [i for i in range(2, len(used) - 1) if used[i] > used[i - 1] + 1]
    if named and gaps:
        after = ", ".join(repr(names[i]) for i in gaps)
        notes.append(f"{where}: a column before {after} is empty: if another table begins there, give it its own sheet")
    head = 2 if joined is not None else int(named)
    units = shape.read_units(table[head:]) if named else None
    if units is not None:
        notes.append(f"{where}: row {rows[head][0]} gives the units of columns")
        head += 1
    body, numbers = table[head:], [number for number, _ in rows[head:]]
    left = shape.find_subtotals(body)
    kept = [i for i in range(len(body)) if i not in {each.at for each in left}]
    bare = [body[i] for i in kept]
    below = shape.find_below(bare, lambda end, at: shape.numbers_of(row[at] for row in bare[:end]))
    gone = [(numbers[each.at], each) for each in left] + [(numbers[kept[each.at]], each) for each in reversed(below)]
    notes += [f"{where}: row {number}, {each.why}{'' if each.kept else ', is left out'}" for number, each in gone]
    without = {kept[each.at] for each in below if not each.kept} | {each.at for each in left}
    cells = tuple(row for i, row in enumerate(body) if i not in without)
    return SheetTable(name, shape.clean_header(list(names), where), cells, tuple(notes), where, units or ())


def _reads_like_header(rows: Sequence[Row]) -> bool:
    return has_header([["" if v is None else str(v) for v in row] for row in rows])


def _numbers_of_rows(rows: Sequence[Numbered]) -> str:
    first, last = rows[0][0], rows[-1][0]
    return f"row {first}" if first == last else f"rows {first} to {last}"


@dataclass(slots=True)
class _Details:
    """What the XML of a sheet says of its cells: places of errors such as #DIV/0!, and of formulas never computed."""

    errors: list[str] = field(default_factory=list)
    unvalued: list[str] = field(default_factory=list)
    padded: dict[tuple[int, int], int] = field(default_factory=dict)  # digits to show, by row and column from 0

    def notes(self) -> list[str]:
        found = (
            (self.errors, "cells hold an error such as #DIV/0! and are NULL", ""),
            (self.unvalued, "formulas have no stored value and are NULL", ": open the workbook and save it again"),
        )
        return [
            f"{len(places):,} {what} ({', '.join(places[:_SHOWN])}{' …' if len(places) > _SHOWN else ''}){after}"
            for places, what, after in found
            if places
        ]


def _read_details(path: Path) -> dict[str, _Details]:
    """Return the details of each sheet of a workbook by its name; none of one that is not written as XML."""
    try:
        with zipfile.ZipFile(path) as archive:
            zeros = _find_zero_styles(archive)
            return {name: _scan_cells(archive.read(part), zeros) for name, part in _find_sheets(archive)}
    except (zipfile.BadZipFile, OSError, KeyError, ElementTree.ParseError):
        return {}


def _find_sheets(archive: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Return the name and the file of each sheet."""
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    parts = {each.get("Id", ""): each.get("Target", "") for each in links}
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    found = [(each.get("name", ""), parts.get(each.get(_RELATION, ""), "")) for each in book.iter(f"{_NAMESPACE}sheet")]
    places = ((name, target.lstrip("/") if target.startswith("/") else f"xl/{target}") for name, target in found)
    known = set(archive.namelist())
    return [(name, place) for name, place in places if place in known]


def _find_zero_styles(archive: zipfile.ZipFile) -> dict[bytes, int]:
    """Return the styles whose numbers are shown with zeros in front, and with how many digits."""
    if "xl/styles.xml" not in archive.namelist():
        return {}
    styles = ElementTree.fromstring(archive.read("xl/styles.xml"))
    formats = {each.get("numFmtId"): each.get("formatCode", "") for each in styles.iter(f"{_NAMESPACE}numFmt")}
    codes = [formats.get(each.get("numFmtId"), "") for each in styles.iterfind(f"{_NAMESPACE}cellXfs/*")]
    return {str(at).encode(): len(code) for at, code in enumerate(codes) if _ZEROS.fullmatch(code)}


def _scan_cells(xml: bytes, zeros: dict[bytes, int]) -> _Details:
    found = _Details()
    if b't="e"' not in xml and b"<f" not in xml and not zeros:
        return found
    for cell in _CELL.finditer(xml):
        about, inner = cell["about"], cell["inner"] or b""
        place, style = _PLACE.search(about), _STYLE.search(about)
        called = (place[1] + place[2]).decode() if place else "a cell"
        if b't="e"' in about:
            found.errors.append(called)
        elif b"<f" in inner and (b"<v>" not in inner or b"<v></v>" in inner) and b"<v " not in inner:
            found.unvalued.append(called)
        elif place and style is not None and style[1] in zeros:
            column = 0
            for letter in place[1]:
                column = column * 26 + letter - 64
            found.padded[int(place[2]) - 1, column - 1] = zeros[style[1]]
    return found
