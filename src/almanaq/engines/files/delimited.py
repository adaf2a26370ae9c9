"""A delimited file as a DuckDB table: read and cast by DuckDB, and by our own readers only where that fails.

The beginning of the file says what each column is probably made of. DuckDB reads every cell as text and casts the
ordinary ones, those that can only mean one thing; what is left over ("US$3m", "2:13.32", "n/a") stands beside as text
and is read by `almanaq.corpus.inference`, which decides over all cells, as if it had read every one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.files.reader import Repairs, read_delimited
from almanaq.corpus.files.shape import MOST_BELOW, Header, find_below, find_subtotals, numbers_of
from almanaq.corpus.files.sniff import SPACES, Dialect, ReadOptions
from almanaq.corpus.inference import ColumnHints, ColumnReport, Marks, infer_column, marks_of
from almanaq.engines.duckdb.session import file_literal
from almanaq.engines.files.columns import ARROW_TYPES, convert_cells, type_column
from almanaq.text.sql_literals import quote

_USED = (
    "us a c ca au nz hk s r usd eur gbp jpy chf inr cny aud cad sek nok dkk rmb rs percent per cent e "
    "hundred k thousand m mn mio million millions b bn billion billions tn trillion trillions "
    "jan january feb february mar march apr april may jun june jul july aug august sep sept september oct october "
    "nov november dec december mon monday tue tues tuesday wed wednesday thu thur thurs thursday fri friday sat "
    "saturday sun sunday st nd rd th of and at t z utc gmt p am pm noon midnight true false "
    "d day days h hr hrs hour hours min mins minute minutes sec secs second seconds n na null none nan"
)
_WORD = "|".join(sorted(_USED.split(), key=len, reverse=True))
WORDS = rf"[^\p{{L}}]*((?:{_WORD})[^\p{{L}}]+)*(?:{_WORD})?[^\p{{L}}]*"
"""For RE2, case folded."""


# --- what the beginning of a file says of its columns -----------------------------------------------------------------

_GUESSED_ROWS = 100
_SURE_BYTES = 17
"""A double keeps fifteen digits, with a sign and a point."""


@dataclass(frozen=True, slots=True)
class Cast:
    """What DuckDB makes of the cells of a column.

    Attributes:
        type: in the PostgreSQL dialect.
        value: of the cell `{c}`, where it surely means that: `sure`.
        stands: a cell that represents all that are cast.
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
    "double precision", "TRY_CAST({c} AS DOUBLE)", r"regexp_full_match({c}, '-?(0|[1-9][0-9]{{0,14}})%s')", "."
)
COMMA = Cast(
    "double precision",
    "TRY_CAST(replace(replace({c}, '.', ''), ',', '.') AS DOUBLE)",
    r"regexp_full_match({c}, '-?(0|[1-9][0-9]{{0,2}}(\.[0-9]{{3}}){{1,4}}|[1-9][0-9]{{0,14}})%s')",
    ",",
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


def _cast_fractions(cast: Cast, sample: Iterable[str]) -> Cast:
    """Return a cast of fractions that formatting gives back: all of one width, or none that ends in a zero."""
    mark = cast.stands
    widths = {len(cell.partition(mark)[2]) for cell in sample if mark in cell}
    if len(widths) == 1:
        width = widths.pop()
        sure = rf"[{mark}][0-9]{{{{{width}}}}}"
        stands = f"0{mark}5" + "0" * (width - 1)
    else:
        sure, stands = rf"([{mark}](0|[0-9]*[1-9]))?", f"0{mark}5"
    whole = f"{cast.sure % sure} AND strlen({{c}}) <= {_SURE_BYTES}"
    return replace(cast, sure=whole, stands=stands)


@dataclass(slots=True)
class Column:
    """One column on its way: what it is cast to, and what became of it."""

    name: str
    sample: Counter[str]
    hints: ColumnHints
    cast: Cast = TEXT
    report: ColumnReport | None = None
    typed: Any = None
    recast: str = ""


def list_columns(dialect: Dialect, header: Header, reading: ReadOptions) -> list[Column]:
    """Return the columns with a sample of their cells, and with what the others say of how the file is written."""
    rows = dialect.sample[:_GUESSED_ROWS]
    cells = [*zip_longest(*rows), *[()] * len(header.names)]
    samples = [Counter(filter(None, column)) for column in cells[: len(header.names)]]
    found: set[Marks] = set()
    for name, sample in zip(header.names, samples, strict=True):
        marks = marks_of(sample)
        if marks not in found and (marks.days or infer_column(name, sample).report.type != "text"):
            found.add(marks)
    decimals, days = {marks.decimal for marks in found} - {None}, {marks.days for marks in found} - {None}
    file = Marks(decimals.pop() if len(decimals) == 1 else None, days.pop() if len(days) == 1 else None)
    return [
        Column(name, sample, ColumnHints(file=file, said=reading.marks, type=reading.types.get(name.casefold(), "")))
        for name, sample in zip(header.names, samples, strict=True)
    ]


def guess_cast(column: Column) -> Cast:
    """Return what the cells of a column probably are."""
    sample, hints = column.sample, column.hints
    cast = _CASTS.get(infer_column(column.name, sample, hints).report.type, TEXT)
    if cast is POINT:
        comma = hints.said.over(marks_of(sample)).over(hints.file).decimal == ","
        cast = _cast_fractions(COMMA if comma else POINT, sample)
    ordinary = sum(count for cell, count in sample.items() if _is_ordinary(cell, cast))
    return cast if ordinary * 2 >= sample.total() > 0 else TEXT


def _is_ordinary(cell: str, cast: Cast) -> bool:
    """Tell whether DuckDB will probably cast a cell: no letters or signs but those that it knows."""
    if cast is _BOOLEAN:
        return True
    return not set(cell) - set("0123456789+-.,:TZ ") and not (cast is _DATE and cell[4:5] != "-")


# --- the table --------------------------------------------------------------------------------------------------------

_LONGEST = 320
"""No number or moment is written in more bytes."""
_BATCH_ROWS = 20_000
_SHORT_LINE, _LONGEST_LINE = 2_000_000, 16_000_000
"""A longer line is read by Python: room for it would be taken many times over."""
SMALL_BYTES = 1 << 15
"""A smaller file is read by Python in less time than DuckDB's reader takes to begin."""
_WIDE = 50
"""A file of more columns may be larger: the engine plans for each of them."""
_MOST_TRIMMED = 300
_EVERY, _LARGE = 16, 100_000
_FEW_DROPPED = 8
_READ_HERE = "read_here"


def load_delimited(
    connection: duckdb.DuckDBPyConnection,
    place: tuple[str, ...],
    path: Path,
    dialect: Dialect,
    header: Header,
    reading: ReadOptions,
) -> tuple[int, tuple[ColumnReport, ...], Repairs]:
    """Make the table of a file in UTF-8; give its number of rows, how its cells were read, what was mended."""
    columns = list_columns(dialect, header, reading)
    mended, stage = Repairs(), _Stage(connection, place, columns)
    try:
        # A stage finds its rows by DuckDB's own numbers, which a column of their name hides.
        hidden = any(column.name.lower() == "rowid" for column in columns)
        if hidden or path.stat().st_size < SMALL_BYTES * max(1, len(columns) // _WIDE):
            _load_here(connection, place, _read_here(path, dialect, stage, mended), columns)
        else:
            for column in columns:
                column.cast = guess_cast(column)
            source = _source(path, dialect, len(columns))
            # A backslash DuckDB takes for one within quotes only, and of spaces each for a separator.
            ours = dialect.escape == "\\" or dialect.separator == SPACES
            if ours or not stage.try_read(source, mended):
                # What DuckDB will not read: ragged rows, faulty quotes, mixed line ends.
                source = _READ_HERE
                connection.register(source, _read_here(path, dialect, stage, mended))
                stage.read(source)
            while misread := stage.settle_casts():
                for column in misread:
                    column.cast = TEXT
                stage.read(source)
            stage.settle_texts()
            stage.finish()
    finally:
        connection.unregister(_READ_HERE)
    return stage.rows, tuple(column.report for column in columns if column.report), mended


# --- read by us ------------------------------------------------------------------------------------------------------


def _read_here(path: Path, dialect: Dialect, stage: _Stage, mended: Repairs) -> Any:
    """Read a file row by row, mending what is at fault."""
    schema = pa.schema([(f"c{i}", pa.large_string()) for i in range(len(stage.columns))])
    batches, rows = [], []
    for row in read_delimited(path, dialect, mended):
        rows.append(row)
        if len(rows) >= _BATCH_ROWS + MOST_BELOW:
            batches.append(_batch(rows[:_BATCH_ROWS], schema))
            rows = rows[_BATCH_ROWS:]
    _leave_out(rows, batches, mended)
    batches += [_batch(rows, schema)] if rows else []
    stage.rows = sum(batch.num_rows for batch in batches)
    return pa.Table.from_batches(batches, schema)


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array(cells, pa.large_string()) for cells in zip(*rows, strict=True)], schema=schema)


def _leave_out(rows: list[list[str | None]], batches: Sequence[Any], mended: Repairs) -> None:
    """Take out the rows at the end, and in a short table the subtotals within, that are none of its rows."""
    for each in [] if batches else reversed(find_subtotals(rows)):
        mended.take_out(rows, each.at, each)
    first = max(0, len(rows) - MOST_BELOW)

    def column(end: int, at: int) -> list[float]:
        cells = (cell for batch in batches for cell in batch.column(at).to_pylist())
        return numbers_of(chain(cells, (row[at] for row in rows[: first + end])))

    for each in find_below(rows[first:], column):
        mended.take_out(rows, first + each.at, each)


def _load_here(
    connection: duckdb.DuckDBPyConnection, place: tuple[str, ...], raw: Any, columns: Sequence[Column]
) -> None:
    """Make the table of a small file, every cell read by our readers, in one statement."""
    arrays = {}
    for i, column in enumerate(columns):
        arrays[f"v{i}"], column.report = type_column(column.name, raw.column(i), column.hints)
    connection.register(_READ_HERE, pa.table(arrays))
    names = ", ".join(f"v{i} AS {quote(column.name)}" for i, column in enumerate(columns))
    connection.execute(f"CREATE TABLE {quote(*place)} AS SELECT {names} FROM {_READ_HERE}")


# --- read by DuckDB --------------------------------------------------------------------------------------------------


def _source(path: Path, dialect: Dialect, width: int) -> str:
    """Return DuckDB's reader of a file, with nothing left to guess."""
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    file = file_literal(path.resolve())
    longest = min(max(path.stat().st_size, _SHORT_LINE), _LONGEST_LINE)
    options = (
        f"auto_detect = false, header = {str(dialect.header).lower()}, skip = {dialect.skip}, "
        f"delim = '{dialect.separator}', quote = '\"', escape = '\"', max_line_size = {longest}, "
        f"columns = {{{columns}}}"
    )
    if width > 1:
        return f"read_csv({file}, {options})"
    # Of one column a blank line is none of its rows, a quoted nothing is.
    inner = f"read_csv({file}, {options}, allow_quoted_nulls = false)"
    return f"(SELECT nullif(c0, '') AS c0 FROM {inner} WHERE c0 IS NOT NULL)"


@dataclass(slots=True)
class _Stage:
    """A table on its way: the values that DuckDB cast, and beside each column the cells that are left over."""

    connection: duckdb.DuckDBPyConnection
    place: tuple[str, ...]
    columns: Sequence[Column]
    rows: int = -1
    """Those that are the table's, once that is known."""

    @property
    def _name(self) -> str:
        return quote(*self.place[:-1], f"{self.place[-1]} as read")

    def _ask(self, shown: str, rest: str = "") -> list[tuple[Any, ...]]:
        return self.connection.execute(f"SELECT {shown} FROM {self._name} {rest}").fetchall()

    def read(self, source: str) -> None:
        """Read all cells, and cast those that surely mean one thing."""
        parts = []
        for i, column in enumerate(self.columns):
            if column.cast is TEXT:
                parts.append(f"c{i} AS {quote(column.name)}")
                continue
            value, sure = (rule.format(c=f"c{i}") for rule in (column.cast.value, column.cast.sure))
            parts.append(f"CASE WHEN {sure} THEN {value} END AS {quote(column.name)}")
            parts.append(f"CASE WHEN NOT coalesce({sure}, false) THEN c{i} END AS {_rest_of(i)}")
        self.connection.execute(f"DROP TABLE IF EXISTS {self._name}")
        made = f"CREATE TABLE {self._name} AS SELECT {', '.join(parts)} FROM {source}"
        ((read,),) = self.connection.execute(made).fetchall()
        if 0 <= self.rows < read:
            self.connection.execute(f"DELETE FROM {self._name} WHERE rowid >= {self.rows}")
        self.rows = read if self.rows < 0 else self.rows

    def try_read(self, source: str, mended: Repairs) -> bool:
        """Read a file less the rows at its end that are none of its table; False: another reader has to."""
        try:
            self.read(source)
        except duckdb.Error:
            return False
        if not self.rows or len(self.columns) > _MOST_TRIMMED:
            return self.rows > 0
        cells = [
            f"coalesce(CAST({quote(c.name)} AS VARCHAR), {_rest_of(i) if c.cast is not TEXT else 'NULL'})"
            for i, c in enumerate(self.columns)
        ]
        if len(cells) > 1 and self._ask("1", f"WHERE coalesce({', '.join(cells)}) IS NULL LIMIT 1"):
            return False
        first = max(0, self.rows - MOST_BELOW)

        def column(end: int, at: int) -> list[float]:
            return numbers_of(cell for (cell,) in self._ask(cells[at], f"WHERE rowid < {first + end}"))

        for found in find_below(self._ask(", ".join(cells), f"WHERE rowid >= {first} ORDER BY rowid"), column):
            at = first + found.at
            mended.below.insert(0, f"row {at + 1}: {'' if found.kept else 'left out, '}{found.why}")
            if not found.kept:
                self.connection.execute(f"DELETE FROM {self._name} WHERE rowid >= {at}")
                self.rows = at
        return self.rows > 0

    # --- after: what the whole column says

    def settle_casts(self) -> list[Column]:
        """Decide the columns that DuckDB cast; give those that it should not have, as the guess was wrong."""
        cast = [(i, column) for i, column in enumerate(self.columns) if column.cast is not TEXT]
        if not cast:
            return []
        broken = "coalesce(bool_or({c} <> trunc({c})), false)"
        sums = (
            f"count({c}), count({_rest_of(i)}), {broken.format(c=c) if column.cast.type == POINT.type else 'true'}"
            for i, column in cast
            for c in [quote(column.name)]
        )
        counts = iter(self._ask(", ".join(sums))[0])
        misread = []
        for i, column in cast:
            count, left, is_broken = next(counts), next(counts), next(counts)
            if left or not count or not is_broken or column.hints.type:
                misread += [] if self._settle_left(i, column, count, broken=is_broken) else [column]
            else:
                notes = ("the comma is the decimal mark",) if column.cast.value == COMMA.value else ()
                column.report = ColumnReport(column.name, column.cast.type, count, notes=notes)
        return misread

    def _settle_left(self, i: int, column: Column, count: int, *, broken: bool) -> bool:
        """Decide a column by the cells left over and by one that stands for all that DuckDB cast; False: it is text."""
        left, cast = _rest_of(i), column.cast
        counts = dict(self._ask(f"{left}, count(*)", f"WHERE {left} IS NOT NULL GROUP BY 1 ORDER BY min(rowid)"))
        cells = {**counts, **({cast.stands if broken else "1": count} if count else {})}
        found = infer_column(column.name, cells, column.hints)
        type_, foreign = found.report.type, {POINT.value: ",", COMMA.value: "."}.get(cast.value)
        misread = foreign is not None and marks_of(counts).decimal == foreign
        if misread or (type_ != cast.type and (cast.type, type_) not in WIDENED) or (count and found.values is None):
            return False
        column.report = found.report
        column.recast = type_ if type_ != cast.type else ""
        if not set(counts).isdisjoint(found.values or ()):  # else all that is left over is NULL, as it is already
            import pyarrow.compute as pc

            values = self.connection.sql(f"SELECT {quote(column.name)} AS v, {left} AS l FROM {self._name}")
            table: Any = values.to_arrow_table()
            encoded = table.column("l").combine_chunks().dictionary_encode()
            encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
            mapped = convert_cells(encoded.dictionary.to_pylist(), found).take(encoded.indices)
            whole = table.column("v").combine_chunks().cast(ARROW_TYPES[type_], safe=False)
            column.typed = pc.coalesce(whole, mapped)
        return True

    def settle_texts(self) -> None:
        """Decide the columns that were kept as text: by their distinct cells, unless most of them can only be text."""
        texts = [column for column in self.columns if column.cast is TEXT]
        for every in (_EVERY, 1) if self.rows > _LARGE else (1,):
            for column, (cells, strange) in zip(texts, self._count_strange(texts, every), strict=True):
                share = 0.5 if every > 1 else 1 - 0.95
                if column.report is None and not column.hints.type and cells and strange > share * cells:
                    column.report = ColumnReport(column.name, "text", cells * every)
            texts = [column for column in texts if column.report is None]
        for column in texts:
            if column.hints.type == "text":
                column.report = ColumnReport(column.name, "text", self.rows)
                continue
            read: Any = self.connection.sql(f"SELECT {quote(column.name)} FROM {self._name}").to_arrow_table()
            typed, column.report = type_column(column.name, read.column(0), column.hints)
            column.typed = typed if column.report.type != "text" else None

    def _count_strange(self, columns: Sequence[Column], every: int) -> list[tuple[int, int]]:
        """Return for each column how many cells it has, and how many hold what no number or moment does."""
        if not columns:
            return []
        sums = ", ".join(
            f"count({c}), count(*) FILTER (strlen({c}) > {_LONGEST} OR NOT regexp_full_match({c}, '{WORDS}', 'i'))"
            for c in (quote(column.name) for column in columns)
        )
        counts = self._ask(sums, f"WHERE rowid % {every} = 0" if every > 1 else "")[0]
        return list(zip(counts[0::2], counts[1::2], strict=True))

    def finish(self) -> None:
        """Put the columns together, each with its values, and give the table its name."""
        left = [i for i, column in enumerate(self.columns) if column.cast is not TEXT]
        typed = {f"v{i}": column.typed for i, column in enumerate(self.columns) if column.typed is not None}
        if not typed and len(left) <= _FEW_DROPPED and not any(column.recast for column in self.columns):
            for i in left:
                self.connection.execute(f"ALTER TABLE {self._name} DROP COLUMN {_rest_of(i)}")
            self.connection.execute(f"ALTER TABLE {self._name} RENAME TO {quote(self.place[-1])}")
            return
        parts = []
        for i, column in enumerate(self.columns):
            value = f"typed.v{i}" if column.typed is not None else f"staged.{quote(column.name)}"
            recast = f"CAST({value} AS {column.recast})" if column.recast and column.typed is None else value
            parts.append(f"{recast} AS {quote(column.name)}")
        beside = " POSITIONAL JOIN typed" if typed else ""
        if typed:
            self.connection.register("typed", pa.table(typed))
        made = f"CREATE TABLE {quote(*self.place)} AS SELECT {', '.join(parts)} FROM {self._name} AS staged{beside}"
        self.connection.execute(made)
        self.connection.unregister("typed")
        self.connection.execute(f"DROP TABLE {self._name}")


def _rest_of(at: int) -> str:
    """Name what is left over of a column, as no column is named."""
    return quote(f"\x1fleft {at}")
