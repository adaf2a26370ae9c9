"""What the beginning of a delimited file says of its columns, and the casts that DuckDB is told to make of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from almanaq.corpus.files.file_options import Reading
from almanaq.corpus.files.marks import Marks, marks_of
from almanaq.corpus.files.sniff import Dialect
from almanaq.corpus.inference import ColumnReport, Told, infer_column
from almanaq.corpus.tabular import Header

_GUESSED_ROWS = 100
_UNTOLD = Told()


@dataclass(frozen=True, slots=True)
class Cast:
    """What DuckDB makes of the cells of a column.

    Attributes:
        type: in the PostgreSQL dialect.
        value: of the cell `{c}`, where it surely means that: `sure`.
        stands: a cell that stands for all that are cast.
    """

    type: str
    value: str = ""
    sure: str = ""
    stands: str = ""


TEXT = Cast("text")
WHOLE = Cast(
    "bigint", "TRY_CAST({c} AS BIGINT)", "strlen({c}) <= 18 AND CAST(TRY_CAST({c} AS BIGINT) AS VARCHAR) = {c}", "1"
)
POINT = Cast(
    "double precision",
    "TRY_CAST({c} AS DOUBLE)",
    r"regexp_full_match({c}, '-?(0|[1-9][0-9]{{0,14}})(\.[0-9]+)?')",
    "0.5",
)
COMMA = Cast(
    "double precision",
    "TRY_CAST(replace(replace({c}, '.', ''), ',', '.') AS DOUBLE)",
    r"regexp_full_match({c}, '-?(0|[1-9][0-9]{{0,2}}(\.[0-9]{{3}}){{1,4}}|[1-9][0-9]{{0,14}})(,[0-9]+)?')",
    "0,5",
)
_DATE = Cast(
    "date", "TRY_CAST({c} AS DATE)", "strlen({c}) = 10 AND CAST(TRY_CAST({c} AS DATE) AS VARCHAR) = {c}", "2000-01-01"
)
_TIMESTAMP = Cast(
    "timestamp",
    "TRY_CAST(rtrim({c}, 'Z') AS TIMESTAMP)",
    r"regexp_full_match({c}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]([01][0-9]|2[0-3]):[0-5][0-9]"
    r"(:[0-5][0-9](\.[0-9]{{1,6}})?)?Z?') AND TRY_CAST(rtrim({c}, 'Z') AS TIMESTAMP) IS NOT NULL",
    "2000-01-01 10:00:00",
)
_BOOLEAN = Cast("boolean", "lower({c}) = 'true'", "lower({c}) IN ('true', 'false')", "true")
_CASTS = {cast.type: cast for cast in (TEXT, WHOLE, POINT, _DATE, _TIMESTAMP, _BOOLEAN)}
WIDENED = {("bigint", "double precision"), ("double precision", "bigint"), ("date", "timestamp")}


@dataclass(slots=True)
class Column:
    """One column on its way: what it is cast to, and what became of it."""

    name: str
    cast: Cast
    told: Told
    report: ColumnReport | None = None
    typed: Any = None
    recast: str = ""


def guess_columns(dialect: Dialect, header: Header, reading: Reading) -> list[Column]:
    """Return what each column is probably made of."""
    rows = dialect.sample[:_GUESSED_ROWS]
    samples = [Counter(row[i] for row in rows if i < len(row) and row[i]) for i in range(len(header.names))]
    marks = [marks_of(sample) for sample in samples]
    alone = [infer_column(name, sample).report for name, sample in zip(header.names, samples, strict=True)]
    typed = [report.type for report in alone]
    sure = [mark for mark, type_ in zip(marks, typed, strict=True) if type_ != "text" or mark.days]
    decimals, days = {mark.decimal for mark in sure} - {None}, {mark.days for mark in sure} - {None}
    file = Marks(decimals.pop() if len(decimals) == 1 else None, days.pop() if len(days) == 1 else None)
    found = []
    for name, sample, first in zip(header.names, samples, alone, strict=True):
        hints = Told(file=file, said=reading.marks, type=reading.types.get(name.casefold(), ""))
        guess = first if hints == _UNTOLD else infer_column(name, sample, hints).report
        comma = reading.marks.over(marks_of(sample)).over(file).decimal == ","
        cast = COMMA if guess.type == POINT.value and comma else _CASTS.get(guess.type, TEXT)
        ordinary = sum(count for cell, count in sample.items() if _is_ordinary(cell, cast))
        found.append(Column(name, cast if ordinary * 2 >= sample.total() > 0 else TEXT, hints))
    return found


def _is_ordinary(cell: str, cast: Cast) -> bool:
    """Tell whether DuckDB will probably cast a cell: no letters or signs but those that it knows."""
    if cast is _BOOLEAN:
        return True
    return not set(cell) - set("0123456789+-.,:TZ ") and not (cast is _DATE and cell[4:5] != "-")
