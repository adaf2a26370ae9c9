"""A Spark cluster as a Database, by its Connect server: the cluster filters, joins and sorts, the client calls models.

No code, no key and no question goes to the cluster; texts that a query has to read stream out of it, and answers go
back as a relation (docs/spark.md). SELECTs are looked at before they are sent. What a step makes for the next is
Parquet in the session's schema (`folder.py`), or, where the address names no folder, rows that the server holds; both
are read again as they were written when an executor is lost. Every piece of work has a tag, by which it is
interrupted. Tables are watched: one that changed between two steps is an error.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pyarrow as pa

from almanaq.engines.common import ListedFunctions, RelationQueries
from almanaq.engines.interruption import InterruptibleSession, Lock, Work, take_batches
from almanaq.engines.spark.driver import Remote, SparkURL, is_fault, is_lost, read_spark_url
from almanaq.engines.spark.folder import PREFIX, Watch, create_schema, drop_schema, quote_name, session_name, sweep
from almanaq.engines.spark.language import ROW, Allowed, Place, SparkLanguage, list_functions, reads_numbered
from almanaq.errors import (
    DatabaseError,
    OperationalError,
    ProgrammingError,
    SourceError,
    UnsupportedError,
    engine_error,
    first_line,
)
from almanaq.suql.catalog.reading import declared_column, relation_names
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import Schema
from almanaq.suql.language import Parameters

# --- types ------------------------------------------------------------------------------------------------------------

_NAMES = {
    "byte": "smallint",
    "short": "smallint",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
}


def pg_type(type_: Any) -> tuple[str, bool]:
    """Return the PostgreSQL name of a type, or of an array's elements, and whether it is an array."""
    kind = type_.typeName()
    if kind == "array":
        inner, nested = pg_type(type_.elementType)
        return ("jsonb", False) if nested or inner == "jsonb" else (inner, True)
    if kind == "decimal":
        return f"numeric({type_.precision},{type_.scale})", False
    if kind in ("varchar", "char"):
        return "text", False
    if kind in ("struct", "map", "variant"):  # these, and arrays of arrays, are taken for JSON
        return "jsonb", False
    if "interval" in kind:
        return "interval", False
    return _NAMES.get(kind, kind), False


def to_spark(table: pa.Table) -> pa.Table:
    """Return a table with types that Spark has: of others, text."""
    columns = []
    for column in table.columns:
        target = _spark_type(column.type)
        try:
            columns.append(column.cast(target))
        except pa.ArrowNotImplementedError:
            texts = [None if value is None else str(value) for value in column.to_pylist()]
            columns.append(pa.chunked_array([pa.array(texts, target)]))
    return pa.Table.from_arrays(columns, names=table.column_names)


def _spark_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _spark_type(type_.value_type)
    if pa.types.is_null(type_) or pa.types.is_large_string(type_) or pa.types.is_time(type_):
        return pa.string()
    if pa.types.is_unsigned_integer(type_):
        return pa.int64() if type_.bit_width < 64 else pa.decimal128(20, 0)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz="UTC" if type_.tz else None)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_spark_type(type_.value_type))
    if pa.types.is_decimal256(type_):
        return pa.decimal128(38, min(type_.scale, 38))
    if pa.types.is_date64(type_):
        return pa.date32()
    return type_


# --- the catalog ------------------------------------------------------------------------------------------------------

_AT_ONCE = 8
_SYSTEM = ("information_schema", "sys", "global_temp")


def read_rows(remote: Remote, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement of our own."""
    found = remote.table(sql, "almanaq-catalog")
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def read_catalog(remote: Remote, url: SparkURL, queries: RelationQueries) -> Catalog:
    """Return every table and view that an address names, with kinds inferred where no comment declares any."""
    catalog, current = queries.rows("SELECT current_catalog(), current_schema()")[0]
    catalog = url.catalog or catalog
    listed = [schema for (schema, *_) in queries.rows(f"SHOW SCHEMAS IN {quote_name(catalog)}")]
    others = [name for name in listed if name.lower() not in _SYSTEM and not name.startswith(PREFIX)]
    places = [
        (schema, table)
        for schema in url.schemas or others
        for _, table, temporary in queries.rows(f"SHOW TABLES IN {quote_name(catalog, schema)}")
        if not temporary
    ]
    names = relation_names(places, (*url.schemas, current))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        relations = list(pool.map(lambda at: _read_relation(remote, names[at], (catalog, *at)), places))
        declared = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
        relations = list(pool.map(lambda each: queries.add_samples(each, infer=not declared), relations))
    return Catalog(tuple(sorted(relations, key=lambda relation: relation.name)))


def _read_relation(remote: Remote, name: str, location: tuple[str, ...]) -> Relation:
    columns = []
    for field in remote.schema(quote_name(*location)).fields:
        type_, array = pg_type(field.dataType)
        comment = str((field.metadata or {}).get("comment", ""))
        columns.append(declared_column(field.name, type_, array=array, values=(), comment=comment))
    described = read_rows(remote, f"DESCRIBE TABLE EXTENDED {quote_name(*location)}")
    properties = {key: str(value) for key, value, *_ in described}
    counted = re.search(r"(\d+) rows", properties.get("Statistics", ""))
    comment, rows = properties.get("Comment", ""), None if counted is None else int(counted[1])
    return Relation(name, location, tuple(columns), description=comment, rows=rows)


# --- one query's session ----------------------------------------------------------------------------------------------

_HELD_BYTES = 4_000_000
"""Rows that the server holds by themselves; more are written to the folder."""
_MOST_HELD_BYTES = 64_000_000
"""The most where there is no folder."""
_CHUNK_BYTES = 16_000_000
_MOST_ORDERED = 100_000
"""Rows of a table in several files that are read in the order in which they were numbered; of more, files come as they
lie. Elsewhere that order is the table's."""


class SparkQuerySession(InterruptibleSession):
    """A Session on a Spark Connect server; `folder` takes tables between steps, "" where the address names none."""

    insist_seconds = 0.2  # a request is a message to the server, which may have much to do

    def __init__(self, remote: Remote, allowed: Allowed, folder: str, deadline: float | None = None) -> None:
        super().__init__()
        self._remote, self._allowed, self._folder = remote, allowed, folder
        self._schema = ""
        self._watch = Watch(remote)
        self._views: list[str] = []
        self._scattered: set[str] = set()
        self._making = threading.Lock()
        self._end_after(deadline, timed=True)

    def fetch(
        self, sql: str, most_bytes: int | None = None, parameters: Parameters = (), most_rows: int | None = None
    ) -> pa.Table:
        places = self._allowed.check(sql, self._prefix)
        with self._statement() as work:
            self._watch.before(places, work.tag)
            batches, is_cut = take_batches(self._remote.batches(sql, work.tag, parameters), most_bytes, most_rows)
            if is_cut:
                self._remote.interrupt(work.tag, under_way=True)
            if not batches:
                return self._remote.table(sql, work.tag, parameters)
            self._watch.after(places, work.tag)
            return pa.Table.from_batches(batches)

    def create(self, name: str, sql: str) -> int:
        places = self._allowed.check(sql, self._prefix)
        self._check_is_new(name)
        if not self._folder:
            table = self.fetch(sql, _MOST_HELD_BYTES)
            self.store(name, table)
            return int(table.num_rows)
        with self._statement() as work:
            self._watch.before(places, work.tag)
            place = quote_name(self._own_schema(work), self._prefix + name)
            self._write(place, sql, work)
            self._watch.after(places, work.tag)
            self._make_visible(name, place, work)
            file = "_metadata.file_path"
            asked = f"SELECT count(*) AS n, min({file}) < max({file}) AS several FROM {place}"
            number, several = (column[0].as_py() for column in self._remote.table(asked, work.tag).columns)
            if several and number <= _MOST_ORDERED:
                self._scattered.add(self._prefix + name)
            return int(number)

    def store(self, name: str, table: pa.Table) -> None:
        """Make the temporary table `name` from Arrow data: held by the server where it is small, else Parquet."""
        self._check_is_new(name)
        written = to_spark(table)
        if written.nbytes > _MOST_HELD_BYTES and not self._folder:
            raise UnsupportedError(
                f"{written.nbytes / 1e6:.0f} MB would have to be kept between two steps: name a folder that the "
                "cluster shares in the address (sc://host:15002/;folder=…)"
            )
        with self._statement() as work:
            if written.nbytes <= _HELD_BYTES or not self._folder:
                self._remote.view(self._prefix + name, written, work.tag)
                self._views.append(name)
                return
            place = quote_name(self._own_schema(work), self._prefix + name)
            rows = max(1, int(written.num_rows * _CHUNK_BYTES / written.nbytes))
            for start in range(0, written.num_rows, rows):
                self._remote.append(place, written.slice(start, rows), work.tag)
            self._make_visible(name, place, work)

    def locate(self, name: str) -> tuple[str, ...]:
        return (self._prefix + name,)

    def _finish(self) -> None:
        with suppress(Exception):  # the server is gone, and what it held; the folder is swept by the next session
            for name in self._views:
                self._remote.drop_view(self._prefix + name)
            if self._schema:
                drop_schema(self._remote, self._schema, "almanaq-end")

    # --- tables of the session

    def _own_schema(self, work: Work) -> str:
        with self._making:
            if not self._schema:
                name = session_name()
                create_schema(self._remote, name, self._folder, work.tag)
                self._schema = name
            return self._schema

    def _write(self, place: str, sql: str, work: Work) -> None:
        """Write the rows of a SELECT; a column that is nothing but NULL has no type there, and is text."""
        try:
            self._remote.command(f"CREATE TABLE {place} USING parquet AS {sql}", work.tag)
        except Exception as error:
            if "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE" not in str(error):
                raise
            columns = [
                f"CAST({quote_name(name)} AS STRING) AS {quote_name(name)}" if void else quote_name(name)
                for name, void in self._remote.columns(sql)
            ]
            typed = f"SELECT {', '.join(columns)} FROM ({sql}) AS untyped"
            self._remote.command(f"CREATE TABLE {place} USING parquet AS {typed}", work.tag)

    def _make_visible(self, name: str, place: str, work: Work) -> None:
        """Let SQL name a table of the session's schema as it names what the server holds."""
        view = quote_name(self._prefix + name)
        self._remote.command(f"CREATE TEMPORARY VIEW {view} AS SELECT * FROM {place}", work.tag)
        self._views.append(name)

    def _check_is_new(self, name: str) -> None:
        if name in self._views:
            raise ProgrammingError(f'there is a temporary table "{name}" already')

    # --- streams, deadlines, errors

    def _open(self, work: Work, sql: str, parameters: Parameters) -> Generator[pa.RecordBatch]:
        places = self._allowed.check(sql, self._prefix)
        if self._scattered and reads_numbered(sql, self._scattered):
            sql = f"{sql} ORDER BY {quote_name(ROW)}"
        self._watch.before(places, work.tag)
        found = self._remote.batches(sql, work.tag, parameters)
        return self._read_on(work, found, next(found, None), places)

    def _read_on(
        self, work: Work, found: Iterator[pa.RecordBatch], batch: pa.RecordBatch | None, places: frozenset[Place]
    ) -> Generator[pa.RecordBatch]:
        done = False
        try:
            while batch is not None:
                for start in range(0, batch.num_rows, work.batch_rows):
                    yield batch.slice(start, work.batch_rows)
                batch = next(found, None)
            done = True
            self._watch.after(places, work.tag)
        finally:
            if not done:
                with suppress(Exception):  # the server is gone
                    self._remote.interrupt(work.tag, under_way=batch is not None)
                    found.close()  # type: ignore[attr-defined]

    def _cancel_stopped(self) -> bool:
        """Interrupt what is to stop, read or not: a request may reach the server before the work does."""
        with self._state:
            stopped = [work for work in self._active if work.stopped]
        for work in stopped:
            self._cancel(work)
        return bool(stopped)

    def _cancel(self, work: Work) -> None:
        with suppress(Exception):  # the server is gone, and the work with it
            self._remote.interrupt(work.tag)

    def _locks(self) -> list[Lock]:
        return [self._making]

    def _translate_error(self, error: Exception, work: Work) -> DatabaseError | None:
        if not is_fault(error):
            return None
        if self._is_late() or work.stopped:
            return self._stop_error()
        message = first_line(error).replace(self._prefix, "")
        if is_lost(error):
            return OperationalError(
                f"the connection to the Spark cluster was lost while the query ran: {message[:300]}"
            )
        if "FILE_NOT_EXIST" in message or ("does not exist" in message and "file" in message.lower()):
            return OperationalError(f"a table changed while the query ran: {message[:300]}; run it again")
        if isinstance(error, KeyError):
            return DatabaseError("a value has a type that cannot be read here: cast it to text")
        return engine_error(message[:600], type(error))


# --- the database -----------------------------------------------------------------------------------------------------


class SparkDatabase:
    dialect = "spark"
    typed = True

    def __init__(self, url: str, *, schema: Schema | None = None) -> None:
        self._url, self._schema = read_spark_url(url), schema or Schema()
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._functions: ListedFunctions | None = None
        self.name = self._url.schemas[0] if self._url.schemas else "spark"
        self._remote = Remote(self._url)
        if place := [part for part in (self._url.catalog, *self._url.schemas[:1]) if part]:
            with self._asking("use the schema"):  # so that names mean there what they mean here, as far as it can know
                self._remote.command(f"USE {quote_name(*place)}", "almanaq-use")
        if self._url.folder:
            with self._asking("look through the folder"):
                sweep(self._remote, self._url.folder, "almanaq-sweep")

    def catalog(self) -> Catalog:
        with self._lock:
            if self._catalog is None:
                queries = RelationQueries(partial(read_rows, self._remote), self.dialect, by_key=True)
                with self._asking("read the catalog"):
                    self._catalog = queries.complete(read_catalog(self._remote, self._url, queries), self._schema)
            return self._catalog

    def session(self, deadline: float | None = None) -> SparkQuerySession:
        locations = [tuple(map(str.lower, relation.location)) for relation in self.catalog().relations]
        places = frozenset(location[start:] for location in locations for start in range(3))
        return SparkQuerySession(self._remote, Allowed(places, self.functions()), self._url.folder, deadline)

    def language(self, catalog: Catalog) -> SparkLanguage:
        return SparkLanguage(
            self.dialect, catalog, self.functions(), self._describe, lambda text: self._describe(text, ())
        )

    def functions(self) -> ListedFunctions:
        with self._lock:
            if self._functions is None:
                with self._asking("read the functions"):
                    self._functions = list_functions(*self._remote.functions())
            return self._functions

    def _describe(self, sql: str, parameters: Parameters) -> tuple[str, ...]:
        try:
            return self._remote.names(sql, parameters)
        except Exception as error:
            if not is_fault(error):
                raise
            raise engine_error(first_line(error)[:600], type(error)) from error

    def close(self) -> None:
        self._remote.close()

    @contextmanager
    def _asking(self, purpose: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not is_fault(error) or isinstance(error, SourceError):
                raise
            message = self._url.hide(first_line(error))
            raise SourceError(f"cannot {purpose} of {self._url.shown}: {message[:300]}") from None
