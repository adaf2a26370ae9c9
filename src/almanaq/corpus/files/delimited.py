"""Delimited text row by row, as tolerant as can be: rows of another length are mended and counted."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from almanaq.corpus.files.sniff import Dialect, csv_reader
from almanaq.corpus.read_cancellation import raise_if_cancelled

_LOOK = 1 << 12
"""How many rows are read between two looks whether the reading is to end."""


@dataclass(slots=True)
class Mended:
    """What was mended while a file was read.

    Attributes:
        short, long: rows with fewer and with more fields than there are columns; `first` is the line of the first.
        quotes: the line of a quote that is at fault, 0 for none.
    """

    rows: int = 0
    short: int = 0
    long: int = 0
    first: int = 0
    quotes: int = 0

    def messages(self, name: str, width: int) -> tuple[str, ...]:
        """Say what was mended, for people."""
        found = []
        if self.quotes:
            found.append(
                f"{name}, line {self.quotes}: a quote stands where none may: double quotes within quoted fields"
            )
        if self.short or self.long:
            parts = [f"{self.short:,} with fewer fields, the rest is NULL"] if self.short else []
            parts += [f"{self.long:,} with more, which are left out"] if self.long else []
            message = f"{self.short + self.long:,} of {self.rows:,} rows do not have {width} fields"
            fix = "quote fields that hold the separator or a line break, or complete the rows"
            found.append(f"{name}, first in line {self.first}: {message} ({'; '.join(parts)}): {fix}")
        return tuple(found)


def read_delimited(path: Path, dialect: Dialect, mended: Mended | None = None) -> Iterator[list[str | None]]:
    """Yield the rows of a file, each as long as the header; an empty field is None, blank lines are skipped."""
    mended = mended if mended is not None else Mended()
    width = len(dialect.names)
    rows = _numbered(path, dialect, mended)
    if dialect.header:
        next(rows, None)
    for line, row in rows:
        mended.rows += 1
        if mended.rows % _LOOK == 0:
            raise_if_cancelled()
        if len(row) != width:
            extra = any(row[width:])
            mended.short += len(row) < width
            mended.long += extra
            mended.first = mended.first or (line if extra or len(row) < width else 0)
            row = [*row[:width], *[""] * (width - len(row))]
        yield [cell or None for cell in row]


def _numbered(path: Path, dialect: Dialect, mended: Mended) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line that a row ends on, its fields); blank lines are skipped."""
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)  # a cell may hold a whole document
    mode = _quoting(path, dialect, mended)
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


def _quoting(path: Path, dialect: Dialect, mended: Mended) -> Literal[0, 3]:
    """Return how quotes are to be taken: as CSV has it; as plain characters where one is never closed."""
    with path.open(encoding=dialect.encoding, errors=dialect.errors, newline="") as lines:
        reader = csv_reader(lines, dialect.separator, dialect.escape, strict=True)
        try:
            for number, _ in enumerate(reader):
                if number % _LOOK == 0:
                    raise_if_cancelled()
        except csv.Error as error:
            mended.quotes = reader.line_num
            return csv.QUOTE_NONE if "unexpected end" in str(error) else csv.QUOTE_MINIMAL
    return csv.QUOTE_MINIMAL
