"""What a query gives back: rows, the evidence for them, and a trace of what it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from almanaq import display
from almanaq.errors import MissingExtraError
from almanaq.models.budget import SpendingLine
from almanaq.suql.accuracy import Inference
from almanaq.suql.result_values import python_rows

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
        from almanaq.suql.result_values import pandas_frame

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
        from almanaq.suql.result_values import polars_frame

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
