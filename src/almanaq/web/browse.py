"""Browsing a table without a model: its rows, sorted and filtered, and what each column holds.

Every statement goes the way of a client's query: what that may not read, neither may this. Values of private columns
are not shown even where queries may read them, and text functions are never called.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.agent.linking.joins import table_of
from almanaq.completion import complete
from almanaq.connection import Connection
from almanaq.encode import exact_numbers, plain
from almanaq.errors import OperationalError, PrivateColumnError, UnknownNameError, first_line, suggest
from almanaq.options import Options
from almanaq.suql.catalog.relations import Column, ColumnKind, Relation
from almanaq.suql.result_values import python_rows
from almanaq.text.sql_literals import is_plain
from almanaq.web.about import make_cursor, read_cursor
from almanaq.web.problems import Refused, from_utf16, utf16_length
from almanaq.web.records import CAP, bind_query, describe_columns, type_name
from almanaq.web.store import read_parquet, write_parquet

SECONDS = 15.0
_CELL = replace(CAP, cell=300)
_ROW_CELL = replace(CAP, cell=2_000)
"""Prose is shown by its beginning."""
_MOST_ROWS = 1_000_000
"""Rows that a profile reads: of a larger table those at its beginning."""
_TOP, _BARS, _SAMPLE = 10, 20, 2
_NUMBER = re.compile(r"(smallint|integer|bigint|hugeint|numeric|decimal|real|double)")
_TIME = re.compile(r"(date|time)")
_FILTER = re.compile(r"(?P<operator>!=|>=|<=|=|>|<|~)(?P<value>.*)", re.DOTALL)
_TAKES: Mapping[re.Pattern[str], tuple[Callable[[str], object], str]] = {
    _NUMBER: (float, "a number, as 4.5"),
    re.compile("boolean"): ({"true": True, "false": False}.__getitem__, "true or false"),
    re.compile("timestamp"): (datetime.datetime.fromisoformat, "a moment, as 2024-05-31 12:30"),
    re.compile("date"): (datetime.date.fromisoformat, "a day, as 2024-05-31"),
    re.compile("time"): (datetime.time.fromisoformat, "a time, as 12:30"),
}
"""By the beginning of a type, how its values are read and called."""
_COMPARES = {"=": exp.EQ, "!=": exp.NEQ, ">": exp.GT, "<": exp.LT, ">=": exp.GTE, "<=": exp.LTE}


def read_rows(
    connection: Connection, name: str, *, limit: int, cursor: str | None, sort: str | None, filters: Sequence[str]
) -> dict[str, Any]:
    """Return rows of a table, without its private columns; `rows_total` counts those that pass.

    Args:
        cursor: `next` of the rows before.
        sort: a column that is no prose; `-column`: the largest first.
        filters: conditions that all hold, as `price=low`, `rating>=4`, `name~ann` (holds the text, whatever its case),
            `phone=` (is missing).
    """
    relation = connection.catalog.relation(name)
    shown = [column for column in relation.columns if not column.private]
    start = 0 if cursor is None else read_cursor(cursor)
    query = exp.select().from_(table_of(relation.name))
    known = {column.name: column for column in relation.columns}

    def find(name: str) -> tuple[exp.Column, str]:
        column = _sortable(relation, name)
        return _column(column), column.type

    for condition in filters:
        query = query.where(_condition(condition, known, find))
    total = relation.rows
    if filters:
        counted = query.select(exp.alias_(exp.Count(this=exp.Star()), "n")).sql(connection.engine.dialect)
        total = _run(connection, counted).column(0)[0].as_py()
    query = query.select(*(_column(each) for each in shown))
    keys = [column for each in relation.key if (column := relation.column(each)) is not None and not column.private]
    ordered = [(key, False) for key in keys]
    if sort is not None:
        by, down = _split_sort(sort, known)
        ordered = [(_sortable(relation, by), down), *ordered]
    for column, down in ordered:
        query = query.order_by(exp.Ordered(this=_column(column), desc=down, nulls_first=False))
    suql = query.limit(limit + 1).offset(start).sql(connection.engine.dialect)
    written = (query.select("*", append=False) if len(shown) == len(relation.columns) else query).limit(100)
    for part in written.find_all(exp.Identifier):
        part.set("quoted", not is_plain(part.name))
    table = _run(connection, suql)
    rows = exact_numbers(plain(python_rows(table.slice(0, limit), exact=True)))
    capped = _ROW_CELL.fit([[_join_long(cell) for cell in row] for row in rows])
    more = table.num_rows > len(capped.rows)
    return {
        "columns": describe_columns(connection.catalog, bind_query(connection.engine, suql), table),
        "rows": capped.rows,
        "rows_total": total,
        "query": written.sql(connection.engine.dialect, pretty=True),
        "cells_cut": capped.cells_cut,
        "next": make_cursor(start + len(capped.rows)) if more else None,
    }


def _join_long(cell: Any) -> Any:
    """Return a cell, a list that would be cut as text."""
    return ", ".join(map(str, cell)) if isinstance(cell, list) and len(str(cell)) > _ROW_CELL.cell else cell


def select_kept_rows(rows: bytes, sort: str | None, filters: Sequence[str]) -> bytes:
    """Return the rows of a kept answer that pass, sorted, as the store keeps them; takes what `read_kept_rows` does."""
    if sort is None and not filters:
        return rows
    table = read_parquet(rows)
    return write_parquet(table.take(_find_places(table, sort, filters)))


def read_kept_rows(rows: bytes, start: int, limit: int, sort: str | None, filters: Sequence[str]) -> dict[str, Any]:
    """Return rows of a kept answer: `places` says which they are of all, `rows_total` counts those that pass.

    Args:
        rows: as the store keeps them.
        sort, filters: as of `read_rows`, by any column.
    """
    table = read_parquet(rows)
    places = _find_places(table, sort, filters)
    capped = CAP.fit(exact_numbers(plain(python_rows(table.take(places.slice(start, limit)), exact=True))))
    shown = places.slice(start, len(capped.rows)).to_pylist()
    return {"rows": capped.rows, "places": shown, "rows_total": len(places), "cells_cut": capped.cells_cut}


def _find_places(table: pa.Table, sort: str | None, filters: Sequence[str]) -> pa.ChunkedArray:
    import duckdb
    import numpy as np

    from almanaq.engines.duckdb.session import open_instance

    columns = {name: exp.column(f"c{number}") for number, name in reversed([*enumerate(table.column_names)])}
    query = exp.select("place").from_("kept")

    def find(name: str) -> tuple[exp.Column, str]:
        if name not in columns:
            raise Refused(422, f"no column named {name!r}{suggest(name, list(columns))}")
        return columns[name], type_name(table.schema.types[table.column_names.index(name)])

    for written in filters:
        query = query.where(_condition(written, columns, find))
    if sort is not None:
        name, down = _split_sort(sort, columns)
        query = query.order_by(exp.Ordered(this=find(name)[0], desc=down, nulls_first=False))
    places = pa.chunked_array([np.arange(table.num_rows)])
    if not filters and sort is None:
        return places
    kept = table.rename_columns([f"c{number}" for number in range(table.num_columns)]).append_column("place", places)
    with open_instance() as connection:
        connection.execute("SET enable_external_access = false")
        connection.register("kept", kept)
        try:
            return connection.sql(query.order_by("place").sql("duckdb")).to_arrow_table().column("place")
        except duckdb.OutOfMemoryException as error:
            raise OperationalError(f"there is no memory to sort these rows: {first_line(error)}") from error
        except duckdb.Error as error:
            raise Refused(422, first_line(error)) from error


def profile_table(connection: Connection, name: str) -> dict[str, Any]:
    """Return what each column of a table holds: missing and different values, bounds, a histogram or the top values.

    `read` counts the rows that were looked at, the first of a large table; of a private column nothing is given.
    """
    relation = connection.catalog.relation(name)
    profile = _Profile(connection, relation)
    rows, known = profile.count()
    columns = [profile.describe(column, known.get(column.name, {}), rows) for column in relation.columns]
    return {"name": relation.name, "rows": relation.rows, "read": rows, "columns": columns}


def completion_record(connection: Connection, text: str, at: int) -> dict[str, Any]:
    """Return what may stand at a place of a query; places count UTF-16 units."""
    found = complete(connection, text, from_utf16(text, at))
    return {"start": utf16_length(text[: found.start]), "items": plain(found.items)}


class _Profile:
    def __init__(self, connection: Connection, relation: Relation) -> None:
        self._connection, self._relation = connection, relation

    def _select(self, column: Column | None, *items: exp.Expr) -> exp.Select:
        """Return a query over the rows that are looked at."""
        source: exp.Expr = table_of(self._relation.name)
        if self._relation.rows is None or self._relation.rows > _MOST_ROWS:
            read = self._relation.columns if column is None else [column]
            first = exp.select(*(_column(each) for each in read if not each.private)).from_(source).limit(_MOST_ROWS)
            source = first.subquery("beginning")
        return exp.select(*items).from_(source)

    def _rows(self, query: exp.Select) -> list[tuple[Any, ...]]:
        return python_rows(_run(self._connection, query.sql(self._connection.engine.dialect)), exact=True)

    def count(self) -> tuple[int, dict[str, dict[str, Any]]]:
        """Return the number of rows, and for each column its counts and bounds; one scan."""
        measured = [(column.name, *each) for column in self._relation.columns for each in _measures(column)]
        items = [exp.Count(this=exp.Star()), *(item for _, _, item in measured)]
        named = [exp.alias_(item, f"m{number}") for number, item in enumerate(items)]
        rows, *values = self._rows(self._select(None, *named))[0]
        known: dict[str, dict[str, Any]] = {}
        for (name, what, _), value in zip(measured, values, strict=True):
            known.setdefault(name, {})[what] = value
        return rows, known

    def describe(self, column: Column, known: dict[str, Any], rows: int) -> dict[str, Any]:
        """Return one column as a client gets it."""
        kind = column.type + ("[]" if column.array else "")
        record: dict[str, Any] = {"name": column.name, "type": kind, "kind": column.kind.value}
        record |= {"private": column.private}
        if column.private:
            return record
        record |= {"nulls": rows - known["filled"], "distinct": known.get("distinct")}
        record |= {"least": known.get("least"), "most": known.get("most")}
        if column.kind is not ColumnKind.FREE_TEXT:
            if _is(_NUMBER, column) and (known["distinct"] or 0) > _BARS and _are_finite(known):
                record["histogram"] = self._histogram(column, float(known["least"]), float(known["most"]))
            else:
                record["top"] = self._top(column)
        else:
            texts = self._rows(self._select(column, _column(column)).where(_is_filled(column)).limit(_SAMPLE))
            record["sample"] = [_CELL.cut(plain(text)) for (text,) in texts]
        return exact_numbers(plain(record))  # type: ignore[no-any-return]

    def _histogram(self, column: Column, least: float, most: float) -> list[dict[str, Any]]:
        step = (most - least) / _BARS
        place = exp.Floor(this=(exp.cast(_column(column), "double") - least) / step)
        bar = exp.Least(this=place, expressions=[exp.convert(_BARS - 1.0)])
        query = self._select(column, exp.alias_(bar, "bar"), exp.alias_(exp.Count(this=exp.Star()), "n"))
        query = query.where(_is_filled(column)).group_by(bar.copy())
        found = {int(bar): count for bar, count in self._rows(query)}
        return [
            {"from": least + step * bar, "to": least + step * (bar + 1), "rows": found.get(bar, 0)}
            for bar in range(_BARS)
        ]

    def _top(self, column: Column) -> list[dict[str, Any]]:
        """Return the most frequent values, of arrays the elements, with their numbers of rows."""
        value: exp.Expr = _column(column)
        query = self._select(column, exp.alias_(exp.Explode(this=value) if column.array else value, "v"))
        counted = exp.alias_(exp.Count(this=exp.Star()), "n")
        query = exp.select("v", counted).from_(query.subquery("found")).where("NOT v IS NULL").group_by("v")
        query = query.order_by(exp.Ordered(this=exp.column("n"), desc=True), "v").limit(_TOP)
        return [{"value": _CELL.cut(plain(value)), "rows": count} for value, count in self._rows(query)]


def _measures(column: Column) -> Iterator[tuple[str, exp.Expr]]:
    if column.private:
        return
    yield "filled", exp.Count(this=_column(column))
    if column.array or column.kind is ColumnKind.FREE_TEXT:
        return
    yield "distinct", exp.Count(this=exp.Distinct(expressions=[_column(column)]))
    if _is(_NUMBER, column) or _is(_TIME, column):
        yield "least", exp.Min(this=_column(column))
        yield "most", exp.Max(this=_column(column))


def _is(pattern: re.Pattern[str], column: Column) -> bool:
    return not column.array and pattern.match(column.type) is not None


def _are_finite(known: dict[str, Any]) -> bool:
    least, most = known["least"], known["most"]
    return least is not None and math.isfinite(least) and math.isfinite(most)


def _column(column: Column) -> exp.Column:
    return exp.column(exp.to_identifier(column.name, quoted=True))


def _is_filled(column: Column) -> exp.Expr:
    return _column(column).is_(exp.null()).not_()


def _sortable(relation: Relation, name: str) -> Column:
    """Return a column that rows may be sorted and filtered by."""
    column = relation.column(name)
    if name in relation.withheld or (column is not None and column.private):
        raise PrivateColumnError(f"{relation.name}.{name} is private")
    if column is None:
        near = suggest(name, [each.name for each in relation.columns if not each.private])
        raise UnknownNameError(f"no column named {name!r}{near}")
    if column.kind is ColumnKind.FREE_TEXT or column.array:
        raise Refused(
            422,
            f"{relation.name}.{column.name} is {'a list' if column.array else 'prose'}: name a column of single values",
        )
    return column


def _split_sort(sort: str, names: Collection[str]) -> tuple[str, bool]:
    """Return the column to sort by, and whether the largest comes first; names may begin with a hyphen."""
    down = sort not in names and sort.startswith("-")
    return sort.removeprefix("-") if down else sort, down


def _condition(written: str, names: Collection[str], find: Callable[[str], tuple[exp.Column, str]]) -> exp.Expr:
    """Return a filter as SQL; `find` gives a column and its type. Names may hold operators."""
    named = max((name for name in names if written.startswith(name)), key=len, default="")
    found = _FILTER.fullmatch(written, len(named)) if named else None
    found = found or _FILTER.search(written)
    if found is None or not found.start():
        raise Refused(422, f"filter: {written!r} is no condition; write column=value, or one of != > < >= <= ~")
    name, operator, value = written[: found.start()], found["operator"], found["value"]
    column, kind = find(name)
    if operator == "~":
        text = exp.Lower(this=exp.cast(column, "text"))
        place = exp.StrPosition(this=text, substr=exp.Literal.string(value.lower()))
        return exp.GT(this=place, expression=exp.Literal.number(0))
    if not value:
        missing = column.is_(exp.null())
        return missing.not_() if operator == "!=" else missing
    known = next((each for start, each in _TAKES.items() if start.match(kind)), None)
    if known is not None and not kind.endswith("[]"):
        read, takes = known
        try:
            read(value.strip())
        except (ValueError, KeyError):
            raise Refused(422, f"filter: {name} takes {takes}, not {value!r}") from None
    return _COMPARES[operator](this=column, expression=exp.Literal.string(value))


def _run(connection: Connection, suql: str) -> pa.Table:
    options = Options(link=False, deadline=SECONDS)
    return connection.sql(suql, options=options, dialect=connection.engine.dialect).table
