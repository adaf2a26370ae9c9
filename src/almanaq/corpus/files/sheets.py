"""Workbooks: each sheet that holds rows is a table. The one module that reads them, with python-calamine."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.files.sniff import has_header, number_columns
from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import MissingExtraError, SourceError, first_line
from almanaq.values.numbers import parse_number

# --- the row that sums up a sheet: a query that sums its rows would count all twice -----------------------------------

_WORDS = frozenset(
    """
    total totals sum overall gesamt gesamtsumme summe insgesamt totale somma suma totaal som summa yhteensä итого всего
    合计 合計 总计 總計 小計
    """.split()
)
_PHRASES = frozenset({"grand total", "total general", "total général", "total geral", "totale generale"})
_CENT = 0.005
"""Sums of rounded amounts differ from the rounded sum by less than this for each row."""


def is_total_row(row: Sequence[Any], above: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a row sums up those above it: it says so, and each of its numbers is the sum of its column.

    A row that holds the word alone counts too: its formulas were never computed.

    >>> is_total_row(("Total", None, 7), [("Rome", "a", 3), ("Oslo", "b", 4)])
    True
    >>> is_total_row(("Total", None, 9), [("Rome", "a", 3), ("Oslo", "b", 4)])
    False
    """
    filled = [(at, value) for at, value in enumerate(row) if value is not None and value != ""]
    if len(above) < 2 or not filled or not _says_total(filled[0][1]):
        return False
    rest = [(at, value) for at, value in filled[1:] if value != filled[0][1]]  # a merged cell repeats the word
    return all(_is_sum(value, [other[at] for other in above]) for at, value in rest)


def _says_total(value: Any) -> bool:
    word = " ".join(value.casefold().strip(" :=").split()) if isinstance(value, str) else ""
    return word in _WORDS or word in _PHRASES


def _is_sum(value: Any, column: Sequence[Any]) -> bool:
    total, numbers = _number(value), [number for number in map(_number, column) if number is not None]
    if total is None or not numbers:
        return False
    return math.isclose(total, math.fsum(numbers), rel_tol=1e-9, abs_tol=_CENT * len(numbers))


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        read = parse_number(value)
        return None if read is None else float(read)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


# --- sheets -----------------------------------------------------------------------------------------------------------

MOST_BYTES = 300 << 20
"""A workbook with more XML takes minutes, and the memory of a large machine."""
_MOST_MERGED = 1 << 20
"""So many cells at most are looked at in ranges that are merged."""
_LOOK = 1 << 12
"""How many rows are read between two looks whether the reading is to end."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a sheet, without empty ones around them.

    Attributes:
        names: the first row as text, or names for as many columns as there are.
        notes: what was guessed, for people.
    """

    name: str
    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()


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
        read = [(name, *_rows(workbook.get_sheet_by_name(name))) for name in workbook.sheet_names]
    except (CalamineError, OSError, ValueError) as error:
        why = first_line(error)
        raise SourceError(f"{path.name} cannot be read as a workbook ({why}): save it again, or as CSV") from error
    sheets = [sheet for name, rows, merged in read if (sheet := _sheet(path.name, name, rows, header, merged))]
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


def _rows(sheet: Any) -> tuple[list[list[Any]], int]:
    """Return the rows of a sheet, cells that are merged each with the value of their first, and how
    many were filled.
    """
    rows = []
    for number, row in enumerate(sheet.iter_rows()):
        if number % _LOOK == 0:
            raise_if_cancelled()
        rows.append([_cell(value) for value in row])
    return rows, _fill(rows, sheet)


def _fill(rows: list[list[Any]], sheet: Any) -> int:
    """Return each row of a merged cell its value; titles across columns stay as they are."""
    if sheet.end is None:
        return 0
    top, left = sheet.end[0] + 1 - len(rows), sheet.start[1]
    seen = filled = 0
    for (first, own), (last, end) in sheet.merged_cell_ranges or ():
        seen += (last - first + 1) * (end - own + 1)
        if seen > _MOST_MERGED:
            break
        for row in rows[first - top + 1 : last - top + 1]:
            for at in range(own - left, min(end - left + 1, len(row))):
                if row[at] is None:
                    row[at] = rows[first - top][own - left]
                    filled += row[at] is not None
    return filled


def _sheet(file: str, name: str, rows: Sequence[Sequence[Any]], header: bool | None, merged: int) -> Sheet | None:
    """Return a sheet's table: from the first row with several cells on, as titles and remarks stand above it."""
    found = [row for row in rows if any(value is not None for value in row)]
    if not found:
        return None
    widths = [sum(value is not None for value in row) for row in found]
    start = next((i for i, width in enumerate(widths) if width > 1), 0)
    used = [i for i in range(max(map(len, found))) if any(i < len(row) and row[i] is not None for row in found[start:])]
    table = [tuple(row[i] if i < len(row) else None for i in used) for row in found[start:]]
    named = has_header([["" if v is None else str(v) for v in row] for row in table]) if header is None else header
    notes: tuple[str, ...] = (
        (f"{file}, sheet {name!r}: {start} {'row' if start == 1 else 'rows'} above the table left out",)
        if start
        else ()
    )
    if merged:
        notes += (f"{file}, sheet {name!r}: merged cells repeat the value of their first cell in each row",)
    if not named and header is None:
        notes += (f"{file}, sheet {name!r}: its first row looks like values, so the columns are called column_1 …",)
    names = tuple("" if v is None else str(v) for v in table[0]) if named else number_columns(len(used))
    rows_read = table[named:]
    if rows_read and is_total_row(rows_read[-1], rows_read[:-1]):
        notes += (f"{file}, sheet {name!r}: the last row, which sums the others, is left out",)
        rows_read = rows_read[:-1]
    return Sheet(name, names, tuple(rows_read), notes)


def _cell(value: Any) -> Any:
    """Return a cell's value: nothing for "", and whole numbers as such, which workbooks keep as fractions."""
    if value == "":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
