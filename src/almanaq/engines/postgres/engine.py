"""PostgreSQL as a Database, and one query's session on it: one connection, one snapshot, cursors, temporary tables.

It is spoken to directly and not through ibis, which collects or infers schemas by making views, and so needs to write.
All of a session lies in one transaction at REPEATABLE READ, so that row ids (`ctid`) mean the same throughout, and is
rolled back at its end, which drops the temporary tables. Every SELECT runs in a subtransaction that is read-only: a
function with effects is refused by the server, and an error leaves the other streams alive. A temporary table is made
empty first and filled read-only, which PostgreSQL allows.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from almanaq.engines.common import mark_derived
from almanaq.engines.interruption import InterruptibleSession, Work
from almanaq.engines.postgres.catalog import CatalogReader
from almanaq.engines.postgres.driver import (
    connect,
    copied,
    driver,
    has_settled_texts,
    is_alive,
    own_type,
    prepare,
    read_arrays,
    run,
    server_error,
    sql_type,
    to_batch,
)
from almanaq.engines.postgres.functions import FunctionCatalog
from almanaq.engines.postgres.language import PostgresLanguage
from almanaq.engines.postgres.statements import bind, computes, parse, walk
from almanaq.errors import DatabaseError, NotSupportedError, OperationalError, SourceError, first_line
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.schema_file import Schema
from almanaq.suql.language import Parameters
from almanaq.text.sql_literals import quote

if TYPE_CHECKING:
    from almanaq.engines.postgres.driver import Connection


# --- the session ------------------------------------------------------------------------------------------------------

_FIRST_ROWS = 32
"""Rows of a stream's first batch; each later one is twice as large."""
_BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ {mode}",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SAVEPOINT reading",
)
"""What the first statement's message begins with. Moments and their texts do not depend on how a server is set up: they
are in UTC, as from every engine here; but in which order day and month stand in a date that is not written as ISO has
it, the database says. Rows of a large table come in its order, not from where another query is. The server waits for as
long as a model does; how long a statement may take, its administrator says."""
_READ_ONLY, _KEEP = "SET LOCAL transaction_read_only = on", "RELEASE SAVEPOINT reading; SAVEPOINT reading"
"""A savepoint always stands, also where a message fails before it begins: as a whole, by a mistake in its syntax."""
_OTHER_FAULTS = (pa.ArrowException, OverflowError, ValueError)


class PostgresSession(InterruptibleSession):
    """A Session on one connection of its own.

    Args:
        connection: not in a transaction; the session gives it back rolled back, or closed.
        elements: the id of the elements' type of each array type of the database's own.
        standby: whether the server is one, where nothing at all is written: queries that need a temporary table fail.
        timeout: milliseconds that the server lets a statement take; 0 for any.
    """

    def __init__(
        self,
        connection: Connection,
        elements: Mapping[int, int],
        give_back: Callable[[Connection], None],
        deadline: float | None = None,
        *,
        standby: bool = False,
        timeout: int = 0,
    ) -> None:
        self._give_back, self._standby, self._timeout = give_back, standby, timeout
        self._connection, self._elements = connection, elements
        super().__init__()
        self._end_after(deadline, timed=False)
        self._numbers = count(1)
        self._using = threading.RLock()  # held while the connection works for somebody
        self._types: dict[int, str] = {}
        self._closing: list[str] = []  # cursors that nobody reads any more
        self._faults = (driver().Error, *_OTHER_FAULTS)

    def fetch(
        self, sql: str, most_bytes: int | None = None, parameters: Parameters = (), most_rows: int | None = None
    ) -> pa.Table:
        self._check(sql)
        with self._statement(), self._cursor() as cursor:
            query = bind(self._connection, sql, parameters)
            message = ";\n".join([*self._before(write=False), query, _KEEP])
            return run(cursor, message, self._elements, most_bytes, most_rows)

    def create(self, name: str, sql: str) -> int:
        self._check(sql)
        place = quote(*self.locate(name))
        made = f"CREATE TEMPORARY TABLE {quote(self.locate(name)[1])}"
        with self._statement(), self._send(f"{made} AS {sql} WITH NO DATA", write=True):
            pass
        try:
            with self._statement(), self._send(f"INSERT INTO {place} {sql}") as cursor:
                return int(cursor.rowcount)
        except DatabaseError:
            if not self._is_late():
                with self._statement(), self._send(f"DROP TABLE IF EXISTS {place}", write=True):
                    pass
            raise

    def store(self, name: str, table: pa.Table) -> None:
        columns = ", ".join(f"{quote(field.name)} {self._type_of(field)}" for field in table.schema)
        made = f"CREATE TEMPORARY TABLE {quote(self.locate(name)[1])} ({columns})"
        fill = f"COPY {quote(*self.locate(name))} FROM STDIN"
        with self._statement(), self._send(made, write=True, release=False) as cursor, cursor.copy(fill) as copy:
            for batch in table.to_batches(max_chunksize=10_000):
                for row in zip(*map(copied, batch.columns), strict=True):
                    copy.write_row(row)

    def _type_of(self, field: pa.Field) -> str:
        if (oid := own_type(field)) is None:
            return sql_type(field.type)
        if oid not in self._types:
            self._types[oid] = self.fetch(f"SELECT format_type({oid}, -1) AS name")["name"][0].as_py()
        return self._types[oid]

    def locate(self, name: str) -> tuple[str, ...]:
        return ("pg_temp", self._prefix + name)

    def _needs_insistence(self) -> bool:
        """Tell whether something runs that is to end; another thread tells the server, as that may take long."""
        with self._state:
            return any(work.busy and work.stopped for work in self._active)

    def _new_work(self) -> Work:
        return Work(self._using)

    def _finish(self) -> None:
        with self._using:
            try:
                if self._status() != "IDLE":
                    closing = [f"CLOSE {name}" for name in self._closing if self._status() == "INTRANS"]
                    self._connection.execute("; ".join([*closing, "ROLLBACK"]))
            except self._faults:
                self._connection.close()
        self._give_back(self._connection)

    def _check(self, sql: str) -> None:
        _check_select(sql.replace(self._prefix, ""))

    def _open(self, work: Work, sql: str, parameters: Parameters) -> Generator[pa.RecordBatch]:
        """Begin a SELECT as a cursor in the server.

        Where few rows are wanted, none is compiled for: the server reckons with all rows of the cursor, and compiling
        takes it longer (2 to 3 ms) than they do.
        """
        self._check(sql)
        name, query = f"c{next(self._numbers)}", bind(self._connection, sql, parameters)
        declare = [f"DECLARE {name} NO SCROLL CURSOR FOR {query}"]
        if work.first_rows is not None:
            declare = ["SET LOCAL jit = off", *declare, "SET LOCAL jit TO DEFAULT"]
        size = min(_FIRST_ROWS, work.batch_rows) if work.first_rows is None else work.first_rows
        first = self._fetch_forward(name, size, *declare)
        return self._read_on(name, first, size, work.batch_rows)

    def _read_on(self, name: str, batch: pa.RecordBatch, size: int, most: int) -> Generator[pa.RecordBatch]:
        alive = True
        try:
            while batch.num_rows:
                yield batch
                if batch.num_rows < size:
                    return
                size, alive = min(2 * size, most), False  # an error closes the cursor
                batch = self._fetch_forward(name, size)
                alive = True
        finally:
            if alive:
                self._closing.append(name)  # with the next message; between two, a cursor takes nothing

    def _fetch_forward(self, name: str, size: int, *before: str) -> pa.RecordBatch:
        with self._send(*before, f"FETCH FORWARD {size} FROM {name}") as cursor:
            return to_batch(cursor.description or (), cursor.fetchall(), self._elements)

    @contextmanager
    def _send(self, *sql: str, write: bool = False, release: bool = True) -> Iterator[Any]:
        """Run statements in one message and subtransaction, which lasts as long as the block without `release`."""
        with self._cursor() as cursor:
            sent = [*self._before(write=write), *sql]
            cursor.execute(";\n".join([*sent, _KEEP] if release else sent))
            for _ in sent[1:]:
                cursor.nextset()
            yield cursor
            if not release:
                cursor.execute(_KEEP)

    def _cursor(self) -> Any:
        if not has_settled_texts(self._connection):
            raise DatabaseError("the server reads backslashes in texts as escapes; nothing is sent to it")
        return self._connection.cursor()

    @contextmanager
    def _step(self, work: Work) -> Iterator[None]:
        with self._using:
            try:
                with super()._step(work):
                    yield
            finally:
                if not self._connection.closed and self._status() == "INERROR":
                    with suppress(driver().Error):  # it was lost: the next statement says so
                        self._connection.execute("ROLLBACK TO SAVEPOINT reading")  # its other cursors live on

    def _before(self, *, write: bool) -> list[str]:
        begin = self._status() == "IDLE"
        statements = [part.format(mode="READ ONLY" if self._standby else "READ WRITE") for part in _BEGIN if begin]
        if self._ends is not None:
            left = max(1, int((self._ends - time.monotonic()) * 1000))
            statements.append(f"SET LOCAL statement_timeout = {min(left, self._timeout or left)}")
        statements += [] if write else [_READ_ONLY]
        closing, self._closing = self._closing, []
        return statements + [f"CLOSE {name}" for name in closing]

    def _status(self) -> str:
        return str(self._connection.info.transaction_status.name)

    def _cancel(self, work: Work) -> None:  # noqa: ARG002  # there is one connection
        with suppress(driver().Error):  # the server is gone, and the statement with it
            self._connection.cancel_safe(timeout=5)

    def _translate_error(self, error: Exception, work: Work) -> DatabaseError | None:
        if not isinstance(error, self._faults):
            return None
        message = first_line(error).replace(self._prefix, "")
        if isinstance(error, driver().errors.QueryCanceled):
            if work.stopped or self._is_late(nearly=True):
                return self._stop_error()
            limit = f"; the server's statement_timeout is {self._timeout} ms" if self._timeout else ""
            return OperationalError(f"the server ended a statement of the query: {message}{limit}")
        if self._connection.closed or self._connection.broken:
            return OperationalError(
                f"the connection to PostgreSQL was lost while the query ran: {message}; run it again"
            )
        if getattr(error, "sqlstate", None) is None:  # not the server, but the driver or Arrow
            finite = ", or leave it out by isfinite(…)" if "infinity'" in message else ""
            message = f"a value cannot be read here: {message}; cast it to text{finite}"
        elif "temporary tables in database" in message:
            message += (
                ": answers, and many rows, between steps are kept in them; GRANT TEMPORARY ON DATABASE … TO this user"
            )
        elif isinstance(error, driver().errors.ReadOnlySqlTransaction) and "CREATE TABLE" in message:
            message = "a read-only standby makes no temporary tables, in which answers and many rows are kept"
        return server_error(error, message)


@lru_cache(maxsize=256)
def _check_select(sql: str) -> None:
    """Raise an error unless a text is one SELECT that only reads."""
    for node in walk(parse(sql)):
        kind = node.DESCRIPTOR.name
        if kind in ("IntoClause", "LockingClause") or (kind.endswith("Stmt") and kind != "SelectStmt"):
            raise NotSupportedError("only a single SELECT is run here")


# --- the database -----------------------------------------------------------------------------------------------------

_MOST_IDLE = 4
_DERIVED = """
    SELECT schemaname, viewname, '{}'::text[], rtrim(definition, ';') FROM pg_views WHERE definition <> ''
    UNION ALL SELECT schemaname, matviewname, '{}', rtrim(definition, ';') FROM pg_matviews WHERE definition <> ''
    UNION ALL SELECT n.nspname, c.relname, ARRAY[a.attname::text],
           format('SELECT %s FROM %I.%I', pg_get_expr(d.adbin, d.adrelid), n.nspname, c.relname)
    FROM pg_attribute a JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
         JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a.attgenerated <> ''
    UNION ALL SELECT n.nspname, c.relname, array_agg(a.attname::text),
           format('SELECT %s FROM %s', string_agg(format('%I', a.attname), ', '), o.oid::regclass)
    FROM (SELECT inhrelid, inhparent FROM pg_inherits UNION SELECT inhparent, inhrelid FROM pg_inherits) i (own, other)
         JOIN pg_class c ON c.oid = own JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class o ON o.oid = other
         JOIN pg_attribute a ON a.attrelid = own AND a.attnum > 0 AND NOT a.attisdropped
         JOIN pg_attribute b ON b.attrelid = other AND b.attname = a.attname
    WHERE NOT c.relispartition AND NOT o.relispartition GROUP BY n.nspname, c.relname, o.oid"""
"""Views, generated columns, and those that tables which inherit share, as rows of one are among those of the other."""
_LISTED = """SELECT md5(string_agg(concat_ws(' ', oid, relnamespace, relname, relnatts, relacl), ',' ORDER BY oid))
FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't'"""
"""Changes with the tables and views, their numbers of columns and who may read them."""


class PostgresDatabase:
    dialect = "postgres"
    typed = True  # but for numbers without declared digits

    def __init__(self, url: str, *, schema: Schema | None = None) -> None:
        self._url, self._schema = url, schema or Schema()
        self._catalog: Catalog | None = None
        self._functions: FunctionCatalog | None = None
        self._lock = threading.RLock()  # the language that a catalog is read with asks, too
        self._idle: list[Connection] = []
        self._open = True
        weakref.finalize(self, _close_all, self._idle)
        with self._asking("read how the server is set up") as connection:
            self.name = connection.info.dbname
            setup = "SELECT pg_is_in_recovery(), setting::int FROM pg_settings WHERE name = 'statement_timeout'"
            ((self._standby, self._timeout),) = connection.execute(setup).fetchall()
            self._arrays = read_arrays(connection)

    def catalog(self) -> Catalog:
        with self._lock:
            if self._catalog is None:
                with self._asking(f"read the catalog of {self.name}") as connection:
                    connection.read_only = True
                    self._listed = connection.execute(_LISTED).fetchone()
                    reader = CatalogReader(connection)
                    catalog = reader.queries.complete(reader.read(), self._schema)
                    listed = connection.execute(_DERIVED).fetchall() if catalog.has_private else []
                derived = [((schema, table), tuple(names), sql) for schema, table, names, sql in listed]
                self._catalog = mark_derived(catalog, derived, self.language, self._schema)
            return self._catalog

    def follow(self, *, tables: bool = False, unknown: bool = False) -> None:  # noqa: ARG002
        """Have the catalog read again where a name is unknown and there are other tables or columns by now."""
        if unknown and self._catalog is not None:
            with self._lock, self._asking(f"list the tables of {self.name}") as connection:
                if connection.execute(_LISTED).fetchone() != self._listed:
                    self._catalog = None

    def language(self, catalog: Catalog) -> PostgresLanguage:
        return PostgresLanguage(catalog, self._read_functions, self._describe)

    def session(self, deadline: float | None = None) -> PostgresSession:
        elements = {type_.array_oid: type_.oid for type_ in self._arrays}
        server = {"standby": self._standby, "timeout": self._timeout}
        return PostgresSession(self._take(), elements, self._give_back, deadline, **server)

    def close(self) -> None:
        with self._lock:
            self._open = False
            _close_all(self._idle)

    def _take(self) -> Connection:
        while (connection := self._take_idle()) is not None and not is_alive(connection):
            connection.close()
        if connection is None:
            connection = connect(self._url)
            connection.autocommit = True  # the session writes BEGIN itself
            try:
                prepare(connection, self._arrays)
            except driver().Error as error:
                connection.close()
                raise SourceError(f"cannot open a session on {self.name}: {first_line(error)}") from error
        return connection

    def _describe(self, sql: str, parameters: Parameters = ()) -> tuple[str, ...]:
        """Return the names of the columns of a query's result: the server prepares the query, and runs nothing."""
        psycopg = driver()
        connection = self._take()
        try:
            query = bind(connection, sql, parameters).encode()
            for result in (connection.pgconn.prepare(b"", query), connection.pgconn.describe_prepared(b"")):
                if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                    error = psycopg.errors.error_from_result(result)
                    raise server_error(error, first_line(error))
            return tuple((result.fname(i) or b"").decode() for i in range(result.nfields))
        except psycopg.Error as error:
            raise server_error(error, first_line(error)) from error
        finally:
            self._give_back(connection)

    def _read_functions(self) -> FunctionCatalog:
        with self._lock:
            if self._functions is None:
                with self._asking(f"read the functions of {self.name}") as connection:
                    connection.read_only = True
                    self._functions = FunctionCatalog(lambda sql: connection.execute(sql).fetchall(), computes)
            return self._functions

    def _take_idle(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection for the next session: a new one has to read the server's catalog again."""
        with self._lock:
            if self._open and not connection.closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def _asking(self, purpose: str) -> Iterator[Connection]:
        """Give a connection for a few questions; what the server says against them is a SourceError."""
        connection = connect(self._url)
        try:
            yield connection
        except driver().Error as error:
            raise SourceError(f"cannot {purpose}: {first_line(error)}") from error
        finally:
            connection.close()


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()
