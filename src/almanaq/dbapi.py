"""DB-API 2.0 (PEP 249): cursors, and what a module offers besides connect(): type objects, constructors, errors.

>>> import almanaq
>>> con = almanaq.connect({"t": {"n": [1], "s": ["a"]}})
>>> [column[1] == almanaq.NUMBER for column in con.cursor().execute("SELECT n, s FROM t").description]
[True, False]
>>> almanaq.Date(2026, 11, 22)
datetime.date(2026, 11, 22)
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from almanaq import errors
from almanaq.errors import AlmanaqError, ProgrammingError, UsageError

if TYPE_CHECKING:
    from almanaq.suql.result import Result


@dataclass(frozen=True, slots=True, eq=False)
class TypeObject:
    """A group of column types: equal to each type code of `Cursor.description` (Arrow's name of the type) within it."""

    name: str
    codes: tuple[str, ...]
    """How the names begin: `decimal128` of `decimal128(10, 2)`."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self is other
        return isinstance(other, str) and other.partition("[")[0].partition("(")[0] in self.codes

    def __hash__(self) -> int:
        return hash(self.name)


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))

STRING = TypeObject("STRING", ("string", "large_string", "string_view"))
BINARY = TypeObject("BINARY", ("binary", "large_binary", "binary_view", "fixed_size_binary"))
NUMBER = TypeObject(
    "NUMBER", (*_INTEGERS, "halffloat", "float", "double", "decimal32", "decimal64", "decimal128", "decimal256", "bool")
)
DATETIME = TypeObject("DATETIME", ("date32", "date64", "time32", "time64", "timestamp", "duration"))
ROWID = TypeObject("ROWID", ())
"""Equal to no type: a table's row ids are no column here."""

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802, PEP 249 spells it so
    """Return the day, in local time, of a number of seconds since 1970.

    >>> DateFromTicks(86_400 * 1.5)
    datetime.date(1970, 1, 2)
    """
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    """Return the time of day, in local time, of a number of seconds since 1970.

    >>> TimeFromTicks(0).minute in (0, 30, 45)
    True
    """
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    """Return the moment, in local time and without a zone, of a number of seconds since 1970.

    >>> moment = TimestampFromTicks(86_400 * 1.5)
    >>> moment.year, moment.tzinfo
    (1970, None)
    """
    return datetime.datetime.fromtimestamp(ticks)


class ErrorsAsAttributes:
    """The classes of errors as attributes of a connection, as PEP 249 offers for code that has only that."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError


Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any]
ErrorHandler = Callable[[Any, "Cursor", type[BaseException], BaseException], Any]
"""Called with the connection, the cursor, the class of an error and the error."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)?")


class Cursor:
    """Runs one query at a time and hands out its rows; iterate over it, or use it in `with`.

    Attributes:
        arraysize: rows that `fetchmany` gives when no size is named.
        messages: (class, error) of what the last call raised.
        errorhandler: called with connection, cursor, class and error in place of raising; None: errors are raised.
        lastrowid: None, for nothing is ever written.

    >>> import almanaq
    >>> con = almanaq.connect({"t": {"n": [1, 2, 3]}})
    >>> with con.cursor() as cursor:
    ...     _ = cursor.execute("SELECT n FROM t WHERE n > ? ORDER BY n", (1,))
    ...     cursor.rowcount, cursor.fetchone(), cursor.rownumber, list(cursor)
    (2, (2,), 1, [(3,)])
    >>> cursor = con.cursor()
    """

    lastrowid: None = None

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.arraysize = 1
        self.messages: list[tuple[type[BaseException], BaseException]] = []
        self.errorhandler: ErrorHandler | None = connection.errorhandler
        self._result: Result | None = None
        self._rows: Sequence[Row] = ()
        self._next = 0
        self._closed = False

    @property
    def description(self) -> tuple[tuple[Any, ...], ...] | None:
        """(name, Arrow type, and five times None) for each column; None before a query has run.

        >>> cursor.execute("SELECT n FROM t").description
        (('n', 'int64', None, None, None, None, None),)
        """
        if self._result is None:
            return None
        return tuple((f.name, str(f.type), None, None, None, None, None) for f in self._result.table.schema)

    @property
    def rowcount(self) -> int:
        """The number of rows of the query, -1 before one has run.

        >>> con.cursor().rowcount, con.cursor().execute("SELECT n FROM t WHERE n > 1").rowcount
        (-1, 2)
        """
        return -1 if self._result is None else len(self._rows)

    @property
    def rownumber(self) -> int | None:
        """The number of the row that is fetched next, the first being 0; None before a query has run.

        >>> _ = cursor.execute("SELECT n FROM t").fetchmany(2)
        >>> cursor.rownumber
        2
        """
        return None if self._result is None else self._next

    @property
    def result(self) -> Result:
        """The whole Result of the last query, with evidence and trace; UsageError before one has run.

        >>> cursor.execute("SELECT n FROM t").result.trace.text_calls
        0
        """
        self._check_open()
        if self._result is None:
            raise UsageError("no query has run on this cursor; call execute(…) first")
        return self._result

    def execute(self, operation: str, parameters: Parameters | None = ()) -> Self:
        """Run a SUQL query, with parameters and errors as of `Connection.sql`; return this cursor.

        >>> cursor.execute("SELECT n FROM t WHERE n IN (?, ?) ORDER BY n", (1, 3)).fetchall()
        [(1,), (3,)]
        """
        self.messages.clear()
        try:
            self._check_open()
            self._result, self._rows, self._next = None, (), 0
            self._result = self.connection.sql(operation, parameters)
            self._rows = _python_rows(self._result)
        except AlmanaqError as error:
            self._report_error(error)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Self:
        """Run a SUQL query for each of some lists of parameters; the rows of the last stand to be fetched.

        >>> cursor.executemany("SELECT n FROM t WHERE n = ?", [(1,), (2,)]).fetchall()
        [(2,)]
        """
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """Run `SELECT procname(parameters)`; return the parameters, which no function here changes.

        Args:
            procname: a function that a query may call.

        >>> cursor.callproc("upper", ("rex",)), cursor.fetchone()
        (('rex',), ('REX',))
        """
        if not _NAME.fullmatch(procname):
            self._report_error(ProgrammingError(f"{procname!r} is not the name of a function"))
            return parameters
        self.execute(f"SELECT {procname}({', '.join('?' * len(parameters))})", parameters)
        return parameters

    def fetchone(self) -> Row | None:
        """Return the next row, or None after the last.

        >>> _ = cursor.execute("SELECT n FROM t WHERE n = 1")
        >>> cursor.fetchone(), cursor.fetchone()
        ((1,), None)
        """
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows (None: `arraysize` of them), fewer at the end.

        >>> _ = cursor.execute("SELECT n FROM t ORDER BY n")
        >>> cursor.fetchmany(2), cursor.fetchmany(2)
        ([(1,), (2,)], [(3,)])
        """
        _ = self.result  # raises where there is none
        start = self._next
        rows = self._rows[start : start + (self.arraysize if size is None else size)]
        self._next = start + len(rows)
        return list(rows)

    def fetchall(self) -> list[Row]:
        """Return all rows that were not fetched yet.

        >>> _ = cursor.execute("SELECT n FROM t ORDER BY n").fetchone()
        >>> cursor.fetchall()
        [(2,), (3,)]
        """
        return self.fetchmany(len(self._rows))

    def scroll(self, value: int, mode: Literal["relative", "absolute"] = "relative") -> None:
        """Go on with another row: `value` rows from here, or that row; IndexError where there is none.

        >>> _ = cursor.execute("SELECT n FROM t ORDER BY n").fetchall()
        >>> cursor.scroll(-2)
        >>> cursor.fetchone()
        (2,)
        """
        _ = self.result  # raises where there is none
        if mode not in ("relative", "absolute"):
            raise ProgrammingError(f"scroll: {mode!r} is unknown; give 'relative' or 'absolute'")
        place = self._next + value if mode == "relative" else value
        if not 0 <= place < len(self._rows):
            raise IndexError(f"there is no row {place}: the query has {len(self._rows)} rows, counted from 0")
        self._next = place

    def nextset(self) -> None:
        """Return None: a query has one set of rows.

        >>> print(cursor.nextset())
        None
        """
        self._check_open()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as DB-API 2.0 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as DB-API 2.0 allows."""

    def close(self) -> None:
        """Let go of the rows; closing again does nothing. The connection stays open.

        >>> other = con.cursor()
        >>> other.close()
        >>> other.fetchone()
        Traceback (most recent call last):
        almanaq.errors.UsageError: this cursor is closed; open another with connection.cursor()
        """
        self._result, self._rows, self._closed = None, (), True

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("this cursor is closed; open another with connection.cursor()")
        self.connection.check_open()

    def _report_error(self, error: AlmanaqError) -> None:
        """Keep an error among the messages, and hand it to the handler, or raise it."""
        self.messages.append((type(error), error))
        if self.errorhandler is None:
            raise error
        self.errorhandler(self.connection, self, type(error), error)


def _python_rows(result: Result) -> Sequence[Row]:
    """Return the rows of a result, intervals without months as timedelta, as sqlite3 and psycopg give them."""
    if not any(str(field.type) == "month_day_nano_interval" for field in result.table.schema):
        return result.rows

    def convert(value: Any) -> Any:
        if hasattr(value, "nanoseconds") and hasattr(value, "months") and not value.months:
            return datetime.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
        return value

    return [tuple(map(convert, row)) for row in result.rows]
