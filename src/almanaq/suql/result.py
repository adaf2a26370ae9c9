"""What a query gives back: rows, the evidence for them, and a trace of what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from almanaq import display
from almanaq.errors import DataError, MissingExtraError
from almanaq.models.budget import SpendingLine
from almanaq.suql.accuracy import Inference
from almanaq.values import shortest

if TYPE_CHECKING:
    from almanaq.charts.chart import Chart

Row = tuple[Any, ...]

UNKNOWN_SHOWN = 5
"""Unknown answers that a terminal lists."""

UNPLACED = "~"
"""What begins the key of a row that has none, and whose place in its relation is not known."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Words of a cell that an answer rests on.

    Attributes:
        relation, key, column: where the text stands. `key` is the row's declared key as text; without one its number in
            the table, counted from 0, or its address (`(0,1)`, `rowid 7`); for a row that neither is known of, as that
            of a view, `~` and a number that tells the rows of this result apart.
        passage: which element of a text[] (0 for text); `start` the offset of `quote` in it.
        question: the question that was answered.
        by_row: whether the relation has no declared key, so that `key` is none.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"name": ["Rex"], "about": ["Rex is old. He is a friendly dog."]}})
    >>> result = con.sql("SELECT name FROM dogs WHERE answer(about, 'is the dog friendly?') = 'Yes'")
    >>> ((evidence,),) = result.evidence
    >>> evidence.quote, evidence.start, evidence.column
    ('He is a friendly dog.', 12, 'about')
    """

    relation: str
    key: str
    column: str
    passage: int
    start: int
    quote: str
    question: str
    by_row: bool = field(default=False, compare=False)

    @property
    def place(self) -> str:
        """Say where the quote stands, as people count: rows without a key and passages from 1.

        >>> evidence.place
        'dogs.about, row 1, passage 1'
        """
        part = display.passage_name(self.column, self.key)
        return f"{_place(self.relation, self.column, self.key, by_row=self.by_row)}, {part} {self.passage + 1}"

    @property
    def row_known(self) -> bool:
        """Whether `key` finds the row in its table, also in another query.

        >>> evidence.row_known
        True
        """
        return not (self.by_row and self.key.startswith(UNPLACED))


@dataclass(frozen=True, slots=True)
class UnknownAnswer:
    """An answer that a query does not have: its call failed, or the reply cannot be read as what was asked for.

    Attributes:
        row: as `Evidence.key`; "~" where the key is private.
        relation, column: where the text stands; "" where it is computed.
        question: the question without an answer; as the query writes it where a row's private cells may be in it.
        reason: why there is none, without a word of the text.

    >>> import almanaq
    >>> from almanaq.testing import FunctionModel
    >>> model = FunctionModel(lambda text, question: "many" if "some" in text else "3")
    >>> con = almanaq.connect({"dogs": {"about": ["Has 3 toys.", "Has some toys."]}}, model=model, cache=False)
    >>> result = con.sql("SELECT answer(about, 'how many toys?')::int FROM dogs")
    >>> (unknown,) = result.unknown
    >>> unknown.row, unknown.column, unknown.reason
    ('1', 'about', 'a reply that cannot be read as an integer')
    >>> print(unknown)
    dogs.about, row 2: how many toys? (a reply that cannot be read as an integer)
    """

    row: str
    column: str
    question: str
    reason: str
    relation: str = ""
    by_row: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        place = _place(self.relation, self.column, self.row, by_row=self.by_row or self.row.startswith(UNPLACED))
        return f"{place}: {self.question} ({self.reason})"


def _place(relation: str, column: str, key: str, *, by_row: bool) -> str:
    place = f"{relation}.{column}" if relation else "a computed text"
    if not by_row:
        return f"{place}, key {key}"
    if key.startswith(UNPLACED):
        return place
    return f"{place}, row {int(key) + 1 if key.isdigit() else key}"


def describe_unknown(trace: Trace, most: int) -> list[str]:
    """Return a line for each of the first unknown answers of a query, and how many there are more."""
    lines = [str(unknown) for unknown in trace.unknown[:most]]
    left = trace.unknown_answers - len(lines)
    return [*lines, f"and {left:,} more"] if left else lines


@dataclass(frozen=True, slots=True)
class Trace:
    """What a query took. `text_calls` were made to the model, `cached_calls` were served from the reply cache.

    Attributes:
        candidate_rows: rows whose text was considered.
        unknown_calls: calls that failed; they satisfy nothing and show as NULL.
        exact: False when the user chose an approximation, calls failed, or a reply could not be read.
        partial: True when a budget stopped the query.
        links: (column, literal, values it was linked to) for ENUM literals.
        columns_sent: (column, number of cells) that left the machine.
        physical_calls: requests that the server got, repeated ones and those that read parts of a text included.
        dropped_quotes: quotes of replies that do not stand in the text, and are no evidence.
        inference: what was inferred under targets of recall and precision; None where nothing was.
        cached_input_tokens: those of the input tokens that the server says it had computed for an equal prefix before.
        spending: calls (asked for, cached, physical), tokens and money for each stage of the plan and model.
        unknown_answers: answers that rows lack: several where they share a failed call, or a reply cannot be read.
        unknown: the first of them, in the order of the rows.

    Under LIMIT the model is asked until enough rows are found, not about every row:

    >>> import almanaq
    >>> from almanaq.testing import FunctionModel
    >>> model = FunctionModel(lambda text, question: "Yes")
    >>> con = almanaq.connect({"dogs": {"about": [f"Dog {n}" for n in range(100)]}}, model=model, cache=False)
    >>> trace = con.sql("SELECT about FROM dogs WHERE answer(about, 'friendly?') = 'Yes' LIMIT 3").trace
    >>> trace.text_calls, trace.exact
    (6, True)
    """

    text_calls: int = 0
    cached_calls: int = 0
    unknown_calls: int = 0
    candidate_rows: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    money: float | None = 0.0
    exact: bool = True
    partial: bool = False
    links: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    columns_sent: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    physical_calls: int = 0
    spending: tuple[SpendingLine, ...] = ()
    dropped_quotes: int = 0
    cached_input_tokens: int = 0
    inference: Inference | None = None
    unknown_answers: int = 0
    unknown: tuple[UnknownAnswer, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The rows of a query: a sequence of tuples, and a stream of Arrow for any reader of one.

    `pa.table(result)`, `pl.DataFrame(result)` and `duckdb.sql("FROM result")` take it as it is (it is no `Sequence` by
    name, which polars would read value by value). A slice is a Result of those rows, with their evidence.

    Attributes:
        table: the rows as Arrow.
        evidence: for each row, the quotes its text answers rest on; up to 3 for an aggregate row.
        suql: the query as it was given.
        inferred: for each row, whether it rests on a row that was not asked about, by the caller's choice (`accuracy`);
            () where none does.

    >>> import almanaq
    >>> result = almanaq.connect({"t": {"n": [1, 2, 3], "s": ["a", "b", None]}}).sql("SELECT s, n FROM t ORDER BY n")
    >>> len(result), result[0], [n for _, n in result[1:]]
    (3, ('a', 1), [2, 3])
    >>> result
    3 rows
    s  n
    a  1
    b  2
       3
    """

    table: pa.Table
    evidence: tuple[tuple[Evidence, ...], ...]
    trace: Trace
    suql: str = ""
    inferred: tuple[bool, ...] = ()

    @property
    def unknown(self) -> tuple[UnknownAnswer, ...]:
        """The answers that rows lack, with the reasons; of many the first, `trace.unknown_answers` counts all.

        >>> result.unknown
        ()
        """
        return self.trace.unknown

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns, in order.

        >>> result.columns
        ('s', 'n')
        """
        return tuple(self.table.column_names)

    @property
    def rows(self) -> list[Row]:
        """The rows as Python tuples of what the engine's own client gives; NULL is None.

        >>> result.rows
        [('a', 1), ('b', 2), (None, 3)]

        Raises:
            DataError: a value that Python has none for, as an interval of a million years; `arrow()` holds it.
        """
        return self._rows

    @cached_property
    def _rows(self) -> list[Row]:
        return python_rows(self.table)

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table.

        >>> result.arrow().column("s").null_count
        1
        """
        return self.table

    def df(self) -> Any:
        """Return the rows as a pandas DataFrame; what pandas has no type for is an object, as in `rows`.

        >>> result.df()["n"].sum().item()
        6

        Raises:
            MissingExtraError: pandas is not installed.
            DataError: an infinite moment, which pandas has none for.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("pandas", "pandas", "Result.df()")
        return pandas_frame(self.table)

    def pl(self) -> Any:
        """Return the rows as a polars DataFrame, intervals as durations, integers of 128 bits as those.

        >>> result.pl().shape
        (3, 2)

        Raises:
            MissingExtraError: polars is not installed.
            DataError: a value that polars has no type for: an interval of months, a UNION, infinity.
        """
        if find_spec("polars") is None:
            raise MissingExtraError("polars", "polars", "Result.pl()")
        return polars_frame(self.table)

    def chart(self, title: str = "") -> Chart | None:
        """Return the chart that shows the result best; None where the table does. A notebook draws it.

        >>> chart = result.chart()
        >>> chart.kind, chart.note
        ('bar', '')
        """
        from almanaq.charts.choose import choose_chart

        return choose_chart(self.table, title)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Result: ...

    def __getitem__(self, index: int | slice) -> Row | Result:
        if not isinstance(index, slice):
            return self._rows[index]
        chosen = range(len(self))[index]
        if chosen.step == 1:
            table = self.table.slice(chosen.start, len(chosen))
        else:
            table = self.table.take(pa.array(chosen, pa.int64()))
        return replace(self, table=table, evidence=self.evidence[index], inferred=self.inferred[index])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows by Arrow's protocol of streams."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the columns' types by Arrow's protocol."""
        return self.table.schema.__arrow_c_schema__()

    def __repr__(self) -> str:
        rows = display.rows_text(self.columns, self._first, len(self), *self._notes)
        return "\n".join([rows, *map(display.visible, describe_unknown(self.trace, UNKNOWN_SHOWN))])

    def _repr_html_(self) -> str:
        rows = display.rows_html(self.columns, self._first, self.evidence, len(self), *self._notes)
        unknown = "\n".join(describe_unknown(self.trace, display.QUOTES))
        folded = display.fold_text(f"Unknown ({self.trace.unknown_answers:,})", unknown) if unknown else ""
        return display.block(rows, folded)

    @property
    def _first(self) -> list[Row]:
        return python_rows(self.table.slice(0, display.ROWS))

    @property
    def _notes(self) -> tuple[str, ...]:
        calls = self.trace.text_calls + self.trace.cached_calls
        asked = f"{calls:,} text call{'s' * (calls != 1)}" if calls else ""
        return asked, "not all of the result" if self.trace.partial else "", _inexact(self.trace)


def _inexact(trace: Trace) -> str:
    if unknown := trace.unknown_answers or trace.unknown_calls:
        return f"not exact: {unknown:,} answer(s) unknown"
    return "" if trace.exact else "approximate"


# --- rows as the Python objects of the engine's client, and as frames of the same values, or an error ----------------

_WIDE = {"hugeint": "Int128", "uhugeint": "UInt128"}
"""polars' names of DuckDB's integers of 128 bits."""
_MOST_DAYS = 95_000_000
"""Days from 1970 that polars counts to, 260,000 years."""
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 97_000_000_000}
"""Units of a timestamp in a day; of nanoseconds so many that all but infinity are counted."""


def python_rows(table: pa.Table | pa.RecordBatch, *, exact: bool = False) -> list[tuple[Any, ...]]:
    """Return rows of Arrow as Python tuples, of what the client of the engine that they come from gives.

    Args:
        exact: give what DuckDB's client would change as it is, for a text: months of intervals, infinity, nanoseconds.
    """
    fields = zip(table.schema, table.columns, strict=True)
    columns = [python_column(field, column, exact=exact) for field, column in fields]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def python_column(field: pa.Field, column: pa.ChunkedArray | pa.Array, *, exact: bool = False) -> list[Any]:
    if field.metadata is not None and b"duckdb_type" in field.metadata:
        from almanaq.engines.duckdb.values import python_values

        return python_values(field, column, exact=exact)
    if field.metadata is not None and b"postgres_type" in field.metadata and not exact:
        from almanaq.engines.postgres import driver

        return driver.python_values(field.metadata[b"postgres_type"], column.to_pylist())
    try:
        if not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_float64(column.type)):
            return column.to_numpy().tolist()  # type: ignore[no-any-return] # ten times as fast
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise DataError(
            f"the column {field.name!r} holds a date or time outside the years 1 to 9999: write {field.name}::text"
        ) from error
    inner = column.type
    while pa.types.is_list(inner) or pa.types.is_large_list(inner):
        inner = inner.value_type
    return _shorten(values) if pa.types.is_float32(inner) else values


def _shorten(values: list[Any]) -> list[Any]:
    return [_shorten(value) if isinstance(value, list) else shortest(value) for value in values]


def pandas_frame(table: pa.Table) -> Any:
    """Return a DataFrame of pandas; columns that it has no type for hold Python objects."""
    import pandas

    from almanaq.engines.duckdb.values import TYPE, is_object, kind_of

    kinds = [kind_of(each) for each in table.schema]
    objects = [i for i, kind in enumerate(kinds) if kind is not None and is_object(kind)]
    columns = [pa.nulls(table.num_rows) if i in objects else column for i, column in enumerate(table.columns)]
    for each, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(each.type) and TYPE in (each.metadata or {}):
            _refuse_infinity(each, column, "pandas", 2**63 - 2)
    names = [str(i) for i in range(len(columns))]
    frame = pa.table(columns, names=names).to_pandas() if columns else pandas.DataFrame(index=range(table.num_rows))
    for i in objects:
        values = python_column(table.field(i), table.column(i))
        is_span = table.schema.types[i] == pa.month_day_nano_interval()
        frame.isetitem(i, pandas.Series(values, dtype=None if is_span else object))
    frame.columns = pandas.Index(table.column_names)
    return frame


def polars_frame(table: pa.Table) -> Any:
    import polars

    from almanaq.engines.duckdb.values import kind_of

    if repeated := [name for name, times in Counter(table.column_names).items() if times > 1]:
        raise DataError(f"two columns are called {repeated[0]!r}, and polars has one of a name: rename one with AS")
    columns, wide = [], {}
    for each, column in zip(table.schema, table.columns, strict=True):
        kind = kind_of(each)
        if kind is not None and kind.id in _WIDE:
            wide[each.name] = getattr(polars, _WIDE[kind.id])
        if each.type == pa.month_day_nano_interval():
            column = _durations(each.name, column)
        elif _holds(each.type, lambda type_: type_ == pa.month_day_nano_interval() or pa.types.is_union(type_)):
            raise DataError(
                f"the column {each.name!r} is of a type that polars has none for ({each.type}): {each.name}::VARCHAR"
            )
        elif kind is not None and pa.types.is_date32(each.type):
            _refuse_infinity(each, column, "polars", _MOST_DAYS)
        elif kind is not None and pa.types.is_timestamp(each.type):
            _refuse_infinity(each, column, "polars", _MOST_DAYS * _PER_DAY[each.type.unit])
        columns.append(column)
    fields = [pa.field(f.name, c.type, metadata=f.metadata) for f, c in zip(table.schema, columns, strict=True)]
    frame = polars.DataFrame(pa.table(columns, schema=pa.schema(fields)))
    return frame.with_columns(polars.col(name).cast(type_) for name, type_ in wide.items()) if wide else frame


def _refuse_infinity(field: pa.Field, column: pa.ChunkedArray, library: str, most: int) -> None:
    import pyarrow.compute as pc

    counts = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(field.type) else column.cast(pa.int64())
    if pc.any(pc.greater(pc.abs(counts), most)).as_py():
        raise DataError(
            f"the column {field.name!r} holds infinity, or a time that {library} has none for: {field.name}::VARCHAR"
        )


def _holds(type_: pa.DataType, is_it: Callable[[pa.DataType], bool]) -> bool:
    return is_it(type_) or any(_holds(type_.field(i).type, is_it) for i in range(type_.num_fields))


def _durations(name: str, column: pa.ChunkedArray) -> pa.Array:
    spans = column.to_pylist()
    if any(span is not None and span.months for span in spans):
        raise DataError(f"the column {name!r} holds intervals of months, which polars has no type for: {name}::text")
    nanoseconds = [None if span is None else span.days * 86_400_000_000_000 + span.nanoseconds for span in spans]
    return pa.array(nanoseconds, pa.duration("ns"))
