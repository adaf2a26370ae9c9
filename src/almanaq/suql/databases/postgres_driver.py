"""psycopg, and connections made with it: the one module that imports it, and only when one is made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from almanaq.errors import MissingExtraError, SourceError, first_line
from almanaq.suql.databases.url import find_secret, hide

if TYPE_CHECKING:
    import psycopg
    from psycopg.adapt import Loader

    Connection = psycopg.Connection[Any]

_STANDARD_TEXTS = "standard_conforming_strings"
OLDEST = 13
"""The first version in which a deadline that is set holds for the next statement of the same message."""
_RANGES = ("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange")
_MULTIRANGES = tuple(name.replace("range", "multirange") for name in _RANGES)
_AS_TEXT = ("json", "jsonb", "uuid", "xml", "inet", "cidr", "timetz", "record", *_RANGES, *_MULTIRANGES)
_WATCHED_SINCE = 140_000
_INTERVAL = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?(?:([+-])?(\d+):(\d+):([\d.]+))?"
)
_OWN_ARRAYS = """
    WITH RECURSIVE elements (array_, name, element, delimiter) AS (
        SELECT t.typarray, t.typname, t.oid, t.typdelim::text FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
        WHERE t.typarray <> 0 AND t.oid >= 16384 AND (c.oid IS NULL OR c.relkind = 'c')
        UNION ALL SELECT e.array_, e.name, t.typbasetype, e.delimiter
                  FROM elements e JOIN pg_type t ON t.oid = e.element AND t.typtype = 'd')
    SELECT e.array_, e.name, e.element, e.delimiter FROM elements e JOIN pg_type t ON t.oid = e.element
    WHERE t.typtype <> 'd' ORDER BY e.array_"""


def driver() -> Any:
    """Return the module psycopg; raises MissingExtraError where it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("psycopg", "postgres", "a PostgreSQL source") from error
    return psycopg


def connect(url: str) -> Connection:
    """Return a connection whose values of types without an Arrow type come as text.

    Raises:
        SourceError: no server, no such database, wrong user or password, an old server; the password is not printed.
        MissingExtraError: psycopg is not installed.
    """
    psycopg = driver()
    from psycopg.types.json import JsonbDumper
    from psycopg.types.string import TextLoader

    secrets = find_secret(url), _parsed_password(url)
    try:
        # In UTF-8 whatever the database has: of one without an encoding (SQL_ASCII) texts would come as bytes.
        connection: Connection = psycopg.connect(
            url, connect_timeout=10, application_name="almanaq", client_encoding="utf8"
        )
        settle_texts(connection)
    except (psycopg.OperationalError, psycopg.ProgrammingError, UnicodeError, ValueError) as error:
        kind = "cannot connect to PostgreSQL" if isinstance(error, psycopg.OperationalError) else "not a PostgreSQL URL"
        raise SourceError(f"{kind}: {hide(first_line(error), *secrets)}") from None
    try:
        check_version(connection.info.server_version)
    except SourceError:
        connection.close()
        raise
    for name in _AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)
    connection.adapters.register_loader("interval", _interval_loader())
    connection.adapters.register_dumper(dict, JsonbDumper)
    return connection


def settle_texts(connection: Connection) -> None:
    r"""Have a backslash in '…' mean itself, however the server, the database or the user's role are set up.

    A message is read as a whole before its first statement runs: this cannot be said in the message that needs it.
    """
    if connection.info.parameter_status(_STANDARD_TEXTS) != "on":
        connection.execute(f"SET {_STANDARD_TEXTS} = on")
        connection.commit()


def has_settled_texts(connection: Connection) -> bool:
    """Return whether '…' is read as the standard has it; the server tells of every change of that by itself."""
    return connection.info.parameter_status(_STANDARD_TEXTS) == "on"


def is_alive(connection: Connection) -> bool:
    """Return whether a connection that lay idle was not lost, as far as can be told without asking the server."""
    try:
        for _ in range(2):  # first its last words, then the end
            connection.pgconn.consume_input()
    except driver().Error:
        return False
    return not connection.closed and not connection.broken


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array type that this database has and others have not: of an enum, a domain, an extension's type.

    Attributes:
        element: the id of the elements' type; of a domain, that of the type beneath.
        delimiter: what stands between two elements in the array's text.
    """

    oid: int
    name: str
    element: int
    delimiter: str


def read_arrays(connection: Connection) -> tuple[ArrayType, ...]:
    """Return the array types of a database's own, but those of its tables' rows."""
    return tuple(ArrayType(*row) for row in connection.execute(_OWN_ARRAYS).fetchall())


def prepare(connection: Connection, arrays: Iterable[ArrayType]) -> None:
    """Make a new connection ready for sessions: their own array types come as lists, and nothing outlives the client.

    A server that can (14 or later) then looks whether the client is still there while a statement runs; else a killed
    process would leave its statement running to the end.
    """
    from psycopg.types import TypeInfo
    from psycopg.types.array import register_array

    for array in arrays:
        register_array(TypeInfo(array.name, array.element, array.oid, delimiter=array.delimiter), connection)
    if connection.info.server_version >= _WATCHED_SINCE:
        with suppress(driver().errors.InvalidParameterValue):  # the server's platform cannot
            connection.execute("SET client_connection_check_interval = '1s'")


def check_version(number: int) -> None:
    """Raise SourceError for a server (150003 is 15.3) that is too old."""
    if number < OLDEST * 10_000:
        raise SourceError(f"the server is PostgreSQL {number // 10_000}; version {OLDEST} or later is needed")


@cache
def _interval_loader() -> type[Loader]:
    """Return what reads an interval as Arrow has it: a month is not 30 days, and a day not 24 hours."""
    from psycopg.adapt import Loader
    from pyarrow import MonthDayNano

    class IntervalLoader(Loader):
        def load(self, data: Any) -> Any:
            text = bytes(data).decode()
            match = _INTERVAL.fullmatch(text)
            if match is None:
                raise ValueError(f"no interval: {text!r}")
            years, months, days, sign, hours, minutes, seconds = match.groups(default="")
            whole, _, part = seconds.partition(".")
            clock = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(whole or 0)
            nanoseconds = clock * 10**9 + int(part.ljust(9, "0"))
            signed = -nanoseconds if sign == "-" else nanoseconds
            return MonthDayNano([int(years or 0) * 12 + int(months or 0), int(days or 0), signed])

    return IntervalLoader


def _parsed_password(url: str) -> str:
    """Return the password that libpq finds in a URL or in its own form, `host=… password='…'`; "" for none."""
    with suppress(driver().Error):
        return str(driver().conninfo.conninfo_to_dict(url).get("password") or "")
    return ""
