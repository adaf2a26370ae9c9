"""One query's dealings with an engine that ibis reaches: statements one after another on one connection.

Where a connection serves one statement at a time (`EngineProfile.paged`), the rows of a stream are first copied to a
temporary table, numbered, and read from there page by page: nothing is collected in memory, and other statements may
run between two pages. Elsewhere a stream is the driver's cursor. Where there are no temporary tables, the few rows
that one step hands to the next are written into the statements as VALUES.
"""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import count, islice
from typing import Any

import pyarrow as pa
from sqlglot import exp, parse_one

from almanaq.engines.ibis.profiles import EngineProfile
from almanaq.engines.interruption import InterruptibleSession, Work
from almanaq.engines.postgres.driver import decimal_type, size_of, sql_type
from almanaq.engines.rendering import write_texts
from almanaq.errors import DatabaseError, ProgrammingError, UnsupportedError, engine_error
from almanaq.suql.bind import fill_parameters
from almanaq.suql.catalog.reading import written_name
from almanaq.suql.language import Parameters
from almanaq.suql.tree_language import check_reads, read_tree, write_tree

# --- rows as drivers give them → Arrow, typed by their values ---------------------------------------------------------

_READ_AT_ONCE = 64
"""Rows that are read between two looks at how much they take: each may be as wide as it likes."""
_KNOWN = frozenset([bool, float, str, bytes, datetime.date, datetime.time, datetime.timedelta])
"""Types of values of which Arrow knows its own."""


def to_batch(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return rows as Arrow: a column without a value has the type of NULL, values without an Arrow type are text."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.record_batch([_array(values) for values in columns], names=list(names))


def _array(values: Sequence[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds <= {list, tuple}:
        inner = _array([element for value in values if value is not None for element in value])
        lists = [None if value is None else [_convert(e, inner.type) for e in value] for value in values]
        return pa.array(lists, pa.list_(inner.type))
    if len(kinds) == 1 and kinds <= _KNOWN:
        return pa.array(values)
    type_ = _type(kinds, values)
    return pa.array([_convert(value, type_) for value in values], type_)


def _type(kinds: set[type], values: Sequence[Any]) -> pa.DataType:
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pa.int64()
    if kinds == {datetime.datetime}:
        aware = any(value is not None and value.tzinfo is not None for value in values)
        return pa.timestamp("us", tz="UTC" if aware else None)
    if kinds <= {int, Decimal}:
        decimals = [Decimal(value) for value in values if value is not None]
        if all(value.is_finite() for value in decimals):
            return decimal_type(decimals)
    return pa.float64() if kinds <= {int, float, Decimal} else pa.string()


def _convert(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(type_) and not isinstance(value, str):
        return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
    return float(value) if pa.types.is_floating(type_) else value


def read(result: Any, most_bytes: int | None, stop: Callable[[], None], most_rows: int | None = None) -> pa.RecordBatch:
    """Return the rows of a driver's result; beyond so many bytes or rows, stop it and give those that were read."""
    names, following = reader(result)
    rows: list[tuple[Any, ...]] = []
    held = 0
    while found := following(_READ_AT_ONCE):
        rows += found
        held += sum(map(size_of, found))
        if (most_bytes is not None and held > most_bytes) or (most_rows is not None and len(rows) >= most_rows):
            stop()
            with suppress(Exception):  # that it was stopped
                close(result)
            break
    return to_batch(names, rows)


def reader(result: Any) -> tuple[list[str], Callable[[int | None], list[tuple[Any, ...]]]]:
    """Return the column names of a driver's result, and what gives its next rows (None: all)."""
    if hasattr(result, "fetchmany"):
        names = [column[0] for column in result.description or ()]
        return names, lambda size: list(result.fetchall() if size is None else result.fetchmany(size))
    if hasattr(result, "result_rows"):  # ClickHouse
        rows: Iterator[Any] = iter(result.result_rows)
        names = list(result.column_names)
    else:  # BigQuery
        rows = (tuple(row.values()) for row in result)
        names = [field.name for field in result.schema]
    return names, lambda size: [tuple(row) for row in islice(rows, size)]


def message_of(error: Exception) -> str:
    """Return the first line of what a driver says: the last of an error's arguments, where it is a text."""
    message = error.args[-1] if error.args and isinstance(error.args[-1], str) else str(error)
    return message.strip().split("\n", 1)[0] or type(error).__name__


def close(result: Any) -> None:
    """Close a driver's result, where it can be."""
    if hasattr(result, "close"):
        result.close()


# --- the session ------------------------------------------------------------------------------------------------------

MOST_WRITTEN = 10_000
"""Rows between two steps that are written into statements, where there are no temporary tables."""
_FIRST_PAGE, _LARGEST_PAGE = 32, 32_768
_INSERTED_ROWS = 500
_NUMBER = "_n"


@dataclass(frozen=True, slots=True)
class Link:
    """A connection that a session works on.

    Attributes:
        backend: ibis's, used by nobody else meanwhile.
        cancel: stops the statement that runs on it; from any thread.
        run: runs a SELECT whose rows come as they are read, where the driver can.
    """

    backend: Any
    cancel: Callable[[], None]
    run: Callable[[str], Any]


class IbisSession(InterruptibleSession):
    """A Session on one connection of its own; `give_back` takes it at the end, and whether it may be used again."""

    def __init__(
        self, link: Link, engine: EngineProfile, give_back: Callable[[Link, bool], None], deadline: float | None = None
    ) -> None:
        self._link, self._engine, self._give_back = link, engine, give_back
        self._numbers = count(1)
        self._using = threading.RLock()  # held while the connection works for somebody
        self._usable = True
        self._tables: list[str] = []
        self._value_tables: dict[str, str] = {}
        super().__init__()
        with self._statement():
            for statement in engine.begin:
                self._execute(statement)
        self._end_after(deadline, timed=True)

    def fetch(
        self, sql: str, most_bytes: int | None = None, parameters: Parameters = (), most_rows: int | None = None
    ) -> pa.Table:
        """Return all rows of a SELECT, or a little more than `most_bytes` or `most_rows`; some drivers bring all."""
        self._check_select(sql)
        with self._statement():
            return self._fetch(self._write_parameters(sql, parameters), most_bytes, most_rows)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._statement():
            return self._execute(sql, most=None)[1]

    def names(self, sql: str, parameters: Parameters = ()) -> list[str]:
        """Return what the engine calls the columns of a query's result; no rows are read."""
        tree = self._check_select(self._write_parameters(sql, parameters)).copy()
        tree.set("limit", exp.Limit(expression=exp.Literal.number(0)))
        with self._statement():
            return self._execute(write_tree(tree, self._engine.dialect), most=1)[0]

    def create(self, name: str, sql: str) -> int:
        self._check_select(sql)
        self._check_is_new(name)
        with self._statement():
            if self._engine.temporary:
                self._make(name, sql)
                _, counted = self._execute(f"SELECT COUNT(*) FROM {self._quote_temporary(name)}", most=1)
                return int(counted[0][0])
            names, rows = self._execute(self._add_value_tables(sql), most=MOST_WRITTEN + 1)
        self._store_as_values(name, pa.Table.from_batches([to_batch(names, rows)]))
        return len(rows)

    def store(self, name: str, table: pa.Table) -> None:
        self._check_is_new(name)
        if not self._engine.temporary:
            self._store_as_values(name, table)
            return
        columns = ", ".join(f"{self._quote(field.name)} {self._type(field.type)}" for field in table.schema)
        head = self._engine.temporary.partition(" AS ")[0].format(name=self._quote_temporary(name))
        with self._statement():
            self._execute(f"{head} ({columns})")
            self._tables.append(name)
        for batch in table.to_batches(max_chunksize=_INSERTED_ROWS):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            types = [field.type for field in batch.schema]
            values = ", ".join(f"({', '.join(map(self._literal, row, types))})" for row in rows)
            with self._statement():
                self._execute(f"INSERT INTO {self._quote_temporary(name)} VALUES {values}")

    def locate(self, name: str) -> tuple[str, ...]:
        return (self._prefix + name,)

    @property
    def backend(self) -> Any:
        return self._link.backend

    def _new_work(self) -> Work:
        return Work(self._using)

    def _finish(self) -> None:
        with self._using:
            statements = [self._engine.drop.format(name=self._quote_temporary(name)) for name in self._tables]
            try:
                for statement in [*statements, self._engine.end]:
                    if statement and self._usable:
                        close(self._link.backend.raw_sql(statement))
            except Exception:  # after any error the connection is not used again
                self._usable = False
        self._give_back(self._link, self._usable)

    # --- streams

    def _open(self, work: Work, sql: str, parameters: Parameters) -> Generator[pa.RecordBatch]:
        self._check_select(sql)
        sql = self._write_parameters(sql, parameters)
        if not self._engine.paged:
            result = self._link.backend.raw_sql(self._add_value_tables(sql))
            return _from_cursor(result, work.first_rows or min(_FIRST_PAGE, work.batch_rows), work.batch_rows)
        numbered = _number_rows(parse_one(sql, read=self._engine.dialect))
        if numbered is None:  # an order that can only be kept by reading on
            return (batch for batch in self._fetch(sql).to_batches(max_chunksize=work.batch_rows))
        name = f"stream{next(self._numbers)}"
        self._make(name, numbered.sql(self._engine.dialect))
        return self._pages(name, work.batch_rows)

    def _pages(self, name: str, batch_rows: int) -> Generator[pa.RecordBatch]:
        place, number, last, size = self._quote_temporary(name), self._quote(_NUMBER), 0, _FIRST_PAGE
        try:
            while True:
                names, rows = self._execute(
                    f"SELECT * FROM {place} WHERE {number} > {last} AND {number} <= {last + size} ORDER BY {number}",
                    most=None,
                )
                if not rows:
                    return
                at = [found.lower() for found in names].index(_NUMBER)
                kept = [tuple(value for i, value in enumerate(row) if i != at) for row in rows]
                page = to_batch([n for i, n in enumerate(names) if i != at], kept)
                yield from (page.slice(start, batch_rows) for start in range(0, page.num_rows, batch_rows))
                last, size = last + size, min(2 * size, _LARGEST_PAGE)
        finally:
            with suppress(DatabaseError), self._statement():  # else it is dropped at the end
                self._execute(self._engine.drop.format(name=place))
                self._tables.remove(name)

    # --- statements

    def _make(self, name: str, query: str) -> None:
        self._execute(self._engine.temporary.format(name=self._quote_temporary(name), query=query))
        self._tables.append(name)

    def _fetch(self, sql: str, most_bytes: int | None = None, most_rows: int | None = None) -> pa.Table:
        self._limit_time()
        result = self._link.run(self._add_value_tables(sql))
        try:
            return pa.Table.from_batches([read(result, most_bytes, self._link.cancel, most_rows)])
        finally:
            close(result)

    def _execute(self, sql: str, *, most: int | None = 0) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a statement; give the names and the first rows of its result: at most so many, None all, 0 no result."""
        self._limit_time()
        result = self._link.backend.raw_sql(sql)
        try:
            if most == 0:
                return [], []
            names, fetch = reader(result)
            return names, fetch(most)
        finally:
            close(result)

    def _limit_time(self) -> None:
        if self._engine.deadline and self._ends is not None:
            left = max(1, int((self._ends - time.monotonic()) * 1000))
            limit = self._engine.deadline.format(milliseconds=left, seconds=-(-left // 1000))
            close(self._link.backend.raw_sql(limit))

    def _translate_error(
        self, error: Exception, work: Work
    ) -> DatabaseError:  # drivers' errors have no class in common
        if work.stopped or self._is_late(nearly=True):
            return self._stop_error()
        return engine_error(f"{self._engine.dialect}: {message_of(error).replace(self._prefix, '')}", type(error))

    def _cancel(self, work: Work) -> None:  # noqa: ARG002  # there is one connection
        self._link.cancel()

    def _check_select(self, sql: str) -> exp.Query:
        """Return the tree of a text; raise an error unless it is one SELECT that changes nothing."""
        tree = read_tree(sql, self._engine.dialect)
        check_reads(tree)
        assert isinstance(tree, exp.Query)
        return tree

    def _write_parameters(self, sql: str, parameters: Parameters) -> str:
        """Return a query with its parameters written out: ibis' drivers bind each in a way of its own, or none."""
        if not parameters:
            return sql
        tree = fill_parameters(self._check_select(sql), parameters, self._engine.dialect)
        return write_tree(tree, self._engine.dialect)

    # --- text of statements

    def _store_as_values(self, name: str, table: pa.Table) -> None:
        if table.num_rows > MOST_WRITTEN:
            raise UnsupportedError(
                f"{self._engine.dialect} has no temporary tables here, and more than {MOST_WRITTEN:,} rows would have "
                "to be written into a statement: declare a key of one column in the schema file, so that rows can be "
                "read from the table itself, or narrow the query"
            )
        names = [exp.to_identifier(name, quoted=True) for name in table.column_names]
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        values = exp.values(rows or [(None,) * len(names)], "v", names)
        first = values.expressions[0]
        for value, field in zip(list(first.expressions), table.schema, strict=True):
            value.replace(exp.Cast(this=value.copy(), to=exp.DataType.build(sql_type(field.type), dialect="postgres")))
        select = exp.select("*").from_(values)
        if not table.num_rows:
            select = select.where("1 = 0")
        dialect = self._engine.dialect
        self._value_tables[name] = write_texts(select, dialect).sql(dialect)

    def _add_value_tables(self, sql: str) -> str:
        """Return a statement with the tables that it names and that are no tables anywhere."""
        named = [name for name in self._value_tables if self._quote_temporary(name) in sql]
        if not named:
            return sql
        members = ", ".join(f"{self._quote_temporary(name)} AS ({self._value_tables[name]})" for name in named)
        for opening in ("WITH RECURSIVE ", "WITH "):
            if sql.startswith(opening):
                return f"{opening}{members}, {sql.removeprefix(opening)}"
        return f"WITH {members} {sql}"

    def _check_is_new(self, name: str) -> None:
        if name in self._tables or name in self._value_tables:
            raise ProgrammingError(f'there is a temporary table "{name}" already')

    def _quote_temporary(self, name: str) -> str:
        return self._quote(self._prefix + name)

    def _quote(self, name: str) -> str:
        return written_name([name], self._engine.dialect)

    def _literal(self, value: Any, type_: pa.DataType) -> str:
        if isinstance(value, list):  # an empty one does not tell its type
            return f"CAST({exp.convert(value).sql(self._engine.dialect)} AS {self._type(type_)})"
        return exp.convert(value).sql(self._engine.dialect)

    def _type(self, type_: pa.DataType) -> str:
        written = sql_type(type_)
        if written == "text" and self._engine.text:
            return self._engine.text
        return exp.DataType.build(written, dialect="postgres").sql(self._engine.dialect)


def _from_cursor(result: Any, size: int, most: int) -> Generator[pa.RecordBatch]:
    names, fetch = reader(result)
    try:
        while rows := fetch(size):
            yield to_batch(names, rows)
            size = min(2 * size, most)
    finally:
        close(result)


def _number_rows(tree: exp.Expr) -> exp.Select | None:
    """Return a query with its rows numbered in its own order; None where that order is not known from outside."""
    order = tree.args.get("order")
    grouped = any(tree.args.get(key) for key in ("group", "distinct", "limit", "offset", "having", "windows"))
    plain = isinstance(tree, exp.Select) and not grouped and not tree.find(exp.AggFunc, exp.Window)
    if order is not None and not plain:
        return None
    numbers = exp.Window(this=exp.RowNumber(), order=order.copy() if order is not None else None)
    number = exp.alias_(numbers, exp.to_identifier(_NUMBER, quoted=True))
    if plain and isinstance(tree, exp.Select):
        numbered = tree.copy()
        assert isinstance(numbered, exp.Select)
        numbered.set("order", None)
        numbered.set("expressions", [*numbered.expressions, number])
        return numbered
    rows = exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=exp.to_identifier("q")))
    return exp.select("q.*", number).from_(rows)
