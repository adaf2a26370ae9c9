"""One query's session on DuckDB: streams, temporary tables, deadline, interruption; instances, and errors as ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import duckdb
import pyarrow as pa

from almanaq.engines.duckdb.values import Export, as_stored, export
from almanaq.engines.interruption import InterruptibleSession, Work, take_batches
from almanaq.errors import (
    DatabaseError,
    NotSupportedError,
    OperationalError,
    QueryTypeError,
    UnknownNameError,
    engine_error,
    first_line,
)
from almanaq.models.private_files import private_temporary_folder
from almanaq.text.sql_literals import quote, string_literal

# --- instances of our own ---------------------------------------------------------------------------------------------

MOST_SPILLED = "16GB"
"""What queries of one instance may hold on the disk at a time; a query that needs more fails."""


def open_instance() -> duckdb.DuckDBPyConnection:
    """Return a connection to a new instance in memory, whose spilled rows others cannot see."""
    connection = duckdb.connect()
    # Made where something is spilled.
    folder = str(private_temporary_folder() / str(os.getpid())).replace("'", "''")
    if most := _most_memory():
        connection.execute(f"SET GLOBAL memory_limit = '{most}B'")
    connection.execute(f"SET GLOBAL temp_directory = '{folder}'; SET GLOBAL max_temp_directory_size = '{MOST_SPILLED}'")
    # Without these threads, what a large query held stays with the process until the next large query.
    connection.execute("SET GLOBAL allocator_background_threads = true")
    return connection


def _most_memory() -> int:
    """Return the bytes that an instance may hold, half of what this process may; 0 where that has no bound.

    DuckDB's own bound is four fifths of the machine's memory: the process's comes before it, and then any asker fails.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        return 0 if soft == resource.RLIM_INFINITY else soft // 2
    return 0


# --- errors -----------------------------------------------------------------------------------------------------------

_OFFERED = re.compile(r"^(?:Candidate bindings?: |Did you mean )(.*)$", re.MULTILINE)
_NAME = re.compile(r'"((?:[^"]|"")+)"')
_NO_NUMBER = re.compile(r"Could not convert string '.*' to (\w+) when casting from source column (\S+)")
_TYPE_NAMES = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "INT128": "HUGEINT"}
_TYPE_NAMES |= {f"U{name}": f"U{written}" for name, written in _TYPE_NAMES.items()}
"""Types as errors of DuckDB call them, and as its SQL does, where INT8 is another name of BIGINT."""
_UNKNOWN = re.compile(r'Referenced (?:column|table) "|does not have a column named|(?:Table|Function) with name')


def message_of(error: BaseException) -> str:
    """Return the first line of an error of DuckDB, with the nearest names that it knows.

    >>> said = 'Binder Error: Referenced column "nmae" not found!\\nCandidate bindings: "name"'
    >>> message_of(duckdb.BinderException(said))
    'Referenced column "nmae" not found; did you mean \\'name\\'?'
    """
    first = first_line(error).removeprefix("Binder Error: ")
    offered = _OFFERED.search(str(error))
    names = [name.split(".")[-1] for name in _NAME.findall(offered[1])] if offered is not None else []
    nearest = " or ".join(map(repr, dict.fromkeys(names[:3])))
    return f"{first.removesuffix('!')}; did you mean {nearest}?" if names else first


def advise(message: str) -> str:
    """Return what DuckDB says of a value, with what to do about a column of text that is compared with numbers.

    >>> advise("Conversion Error: Could not convert string 'x2' to INT32 when casting from source column id")[-70:]
    'compare id::VARCHAR with text, or try_cast(id AS INTEGER) with numbers'
    """
    found = _NO_NUMBER.search(message)
    if found is None:
        return message
    kind, name = _TYPE_NAMES.get(found[1], found[1]), found[2]
    return f"{message}: compare {name}::VARCHAR with text, or try_cast({name} AS {kind}) with numbers"


def binding_error(error: duckdb.Error) -> DatabaseError:
    message = message_of(error)
    if _UNKNOWN.search(message):
        return UnknownNameError(message)
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return QueryTypeError(message)
    return engine_error(message, type(error))


# --- the session ------------------------------------------------------------------------------------------------------

Parameters = Sequence[object] | Mapping[str, object]
_FAULTS = (duckdb.Error, pa.ArrowException, OSError, RuntimeError, MemoryError)
_PATTERN = re.compile(r"[*?\[]")
_BATCH_ROWS = 2048
"""Rows of a result that are brought at once."""


class DuckDBSession(InterruptibleSession):
    """A Session on DuckDB. Each stream has a connection of its own: DuckDB allows one open result per connection.

    Temporary tables are ordinary tables of the catalog `work`, in memory, under names that no other session has, since
    DuckDB's own temporary tables are seen by one connection only.
    """

    def __init__(
        self, connect: Callable[[], duckdb.DuckDBPyConnection], work: str, deadline: float | None, *, owned: bool = True
    ) -> None:
        self._connect, self._work = connect, work
        self._tables: list[str] = []
        self._owned, self._ordered = owned, False
        super().__init__()
        self._end_after(deadline, timed=True)

    def fetch(
        self, sql: str, most_bytes: int | None = None, parameters: Parameters = (), most_rows: int | None = None
    ) -> pa.Table:
        with self._statement() as work:
            rows = _run(work.cursor, sql, parameters)
            if most_bytes is None and most_rows is None:
                return rows.describe(rows.relation.to_arrow_table())
            with rows.relation.to_arrow_reader(_BATCH_ROWS) as reader:
                batches, _ = take_batches(reader, most_bytes, most_rows)
                return rows.describe(pa.Table.from_batches(batches, reader.schema))

    def create(self, name: str, sql: str) -> int:
        with self._statement() as work:
            parse_select(sql)
            return self._make(work.cursor, name, sql)

    def store(self, name: str, table: pa.Table) -> None:
        with self._statement() as work:
            work.cursor.register("stored", table)
            try:
                self._make(work.cursor, name, f"SELECT {', '.join(map(as_stored, table.schema))} FROM stored")
            finally:
                work.cursor.unregister("stored")

    def locate(self, name: str) -> tuple[str, ...]:
        return (self._work, "main", self._prefix + name)

    def order_as_planned(self) -> None:
        self._ordered = not self._owned

    def _open(self, work: Work, sql: str, parameters: Parameters) -> Generator[pa.RecordBatch]:
        rows = _run(work.cursor, sql, parameters)
        return _read_batches(rows, rows.relation.to_arrow_reader(work.batch_rows))

    def _make(self, cursor: duckdb.DuckDBPyConnection, name: str, sql: str) -> int:
        row = cursor.execute(f"CREATE TABLE {quote(*self.locate(name))} AS {sql}\n").fetchone()
        with self._state:
            self._tables.append(name)
        return int(row[0]) if row else 0

    def _new_work(self) -> Work:
        cursor = self._connect()
        if self._ordered:
            cursor.execute("SET SESSION default_null_order = 'nulls_last'; SET SESSION default_order = 'asc'")
        return Work(cursor=cursor)

    def _end(self, work: Work) -> None:
        with work.lock:
            super()._end(work)
            work.cursor.close()

    def _finish(self) -> None:
        for work in list(self._active):
            self._end(work)
        tables, self._tables = self._tables, []
        if tables:
            with self._connect() as cursor:
                cursor.execute("; ".join(f"DROP TABLE IF EXISTS {quote(*self.locate(name))}" for name in tables))

    def _cancel(self, work: Work) -> None:
        work.cursor.interrupt()

    def _translate_error(self, error: Exception, work: Work) -> DatabaseError | None:  # noqa: ARG002
        if not isinstance(error, _FAULTS):
            return None
        if isinstance(error, duckdb.InterruptException) or "INTERRUPT Error" in str(error):
            return self._stop_error()
        if "Out of Memory Error" in str(error) or isinstance(error, MemoryError):
            return OperationalError(
                f"the query needs more memory than it may have: narrow it, or group it ({first_line(error)})"
            )
        if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
            return binding_error(type(error)(re.sub(rf"\b{self._prefix}", "", str(error))))
        message = re.sub(rf"\b{self._prefix}", "", first_line(error))
        if message.startswith("INTERNAL Error"):
            message = (
                "DuckDB stumbles over this query, by a fault of its own: write a subquery in IN or EXISTS as a join, "
                f"or run it on PostgreSQL ({message})"
            )
        return engine_error(advise(message), _kind(error))


def _run(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters) -> Export:
    select = parse_select(sql)
    return export(cursor.sql(select, params=parameters) if parameters else cursor.sql(select))


def _read_batches(rows: Export, reader: pa.RecordBatchReader) -> Generator[pa.RecordBatch]:
    with reader:
        yield from map(rows.describe, reader)


def _kind(error: Exception) -> type[BaseException]:
    """Return DuckDB's class of an error; from a stream of Arrow it comes as another, with only its name in the text."""
    named = str(error).partition(" Error:")[0].replace(" ", "") + "Exception"
    if named == "InvalidInputException":  # a value, as in a division by zero, which DuckDB puts beside syntax errors
        return duckdb.DataError
    kind = getattr(duckdb, named, None)
    return kind if isinstance(kind, type) and issubclass(kind, duckdb.Error) else type(error)


def file_literal(path: object) -> str:
    """Return a file's path as a string of SQL that names this file only, as no pattern of files."""
    return string_literal(_PATTERN.sub(r"[\g<0>]", str(path)))


@lru_cache(maxsize=64)
def parse_select(sql: str) -> duckdb.Statement:
    """Return the one SELECT of a text, which DuckDB need not parse again; raises NotSupportedError for another."""
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type.name != "SELECT":
        kinds = ", ".join(s.type.name for s in statements) or "nothing"
        raise NotSupportedError(f"only a single SELECT is run here, not {kinds}")
    return statements[0]
