"""What DB-API 2.0 (PEP 249) asks of a module besides connect(): type objects, constructors and the classes of errors.

>>> import almanaq
>>> con = almanaq.connect({"t": {"n": [1], "s": ["a"]}})
>>> [column[1] == almanaq.NUMBER for column in con.cursor().execute("SELECT n, s FROM t").description]
[True, False]
>>> almanaq.Date(2026, 11, 22)
datetime.date(2026, 11, 22)
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from almanaq.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)


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

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError


def python_value(value: Any) -> Any:
    """Return a value of a row as Python's own: an interval without months as timedelta, as sqlite3 and psycopg do."""
    if hasattr(value, "nanoseconds") and hasattr(value, "months") and not value.months:
        return datetime.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
    return value
