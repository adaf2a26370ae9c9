"""What a turn gives: the reply with everything it rests on, readings to choose from, and the events before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from almanaq import display
from almanaq.agent.history import Key, Shown, Turn, TurnKind, short_cells
from almanaq.display import visible
from almanaq.errors import AlmanaqError, UsageError
from almanaq.models.retrying import to_public_error

if TYPE_CHECKING:
    import pyarrow as pa

    from almanaq.charts.chart import Chart
    from almanaq.suql.result import Evidence, Result, Trace, UnknownAnswer

Status = Literal["answered", "no_result", "no_query", "clarify", "failed"]
_REMEMBERED = 20
_OWN = ("question", "error", "kind", "shown", "meant", "private", "asked", "of", "table", "marks", "stopped")
"""Fields for callers in Python, which are no keys of `ask --json`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A query that a question may mean.

    Attributes:
        words: what it searches, as a person says it.
        suql: the query; nothing has run it yet.
        probability: how likely it is what was asked, from 0 to 1.
    """

    words: str
    suql: str
    probability: float
    runs: Callable[[str], Result] | None = field(default=None, repr=False, compare=False)

    def run(self) -> Result:
        """Return the rows of the query; raises the errors of `con.sql`."""
        if self.runs is None:
            raise UsageError("this reading came without a connection: run its query with con.sql(reading.suql)")
        return self.runs(self.suql)

    def as_dict(self) -> dict[str, Any]:
        """Return the keys of `ask --json`."""
        return {"words": self.words, "suql": self.suql, "probability": round(self.probability, 3)}


@dataclass(frozen=True)
class Response:
    """A reply, with everything it rests on (the keys of `ask --json`).

    Attributes:
        suql: the query that ran, or the last that was refused; None when there was none.
        tables: names of the relations that the query reads.
        evidence: for each row, the quotes that it rests on.
        searched: what was searched, in words; "" when nothing was.
        relaxed: the condition that was dropped to find rows, in words; None when none was.
        trace: what the query took; None when none ran.
        error: what failed, for callers that want the exception; the message is in `answer`.
        kind: what the asker did with the question.
        shown: the keys of the rows, for later turns that refer to them.
        meant: where a condition was left out, the query with it: what later turns go on from.
        private: the rows show private columns; no language model sees them, now or in later turns.
        marks: the columns that were private when it was made.
        asked, of: as in Turn.
        readings: the queries that the question may mean, the likeliest first, where none was sure enough to be the
            answer; `reply.readings[0].run()` gives the rows of one.
        table: the rows as Arrow, with the types of the columns; None when no query ran.
        stopped: somebody stopped the query; the rows that were sure by then are the reply's.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, 3]}})
    >>> reply = con.ask("How many dogs are older than 5?")
    >>> reply.answer
    '1 dog. I searched for the number of dogs whose age is above 5.'
    >>> reply.rows, reply.suql
    (((1,),), 'SELECT COUNT(*) AS count FROM dogs WHERE age > 5')
    >>> con.ask("What is the meaning of it all?").status
    'no_query'
    """

    status: Status
    answer: str
    suql: str | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    tables: tuple[str, ...] = ()
    evidence: tuple[tuple[Evidence, ...], ...] = ()
    searched: str = ""
    relaxed: str | None = None
    trace: Trace | None = None
    question: str = ""
    error: AlmanaqError | None = field(default=None, compare=False)
    kind: TurnKind = "new"
    shown: Shown | None = None
    meant: str | None = None
    private: bool = False
    asked: str = ""
    of: str = ""
    readings: tuple[Reading, ...] = ()
    table: pa.Table | None = field(default=None, compare=False, repr=False)
    marks: tuple[str, ...] = ()
    stopped: bool = False

    def chart(self) -> Chart | None:
        """Return the chart that shows the rows best, under the question as its title; None where the table does.

        >>> reply.chart().describe()
        'How many dogs are older than 5?: 1.'
        """
        from almanaq.charts.choose import choose_chart

        return None if self.table is None else choose_chart(self.table, self.question)

    @property
    def unknown(self) -> tuple[UnknownAnswer, ...]:
        """The answers that rows lack, as `Result.unknown`.

        >>> reply.unknown
        ()
        """
        return () if self.trace is None else self.trace.unknown

    def turn(self) -> Turn:
        """Return what a conversation remembers of this reply; of a failure no word that may come from the data.

        >>> con.ask("Which are they?", history=[reply.turn()]).suql
        'SELECT name, age FROM dogs WHERE age > 5'
        """
        keys: tuple[Key, ...] = tuple((self.columns[0], str(row[0])) for row in self.rows[:_REMEMBERED] if row)
        return Turn(
            self.question,
            self.suql,
            self.answer if self.status != "failed" else _failure(self.error),
            self.status,
            keys,
            self.kind,
            self.shown,
            self.meant,
            self.private,
            self.asked,
            self.of,
            tuple(reading.suql for reading in self.readings),
            self.marks,
            short_cells(self.columns[1:], [row[1:] for row in self.rows[:_REMEMBERED]]) if self.shown is None else (),
        )

    def _repr_html_(self) -> str:
        """Show the reply in a notebook: its text, what was searched, the rows with their quotes, the query."""
        rows = "" if self._result is None else self._result._repr_html_()
        query = display.fold_text("SUQL", self.suql) if self.suql else ""
        return display.block(display.paragraph(self.answer), rows, query)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython passes it
        """Show the same as text."""
        rows = "" if self._result is None else repr(self._result)
        printer.text(visible("\n\n".join(filter(None, (self.answer, rows, self.suql)))))

    @property
    def _result(self) -> Result | None:
        from almanaq.suql.result import Result, Trace

        return None if self.table is None else Result(self.table, self.evidence, self.trace or Trace())

    def as_dict(self) -> dict[str, Any]:
        """Return the keys of `ask --json` as a dictionary; rows are lists of Python values.

        >>> reply.as_dict()["status"], reply.as_dict()["rows"]
        ('answered', [[1]])
        """
        kept = [f.name for f in fields(self) if f.name not in _OWN]
        plain = {name: _plain(getattr(self, name)) for name in kept if name != "readings"}
        chart = self.chart()
        return plain | {
            "readings": [each.as_dict() for each in self.readings],
            "chart": None if chart is None else chart.spec(),
            "unknown": _plain(self.unknown),
        }


def _failure(error: AlmanaqError | None) -> str:
    """Say what kind of error ended a turn, and where: an engine's own words may quote values of rows."""
    if error is None:
        return "It failed."
    start = getattr(error, "start", None)
    place = f" at character {start + 1} of the query" if isinstance(start, int) else ""
    return f"It failed: {type(error).__name__}{place}."


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


def make_failure(question: str, error: AlmanaqError, suql: str | None = None) -> Response:
    """Return the reply that says what failed."""
    return Response("failed", str(error), suql, question=question, error=to_public_error(error))


# Events: what happens while a question is answered, in order.


@dataclass(frozen=True, slots=True)
class Progress:
    """Work begins that may take a while; `message` says in a few words which."""

    kind: ClassVar[str] = "progress"
    message: str


@dataclass(frozen=True, slots=True)
class TablesChosen:
    """The relations that the query may read."""

    kind: ClassVar[str] = "tables"
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryWritten:
    """A query was written: the first, a repaired one, or one with a condition relaxed; `attempt` counts from 1."""

    kind: ClassVar[str] = "query"
    suql: str
    attempt: int


@dataclass(frozen=True, slots=True)
class RowsFound:
    """The rows of the reply, with the quotes that each rests on."""

    kind: ClassVar[str] = "rows"
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    evidence: tuple[tuple[Evidence, ...], ...]


@dataclass(frozen=True, slots=True)
class TextWritten:
    """A piece of the reply's text; all in order are `Response.answer`. A reply that failed has none, but its error."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event: the whole reply."""

    kind: ClassVar[str] = "response"
    response: Response


Event = Progress | TablesChosen | QueryWritten | RowsFound | TextWritten | Finished
