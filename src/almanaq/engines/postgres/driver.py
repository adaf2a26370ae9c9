"""psycopg, and what is made with it: connections, results as Arrow, errors as ours.

This is the one module that imports psycopg, and only when a connection is made.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from almanaq.engines.common import find_secret, hide
from almanaq.errors import (
    DatabaseError,
    MissingExtraError,
    QueryTypeError,
    SourceError,
    UnknownNameError,
    UnsupportedError,
    engine_error,
    first_line,
)

if TYPE_CHECKING:
    import psycopg
    from psycopg.adapt import Loader
    from psycopg.types import TypeInfo

    Connection = psycopg.Connection[Any]


# --- connections ------------------------------------------------------------------------------------------------------

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
    """Return a connection whose values of types without an Arrow type come as text; no error prints the password."""
    psycopg = driver()
    from psycopg.types.json import JsonbDumper
    from psycopg.types.string import TextLoader

    secrets = find_secret(url), _find_password(url)
    try:
        # In UTF-8 for every database: of one without an encoding (SQL_ASCII) texts would come as bytes.
        connection: Connection = psycopg.connect(
            url, connect_timeout=10, application_name="almanaq", client_encoding="utf8"
        )
        # However the server, the database or the role are set up, and not in the message that needs it: that is read
        # as a whole before its first statement runs.
        if not has_settled_texts(connection):
            connection.execute(f"SET {_STANDARD_TEXTS} = on")
            connection.commit()
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


def has_settled_texts(connection: Connection) -> bool:
    """Return whether a backslash in '…' means itself; the server tells of every change of that by itself."""
    return connection.info.parameter_status(_STANDARD_TEXTS) == "on"


def is_alive(connection: Connection) -> bool:
    """Return whether a connection that lay idle was not lost, as far as is known without asking the server."""
    try:
        for _ in range(2):  # first its last words, then the end
            connection.pgconn.consume_input()
    except driver().Error:
        return False
    return not connection.closed and not connection.broken


def read_arrays(connection: Connection) -> list[TypeInfo]:
    """Return a database's own array types, but those of its tables' rows; elements of a domain are of its base type."""
    from psycopg.types import TypeInfo

    found = connection.execute(_OWN_ARRAYS).fetchall()
    return [TypeInfo(name, element, array, delimiter=delimiter) for array, name, element, delimiter in found]


def prepare(connection: Connection, types: Iterable[TypeInfo]) -> None:
    """Make a new connection ready for sessions: their own array types come as lists, and nothing outlives the client.

    A server that can (14 or later) then looks whether the client is still there while a statement runs; else a killed
    process would leave its statement running to the end.
    """
    from psycopg.types.array import register_array

    for type_ in types:
        register_array(type_, connection)
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


def _find_password(url: str) -> str:
    """Return the password that libpq finds in a URL or in its own form, `host=… password='…'`; "" for none."""
    with suppress(driver().Error):
        return str(driver().conninfo.conninfo_to_dict(url).get("password") or "")
    return ""


# --- PostgreSQL's types as Arrow's, and back --------------------------------------------------------------------------

_SCALARS: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", tz="UTC"),
    1186: pa.month_day_nano_interval(),
}
POSTGRES_TYPE = b"postgres_type"
"""What the type of a column is called in the metadata of its field, whose values come as text."""
_OID = b"postgres_oid"
_TEXTS = frozenset((25, 1009, 1043, 1015, 2249, 2287, 705))
"""Texts, records of no type, and what has none: columns of temporary tables hold them as text."""
_NUMERIC = 1700
_PYTHON = {114: b"json", 3802: b"json", 2950: b"uuid", 2249: b"record", _NUMERIC: b"numeric"}
"""Types whose text Python has a value for; a numeric comes as text where NaN stands beside more digits than a float."""
_MOST_DIGITS = 76
"""Of Arrow's widest decimal."""
_SQL_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_large_binary, "bytea"),
    (pa.types.is_duration, "interval"),
    (pa.types.is_interval, "interval"),
    (pa.types.is_null, "text"),
)


def to_batch(description: Sequence[Any], rows: Sequence[Sequence[Any]], elements: Mapping[int, int]) -> pa.RecordBatch:
    """Return the rows of a cursor as Arrow, types without a name in Arrow as text; `elements`: of own array types."""
    if not description:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(description)
    arrays = [_array(column, list(values), elements) for column, values in zip(description, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(description, arrays, elements))


def _schema(description: Sequence[Any], columns: Sequence[Any], elements: Mapping[int, int]) -> pa.Schema:
    """Return the fields of columns; the metadata say of what comes as text which type it has, if Python has it, too."""
    fields = []
    for column, values in zip(description, columns, strict=True):
        is_text = sql_type(values.type).startswith("text")
        kind = _PYTHON.get(_element(column.type_code, elements) or column.type_code) if is_text else None
        is_own = column.type_code not in _TEXTS and sql_type(values.type).startswith(("text", "interval"))
        metadata = {**({POSTGRES_TYPE: kind} if kind else {}), **({_OID: str(column.type_code)} if is_own else {})}
        fields.append(pa.field(column.name, values.type, metadata=metadata or None))
    return pa.schema(fields)


def own_type(field: pa.Field) -> int | None:
    """Return the id of the type that a column has in PostgreSQL, where Arrow has none that says as much."""
    return int(field.metadata[_OID]) if field.metadata and _OID in field.metadata else None


def copied(values: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return the values of a column as COPY takes them."""
    if values.type != pa.month_day_nano_interval():
        return values.to_pylist()  # type: ignore[no-any-return]
    return [v and f"{v.months} mons {v.days} days {v.nanoseconds // 1000} microseconds" for v in values.to_pylist()]


def python_values(kind: bytes, values: Sequence[Any]) -> list[Any]:
    """Return texts of a type of PostgreSQL's as psycopg gives its values; those in arrays, too."""
    from psycopg.types.composite import RecordLoader

    loads: dict[bytes, Callable[[str], Any]] = {b"uuid": uuid.UUID, b"json": json.loads, b"numeric": Decimal}
    load = loads.get(kind) or (lambda text: RecordLoader(0).load(text.encode()))
    return [_map_leaves(value, load) for value in values]


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes as Arrow."""
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return len(value) if isinstance(value, str | bytes) else 8


def to_table(description: Sequence[Any], batches: Sequence[pa.RecordBatch], elements: Mapping[int, int]) -> pa.Table:
    """Return the rows of batches of one result, with the types that they would have together."""
    if all(batch.schema == batches[0].schema for batch in batches):
        return pa.Table.from_batches(batches)
    columns = []
    for i, column in enumerate(description):
        parts = [batch.column(i) for batch in batches]
        if any(part.type != parts[0].type for part in parts):
            values = [value for part in parts for value in part.to_pylist()]
            if _NUMERIC in (column.type_code, _element(column.type_code, elements)):  # some as decimals, some not
                values = [_map_leaves(value, lambda leaf: Decimal(str(leaf))) for value in values]
            columns.append(_array(column, values, elements))
        else:
            columns.append(pa.chunked_array(parts))
    return pa.table(columns, schema=_schema(description, columns, elements))


def sql_type(type_: pa.DataType) -> str:
    """Return PostgreSQL's name of an Arrow type; raises UnsupportedError when it has none."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return sql_type(type_.value_type) + "[]"
    if pa.types.is_dictionary(type_):
        return sql_type(type_.value_type)
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    for test, name in _SQL_TYPES:
        if test(type_):
            return name
    raise UnsupportedError(f"PostgreSQL has no type for Arrow's {type_}")


def _array(column: Any, values: list[Any], elements: Mapping[int, int]) -> Any:
    element = _element(column.type_code, elements)
    leaves, depth = (values, 0) if element is None else (list(_leaves(values)), max([1, *map(_depth, values)]))
    type_, plain = _scalar(element or column.type_code, column, leaves)
    for _ in range(depth):
        type_ = pa.list_(type_)
    return pa.array([_map_leaves(value, plain) for value in values] if plain else values, type_)


def _element(type_code: int, elements: Mapping[int, int]) -> int | None:
    return elements.get(type_code) or _own_elements().get(type_code)


@cache
def _own_elements() -> dict[int, int]:
    from psycopg.postgres import types

    return {info.array_oid: info.oid for info in types if info.array_oid}


def _scalar(oid: int, column: Any, values: list[Any]) -> tuple[pa.DataType, Callable[[Any], Any] | None]:
    """Return the Arrow type of values of a type, and what each has to be made before (None: nothing)."""
    if oid == _NUMERIC:
        if any(v is not None and not v.is_finite() for v in values):  # Arrow's decimals have no NaN
            same = all(v is None or not v.is_finite() or Decimal(repr(float(v))) == v for v in values)
            return (pa.float64(), float) if same else (pa.string(), str)
        return _decimal(column, values), None
    known = _SCALARS.get(oid)
    return (known, None) if known is not None else (pa.string(), str)


def _depth(value: Any) -> int:
    """Return the number of dimensions of an array, 0 of an empty one: it may stand beside any."""
    return 1 + _depth(value[0]) if isinstance(value, list) and value else 0


def _leaves(value: Any) -> Iterator[Any]:
    for part in value:
        if isinstance(part, list):
            yield from _leaves(part)
        else:
            yield part


def _map_leaves(value: Any, plain: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_map_leaves(part, plain) for part in value]
    return None if value is None else plain(value)


def _decimal(column: Any, values: list[Decimal | None]) -> pa.DataType:
    """Return the decimal type that a column declares, else the least wide that holds its values."""
    if column.precision and column.precision <= _MOST_DIGITS and column.scale is not None and column.scale >= 0:
        return (pa.decimal128 if column.precision <= 38 else pa.decimal256)(column.precision, column.scale)
    return decimal_type([v for v in values if v is not None])


def decimal_type(values: Iterable[Decimal]) -> pa.DataType:
    """Return the least wide decimal type that holds finite values."""
    scale = digits = 0
    for value in values:
        scale, digits = max(scale, -int(value.as_tuple().exponent)), max(digits, value.adjusted() + 1 if value else 1)
    if digits + scale <= 38:
        return pa.decimal128(38, scale)
    return pa.decimal256(_MOST_DIGITS, max(0, min(scale, _MOST_DIGITS - digits)))


# --- results, read as the server sends them ---------------------------------------------------------------------------

_CHUNK_ROWS = 64
"""Rows that are taken from the server at once: each may be as wide as it likes."""
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 8_192, 4_000_000
"""Rows that are read before they are made Arrow's, which takes less memory."""
_Rows = list[tuple[Any, ...]]


def run(
    cursor: Any, message: str, elements: Mapping[int, int], most_bytes: int | None, most_rows: int | None = None
) -> pa.Table:
    """Run a message of several statements, one of them a SELECT; give its rows, or a little more than so many."""
    batches: list[pa.RecordBatch] = []
    rows: _Rows = []
    held = waiting = count = 0
    chunks = _chunks(cursor, message)
    for chunk, size in chunks:
        rows += chunk
        waiting, count = waiting + size, count + len(chunk)
        if len(rows) >= _ROWS_AT_ONCE or waiting > _BYTES_AT_ONCE:
            batches.append(to_batch(cursor.description, rows, elements))
            held, waiting, rows = held + batches[-1].nbytes, 0, []
        if (most_bytes is not None and held + waiting > most_bytes) or (most_rows is not None and count >= most_rows):
            chunks.close()
            break
    if rows or not batches:
        batches.append(to_batch(cursor.description or (), rows, elements))
    return to_table(cursor.description or (), batches, elements)


def _chunks(cursor: Any, message: str) -> Generator[tuple[_Rows, int], None, None]:
    """Yield rows as they come, and about how many bytes they take; closing the iterator cancels the rest."""
    psycopg, connection, done = driver(), cursor.connection, False
    transformer, server = psycopg.adapt.Transformer(cursor), connection.pgconn
    server.send_query(message.encode())
    if psycopg.capabilities.has_stream_chunked():
        server.set_chunked_rows_mode(_CHUNK_ROWS)
    else:
        server.set_single_row_mode()
    try:
        while (result := connection.wait(psycopg.generators.fetch(server))) is not None:
            if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK and (result.ntuples or cursor.pgresult is None):
                transformer.set_pgresult(result, set_loaders=cursor.pgresult is None)
                cursor.pgresult = result
                long = [i for i in range(result.nfields) if result.fsize(i) < 0]
                rows = transformer.load_rows(0, result.ntuples, tuple)
                yield rows, 8 * len(rows) * result.nfields + sum(size_of(row[i]) for row in rows for i in long)
        done = True
    finally:
        if not done and not connection.closed:
            connection.cancel_safe(timeout=5)
            while connection.wait(psycopg.generators.fetch(server)) is not None:
                pass


# --- errors -----------------------------------------------------------------------------------------------------------

_UNKNOWN = ("UndefinedColumn", "UndefinedTable", "InvalidSchemaName")
_MISTYPED = ("UndefinedFunction", "UndefinedObject", "DatatypeMismatch", "GroupingError", "AmbiguousColumn")
_SUGGESTED = re.compile(r'"([^"]+)"')


def server_error(error: Exception, message: str) -> DatabaseError:
    """Return an error of the server as ours, with its first line as `message`."""
    kinds = {base.__name__ for base in type(error).__mro__}
    hint = str(getattr(getattr(error, "diag", None), "message_hint", None) or "")
    if hint.startswith("Perhaps you meant"):
        suggested = [name.split(".")[-1] for name in _SUGGESTED.findall(hint)]
        message += f"; did you mean {' or '.join(map(repr, dict.fromkeys(suggested)))}?" if suggested else ""
    if kinds.intersection(_UNKNOWN):
        return UnknownNameError(message)
    return QueryTypeError(message) if kinds.intersection(_MISTYPED) else engine_error(message, type(error))
