"""Rows as CSV: NULL is empty, arrays and structures are JSON; for a terminal, or for a spreadsheet, made harmless."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from almanaq.encode import plain
from almanaq.visible import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that a spreadsheet takes for a formula, the wide forms included."""
_ROWS_AT_ONCE = 1000


def encoded(text: str) -> bytes:
    """Return text in UTF-8; bytes that were none come out as they came in, half a character as U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class CsvWriter:
    """Writes rows to a binary stream, in UTF-8.

    Args:
        no_formulas: put an apostrophe before text that a spreadsheet would compute.
        terminal: write out what would steer a terminal.
    """

    def __init__(self, file: BinaryIO, *, no_formulas: bool = False, terminal: bool = False) -> None:
        self._file, self._no_formulas, self._terminal = file, no_formulas, terminal

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows, some at a time."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for number, row in enumerate(rows, 1):
            writer.writerow([self._cell(value) for value in row])
            if number % _ROWS_AT_ONCE == 0:
                self._send(buffer)
        self._send(buffer)

    def _send(self, buffer: io.StringIO) -> None:
        text = buffer.getvalue()
        self._file.write(encoded(visible(text) if self._terminal else text))
        buffer.seek(0)
        buffer.truncate()

    def _cell(self, value: Any) -> Any:
        shown = plain(value)
        if isinstance(shown, list | dict):
            shown = json.dumps(shown, ensure_ascii=False)
        if isinstance(shown, bool):
            return str(shown).lower()
        computed = self._no_formulas and isinstance(shown, str) and shown.lstrip(" \n\ufeff").startswith(_FORMULA)
        return f"'{shown}" if computed else shown
