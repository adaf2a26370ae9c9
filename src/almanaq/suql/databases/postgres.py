"""PostgreSQL as a Database.

It is spoken to directly and not through ibis, which collects or infers schemas by making views, and so needs to write.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from almanaq.engines.postgres.functions import FunctionCatalog
from almanaq.engines.postgres.language import PostgresLanguage
from almanaq.engines.postgres.messages import server_error
from almanaq.engines.postgres.statements import bind, computes
from almanaq.errors import SourceError, first_line
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.schema_file import Schema, apply_schema, check_keys
from almanaq.suql.databases.postgres_catalog import CatalogReader
from almanaq.suql.databases.postgres_driver import connect, driver, is_alive, prepare, read_arrays
from almanaq.suql.databases.postgres_session import PostgresSession
from almanaq.suql.language import Parameters

if TYPE_CHECKING:
    from almanaq.suql.databases.postgres_driver import Connection

_MOST_IDLE = 4


class PostgresDatabase:
    """A Database on a PostgreSQL server; sessions read one snapshot each and write nothing but temporary tables."""

    dialect = "postgres"
    typed = True  # but for numbers without declared digits

    def __init__(self, url: str, *, schema: Schema | None = None) -> None:
        self._url, self._schema = url, schema or Schema()
        self._catalog: Catalog | None = None
        self._functions: FunctionCatalog | None = None
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._open = True
        weakref.finalize(self, _close_all, self._idle)
        with self._asking("read how the server is set up") as connection:
            self.name = connection.info.dbname
            self._standby = connection.execute("SELECT pg_is_in_recovery()").fetchall() == [(True,)]
            self._arrays = read_arrays(connection)
            started = time.monotonic()
            connection.execute("")
            self._round_trip = time.monotonic() - started

    def catalog(self) -> Catalog:
        """Return what the user may read, read once; raises SourceError when the schema file does not fit it."""
        with self._lock:
            if self._catalog is None:
                with self._asking(f"read the catalog of {self.name}") as connection:
                    connection.read_only = True
                    self._catalog = self._read(CatalogReader(connection))
            return self._catalog

    def language(self, catalog: Catalog) -> PostgresLanguage:
        """Return PostgreSQL's SQL over the relations of a catalog: this one's, or what is left of it."""
        return PostgresLanguage(catalog, self._read_functions, self._describe)

    def session(self, deadline: float | None = None) -> PostgresSession:
        """Open a session whose work is interrupted `deadline` seconds from now (None: never)."""
        elements = {array.oid: array.element for array in self._arrays}
        return PostgresSession(
            self._take(), elements, self._give_back, deadline, standby=self._standby, round_trip=self._round_trip
        )

    def close(self) -> None:
        """Close the connections that lie idle."""
        with self._lock:
            self._open = False
            _close_all(self._idle)

    def _take(self) -> Connection:
        """Return a connection that is not in a transaction."""
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
        """Return what the database's functions are, read once."""
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

    def _read(self, reader: CatalogReader) -> Catalog:
        catalog = apply_schema(reader.read(), self._schema)
        check_keys(catalog, self._schema, reader.key_holds)
        return replace(catalog, relations=tuple(reader.with_enum_values(relation) for relation in catalog.relations))


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()
