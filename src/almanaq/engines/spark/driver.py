"""The one module that imports pyspark: a Spark Connect server as few calls, its errors named as ours.

pyspark keeps the tags of a thread's operations; each piece of work gets one of its own, by which it is interrupted.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from almanaq.engines.common import hide
from almanaq.engines.interruption import track_helper
from almanaq.errors import MissingExtraError, SourceError, UsageError, first_line, suggest
from almanaq.suql.language import Parameters

# --- the address: `sc://host:15002/;token=…;catalog=…;schema=…;folder=…` ----------------------------------------------

_OWN = ("catalog", "schema", "folder")
_SPARK = ("token", "user_id", "user_agent", "use_ssl", "session_id", "x-")
_FORM = re.compile(r"(?:spark\+)?sc://(?P<host>[^/;]+)/?(?P<parameters>(?:;[^;]*)*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SparkURL:
    """A server's address, and what of it is looked at.

    Attributes:
        server: the address as pyspark takes it, which may hold a token.
        shown: the address as messages show it.
        catalog: the catalog to read; "" takes the server's current one.
        schemas: the schemas to read; none takes all.
        folder: a folder that the cluster's processes share, for what lies between two steps; "" where there is none.
    """

    server: str
    shown: str
    catalog: str = ""
    schemas: tuple[str, ...] = ()
    folder: str = ""
    token: str = ""

    def hide(self, message: str) -> str:
        return hide(message, self.token)


def read_spark_url(url: str) -> SparkURL:
    found = _FORM.fullmatch(url)
    if found is None:
        raise UsageError("a Spark Connect address has the form sc://host:15002/;name=value;…")
    given: dict[str, str] = {}
    for written in filter(None, found["parameters"].split(";")):
        name, _, value = written.partition("=")
        if name not in (*_OWN, *_SPARK) and not name.startswith("x-"):
            raise UsageError(f"a Spark Connect address has no parameter {name!r}{suggest(name, (*_OWN, *_SPARK[:-1]))}")
        given[name] = value
    rest = "".join(f";{name}={value}" for name, value in given.items() if name not in _OWN)
    host = found["host"]
    return SparkURL(
        server=f"sc://{host}/{rest}",
        shown=f"sc://{host}",
        catalog=given.get("catalog", ""),
        schemas=tuple(filter(None, given.get("schema", "").split(","))),
        folder=given.get("folder", ""),
        token=given.get("token", ""),
    )


# --- the server -------------------------------------------------------------------------------------------------------

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.session.localRelationCacheThreshold": "1048576",
}
"""How a server has to be set up for a query to mean the same on each. What one task reads is one task's result, which
an executor holds whole: the parts of files are small."""
_RETRIES, _MOST_BACKOFF = 6, 4000
_LATE_JOB_SECONDS = (0.5, 1.5, 4.0)
"""Pauses after an interruption: the server may be about to begin a job that it no longer knows to stop."""


class Remote:
    def __init__(self, url: SparkURL) -> None:
        self.session = _connect(url)
        self.client = self.session.client
        self._interrupted: set[str] = set()
        self._closed = threading.Event()

    def batches(self, sql: str, tag: str, parameters: Parameters = ()) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a SELECT as the server sends them; the first item has the columns and may have no rows."""
        with self._tagging(tag):
            found = self.client.to_table_as_iterator(self._plan(sql, parameters), {})
            first = next(found, None)
        while first is not None:
            if isinstance(first, pa.Table):
                yield from map(with_offsets, first.to_batches())
            with self._tagging(tag):
                first = next(found, None)

    def table(self, sql: str, tag: str, parameters: Parameters = ()) -> pa.Table:
        with self._tagging(tag):
            found, _schema, *_ = self.client.to_table(self._plan(sql, parameters), {})
        return pa.Table.from_batches(map(with_offsets, found.to_batches()), found.schema)

    def names(self, sql: str, parameters: Parameters = ()) -> tuple[str, ...]:
        return tuple(self.client.schema(self._plan(sql, parameters)).names)

    def functions(self) -> tuple[list[str], list[str]]:
        system, user = (self.table(f"SHOW {kind} FUNCTIONS", "almanaq-functions") for kind in ("SYSTEM", "USER"))
        return system.column(0).to_pylist(), user.column(0).to_pylist()

    def _plan(self, sql: str, parameters: Parameters) -> Any:
        from pyspark.sql.connect.functions import lit
        from pyspark.sql.connect.plan import SQL

        named = parameters if isinstance(parameters, Mapping) else {str(i + 1): v for i, v in enumerate(parameters)}
        bound = {f"_{name}" if name.isdigit() else name: lit(value) for name, value in named.items()}
        return SQL(sql, named_args=bound).to_proto(self.client)

    def command(self, sql: str, tag: str) -> None:
        with self._tagging(tag):
            self.session.sql(sql)

    def view(self, name: str, table: pa.Table, tag: str) -> None:
        with self._tagging(tag):
            self._frame(table).createOrReplaceTempView(name)

    def append(self, place: str, table: pa.Table, tag: str) -> None:
        with self._tagging(tag):
            self._frame(table).write.mode("append").format("parquet").saveAsTable(place)

    def _frame(self, table: pa.Table) -> Any:
        if table.num_rows:
            return self.session.createDataFrame(table)
        from pyspark.sql.pandas.types import from_arrow_schema

        return self.session.createDataFrame([], from_arrow_schema(table.schema))

    def drop_view(self, name: str) -> None:
        self.session.catalog.dropTempView(name)

    def schema(self, place: str) -> Any:
        return self.session.table(place).schema

    def columns(self, sql: str) -> list[tuple[str, bool]]:
        """Return the columns of a SELECT, and whether each is nothing but NULL."""
        fields = self.session.sql(sql).schema.fields
        return [(field.name, field.dataType.typeName() == "void") for field in fields]

    def files(self, place: str) -> list[str]:
        """Return the files that a table is read from; none of a table that is not read from files."""
        return list(self.session.table(place).inputFiles())

    def list_files(self, paths: list[str], tag: str) -> list[tuple[str, int, int]]:
        """Return path, time of change and length of files, which are not opened."""
        with self._tagging(tag):
            found = self.session.read.format("binaryFile").load(paths)
            table = found.select("path", "modificationTime", "length").toArrow()
        changed = table.column("modificationTime").cast(pa.int64()).to_pylist()
        return sorted(zip(table.column("path").to_pylist(), changed, table.column("length").to_pylist(), strict=True))

    def refresh(self, place: str) -> None:
        self.session.catalog.refreshTable(place)

    def interrupt(self, tag: str, *, under_way: bool = False) -> None:
        """Stop what runs under a tag, and what it is about to begin; `under_way`: rows have come, all has begun."""
        stopped = self.client.interrupt_tag(tag)
        if stopped and not under_way:
            track_helper(threading.Thread(target=self._end_late_jobs, args=(frozenset(stopped),))).start()

    def _end_late_jobs(self, operations: frozenset[str]) -> None:
        self._interrupted.update(operations)
        for pause in _LATE_JOB_SECONDS:
            if self._closed.wait(pause):
                return
            self._end_jobs(operations)
        self._interrupted.difference_update(operations)

    def _end_jobs(self, operations: frozenset[str]) -> None:
        """Let the server end the jobs of operations that were interrupted.

        A stage that the planner starts in a thread of its own may begin after the interruption, and would run to its
        end for nobody. An operation that fails ends all jobs that carry its name: one of the same name is made to fail.
        """
        from pyspark.sql.connect.plan import SQL

        for operation in operations:
            with suppress(Exception):  # it fails, or the server is gone
                request = self.client._execute_plan_request_with_metadata()
                request.operation_id = operation
                request.plan.CopyFrom(SQL("SELECT nothing").to_proto(self.client))
                self.client._execute(request)

    def close(self) -> None:
        self._closed.set()
        self._end_jobs(frozenset(self._interrupted))
        with suppress(Exception):  # the server is gone, and the session with it
            self.session.stop()

    @contextmanager
    def _tagging(self, tag: str) -> Iterator[None]:
        self.client.add_tag(tag)
        try:
            yield
        finally:
            self.client.remove_tag(tag)


def is_fault(error: BaseException) -> bool:
    import grpc
    from pyspark.errors import PySparkException

    unread = (pa.ArrowException, ValueError, OverflowError, KeyError)  # a type that the client has no name for
    return isinstance(error, (PySparkException, grpc.RpcError, *unread))


def is_lost(error: BaseException) -> bool:
    """Tell whether an error says that the server is gone, or has forgotten the session."""
    message = str(error)
    names = ("UNAVAILABLE", "INVALID_HANDLE", "SESSION_CLOSED", "SESSION_CHANGED", "NO_ACTIVE_SESSION", "RetriesExceed")
    return any(name in message or name in type(error).__name__ for name in names)


def session_class() -> Any:
    """Return pyspark's class of sessions, without what it does when one is collected.

    That closes the threads that all sessions share and waits for them, in any thread and under any lock the
    collector finds it: the process then hangs for good. Ours are closed by `Remote.close`.
    """
    from pyspark.sql.connect.session import SparkSession

    class Session(SparkSession):  # type: ignore[misc]
        def __del__(self) -> None:
            """Leave the connection to its own collection."""

    return Session


def _connect(url: SparkURL) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql.connect.client.retries import DefaultPolicy
    except ImportError as error:
        raise MissingExtraError("pyspark-client", "spark", "a source on a Spark cluster") from error
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # its errors are raised as ours
    try:
        session = session_class()(connection=url.server)
        session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_MOST_BACKOFF)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # one of them is to become the only way
            for name, value in SETTINGS.items():
                session.conf.set(name, value)
        return session
    except Exception as error:
        if not is_fault(error):
            raise
        raise SourceError(f"cannot connect to Spark at {url.shown}: {url.hide(first_line(error))}") from None


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in which columns and lists without a value have offsets.

    Spark sends none for them, and what looks for the first then reads memory that nobody owns: the process may end.
    """
    columns = batch.columns
    for i, column in enumerate(columns):
        if not len(column) or (pa.types.is_list(column.type) and not len(column.values)):
            columns[i] = pa.array(column.to_pylist(), column.type)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
