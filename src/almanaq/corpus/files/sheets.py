"""Workbooks: each sheet that holds rows is a table. The one module that reads them, with python-calamine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from almanaq.corpus.files.sniff import has_header, unnamed
from almanaq.errors import MissingExtraError, SourceError, first_line


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
    """Give the sheets of a workbook that hold rows.

    Raises:
        MissingExtraError: no reader of workbooks is installed.
        SourceError: the file is no workbook, or all its sheets are empty.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise MissingExtraError("python-calamine", "xlsx", f"the workbook {path.name}") from error
    try:
        workbook = CalamineWorkbook.from_path(str(path))
        read = [(name, workbook.get_sheet_by_name(name).to_python()) for name in workbook.sheet_names]
    except (CalamineError, OSError, ValueError) as error:
        why = first_line(error)
        raise SourceError(f"{path.name} cannot be read as a workbook ({why}): save it anew, or as CSV") from error
    sheets = [sheet for name, rows in read if (sheet := _sheet(path.name, name, rows, header)) is not None]
    if not sheets:
        raise SourceError(f"{path.name} holds no rows")
    return sheets


def _sheet(file: str, name: str, rows: Sequence[Sequence[Any]], header: bool | None) -> Sheet | None:
    """Give a sheet's table: from the first row with several cells on, as titles and remarks stand above it."""
    found = [[_cell(value) for value in row] for row in rows]
    found = [row for row in found if any(value is not None for value in row)]
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
    if not named and header is None:
        notes += (f"{file}, sheet {name!r}: its first row looks like values, so the columns are called column_1 …",)
    names = tuple("" if v is None else str(v) for v in table[0]) if named else unnamed(len(used))
    return Sheet(name, names, tuple(table[named:]), notes)


def _cell(value: Any) -> Any:
    """Give a cell's value: nothing for "", and whole numbers as such, which workbooks keep as fractions."""
    if value == "":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
