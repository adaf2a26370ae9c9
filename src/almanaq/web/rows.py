"""The rows of an answer as files."""

from __future__ import annotations

import io
import json
from typing import Literal

from almanaq.csv_rows import CsvWriter
from almanaq.encode import plain
from almanaq.suql.row_values import python_rows
from almanaq.web.answers import from_parquet
from almanaq.web.records import safe

RowFormat = Literal["json", "csv", "parquet"]
MEDIA = {"json": "application/json", "csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def written(rows: bytes, format: RowFormat) -> bytes:
    """Return rows that were kept, in a format; in CSV an apostrophe keeps text from being computed."""
    if format == "parquet":
        return rows
    table = from_parquet(rows)
    if format == "json":
        record = {"columns": table.column_names, "rows": safe(plain(python_rows(table, exact=True)))}
        return json.dumps(record, allow_nan=False).encode()
    buffer = io.BytesIO()
    writer = CsvWriter(buffer, no_formulas=True)
    writer.write([table.column_names])
    writer.write(python_rows(table, exact=True))
    return buffer.getvalue()
